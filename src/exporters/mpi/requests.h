/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * requests: what is known of requests whose bytes are counted later: when they complete, or at each start.
 *
 * A table by the request's handle. One request belongs to one thread at a time (MPI forbids two to complete the same
 * one), different ones to any: adding takes one compare-and-swap, finding, taking and putting back are loads and stores
 * within a cache line. Tables are added as requests grow in number, and never moved. A request is taken before MPI is
 * asked to complete it, since its handle may be another thread's new request before the call returns.
 */
#ifndef MPI_REQUESTS_H
#define MPI_REQUESTS_H

#include <stdbool.h>
#include <stdint.h>

struct calls_function;

/* What the status of a completed request tells. */
enum requests_kind { REQUESTS_NOTHING, REQUESTS_RECEIVE, REQUESTS_READ, REQUESTS_WRITE };

struct requests_entry {
    struct calls_function *function; /* whose bytes these are */
    uint64_t start_in_bytes;         /* of a persistent request: moved by each start */
    uint64_t start_out_bytes;
    enum requests_kind kind;
    bool is_persistent; /* stays after its completion */
};

struct requests_slot {
    uint64_t *key; /* atomic: the handle; or free, or taken */
    struct requests_entry entry;
};

/* Follows `request` from now on; what was known of a request of that handle is forgotten. False without memory. */
bool requests_add(uint64_t request, const struct requests_entry *entry);

/* What is known of `request`: borrowed until it is dropped. NULL when it is not followed. */
struct requests_slot *requests_find(uint64_t request);

/* The same, and nobody finds it until it is put back; requests_drop() ends it instead. */
struct requests_slot *requests_take(uint64_t request);
void requests_put_back(struct requests_slot *slot, uint64_t request);
void requests_drop(struct requests_slot *slot);

#endif
