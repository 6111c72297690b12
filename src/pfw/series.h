/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * series: the sequences of events that belong together, those of one host with one category and one name, as numbers
 * 0, 1, 2, … in the order of arrival. One thread.
 */
#ifndef PFW_SERIES_H
#define PFW_SERIES_H

#include "pfw/line.h"
#include "pfw/names.h"

#define PFW_SERIES_MAX       (1u << 22)
#define PFW_SERIES_MAX_BYTES (256u << 20)

struct pfw_series {
    struct pfw_names keys; /* host, length of the category, category, NUL, name */
    struct buf key;
};

/* What a number stands for; the texts are borrowed for the life of the table, and a NUL follows each. */
struct pfw_series_id {
    uint32_t host;
    struct cursor category;
    struct cursor name;
};

/* Empty; allocates nothing yet. */
void pfw_series_init(struct pfw_series *series);
void pfw_series_fini(struct pfw_series *series);

/* The number of the series of `line`, an event of host number `host`. -ENOSPC past a limit, -ENOMEM. */
MUST_CHECK int pfw_series_of(struct pfw_series *series, uint32_t host, const struct pfw_line *line,
                             uint32_t *out_series, struct error *err);

/* `number` is one that pfw_series_of() gave. */
struct pfw_series_id pfw_series_id(const struct pfw_series *series, uint32_t number);

#endif
