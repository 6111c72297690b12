/* SPDX-License-Identifier: BSD-3-Clause */
#include "sample/vm.h"

#include <errno.h>
#include <string.h>

#include "sample/proctable.h"
#include "util/cursor.h"

/* Name, unit, help; in the kernel's order, so that each is found where it is looked for first. */
#define VM_COUNTERS(COUNTER)                                                                                           \
    COUNTER(numa_miss, "pages", "allocated on another node than wanted")                                               \
    COUNTER(workingset_refault_anon, "pages", "anonymous pages read again soon after they were evicted")               \
    COUNTER(workingset_refault_file, "pages", "file pages read again soon after they were evicted")                    \
    COUNTER(pgpgin, "kB", "read from disks")                                                                           \
    COUNTER(pgpgout, "kB", "written to disks")                                                                         \
    COUNTER(pswpin, "pages", "read from swap")                                                                         \
    COUNTER(pswpout, "pages", "written to swap")                                                                       \
    COUNTER(pgfault, "", "page faults of all kinds")                                                                   \
    COUNTER(pgmajfault, "", "page faults that waited for a disk")                                                      \
    COUNTER(pgsteal_kswapd, "pages", "reclaimed in the background")                                                    \
    COUNTER(pgsteal_direct, "pages", "reclaimed by tasks that had to wait for it")                                     \
    COUNTER(pgscan_kswapd, "pages", "looked at for reclaim in the background")                                         \
    COUNTER(pgscan_direct, "pages", "looked at for reclaim by tasks that had to wait for it")                          \
    COUNTER(oom_kill, "", "processes killed for want of memory")                                                       \
    COUNTER(numa_pages_migrated, "pages", "moved to the node that uses them")                                          \
    COUNTER(compact_stall, "", "tasks that waited for memory to be compacted")                                         \
    COUNTER(thp_fault_alloc, "", "huge pages given at a fault")                                                        \
    COUNTER(thp_fault_fallback, "", "small pages given since there was no huge one")

#define VM_COLUMN(name, unit, help) {#name, unit, help, SAMPLE_COUNTER},
#define VM_LENGTH(name, unit, help) sizeof #name - 1,
static const struct sample_column vm_columns[] = {VM_COUNTERS(VM_COLUMN)};
static const size_t vm_name_lengths[] = {VM_COUNTERS(VM_LENGTH)};

enum { VM_COLUMNS = ARRAY_LENGTH(vm_columns) };

int vm_table_init(struct sample_table *table, struct error *err)
{
    return sample_table_init(table, vm_columns, VM_COLUMNS, 1, err);
}

static bool vm_is(size_t column, const struct cursor *name)
{
    size_t length = cursor_left(name);
    return vm_name_lengths[column] == length && memcmp(vm_columns[column].name, name->at, length) == 0;
}

/* The column of `name`, VM_COLUMNS when it is none of ours. `expected` is where the last one lets us look first. */
static size_t vm_find(const struct cursor *name, size_t expected)
{
    if (expected < VM_COLUMNS && vm_is(expected, name))
        return expected;
    size_t i = 0;
    while (i < VM_COLUMNS && !vm_is(i, name))
        i++;
    return i;
}

struct vm_numbers {
    uint64_t numbers[VM_COLUMNS];
    bool is_known[VM_COLUMNS];
    size_t known; /* how many are */
    size_t bad;   /* lines without sense */
};

/* Lines are "pgfault 13275003"; a few of the kernel's numbers are gauges and may be below 0, but none of ours. */
static void vm_take_numbers(struct cursor all, struct vm_numbers *out_found)
{
    *out_found = (struct vm_numbers){0};
    struct cursor line, name;
    size_t expected = 0;
    while (cursor_line(&all, &line)) {
        if (!cursor_word(&line, &name)) {
            out_found->bad++;
            continue;
        }
        size_t column = vm_find(&name, expected);
        if (column == VM_COLUMNS)
            continue;
        expected = column + 1;
        size_t count;
        if (!procfile_numbers(&line, &out_found->numbers[column], 1, &count) || count != 1) {
            out_found->bad++;
            continue;
        }
        out_found->known += out_found->is_known[column] ? 0 : 1;
        out_found->is_known[column] = true;
    }
}

int vm_parse(const char *text, size_t length, struct sample_table *table, struct error *err)
{
    struct vm_numbers found;
    vm_take_numbers(cursor_of(text, length), &found);
    if (found.known == 0)
        return error_set(err, -EBADMSG, "no line like 'pgfault 1234'");

    table->lines_bad += found.bad;
    sample_table_begin(table);
    struct sample_row *row = sample_table_row(table, "vm", 2);
    for (size_t i = 0; row != NULL && i < VM_COLUMNS; i++) {
        if (found.is_known[i])
            sample_row_count(row, i, found.numbers[i]);
    }
    sample_table_end(table);
    return row != NULL ? 0 : error_set(err, -ENOMEM, "no memory for a row");
}

static int vm_open(const struct sample_config *config, struct collector **out_collector, struct error *err)
{
    return proctable_open(config, "vmstat", vm_columns, VM_COLUMNS, out_collector, err);
}

static int vm_read(struct collector *collector, int64_t now_boot_ns, struct error *err)
{
    (void)now_boot_ns;
    return proctable_read(collector, vm_parse, err);
}

const struct collector_ops vm_collector = {
    .name = "vm",
    .help = "page faults, swapping, reclaim and OOM kills (/proc/vmstat)",
    .open = vm_open,
    .read = vm_read,
    .table = proctable_table,
    .close = proctable_close,
};
