/* SPDX-License-Identifier: BSD-3-Clause */
#include "service/ticker.h"

/* FNV-1a: neighbours such as n1 and n2 get phases far apart. */
static uint64_t ticker_hash(const char *text)
{
    uint64_t hash = UINT64_C(0xcbf29ce484222325);
    for (; *text != '\0'; text++)
        hash = (hash ^ (unsigned char)*text) * UINT64_C(0x100000001b3);
    return hash ^ (hash >> 32);
}

static int64_t ticker_modulo(int64_t number, int64_t modulus)
{
    int64_t rest = number % modulus;
    return rest < 0 ? rest + modulus : rest;
}

void ticker_init(struct ticker *ticker, int64_t interval_ns, const char *host, const struct clock_stamper *stamper,
                 int64_t now_boot_ns)
{
    int64_t phase_ns = (int64_t)(ticker_hash(host) % (uint64_t)interval_ns);
    int64_t earliest_boot_ns = now_boot_ns + interval_ns / 2;
    int64_t behind_ns = ticker_modulo(clock_stamper_at(stamper, earliest_boot_ns) - phase_ns, interval_ns);
    *ticker = (struct ticker){
        .interval_ns = interval_ns,
        .first_boot_ns = earliest_boot_ns + (behind_ns == 0 ? 0 : interval_ns - behind_ns),
        .last_index = -1,
        .sampled_boot_ns = now_boot_ns,
    };
}

/* The last tick of the grid at or before that instant; -1: none. */
static int64_t ticker_index(const struct ticker *ticker, int64_t boot_ns)
{
    int64_t since_first_ns = boot_ns - ticker->first_boot_ns;
    return since_first_ns < 0 ? -1 : since_first_ns / ticker->interval_ns;
}

enum ticker_verdict ticker_expire(struct ticker *ticker, int64_t now_boot_ns, int64_t busy_until_boot_ns)
{
    int64_t index = ticker_index(ticker, now_boot_ns);
    if (index <= ticker->last_index)
        return TICKER_SKIP; /* an expiry that was counted already */
    int64_t last_busy = ticker_index(ticker, busy_until_boot_ns);
    if (last_busy > ticker->last_index) {
        ticker->overruns += (uint64_t)(last_busy - ticker->last_index);
        ticker->last_index = last_busy;
        if (index <= last_busy)
            return TICKER_SKIP;
    }
    ticker->skipped += (uint64_t)(index - ticker->last_index - 1);
    ticker->last_index = index;
    if (now_boot_ns - ticker->sampled_boot_ns < ticker->interval_ns / 2) {
        ticker->skipped++;
        return TICKER_SKIP;
    }
    ticker->sampled_boot_ns = now_boot_ns;
    ticker->taken++;
    return TICKER_TAKE;
}
