/* SPDX-License-Identifier: BSD-3-Clause */
#include "service/costs.h"

#include <stddef.h>
#include <sys/resource.h>
#include <sys/time.h>

#include "util/clock.h"

enum { COSTS_DECIMALS = 6 };

static void costs_key(struct buf *out, const char *key)
{
    buf_char(out, ',');
    buf_json_string(out, key);
    buf_char(out, ':');
}

static void costs_seconds(struct buf *out, const char *key, double seconds)
{
    costs_key(out, key);
    buf_fixed(out, seconds, COSTS_DECIMALS);
}

static void costs_count(struct buf *out, const char *key, uint64_t count)
{
    costs_key(out, key);
    buf_u64(out, count);
}

static double costs_timeval(const struct timeval *time)
{
    return (double)time->tv_sec + (double)time->tv_usec / 1e6;
}

static void costs_collectors(const struct sampler *sampler, struct buf *out)
{
    costs_key(out, "collectors");
    buf_char(out, '{');
    for (size_t i = 0; i < sampler_count(sampler); i++) {
        struct sampler_stats stats = sampler_stats(sampler, i);
        if (i > 0)
            buf_char(out, ',');
        buf_json_string(out, sampler_ops(sampler, i)->name);
        buf_text(out, ":{\"runs\":");
        buf_u64(out, stats.runs);
        costs_count(out, "failures", stats.failures);
        costs_seconds(out, "cpu_seconds", (double)stats.cpu_ns / (double)CLOCK_NS_PER_SECOND);
        buf_char(out, '}');
    }
    buf_char(out, '}');
}

void costs_json(const struct ticker *ticker, const struct sampler *sampler, struct buf *out)
{
    struct rusage usage = {0};
    (void)getrusage(RUSAGE_SELF, &usage); /* fails only for a wrong argument */
    buf_text(out, "{\"PSUTIL\":1");
    costs_seconds(out, "user_seconds", costs_timeval(&usage.ru_utime));
    costs_seconds(out, "system_seconds", costs_timeval(&usage.ru_stime));
    costs_count(out, "max_rss_kb", (uint64_t)usage.ru_maxrss);
    costs_count(out, "ticks", ticker->taken);
    costs_count(out, "ticks_skipped", ticker->skipped);
    costs_count(out, "ticks_overrun", ticker->overruns);
    if (sampler != NULL)
        costs_collectors(sampler, out);
    buf_char(out, '}');
}
