/* SPDX-License-Identifier: BSD-3-Clause */
#include "exporters/mpi/completion.h"

#include <stddef.h>
#include <stdlib.h>

enum { COMPLETION_FEW = 16 }; /* requests for which the stack has room */

/* A request that was given to MPI: MPI changes the handle. */
struct completion_request {
    struct requests_slot *slot; /* NULL: nobody follows it */
    uint64_t key;
};

/* The requests of one call, taken, and where MPI writes the statuses. */
struct completion {
    int count;
    struct completion_request *requests; /* [count] */
    MPI_Status *statuses;                /* [count], or one */
    void *memory;
    struct completion_request few_requests[COMPLETION_FEW];
    MPI_Status few_statuses[COMPLETION_FEW];
};

static inline uint64_t completion_key(MPI_Request request)
{
    return (uint64_t)(uintptr_t)request;
}

static void completion_add(MPI_Request request, const struct requests_entry *entry)
{
    if (!requests_add(completion_key(request), entry))
        calls_lost_request();
}

void completion_follow(struct calls_function *function, MPI_Request request, enum requests_kind kind)
{
    const struct requests_entry entry = {.function = function, .kind = kind};
    completion_add(request, &entry);
}

void completion_follow_persistent(struct calls_function *function, MPI_Request request, enum requests_kind kind,
                                  struct sizes by_start)
{
    const struct requests_entry entry = {.function = function,
                                         .kind = kind,
                                         .start_in_bytes = by_start.in,
                                         .start_out_bytes = by_start.out,
                                         .is_persistent = true};
    completion_add(request, &entry);
}

static void completion_count_start(MPI_Request request)
{
    const struct requests_slot *slot = requests_find(completion_key(request));
    if (slot != NULL)
        calls_moved(slot->entry.function, slot->entry.start_in_bytes, slot->entry.start_out_bytes);
}

int completion_start(int (*next)(MPI_Request *), MPI_Request *request)
{
    int result = next(request);
    if (result == MPI_SUCCESS)
        completion_count_start(*request);
    return result;
}

int completion_startall(int (*next)(int, MPI_Request *), int count, MPI_Request *requests)
{
    int result = next(count, requests);
    for (int i = 0; result == MPI_SUCCESS && i < count; i++)
        completion_count_start(requests[i]);
    return result;
}

int completion_free(int (*next)(MPI_Request *), MPI_Request *request)
{
    struct requests_slot *slot = requests_take(completion_key(*request));
    int result = next(request);
    if (slot != NULL)
        requests_drop(slot);
    return result;
}

/* What became of one followed request. */
static void completion_settle(struct requests_slot *slot, uint64_t key, const MPI_Status *status, bool is_moved)
{
    const struct requests_entry *entry = &slot->entry;
    if (is_moved && entry->kind != REQUESTS_NOTHING) {
        uint64_t bytes = sizes_of_request(status, entry->kind == REQUESTS_RECEIVE);
        bool is_out = entry->kind == REQUESTS_WRITE;
        calls_moved(entry->function, is_out ? 0 : bytes, is_out ? bytes : 0);
    }
    if (entry->is_persistent)
        requests_put_back(slot, key);
    else
        requests_drop(slot);
}

int completion_wait(int (*next)(MPI_Request *, MPI_Status *), MPI_Request *request, MPI_Status *status)
{
    uint64_t key = completion_key(*request);
    struct requests_slot *slot = requests_take(key);
    if (slot == NULL)
        return next(request, status);
    MPI_Status own;
    MPI_Status *used = status != MPI_STATUS_IGNORE ? status : &own;
    int result = next(request, used);
    completion_settle(slot, key, used, result == MPI_SUCCESS);
    return result;
}

int completion_test(int (*next)(MPI_Request *, int *, MPI_Status *), MPI_Request *request, int *out_flag,
                    MPI_Status *status)
{
    uint64_t key = completion_key(*request);
    struct requests_slot *slot = requests_take(key);
    if (slot == NULL)
        return next(request, out_flag, status);
    MPI_Status own;
    MPI_Status *used = status != MPI_STATUS_IGNORE ? status : &own;
    int result = next(request, out_flag, used);
    if (result == MPI_SUCCESS && !*out_flag)
        requests_put_back(slot, key);
    else
        completion_settle(slot, key, used, result == MPI_SUCCESS);
    return result;
}

/* Without memory for many requests: they are forgotten, lest a handle that comes again be taken for them. */
static void completion_forget(int count, const MPI_Request *requests)
{
    for (int i = 0; i < count; i++) {
        struct requests_slot *slot = requests_take(completion_key(requests[i]));
        if (slot == NULL)
            continue;
        requests_drop(slot);
        calls_lost_request();
    }
}

static bool completion_make_room(struct completion *c)
{
    c->requests = c->few_requests;
    c->statuses = c->few_statuses;
    if (c->count <= COMPLETION_FEW)
        return true;
    c->memory = calloc((size_t)c->count, sizeof *c->requests + sizeof *c->statuses);
    if (c->memory == NULL)
        return false;
    c->requests = c->memory;
    c->statuses = (void *)(c->requests + c->count); /* requests are of 16 bytes: statuses are aligned behind them */
    return true;
}

static bool completion_has_followed(int count, const MPI_Request *requests)
{
    for (int i = 0; i < count; i++) {
        if (requests_find(completion_key(requests[i])) != NULL)
            return true;
    }
    return false;
}

/*
 * Takes the requests that are followed. True when there are any: MPI is then to be called with c->statuses, which are
 * the program's unless it wants none, and c has to be ended. False: there is nothing to do but call MPI.
 */
static bool completion_begin(struct completion *c, int count, const MPI_Request *requests, MPI_Status *statuses,
                             bool has_statuses)
{
    if (!completion_has_followed(count, requests))
        return false;
    c->count = count;
    c->memory = NULL;
    if (!completion_make_room(c)) {
        completion_forget(count, requests);
        return false;
    }
    if (has_statuses)
        c->statuses = statuses;
    for (int i = 0; i < count; i++) {
        c->requests[i].key = completion_key(requests[i]);
        c->requests[i].slot = requests_take(c->requests[i].key);
    }
    return true;
}

/* Request `index` has completed, as status `at` tells: its own error counts when the call says that there are some. */
static void completion_end_one(struct completion *c, int index, int at, int result)
{
    if (index < 0 || index >= c->count || c->requests[index].slot == NULL)
        return;
    struct completion_request *request = &c->requests[index];
    const MPI_Status *status = &c->statuses[at];
    bool is_in_status = result == MPI_ERR_IN_STATUS;
    if (is_in_status && status->MPI_ERROR == MPI_ERR_PENDING)
        return;
    completion_settle(request->slot, request->key, status,
                      result == MPI_SUCCESS || (is_in_status && status->MPI_ERROR == MPI_SUCCESS));
    request->slot = NULL;
}

/* What has not completed is followed on. */
static void completion_end(struct completion *c)
{
    for (int i = 0; i < c->count; i++) {
        if (c->requests[i].slot != NULL)
            requests_put_back(c->requests[i].slot, c->requests[i].key);
    }
    free(c->memory);
}

static void completion_end_all(struct completion *c, bool is_complete, int result)
{
    for (int i = 0; is_complete && i < c->count; i++)
        completion_end_one(c, i, i, result);
    completion_end(c);
}

static void completion_end_any(struct completion *c, bool is_complete, int index, int result)
{
    if (is_complete && index != MPI_UNDEFINED)
        completion_end_one(c, index, 0, result);
    completion_end(c);
}

static void completion_end_some(struct completion *c, int count, const int *indices, int result)
{
    bool has_some = (result == MPI_SUCCESS || result == MPI_ERR_IN_STATUS) && count != MPI_UNDEFINED;
    for (int i = 0; has_some && i < count; i++)
        completion_end_one(c, indices[i], i, result);
    completion_end(c);
}

/* Did every request complete, well or not? Another error means that MPI didn't begin. */
static bool completion_is_all(int result)
{
    return result == MPI_SUCCESS || result == MPI_ERR_IN_STATUS;
}

int completion_waitall(int (*next)(int, MPI_Request *, MPI_Status *), int count, MPI_Request *requests,
                       MPI_Status *statuses)
{
    struct completion c;
    if (!completion_begin(&c, count, requests, statuses, statuses != MPI_STATUSES_IGNORE))
        return next(count, requests, statuses);
    int result = next(count, requests, c.statuses);
    completion_end_all(&c, completion_is_all(result), result);
    return result;
}

int completion_testall(int (*next)(int, MPI_Request *, int *, MPI_Status *), int count, MPI_Request *requests,
                       int *out_flag, MPI_Status *statuses)
{
    struct completion c;
    if (!completion_begin(&c, count, requests, statuses, statuses != MPI_STATUSES_IGNORE))
        return next(count, requests, out_flag, statuses);
    int result = next(count, requests, out_flag, c.statuses);
    completion_end_all(&c, completion_is_all(result) && (result != MPI_SUCCESS || *out_flag), result);
    return result;
}

int completion_waitany(int (*next)(int, MPI_Request *, int *, MPI_Status *), int count, MPI_Request *requests,
                       int *out_index, MPI_Status *status)
{
    struct completion c;
    if (!completion_begin(&c, count, requests, status, status != MPI_STATUS_IGNORE))
        return next(count, requests, out_index, status);
    *out_index = MPI_UNDEFINED; /* on an error that concerns no request it may stay unset */
    int result = next(count, requests, out_index, c.statuses);
    completion_end_any(&c, true, *out_index, result);
    return result;
}

int completion_testany(int (*next)(int, MPI_Request *, int *, int *, MPI_Status *), int count, MPI_Request *requests,
                       int *out_index, int *out_flag, MPI_Status *status)
{
    struct completion c;
    if (!completion_begin(&c, count, requests, status, status != MPI_STATUS_IGNORE))
        return next(count, requests, out_index, out_flag, status);
    *out_index = MPI_UNDEFINED;
    int result = next(count, requests, out_index, out_flag, c.statuses);
    completion_end_any(&c, result != MPI_SUCCESS || *out_flag, *out_index, result);
    return result;
}

int completion_waitsome(int (*next)(int, MPI_Request *, int *, int *, MPI_Status *), int count, MPI_Request *requests,
                        int *out_count, int *out_indices, MPI_Status *statuses)
{
    struct completion c;
    if (!completion_begin(&c, count, requests, statuses, statuses != MPI_STATUSES_IGNORE))
        return next(count, requests, out_count, out_indices, statuses);
    int result = next(count, requests, out_count, out_indices, c.statuses);
    completion_end_some(&c, *out_count, out_indices, result);
    return result;
}

int completion_testsome(int (*next)(int, MPI_Request *, int *, int *, MPI_Status *), int count, MPI_Request *requests,
                        int *out_count, int *out_indices, MPI_Status *statuses)
{
    return completion_waitsome(next, count, requests, out_count, out_indices, statuses);
}
