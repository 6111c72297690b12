/* SPDX-License-Identifier: BSD-3-Clause */
#include "pfw/series.h"

#include <string.h>

/* How a key begins; category, a NUL and the name follow it. */
struct series_head {
    uint32_t host;
    uint32_t category_length;
};

void pfw_series_init(struct pfw_series *series)
{
    pfw_names_init(&series->keys, PFW_SERIES_MAX, PFW_SERIES_MAX_BYTES);
    buf_init(&series->key, PFW_SERIES_MAX_BYTES);
}

void pfw_series_fini(struct pfw_series *series)
{
    pfw_names_fini(&series->keys);
    buf_fini(&series->key);
}

int pfw_series_of(struct pfw_series *series, uint32_t host, const struct pfw_line *line, uint32_t *out_series,
                  struct error *err)
{
    struct buf *key = &series->key;
    struct series_head head = {.host = host};
    buf_reset(key);
    buf_bytes(key, &head, sizeof head);
    if (line->category.kind == PFW_JSON_STRING)
        pfw_json_unescape(&line->category, key);
    size_t category_end = key->length;
    buf_char(key, '\0');
    if (line->name.kind == PFW_JSON_STRING)
        pfw_json_unescape(&line->name, key);
    int rc = buf_status(key, err);
    if (rc < 0)
        return rc;
    head.category_length = (uint32_t)(category_end - sizeof head);
    memcpy(key->data, &head, sizeof head);
    return pfw_names_add(&series->keys, key->data, key->length, out_series, err);
}

struct pfw_series_id pfw_series_id(const struct pfw_series *series, uint32_t number)
{
    struct cursor key = pfw_names_text(&series->keys, number);
    struct series_head head;
    memcpy(&head, key.at, sizeof head);
    const char *category = key.at + sizeof head;
    const char *category_end = category + head.category_length;
    return (struct pfw_series_id){
        .host = head.host,
        .category = {.at = category, .end = category_end},
        .name = {.at = category_end + 1, .end = key.end},
    };
}
