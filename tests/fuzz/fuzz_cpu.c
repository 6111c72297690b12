/* SPDX-License-Identifier: BSD-3-Clause */
#include "sample/cpu.h"

#include <assert.h>
#include <math.h>

#include "ticks.h"

/* Percentages are of a whole whatever the numbers. */
static void cpu_check_percentages(const struct sample_table *table)
{
    for (size_t i = 0; i < table->rows_count; i++) {
        double percent[CPU_COLUMNS], sum = 0;
        if (!cpu_percentages(table->rows[i], percent))
            continue;
        for (size_t column = 0; column < CPU_COLUMNS; column++) {
            assert(percent[column] >= 0 && percent[column] <= 100);
            sum += percent[column];
        }
        assert(fabs(sum - 100) < 0.1);
    }
}

static void cpu_tick(const char *text, size_t length, void *context)
{
    struct sample_table *table = context;
    size_t rows_count = table->rows_count;
    if (cpu_parse(text, length, table, NULL) < 0)
        assert(table->rows_count == rows_count);
    ticks_check(table);
    cpu_check_percentages(table);
}

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size)
{
    struct sample_table table;
    if (cpu_table_init(&table, NULL) == 0)
        ticks_run(data, size, cpu_tick, &table);
    sample_table_fini(&table);
    return 0;
}
