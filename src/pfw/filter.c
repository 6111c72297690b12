/* SPDX-License-Identifier: BSD-3-Clause */
#include "pfw/filter.h"

#include <fnmatch.h>
#include <string.h>

void pfw_filter_init(struct pfw_filter *filter, const struct pfw_filter_options *options)
{
    *filter = (struct pfw_filter){.options = *options};
    if (options->host != NULL && strpbrk(options->host, "*?[\\") == NULL)
        pfw_host_hash(options->host, filter->host_hash);
    pfw_hosts_init(&filter->hosts);
    buf_init(&filter->text, SIZE_MAX);
}

void pfw_filter_fini(struct pfw_filter *filter)
{
    pfw_hosts_fini(&filter->hosts);
    buf_fini(&filter->text);
}

void pfw_filter_next_file(struct pfw_filter *filter)
{
    filter->unit = (struct pfw_unit_of_trace){0};
}

/* fnmatch() wants a NUL; a text that holds one itself matches up to it, which is as good as any other answer. */
static int filter_matches(struct pfw_filter *filter, const char *pattern, const struct pfw_json *string,
                          bool *out_matches, struct error *err)
{
    *out_matches = pattern == NULL;
    if (pattern == NULL || string->kind != PFW_JSON_STRING)
        return 0;
    buf_reset(&filter->text);
    pfw_json_unescape(string, &filter->text);
    const char *text = buf_string(&filter->text);
    int rc = buf_status(&filter->text, err);
    *out_matches = rc == 0 && fnmatch(pattern, text, 0) == 0;
    return rc;
}

static bool filter_matches_host(const struct pfw_filter *filter, uint32_t host)
{
    const char *pattern = filter->options.host;
    const char *hash = pfw_hosts_hash(&filter->hosts, host);
    const char *name = pfw_hosts_name(&filter->hosts, host);
    return pattern == NULL || fnmatch(pattern, hash, 0) == 0 || strcmp(hash, filter->host_hash) == 0 ||
           (name != NULL && fnmatch(pattern, name, 0) == 0);
}

static int64_t filter_instant(const struct pfw_filter *filter, const struct pfw_moment *moment)
{
    int64_t ns;
    if (!moment->is_relative)
        return moment->ns;
    return __builtin_add_overflow(filter->start_ns, moment->ns, &ns) ? INT64_MAX : ns;
}

static bool filter_matches_time(struct pfw_filter *filter, const struct pfw_line *line)
{
    pfw_unit_observe(&filter->unit, line);
    if (!line->ts.is_present)
        return true;
    int64_t ns = pfw_unit_to_ns(filter->unit.unit, line->ts.value);
    if (!filter->has_start) {
        filter->start_ns = ns;
        filter->has_start = true;
    }
    return (!filter->options.has_from || ns >= filter_instant(filter, &filter->options.from)) &&
           (!filter->options.has_to || ns <= filter_instant(filter, &filter->options.to));
}

int pfw_filter_add(struct pfw_filter *filter, const struct pfw_line *line, bool *out_is_wanted, struct error *err)
{
    uint32_t host;
    bool has_name = false;
    bool has_category = false;
    int rc = pfw_hosts_of(&filter->hosts, line, &host, err);
    if (rc == 0)
        rc = filter_matches(filter, filter->options.name, &line->name, &has_name, err);
    if (rc == 0)
        rc = filter_matches(filter, filter->options.category, &line->category, &has_category, err);
    if (rc < 0)
        return rc;
    bool is_in_time = filter_matches_time(filter, line);
    *out_is_wanted = has_name && has_category && is_in_time && filter_matches_host(filter, host);
    return 0;
}
