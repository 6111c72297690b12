/* SPDX-License-Identifier: BSD-3-Clause */
#include "pfw/args.h"

#include <errno.h>
#include <stdlib.h>

/* Where a key stands in the list; of use only for the event that wrote it. */
struct pfw_args_place {
    uint64_t event;
    size_t index;
};

void pfw_args_init(struct pfw_args *args)
{
    *args = (struct pfw_args){0};
    pfw_names_init(&args->keys, PFW_ARGS_KEYS_MAX, PFW_ARGS_KEYS_MAX_BYTES);
}

void pfw_args_fini(struct pfw_args *args)
{
    free(args->list);
    free(args->places);
    pfw_names_fini(&args->keys);
}

/* As long as the names' own arrays: an event can't hold more keys than there are. */
static int args_grow(struct pfw_args *args, struct error *err)
{
    size_t capacity = args->keys.capacity;
    struct pfw_arg *list = realloc(args->list, capacity * sizeof *list);
    if (list == NULL)
        return error_set(err, -ENOMEM, "no memory for the arguments of an event");
    args->list = list;
    struct pfw_args_place *places = realloc(args->places, capacity * sizeof *places);
    if (places == NULL)
        return error_set(err, -ENOMEM, "no memory for the arguments of an event");
    args->places = places;
    for (size_t i = args->capacity; i < capacity; i++)
        places[i] = (struct pfw_args_place){0};
    args->capacity = capacity;
    return 0;
}

int pfw_args_read(struct pfw_args *args, const struct pfw_json *object, struct error *err)
{
    args->events++;
    args->count = 0;
    args->duplicates = 0;
    struct pfw_json key;
    struct pfw_arg arg;
    for (struct cursor members = pfw_members(object); pfw_members_next(&members, &key, &arg.value);) {
        int rc = pfw_names_add_json(&args->keys, &key, &arg.key, err);
        if (rc == 0 && arg.key >= args->capacity)
            rc = args_grow(args, err);
        if (rc < 0)
            return rc;
        struct pfw_args_place *place = &args->places[arg.key];
        if (place->event == args->events) {
            args->list[place->index].value = arg.value;
            args->duplicates++;
            continue;
        }
        *place = (struct pfw_args_place){.event = args->events, .index = args->count};
        args->list[args->count++] = arg;
    }
    return 0;
}
