/* SPDX-License-Identifier: BSD-3-Clause */
#include "net/auth_nonces.h"

#include <errno.h>
#include <inttypes.h>
#include <stdbool.h>
#include <stdlib.h>
#include <string.h>
#define HASH_NONFATAL_OOM 1 /* the request is refused; uthash would end the process */
#include <uthash.h>

struct auth_nonce {
    uint8_t bytes[AUTH_MAC_NONCE_BYTES];
    int64_t time_wall_ms; /* of its request */
    UT_hash_handle hh;
};

/*
 * What is forgotten leaves a mark: nothing of that time or before is accepted any more, whatever our clock says later.
 * The mark comes from requests and not from our clock, so that a clock that was far ahead for a moment refuses nobody
 * afterwards.
 */
struct auth_nonces {
    int64_t window_ms;
    size_t nonces_max;
    struct auth_nonce *known;
    int64_t mark_wall_ms;
    int64_t cleaned_wall_ms;
};

struct auth_nonces *auth_nonces_new(int64_t window_ms, size_t nonces_max)
{
    struct auth_nonces *nonces = calloc(1, sizeof *nonces);
    if (nonces != NULL)
        *nonces = (struct auth_nonces){.window_ms = window_ms, .nonces_max = nonces_max, .mark_wall_ms = INT64_MIN};
    return nonces;
}

void auth_nonces_free(struct auth_nonces *nonces)
{
    struct auth_nonce *nonce, *next;
    if (nonces == NULL)
        return;
    HASH_ITER(hh, nonces->known, nonce, next)
    {
        HASH_DEL(nonces->known, nonce);
        free(nonce);
    }
    free(nonces);
}

/* Forgets what is too old by now. All are looked at, twice a window. */
static void auth_nonces_clean(struct auth_nonces *nonces, int64_t now_wall_ms)
{
    struct auth_nonce *nonce, *next;
    int64_t since_ms = now_wall_ms - nonces->cleaned_wall_ms;
    if (since_ms >= 0 && since_ms < nonces->window_ms / 2)
        return;
    nonces->cleaned_wall_ms = now_wall_ms;
    HASH_ITER(hh, nonces->known, nonce, next)
    {
        if (nonce->time_wall_ms >= now_wall_ms - nonces->window_ms)
            continue;
        if (nonce->time_wall_ms > nonces->mark_wall_ms)
            nonces->mark_wall_ms = nonce->time_wall_ms;
        HASH_DEL(nonces->known, nonce);
        free(nonce);
    }
}

int auth_nonces_use(struct auth_nonces *nonces, const uint8_t nonce[AUTH_MAC_NONCE_BYTES], int64_t time_wall_ms,
                    int64_t now_wall_ms, struct error *err)
{
    auth_nonces_clean(nonces, now_wall_ms);
    int64_t age_ms;
    bool is_far = __builtin_sub_overflow(now_wall_ms, time_wall_ms, &age_ms) || age_ms > nonces->window_ms ||
                  age_ms < -nonces->window_ms;
    if (is_far || time_wall_ms <= nonces->mark_wall_ms)
        return error_set(err, -EACCES, "the request's time is more than %" PRIi64 " s from ours: is a clock wrong?",
                         nonces->window_ms / 1000);
    struct auth_nonce *known = NULL;
    HASH_FIND(hh, nonces->known, nonce, AUTH_MAC_NONCE_BYTES, known);
    if (known != NULL)
        return error_set(err, -EACCES, "the request was here before");
    if (HASH_COUNT(nonces->known) >= nonces->nonces_max)
        return error_set(err, -ENOSPC, "more than %zu signed requests in %" PRIi64 " s", nonces->nonces_max,
                         2 * nonces->window_ms / 1000);
    known = malloc(sizeof *known);
    if (known == NULL)
        return error_set(err, -ENOMEM, "signed request");
    memcpy(known->bytes, nonce, AUTH_MAC_NONCE_BYTES);
    known->time_wall_ms = time_wall_ms;
    HASH_ADD(hh, nonces->known, bytes, AUTH_MAC_NONCE_BYTES, known);
    if (known->hh.tbl == NULL) {
        free(known);
        return error_set(err, -ENOMEM, "signed request");
    }
    return 0;
}

size_t auth_nonces_count(const struct auth_nonces *nonces)
{
    return HASH_COUNT(nonces->known);
}
