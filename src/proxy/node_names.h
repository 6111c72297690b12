/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * node_names: how the numbers of collectors are called as metrics, and in which unit. Pure; any thread.
 *
 * cicada_node_<collector>_<column>_<base unit>[_total]: "disk", "read_ms" in ms becomes
 * cicada_node_disk_read_seconds_total with a scale of 0.001. The kernel's own names are made lower case.
 */
#ifndef PROXY_NODE_NAMES_H
#define PROXY_NODE_NAMES_H

#include "sample/table.h"
#include "util/buf.h"

/* Appends the family's name; `*out_scale` makes the column's unit the base unit. */
void node_names_family(const char *collector, const struct sample_column *column, struct buf *out, double *out_scale);

/* Appends {device="sda",label="…"} for a row; nothing for the only row of a collector. `extra` (may be NULL) is put
 * before the others: `mode="user"`. */
void node_names_labels(const char *collector, const struct sample_row *row, const char *extra, struct buf *out);

/* Appends a label's value with Prometheus' escapes, without quotes. */
void node_names_escape(const char *text, struct buf *out);

#endif
