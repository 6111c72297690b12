/* SPDX-License-Identifier: BSD-3-Clause */
#include "proxy/scrapes.h"

#include <errno.h>
#include <stdlib.h>
#include <string.h>

#include "net/socket_address.h"
#include "proxy/scrape_target.h"
#include "util/cursor.h"
#include "util/log.h"

enum { SCRAPES_LIST_MAX_BYTES = 1 << 16 };

struct scrapes {
    struct scrapes_config config;
    struct cidr legacy_peers;
    struct scrape_target *list[2 * SCRAPES_MAX]; /* [count], in order of arrival; paused ones are remembered */
    size_t count;
};

struct scrapes *scrapes_new(const struct scrapes_config *config)
{
    struct scrapes *scrapes = calloc(1, sizeof *scrapes);
    if (scrapes == NULL)
        return NULL;
    scrapes->config = *config;
    if (config->legacy_peers != NULL)
        scrapes->legacy_peers = *config->legacy_peers;
    scrapes->config.legacy_peers = &scrapes->legacy_peers;
    return scrapes;
}

void scrapes_stop(struct scrapes *scrapes)
{
    for (size_t i = 0; scrapes != NULL && i < scrapes->count; i++)
        scrape_target_stop(scrapes->list[i]);
}

void scrapes_free(struct scrapes *scrapes)
{
    if (scrapes == NULL)
        return;
    for (size_t i = 0; i < scrapes->count; i++)
        scrape_target_free(scrapes->list[i]);
    free(scrapes);
}

/* Who may be asked */

/* Is it an address of this machine? */
static bool scrapes_is_here(const struct sockaddr_storage *address)
{
    if (socket_address_is_loopback(address))
        return true;
    uv_interface_address_t *interfaces;
    int count;
    if (uv_interface_addresses(&interfaces, &count) < 0)
        return false;
    bool is_here = false;
    for (int i = 0; i < count && !is_here; i++) {
        struct sockaddr_storage own = {0};
        memcpy(&own, &interfaces[i].address, sizeof interfaces[i].address);
        socket_address_set_port(&own, socket_address_port(address));
        is_here = socket_address_equals(&own, address);
    }
    uv_free_interface_addresses(interfaces, count);
    return is_here;
}

static bool scrapes_is_self(const struct scrapes *scrapes, const struct scrape_url *url,
                            const struct resolve_addresses *addresses)
{
    if (scrapes->config.port == 0 || url->port != scrapes->config.port)
        return false;
    for (size_t i = 0; i < addresses->count; i++) {
        if (scrapes_is_here(&addresses->at[i]))
            return true;
    }
    return false;
}

/* The target before this one that has one of these addresses, and the same port and path; NULL. */
static const struct scrape_target *scrapes_same(const struct scrapes *scrapes, const struct scrape_target *target,
                                                const struct resolve_addresses *addresses)
{
    const struct scrape_url *url = scrape_target_url(target);
    for (size_t i = 0; i < scrapes->count && scrapes->list[i] != target; i++) {
        const struct scrape_url *other = scrape_target_url(scrapes->list[i]);
        const struct resolve_addresses *others = scrape_target_addresses(scrapes->list[i]);
        bool is_like = !scrape_target_is_paused(scrapes->list[i]) && other->port == url->port &&
                       strcmp(other->path, url->path) == 0;
        /* The first addresses: the others may be shared, as those of a name that stands for many machines. */
        if (is_like && others->count > 0 && addresses->count > 0 &&
            socket_address_equals(&others->at[0], &addresses->at[0]))
            return scrapes->list[i];
    }
    return NULL;
}

static bool scrapes_admits_proxy(const struct scrapes *scrapes, const struct scrape_target *target,
                                 const struct resolve_addresses *addresses)
{
    if (scrapes->config.is_open || scrape_target_is_named(target))
        return true;
    bool is_admitted = addresses->count > 0; /* all of them: the connection may go to any */
    for (size_t i = 0; i < addresses->count; i++)
        is_admitted = is_admitted && cidr_has(&scrapes->legacy_peers, &addresses->at[i]);
    return is_admitted;
}

static int scrapes_admit(void *context, const struct scrape_target *target, const struct resolve_addresses *addresses,
                         bool is_proxy, struct error *err)
{
    const struct scrapes *scrapes = context;
    if (scrapes_is_self(scrapes, scrape_target_url(target), addresses))
        return error_set(err, -EINVAL, "it is this proxy itself");
    const struct scrape_target *same = scrapes_same(scrapes, target, addresses);
    if (same != NULL)
        return error_set(err, -EEXIST, "it is the same as '%s'", scrape_target_url(same)->origin);
    if (is_proxy && !scrapes_admits_proxy(scrapes, target, addresses))
        return error_set(
            err, -EACCES,
            "it is a proxy that is not among those of --legacy-peers: start this one with its network there, "
            "or name the target with -s");
    return 0;
}

/* The list */

static size_t scrapes_index(const struct scrapes *scrapes, const struct scrape_url *url)
{
    size_t i = 0;
    while (i < scrapes->count && strcmp(scrape_target_url(scrapes->list[i])->key, url->key) != 0)
        i++;
    return i;
}

size_t scrapes_count(const struct scrapes *scrapes)
{
    size_t count = 0;
    for (size_t i = 0; i < scrapes->count; i++)
        count += !scrape_target_is_paused(scrapes->list[i]);
    return count;
}

/* Of those that are remembered the oldest is forgotten when there is no room. */
static void scrapes_make_room(struct scrapes *scrapes)
{
    if (scrapes->count < ARRAY_LENGTH(scrapes->list))
        return;
    size_t i = 0;
    while (!scrape_target_is_paused(scrapes->list[i]))
        i++; /* there is one: not more than half of them are asked */
    scrape_target_free(scrapes->list[i]);
    scrapes->count--;
    memmove(&scrapes->list[i], &scrapes->list[i + 1], (scrapes->count - i) * sizeof(void *));
}

static int scrapes_add(struct scrapes *scrapes, const struct scrape_url *url, unsigned period_ms, bool is_named,
                       bool *out_is_new, struct error *err)
{
    size_t at = scrapes_index(scrapes, url);
    *out_is_new = at == scrapes->count || scrape_target_is_paused(scrapes->list[at]);
    if (*out_is_new && scrapes_count(scrapes) == SCRAPES_MAX)
        return error_set(err, -ENOSPC, "there are %d targets already", SCRAPES_MAX);
    if (at < scrapes->count) {
        scrape_target_resume(scrapes->list[at], period_ms);
        return 0;
    }
    const struct scrape_target_config config = {.loop = scrapes->config.loop,
                                                .jobs = scrapes->config.jobs,
                                                .client = scrapes->config.client,
                                                .resolve = scrapes->config.resolve,
                                                .admit = scrapes_admit,
                                                .context = scrapes};
    scrapes_make_room(scrapes);
    struct scrape_target *target;
    int rc = scrape_target_new(&config, url, period_ms, is_named, &target, err);
    if (rc == 0)
        scrapes->list[scrapes->count++] = target;
    return rc;
}

static int scrapes_check_period(unsigned period_ms, struct error *err)
{
    if (period_ms >= SCRAPES_PERIOD_MS_MIN && period_ms <= SCRAPES_PERIOD_MS_MAX)
        return 0;
    return error_set(err, -EINVAL, "a period of %u ms: from %d to %d are possible", period_ms, SCRAPES_PERIOD_MS_MIN,
                     SCRAPES_PERIOD_MS_MAX);
}

int scrapes_join(struct scrapes *scrapes, const char *text, unsigned period_ms, bool *out_is_new, struct error *err)
{
    struct scrape_url url;
    unsigned wanted_ms = period_ms != 0 ? period_ms : scrapes->config.period_ms;
    int rc = scrape_url_parse(text, &url, err);
    if (rc == 0)
        rc = scrapes_check_period(wanted_ms, err);
    struct resolve_addresses known;
    /* What is known already is told at once; names are judged when they have been looked up. */
    const char *host = strcmp(url.host, "localhost") == 0 ? "127.0.0.1" : url.host;
    if (rc == 0 && resolve_known(scrapes->config.resolve, host, &known) == 1 && scrapes_is_self(scrapes, &url, &known))
        rc = error_set(err, -EINVAL, "target '%s': it is this proxy itself", text);
    return rc == 0 ? scrapes_add(scrapes, &url, wanted_ms, false, out_is_new, err) : rc;
}

/* One of the list of -s. */
struct scrapes_word {
    struct scrape_url url;
    unsigned period_ms; /* 0: not said */
};

static int scrapes_parse_word(struct cursor word, struct scrapes_word *out_word, struct error *err)
{
    char text[SCRAPE_URL_TEXT_MAX_BYTES];
    const char *at_sign = memrchr(word.at, '@', cursor_left(&word));
    size_t bytes = at_sign != NULL ? (size_t)(at_sign - word.at) : cursor_left(&word);
    if (bytes >= sizeof text)
        return error_set(err, -EINVAL, "a target of %zu bytes", bytes);
    memcpy(text, word.at, bytes);
    text[bytes] = '\0';
    out_word->period_ms = 0;
    if (at_sign != NULL) {
        struct cursor number = {.at = at_sign + 1, .end = word.end};
        uint64_t period_ms;
        if (!cursor_u64(&number, &period_ms) || !cursor_is_empty(&number) || period_ms > SCRAPES_PERIOD_MS_MAX ||
            period_ms == 0)
            return error_set(err, -EINVAL, "target '%s': behind '@' a period in ms is wanted", text);
        out_word->period_ms = (unsigned)period_ms;
        int rc = scrapes_check_period(out_word->period_ms, err);
        if (rc < 0)
            return rc;
    }
    return scrape_url_parse(text, &out_word->url, err);
}

/* Takes the word before the next comma; false at the end. */
static bool scrapes_take_word(struct cursor *rest, struct cursor *out_word)
{
    while (cursor_accept(rest, ',')) /* "A,,B" and "A," */
        continue;
    out_word->at = rest->at;
    while (!cursor_is_empty(rest) && *rest->at != ',')
        rest->at++;
    out_word->end = rest->at;
    return out_word->end > out_word->at;
}

int scrapes_join_list(struct scrapes *scrapes, const char *text, struct error *err)
{
    unsigned usual_ms = scrapes->config.period_ms;
    for (int is_adding = 0; is_adding <= 1; is_adding++) { /* once to check all, once to join */
        struct cursor rest = cursor_of(text, strlen(text));
        struct cursor word;
        while (scrapes_take_word(&rest, &word)) {
            struct scrapes_word target = {.period_ms = 0};
            bool is_new;
            int rc = scrapes_parse_word(word, &target, err);
            if (rc == 0 && is_adding)
                rc = scrapes_add(scrapes, &target.url, target.period_ms != 0 ? target.period_ms : usual_ms, true,
                                 &is_new, err);
            if (rc < 0)
                return rc;
            if (!is_adding && cursor_is_empty(&rest) && target.period_ms != 0)
                usual_ms = target.period_ms;
        }
    }
    return 0;
}

int scrapes_disconnect(struct scrapes *scrapes, const char *text, struct error *err)
{
    struct scrape_url url;
    int rc = scrape_url_parse(text, &url, err);
    if (rc < 0)
        return rc;
    size_t at = scrapes_index(scrapes, &url);
    if (at == scrapes->count || scrape_target_is_paused(scrapes->list[at]))
        return error_set(err, -ENOENT, "target '%s' is not among those of /join/list", text);
    scrape_target_pause(scrapes->list[at]);
    log_info("scrape target='%s' disconnected", url.origin);
    return 0;
}

void scrapes_list(const struct scrapes *scrapes, struct buf *out)
{
    static const struct {
        const char *type, *path;
    } kinds[] = {
        [SCRAPE_TARGET_UNKNOWN] = {"Unknown", ""},
        [SCRAPE_TARGET_EXPORTER] = {"Prometheus", "/metrics"},
        [SCRAPE_TARGET_PROXY] = {"Proxy", "/job"},
    };
    bool is_first = true;
    buf_char(out, '[');
    for (size_t i = 0; i < scrapes->count; i++) {
        const struct scrape_target *target = scrapes->list[i];
        if (scrape_target_is_paused(target))
            continue;
        const struct scrape_url *url = scrape_target_url(target);
        enum scrape_target_kind kind = scrape_target_kind(target);
        CLEANUP(buf_cleanup) struct buf whole;
        buf_init(&whole, SCRAPES_LIST_MAX_BYTES);
        buf_printf(&whole, "%s%s", url->origin, url->path[0] != '\0' ? url->path : kinds[kind].path);
        buf_text(out, is_first ? "{\"target_url\":" : ",{\"target_url\":");
        is_first = false;
        buf_json_string(out, buf_string(&whole));
        buf_printf(out, ",\"ttype\":\"%s\",\"period\":%u,\"last_scrape\":%lld,\"up\":%s,\"error\":", kinds[kind].type,
                   scrape_target_period_ms(target), (long long)(scrape_target_last_wall_ms(target) / 1000),
                   scrape_target_last_wall_ms(target) != 0 && scrape_target_error(target)[0] == '\0' ? "true"
                                                                                                     : "false");
        buf_json_string(out, scrape_target_error(target));
        buf_char(out, '}');
    }
    buf_char(out, ']');
}
