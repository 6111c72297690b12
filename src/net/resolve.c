/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * A name is an entry: waiting for its turn, in flight, or known until a time. Queries hang on entries. An entry whose
 * queries have all run out of time stays in flight until the system returns, and is known then.
 */
#include "net/resolve.h"

#include <errno.h>
#include <netdb.h>
#include <stdint.h>
#include <stdlib.h>
#include <string.h>
#define HASH_NONFATAL_OOM 1 /* a look-up fails; uthash would end the process */
#include <uthash.h>

#include "net/socket_address.h"

enum { RESOLVE_NAME_MAX_BYTES = 253 };

enum resolve_state { RESOLVE_WAITS, RESOLVE_IN_FLIGHT, RESOLVE_IS_KNOWN };

struct resolve_entry {
    char name[RESOLVE_NAME_MAX_BYTES + 1];
    struct resolve *resolve;
    enum resolve_state state;
    uv_getaddrinfo_t request;
    int status; /* known: 0 or libuv's error */
    struct resolve_addresses addresses;
    uint64_t until_ms; /* known: of the loop's clock */
    struct resolve_query *queries;
    struct resolve_entry *next; /* waiting: who asked later */
    UT_hash_handle hh;
};

struct resolve_query {
    struct resolve_entry *entry;
    uv_timer_t timer;
    resolve_done *on_done;
    void *context;
    struct resolve_query *next;
};

struct resolve {
    uv_loop_t *loop;
    struct resolve_entry *entries;
    struct resolve_entry *first_waiting, *last_waiting;
    unsigned in_flight;
    bool is_closed;
};

struct resolve *resolve_new(uv_loop_t *loop)
{
    struct resolve *resolve = calloc(1, sizeof *resolve);
    if (resolve != NULL)
        resolve->loop = loop;
    return resolve;
}

static void resolve_forget(struct resolve_entry *entry)
{
    HASH_DEL(entry->resolve->entries, entry);
    free(entry);
}

static void resolve_query_closed(uv_handle_t *handle)
{
    free(handle->data);
}

/* Takes the query off its entry; the memory goes when the timer has closed. */
static void resolve_drop(struct resolve_query *query)
{
    struct resolve_query **link = &query->entry->queries;
    while (*link != query)
        link = &(*link)->next;
    *link = query->next;
    uv_close((uv_handle_t *)&query->timer, resolve_query_closed);
}

static void resolve_tell(struct resolve_query *query, const struct resolve_addresses *addresses,
                         const struct error *err)
{
    resolve_drop(query);
    query->on_done(query->context, addresses, err);
}

static void resolve_on_timer(uv_timer_t *timer)
{
    struct resolve_query *query = timer->data;
    struct error err;
    error_set(&err, -ETIMEDOUT, "looking up '%s' took too long: does the name server answer?", query->entry->name);
    resolve_tell(query, NULL, &err);
}

static void resolve_keep(struct resolve_entry *entry, int status, const struct addrinfo *answer)
{
    entry->state = RESOLVE_IS_KNOWN;
    entry->status = status;
    entry->addresses.count = 0;
    for (; answer != NULL && entry->addresses.count < RESOLVE_ADDRESSES_MAX; answer = answer->ai_next)
        if (answer->ai_addrlen <= sizeof entry->addresses.at[0])
            memcpy(&entry->addresses.at[entry->addresses.count++], answer->ai_addr, answer->ai_addrlen);
    if (status == 0 && entry->addresses.count == 0)
        entry->status = UV_EAI_NONAME;
    entry->until_ms = uv_now(entry->resolve->loop) + (entry->status == 0 ? RESOLVE_KEEP_MS : RESOLVE_KEEP_NOT_MS);
}

static void resolve_go_on(struct resolve *resolve);

/* Callbacks may ask again, cancel, or close all: nothing is kept over a call but what can't go. */
static void resolve_answer(struct resolve_entry *entry)
{
    struct resolve_addresses addresses = entry->addresses;
    struct error err = {0};
    if (entry->status != 0)
        error_set(&err, -ENOENT, "looking up '%s': %s", entry->name, uv_strerror(entry->status));
    bool is_good = entry->status == 0;
    struct resolve *resolve = entry->resolve;
    while (!resolve->is_closed && entry->queries != NULL)
        resolve_tell(entry->queries, is_good ? &addresses : NULL, is_good ? NULL : &err);
}

static void resolve_free_if_over(struct resolve *resolve)
{
    if (!resolve->is_closed || resolve->in_flight > 0)
        return;
    struct resolve_entry *entry, *next;
    HASH_ITER(hh, resolve->entries, entry, next)
    {
        resolve_forget(entry);
    }
    free(resolve);
}

static void resolve_on_answer(uv_getaddrinfo_t *request, int status, struct addrinfo *answer)
{
    struct resolve_entry *entry = request->data;
    struct resolve *resolve = entry->resolve;
    resolve_keep(entry, status, answer);
    uv_freeaddrinfo(answer);
    /* Still counted: a callback that closes must not free what is in use here. */
    resolve_answer(entry);
    resolve->in_flight--;
    if (!resolve->is_closed)
        resolve_go_on(resolve);
    resolve_free_if_over(resolve);
}

/* -EAGAIN and the like of libuv: the entry is known to have failed, for now. */
static void resolve_ask(struct resolve_entry *entry)
{
    const struct addrinfo hints = {.ai_family = AF_UNSPEC, .ai_socktype = SOCK_STREAM, .ai_flags = AI_ADDRCONFIG};
    struct resolve *resolve = entry->resolve;
    entry->state = RESOLVE_IN_FLIGHT;
    entry->request.data = entry;
    resolve->in_flight++;
    int rc = uv_getaddrinfo(resolve->loop, &entry->request, resolve_on_answer, entry->name, NULL, &hints);
    if (rc == 0)
        return;
    resolve->in_flight--;
    resolve_keep(entry, rc, NULL); /* its queries run into their deadlines */
}

static void resolve_go_on(struct resolve *resolve)
{
    while (resolve->in_flight < RESOLVE_IN_FLIGHT_MAX && resolve->first_waiting != NULL) {
        struct resolve_entry *entry = resolve->first_waiting;
        resolve->first_waiting = entry->next;
        if (entry->next == NULL)
            resolve->last_waiting = NULL;
        if (entry->queries == NULL)
            resolve_forget(entry); /* nobody waits any more */
        else
            resolve_ask(entry);
    }
}

static struct resolve_entry *resolve_find(struct resolve *resolve, const char *name)
{
    struct resolve_entry *entry = NULL;
    HASH_FIND_STR(resolve->entries, name, entry);
    if (entry == NULL || entry->state != RESOLVE_IS_KNOWN || uv_now(resolve->loop) < entry->until_ms)
        return entry;
    if (entry->queries != NULL)
        return entry; /* of a look-up that could not begin */
    resolve_forget(entry);
    return NULL;
}

int resolve_known(struct resolve *resolve, const char *host, struct resolve_addresses *out_addresses)
{
    struct resolve_addresses literal = {.count = 1};
    if (socket_address_parse(host, 0, &literal.at[0])) {
        *out_addresses = literal;
        return 1;
    }
    const struct resolve_entry *entry = resolve_find(resolve, host);
    if (entry == NULL || entry->state != RESOLVE_IS_KNOWN || entry->status != 0)
        return 0;
    *out_addresses = entry->addresses;
    return 1;
}

static bool resolve_is_name(const char *text)
{
    size_t length = strlen(text);
    for (size_t i = 0; i < length; i++) {
        char c = text[i];
        bool is_alphanumeric = (c >= '0' && c <= '9') || (c >= 'a' && c <= 'z') || (c >= 'A' && c <= 'Z');
        if (!is_alphanumeric && c != '.' && c != '-' && c != '_')
            return false;
    }
    return length > 0 && length <= RESOLVE_NAME_MAX_BYTES && text[0] != '.' && text[0] != '-';
}

/* The oldest name that nobody asks for makes room. */
static bool resolve_make_room(struct resolve *resolve)
{
    struct resolve_entry *entry, *next;
    if (HASH_COUNT(resolve->entries) < RESOLVE_NAMES_MAX)
        return true;
    HASH_ITER(hh, resolve->entries, entry, next)
    {
        if (entry->state == RESOLVE_IS_KNOWN && entry->queries == NULL) {
            resolve_forget(entry);
            return true;
        }
    }
    return false;
}

static struct resolve_entry *resolve_enter(struct resolve *resolve, const char *host, struct error *err)
{
    struct resolve_entry *entry = resolve_find(resolve, host);
    if (entry != NULL)
        return entry;
    if (!resolve_make_room(resolve)) {
        error_set(err, -EAGAIN, "looking up '%s': too many names are being looked up", host);
        return NULL;
    }
    entry = calloc(1, sizeof *entry);
    if (entry == NULL) {
        error_set(err, -ENOMEM, "looking up '%s'", host);
        return NULL;
    }
    memcpy(entry->name, host, strlen(host) + 1);
    entry->resolve = resolve;
    HASH_ADD_STR(resolve->entries, name, entry);
    if (entry->hh.tbl == NULL) {
        free(entry);
        error_set(err, -ENOMEM, "looking up '%s'", host);
        return NULL;
    }
    if (resolve->last_waiting != NULL)
        resolve->last_waiting->next = entry;
    else
        resolve->first_waiting = entry;
    resolve->last_waiting = entry;
    return entry;
}

/* A failure that is known comes by the timer as well: callbacks never come out of resolve_start(). */
static void resolve_on_known(uv_timer_t *timer)
{
    struct resolve_query *query = timer->data;
    struct resolve_entry *entry = query->entry;
    struct resolve_addresses addresses = entry->addresses;
    struct error err = {0};
    if (entry->status != 0)
        error_set(&err, -ENOENT, "looking up '%s': %s", entry->name, uv_strerror(entry->status));
    resolve_tell(query, entry->status == 0 ? &addresses : NULL, entry->status == 0 ? NULL : &err);
}

int resolve_start(struct resolve *resolve, const char *host, unsigned timeout_ms, resolve_done *on_done, void *context,
                  struct resolve_query **out_query, struct error *err)
{
    if (!resolve_is_name(host))
        return error_set(err, -EINVAL, "'%s' is not a host's name", host);
    struct resolve_query *query = calloc(1, sizeof *query);
    if (query == NULL)
        return error_set(err, -ENOMEM, "looking up '%s'", host);
    struct error why = {0};
    struct resolve_entry *entry = resolve_enter(resolve, host, &why);
    if (entry == NULL) {
        free(query);
        return error_set(err, why.code, "%s", why.text);
    }
    *query = (struct resolve_query){.entry = entry, .on_done = on_done, .context = context, .next = entry->queries};
    entry->queries = query;
    (void)uv_timer_init(resolve->loop, &query->timer); /* can't fail */
    query->timer.data = query;
    if (entry->state == RESOLVE_IS_KNOWN)
        (void)uv_timer_start(&query->timer, resolve_on_known, 0, 0);
    else
        (void)uv_timer_start(&query->timer, resolve_on_timer, timeout_ms, 0);
    *out_query = query;
    resolve_go_on(resolve);
    return 0;
}

void resolve_cancel(struct resolve_query *query)
{
    if (query != NULL)
        resolve_drop(query);
}

unsigned resolve_close(struct resolve *resolve)
{
    unsigned left = 0;
    if (resolve == NULL)
        return 0;
    resolve->is_closed = true;
    for (struct resolve_entry *entry = resolve->entries; entry != NULL; entry = entry->hh.next) {
        while (entry->queries != NULL)
            resolve_drop(entry->queries);
        if (entry->state == RESOLVE_IN_FLIGHT && uv_cancel((uv_req_t *)&entry->request) < 0)
            left++; /* it has begun */
    }
    resolve_free_if_over(resolve);
    return left;
}
