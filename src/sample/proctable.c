/* SPDX-License-Identifier: BSD-3-Clause */
#include "sample/proctable.h"

#include <errno.h>
#include <stdlib.h>

/* Of the files that are read this way: a device's name and some thirty numbers. */
enum { PROCTABLE_LINE_MAX_BYTES = 1024 };

int proctable_open(const struct sample_config *config, const char *name, const struct sample_column *columns,
                   size_t columns_count, struct collector **out_collector, struct error *err)
{
    CLEANUP(collector_cleanup) struct collector *c = malloc(sizeof *c);
    if (c == NULL)
        return error_set(err, -ENOMEM, "no memory for a collector");
    *c = (struct collector){.file = PROCFILE_CLOSED};

    int rc = sample_table_init(&c->table, columns, columns_count, 0, err);
    if (rc < 0)
        return rc;
    rc = procfile_open(&c->file, config->proc_path, name, err);
    if (rc == -ENOENT || rc == -ENOTDIR)
        return error_set(err, -ENODEV, "no '%s/%s'", config->proc_path, name);
    if (rc < 0)
        return rc;
    c->file.line_max_bytes = PROCTABLE_LINE_MAX_BYTES;
    *out_collector = TAKE(c);
    return 0;
}

int proctable_read(struct collector *collector, proctable_parse *parse, struct error *err)
{
    int rc = procfile_read(&collector->file, err);
    if (rc < 0)
        return rc;
    rc = parse(collector->file.text, collector->file.length, &collector->table, err);
    return rc < 0 ? error_wrap(err, rc, "'%s'", collector->file.path) : 0;
}

const struct sample_table *proctable_table(const struct collector *collector)
{
    return &collector->table;
}

void proctable_close(struct collector *collector)
{
    if (collector == NULL)
        return;
    procfile_close(&collector->file);
    sample_table_fini(&collector->table);
    free(collector);
}
