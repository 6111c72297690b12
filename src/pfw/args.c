/* SPDX-License-Identifier: BSD-3-Clause */
#include "pfw/args.h"

#include <errno.h>
#include <stdlib.h>
#include <string.h>

enum { ARGS_FIRST_CAPACITY = 64 };

void pfw_args_init(struct pfw_args *args)
{
    *args = (struct pfw_args){0};
    buf_init(&args->unescaped, SIZE_MAX);
}

void pfw_args_fini(struct pfw_args *args)
{
    free(args->list);
    free(args->slots);
    buf_fini(&args->unescaped);
}

static uint32_t args_hash(const struct cursor *key)
{
    uint64_t hash = cursor_left(key);
    for (const char *at = key->at; at < key->end; at++)
        hash = (hash ^ (unsigned char)*at) * UINT64_C(0x100000001b3); /* FNV-1a's prime */
    return (uint32_t)(hash ^ hash >> 32);
}

/* The slot that holds `key`, or the empty one where it belongs. */
static uint32_t args_slot(const struct pfw_args *args, const struct cursor *key)
{
    uint32_t mask = (uint32_t)(args->capacity * 2 - 1);
    for (uint32_t i = (uint32_t)args_hash(key) & mask;; i = (i + 1) & mask) {
        if (args->slots[i] == 0)
            return i;
        const struct cursor *other = &args->list[args->slots[i] - 1].key;
        if (cursor_left(other) == cursor_left(key) && memcmp(other->at, key->at, cursor_left(key)) == 0)
            return i;
    }
}

static void args_place(struct pfw_args *args, size_t index)
{
    uint32_t slot = args_slot(args, &args->list[index].key);
    args->list[index].slot = slot;
    args->slots[slot] = (uint32_t)index + 1;
}

static int args_grow(struct pfw_args *args, struct error *err)
{
    size_t capacity = args->capacity == 0 ? ARGS_FIRST_CAPACITY : args->capacity * 2;
    if (capacity > PFW_ARGS_MAX)
        return error_set(err, -E2BIG, "more than %u arguments in one event", PFW_ARGS_MAX);
    struct pfw_arg *list = realloc(args->list, capacity * sizeof *list);
    if (list == NULL)
        return error_set(err, -ENOMEM, "arguments of an event");
    args->list = list;
    uint32_t *slots = calloc(capacity * 2, sizeof *slots);
    if (slots == NULL)
        return error_set(err, -ENOMEM, "arguments of an event");
    free(args->slots);
    args->slots = slots;
    args->capacity = capacity;
    for (size_t i = 0; i < args->count; i++)
        args_place(args, i);
    return 0;
}

static void args_clear(struct pfw_args *args)
{
    for (size_t i = 0; i < args->count; i++)
        args->slots[args->list[i].slot] = 0;
    args->count = 0;
    args->duplicates = 0;
    buf_reset(&args->unescaped);
}

/* The key as plain text. Room for all keys of the object at once keeps those that were given out before in place. */
static int args_key(struct pfw_args *args, const struct pfw_json *key, size_t room, struct cursor *out_key,
                    struct error *err)
{
    *out_key = key->text;
    if (!key->is_escaped)
        return 0;
    if (args->unescaped.length == 0 && buf_reserve(&args->unescaped, room) == NULL)
        return buf_status(&args->unescaped, err);
    size_t begin = args->unescaped.length;
    pfw_json_unescape(key, &args->unescaped);
    int rc = buf_status(&args->unescaped, err);
    if (rc == 0)
        *out_key = cursor_of(args->unescaped.data + begin, args->unescaped.length - begin);
    return rc;
}

int pfw_args_read(struct pfw_args *args, const struct pfw_line *line, struct error *err)
{
    args_clear(args);
    struct pfw_json key;
    struct pfw_json value;
    for (struct cursor members = pfw_members(&line->args); pfw_members_next(&members, &key, &value);) {
        int rc = args->count == args->capacity ? args_grow(args, err) : 0;
        struct pfw_arg arg = {.value = value};
        if (rc == 0)
            rc = args_key(args, &key, cursor_left(&line->args.text), &arg.key, err);
        if (rc < 0)
            return rc;
        uint32_t slot = args_slot(args, &arg.key);
        if (args->slots[slot] != 0) {
            args->list[args->slots[slot] - 1].value = value;
            args->duplicates++;
            continue;
        }
        args->list[args->count++] = arg;
        args_place(args, args->count - 1);
    }
    return 0;
}
