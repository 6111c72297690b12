/* SPDX-License-Identifier: BSD-3-Clause */
#include "sample/sampler.h"

#include <errno.h>
#include <stdbool.h>
#include <stdlib.h>

#include "util/clock.h"
#include "util/cursor.h"
#include "util/num.h"

enum {
    SAMPLER_NAMES_MAX_BYTES = 4096,    /* of the known collectors' names in a message */
    SAMPLER_NOTES_MAX_BYTES = 1 << 20, /* of what one collector says at once */
};

struct sampler_slot {
    const struct collector_ops *ops;
    struct collector *collector;
    struct sampler_stats stats;
    bool is_fresh;
    bool has_told_bad;     /* that lines made no sense */
    bool has_told_refused; /* that rows found no place */
};

struct sampler {
    struct sample_config config;
    size_t count;
    struct sampler_slot slots[]; /* [count], of which there may be as many as collectors */
};

static size_t sampler_known_count(void)
{
    size_t count = 0;
    while (collectors[count] != NULL)
        count++;
    return count;
}

/* Takes the next word of a comma-separated list, without the blanks around it; empty ones are skipped. */
static bool sampler_next_name(struct cursor *list, struct cursor *out_name)
{
    while (!cursor_is_empty(list)) {
        const char *comma = memchr(list->at, ',', cursor_left(list));
        struct cursor name = {.at = list->at, .end = comma != NULL ? comma : list->end};
        list->at = comma != NULL ? comma + 1 : list->end;
        cursor_skip_blanks(&name);
        while (!cursor_is_empty(&name) && (name.end[-1] == ' ' || name.end[-1] == '\t'))
            name.end--;
        if (!cursor_is_empty(&name)) {
            *out_name = name;
            return true;
        }
    }
    return false;
}

static int sampler_unknown(const struct cursor *name, struct error *err)
{
    CLEANUP(buf_cleanup) struct buf known;
    buf_init(&known, SAMPLER_NAMES_MAX_BYTES);
    for (size_t i = 0; collectors[i] != NULL; i++)
        buf_printf(&known, "%s%s", i > 0 ? ", " : "", collectors[i]->name);
    return error_set(err, -EINVAL, "there is no collector '%.*s'; there are: %s",
                     (int)num_min_u64(cursor_left(name), 80), name->at, buf_string(&known));
}

/* Reads the list of names into `is_wanted`, in the order of `collectors`. */
static int sampler_choose(const char *names, bool *is_wanted, struct error *err)
{
    /* A plain name anywhere means: only these. */
    bool has_plain = false;
    struct cursor name;
    for (struct cursor list = cursor_of(names, strlen(names)); sampler_next_name(&list, &name);)
        has_plain = has_plain || (*name.at != '+' && *name.at != '-');
    for (size_t i = 0; collectors[i] != NULL; i++)
        is_wanted[i] = !has_plain && !collectors[i]->is_optional;

    for (struct cursor list = cursor_of(names, strlen(names)); sampler_next_name(&list, &name);) {
        bool is_removed = cursor_accept(&name, '-');
        if (!is_removed)
            (void)cursor_accept(&name, '+');
        size_t i = 0;
        while (collectors[i] != NULL && !cursor_equals(&name, collectors[i]->name))
            i++;
        if (collectors[i] == NULL)
            return sampler_unknown(&name, err);
        is_wanted[i] = !is_removed;
    }
    return 0;
}

/* Opens one collector into the next slot. One that can't be opened is left out and noted; only -ENOMEM fails. */
static int sampler_add(struct sampler *sampler, const struct collector_ops *ops, struct buf *notes, struct error *err)
{
    struct error why = {0};
    struct collector *collector = NULL;
    int rc = ops->open(&sampler->config, &collector, &why);
    if (rc == -ENOMEM)
        return error_set(err, rc, "%s: %s", ops->name, why.text);
    if (rc < 0) {
        buf_printf(notes, "%s: %s\n", ops->name, why.text);
        return 0;
    }
    sampler->slots[sampler->count++] = (struct sampler_slot){.ops = ops, .collector = collector};
    return 0;
}

int sampler_open(const struct sample_config *config, const char *names, struct buf *notes, struct sampler **out_sampler,
                 struct error *err)
{
    size_t known = sampler_known_count();
    CLEANUP(memory_cleanup) bool *is_wanted = calloc(known + 1, sizeof *is_wanted); /* + 1: never of no bytes */
    CLEANUP(sampler_cleanup) struct sampler *sampler = calloc(1, sizeof *sampler + known * sizeof sampler->slots[0]);
    if (is_wanted == NULL || sampler == NULL)
        return error_set(err, -ENOMEM, "no memory for %zu collectors", known);
    sampler->config = *config;

    int rc = sampler_choose(names != NULL ? names : "", is_wanted, err);
    for (size_t i = 0; rc == 0 && i < known; i++) {
        if (is_wanted[i])
            rc = sampler_add(sampler, collectors[i], notes, err);
    }
    if (rc < 0)
        return rc;
    *out_sampler = TAKE(sampler);
    return 0;
}

void sampler_free(struct sampler *sampler)
{
    if (sampler == NULL)
        return;
    for (size_t i = 0; i < sampler->count; i++)
        sampler->slots[i].ops->close(sampler->slots[i].collector);
    free(sampler);
}

size_t sampler_count(const struct sampler *sampler)
{
    return sampler->count;
}

const struct collector_ops *sampler_ops(const struct sampler *sampler, size_t index)
{
    return sampler->slots[index].ops;
}

int sampler_run(struct sampler *sampler, size_t index, int64_t now_boot_ns, struct error *err)
{
    struct sampler_slot *slot = &sampler->slots[index];
    int64_t start_mono_ns = clock_mono_ns();
    int64_t start_cpu_ns = clock_thread_cpu_ns();
    int rc = slot->ops->read(slot->collector, now_boot_ns, err);
    slot->stats.cpu_ns += clock_thread_cpu_ns() - start_cpu_ns;
    slot->stats.last_ns = clock_mono_ns() - start_mono_ns;
    slot->stats.runs++;
    slot->stats.failures += rc < 0 ? 1 : 0;
    slot->is_fresh = rc == 0;
    return rc < 0 ? error_wrap(err, rc, "%s", slot->ops->name) : 0;
}

bool sampler_is_fresh(const struct sampler *sampler, size_t index)
{
    return sampler->slots[index].is_fresh;
}

const struct sample_table *sampler_table(const struct sampler *sampler, size_t index)
{
    return sampler->slots[index].ops->table(sampler->slots[index].collector);
}

/* What any table may have to tell. Said once: what the kernel writes badly it writes badly in each tick. */
static void sampler_note_table(struct sampler_slot *slot, struct buf *notes)
{
    const struct sample_table *table = slot->ops->table(slot->collector);
    if (table->lines_bad > 0 && !slot->has_told_bad) {
        buf_text(notes, "the kernel's text has lines without sense: they are left out\n");
        slot->has_told_bad = true;
    }
    if (table->rows_refused > 0 && !slot->has_told_refused) {
        buf_printf(notes, "more than %zu rows, or a name of more than %d bytes: what is too much is left out\n",
                   table->rows_max, SAMPLE_NAME_MAX_BYTES);
        slot->has_told_refused = true;
    }
}

void sampler_take_notes(struct sampler *sampler, size_t index, struct buf *out)
{
    struct sampler_slot *slot = &sampler->slots[index];
    CLEANUP(buf_cleanup) struct buf notes;
    buf_init(&notes, SAMPLER_NOTES_MAX_BYTES);
    sampler_note_table(slot, &notes);
    if (slot->ops->take_notes != NULL)
        slot->ops->take_notes(slot->collector, &notes);
    struct cursor line;
    for (struct cursor all = cursor_of(notes.data, notes.length); cursor_line(&all, &line);) {
        buf_printf(out, "%s: ", slot->ops->name);
        buf_bytes(out, line.at, cursor_left(&line));
        buf_char(out, '\n');
    }
}

struct sampler_stats sampler_stats(const struct sampler *sampler, size_t index)
{
    return sampler->slots[index].stats;
}
