/* SPDX-License-Identifier: BSD-3-Clause */
#include "sample/vm.h"

#include <errno.h>
#include <string.h>

#include "sample/proctable.h"
#include "util/cursor.h"

/* In the kernel's order, so that each is found where it is looked for first. */
static const struct sample_column vm_columns[] = {
    {"numa_miss", "pages", "allocated on another node than wanted", SAMPLE_COUNTER},
    {"workingset_refault_anon", "pages", "anonymous pages read again soon after they were evicted", SAMPLE_COUNTER},
    {"workingset_refault_file", "pages", "file pages read again soon after they were evicted", SAMPLE_COUNTER},
    {"pgpgin", "kB", "read from disks", SAMPLE_COUNTER},
    {"pgpgout", "kB", "written to disks", SAMPLE_COUNTER},
    {"pswpin", "pages", "read from swap", SAMPLE_COUNTER},
    {"pswpout", "pages", "written to swap", SAMPLE_COUNTER},
    {"pgfault", "", "page faults of all kinds", SAMPLE_COUNTER},
    {"pgmajfault", "", "page faults that waited for a disk", SAMPLE_COUNTER},
    {"pgsteal_kswapd", "pages", "reclaimed in the background", SAMPLE_COUNTER},
    {"pgsteal_direct", "pages", "reclaimed by tasks that had to wait for it", SAMPLE_COUNTER},
    {"pgscan_kswapd", "pages", "looked at for reclaim in the background", SAMPLE_COUNTER},
    {"pgscan_direct", "pages", "looked at for reclaim by tasks that had to wait for it", SAMPLE_COUNTER},
    {"oom_kill", "", "processes killed for want of memory", SAMPLE_COUNTER},
    {"numa_pages_migrated", "pages", "moved to the node that uses them", SAMPLE_COUNTER},
    {"compact_stall", "", "tasks that waited for memory to be compacted", SAMPLE_COUNTER},
    {"thp_fault_alloc", "", "huge pages given at a fault", SAMPLE_COUNTER},
    {"thp_fault_fallback", "", "small pages given since there was no huge one", SAMPLE_COUNTER},
};

enum { VM_COLUMNS = ARRAY_LENGTH(vm_columns) };

int vm_table_init(struct sample_table *table, struct error *err)
{
    return sample_table_init(table, vm_columns, VM_COLUMNS, 1, err);
}

/* The column of `name`, VM_COLUMNS when it is none of ours. `expected` is where the last one lets us look first. */
static size_t vm_find(const struct cursor *name, size_t expected)
{
    if (expected < VM_COLUMNS && cursor_equals(name, vm_columns[expected].name))
        return expected;
    size_t i = 0;
    while (i < VM_COLUMNS && !cursor_equals(name, vm_columns[i].name))
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
