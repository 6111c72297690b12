/* SPDX-License-Identifier: BSD-3-Clause */
#include "sample/cpu.h"

#include <errno.h>

#include "sample/proctable.h"
#include "util/cursor.h"

/* The columns of the oldest kernel: a line with fewer is none. */
enum { CPU_COLUMNS_MIN = CPU_IDLE + 1 };

static const struct sample_column cpu_columns[CPU_COLUMNS] = {
    [CPU_USER] = {"user", "ticks", "time in user mode, guests included", SAMPLE_COUNTER},
    [CPU_NICE] = {"nice", "ticks", "time in user mode at low priority, guests included", SAMPLE_COUNTER},
    [CPU_SYSTEM] = {"system", "ticks", "time in the kernel", SAMPLE_COUNTER},
    [CPU_IDLE] = {"idle", "ticks", "time with nothing to do", SAMPLE_COUNTER},
    [CPU_IOWAIT] = {"iowait", "ticks", "idle time while a task of this CPU waited for a disk", SAMPLE_COUNTER},
    [CPU_IRQ] = {"irq", "ticks", "time in interrupts", SAMPLE_COUNTER},
    [CPU_SOFTIRQ] = {"softirq", "ticks", "time in soft interrupts", SAMPLE_COUNTER},
    [CPU_STEAL] = {"steal", "ticks", "time in which the hypervisor ran something else", SAMPLE_COUNTER},
    [CPU_GUEST] = {"guest", "ticks", "time in which a guest ran, also in user", SAMPLE_COUNTER},
    [CPU_GUEST_NICE] = {"guest_nice", "ticks", "time in which a guest ran at low priority, also in nice",
                        SAMPLE_COUNTER},
};

int cpu_table_init(struct sample_table *table, struct error *err)
{
    return sample_table_init(table, cpu_columns, CPU_COLUMNS, 0, err);
}

/* Takes "cpu" or "cpu17" from the front of a line. */
static bool cpu_take_name(struct cursor *line, struct cursor *out_name)
{
    if (!cursor_word(line, out_name))
        return false;
    struct cursor number = *out_name;
    if (!cursor_accept_text(&number, "cpu"))
        return false;
    uint64_t cpu;
    return cursor_is_empty(&number) || (cursor_u64(&number, &cpu) && cursor_is_empty(&number));
}

/* One line; false when it makes no sense. */
static bool cpu_parse_line(struct cursor line, size_t numbers_min, struct sample_table *table)
{
    struct cursor name;
    if (!cpu_take_name(&line, &name))
        return false;
    uint64_t numbers[CPU_COLUMNS];
    size_t count;
    bool is_good = procfile_numbers(&line, numbers, CPU_COLUMNS, &count) && count >= numbers_min;
    struct sample_row *row =
        sample_table_row(table, name.at, cursor_left(&name)); /* a bad line's row keeps its totals */
    if (row == NULL || !is_good)
        return row == NULL;
    for (size_t i = 0; i < count; i++)
        sample_row_count(row, i, numbers[i]);
    return true;
}

int cpu_parse(const char *text, size_t length, struct sample_table *table, struct error *err)
{
    struct cursor all = cursor_of(text, length);
    struct cursor line;
    bool has_begun = false;
    while (cursor_line(&all, &line)) {
        /* All CPUs come before the interrupts, whose line may be longer than all the rest of the file. */
        if (has_begun && procfile_starts_with(&line, "intr"))
            break;
        if (!procfile_starts_with(&line, "cpu"))
            continue;
        if (!has_begun)
            sample_table_begin(table);
        has_begun = true;
        /* Without its newline a line has been cut, perhaps in the middle of a number: it must at least be complete. */
        bool is_cut = line.end == text + length;
        if (!cpu_parse_line(line, is_cut ? CPU_COLUMNS : CPU_COLUMNS_MIN, table))
            table->lines_bad++;
    }
    if (!has_begun)
        return error_set(err, -EBADMSG, "no line starts with 'cpu'");
    sample_table_end(table);
    return 0;
}

/* What is left of `whole` without the part that another column counts too. */
static uint64_t cpu_without(uint64_t whole, uint64_t part)
{
    return whole > part ? whole - part : 0;
}

bool cpu_percentages(const struct sample_row *row, double out_percent[CPU_COLUMNS])
{
    uint64_t ticks[CPU_COLUMNS];
    for (size_t i = 0; i < CPU_COLUMNS; i++)
        ticks[i] = row->values[i].is_known ? row->values[i].increase : 0;
    ticks[CPU_USER] = cpu_without(ticks[CPU_USER], ticks[CPU_GUEST]);
    ticks[CPU_NICE] = cpu_without(ticks[CPU_NICE], ticks[CPU_GUEST_NICE]);

    double all = 0; /* as a double: numbers without sense may add up to more than an integer holds */
    for (size_t i = 0; i < CPU_COLUMNS; i++)
        all += (double)ticks[i];
    if (all <= 0)
        return false;
    for (size_t i = 0; i < CPU_COLUMNS; i++)
        out_percent[i] = (double)ticks[i] / all * 100; /* in this order never above 100 */
    return true;
}

static int cpu_open(const struct sample_config *config, struct collector **out_collector, struct error *err)
{
    return proctable_open(config, "stat", cpu_columns, CPU_COLUMNS, out_collector, err);
}

static int cpu_read(struct collector *collector, int64_t now_boot_ns, struct error *err)
{
    (void)now_boot_ns;
    return proctable_read(collector, cpu_parse, err);
}

const struct collector_ops cpu_collector = {
    .name = "cpu",
    .help = "where the time of each CPU and of all of them went (/proc/stat)",
    .open = cpu_open,
    .read = cpu_read,
    .table = proctable_table,
    .close = proctable_close,
};
