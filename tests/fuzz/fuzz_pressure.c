/* SPDX-License-Identifier: BSD-3-Clause */
#include "sample/pressure.h"

#include "ticks.h"

static void pressure_tick(const char *text, size_t length, void *context)
{
    struct sample_table *table = context;
    sample_table_begin(table);
    pressure_parse(text, length, "cpu", table);
    sample_table_end(table);
    ticks_check(table);
}

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size)
{
    struct sample_table table;
    if (pressure_table_init(&table, NULL) == 0)
        ticks_run(data, size, pressure_tick, &table);
    sample_table_fini(&table);
    return 0;
}
