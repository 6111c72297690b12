/* SPDX-License-Identifier: BSD-3-Clause */
#include "proxy/wire.h"

#include <errno.h>
#include <jansson.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>
#define HASH_NONFATAL_OOM 1 /* without memory the client is cut off; uthash would end the proxy */
#include <uthash.h>

#include "proxy/contributor.h"
#include "proxy/job_text.h"
#include "util/buf.h"
#include "util/log.h"

enum { WIRE_NAME_MAX_BYTES = 4096 };

/* A name as the client wrote it. */
struct wire_name {
    uint32_t index; /* of the contributor's metric; CONTRIBUTOR_NONE: refused */
    UT_hash_handle hh;
    char text[];
};

enum wire_protocol { WIRE_UNKNOWN, WIRE_JSON, WIRE_HELLO };

struct wire {
    struct jobs *jobs;
    struct segments *segments;
    uint32_t uid;
    pid_t pid;
    enum wire_protocol protocol;
    int fd;          /* that came and is for a hello */
    struct buf rest; /* a value, or a hello, that has not come wholly */
    struct contributor *contributor;
    struct wire_name *names;
};

struct wire *wire_open(struct jobs *jobs, struct segments *segments, uint32_t uid, pid_t pid)
{
    struct wire *wire = calloc(1, sizeof *wire);
    if (wire == NULL)
        return NULL;
    *wire = (struct wire){.jobs = jobs, .segments = segments, .uid = uid, .pid = pid, .fd = -1};
    buf_init(&wire->rest, WIRE_MESSAGE_MAX_BYTES);
    return wire;
}

void wire_close(struct wire *wire, int64_t now_mono_ns, int64_t now_wall_ms)
{
    if (wire == NULL)
        return;
    struct wire_name *name;
    struct wire_name *next;
    HASH_ITER(hh, wire->names, name, next)
    {
        HASH_DEL(wire->names, name);
        free(name);
    }
    contributor_end(wire->contributor, now_mono_ns, now_wall_ms);
    if (wire->fd >= 0)
        close(wire->fd);
    buf_fini(&wire->rest);
    free(wire);
}

void wire_take_fd(struct wire *wire, int fd)
{
    if (wire->fd >= 0) {
        close(fd);
        return;
    }
    wire->fd = fd;
}

/* A text of an object, without NULs in it; NULL when there is none. */
static const char *wire_text(const json_t *object, const char *key)
{
    return json_string_value(json_object_get(object, key)); /* jansson refuses NULs in strings */
}

/* A number of an object. What isn't finite comes as null from the existing clients: 0, as a missing one. */
static double wire_number(const json_t *object, const char *key)
{
    return json_number_value(json_object_get(object, key));
}

/* The only member of an object that says which variant it is: {"Counter":{…}}. False when it is none. */
static bool wire_kind(const json_t *object, enum metric_kind *out_kind, const json_t **out_value)
{
    const json_t *counter = json_object_get(object, "Counter");
    const json_t *gauge = json_object_get(object, "Gauge");
    *out_kind = counter != NULL ? METRIC_COUNTER : METRIC_GAUGE;
    *out_value = counter != NULL ? counter : gauge;
    return json_is_object(*out_value) && (counter == NULL || gauge == NULL);
}

static struct wire_name *wire_find_name(const struct wire *wire, const char *text)
{
    struct wire_name *name;
    HASH_FIND_STR(wire->names, text, name);
    return name;
}

static int wire_take_desc(struct wire *wire, const json_t *desc, struct error *err)
{
    const char *text = wire_text(desc, "name");
    const char *doc = wire_text(desc, "doc");
    enum metric_kind kind;
    const json_t *initial;
    if (text == NULL || strlen(text) > WIRE_NAME_MAX_BYTES ||
        !wire_kind(json_object_get(desc, "ctype"), &kind, &initial))
        return error_set(err, -EBADMSG, "a Desc without a name and a ctype of Counter or Gauge");
    if (wire_find_name(wire, text) != NULL)
        return 0;
    if (HASH_COUNT(wire->names) >= WIRE_NAMES_MAX)
        return error_set(err, -ENOSPC, "more than %d metrics", WIRE_NAMES_MAX);
    size_t text_bytes = strlen(text);
    struct wire_name *name = calloc(1, sizeof *name + text_bytes + 1);
    if (name == NULL)
        return error_set(err, -ENOMEM, "no memory for one more metric");
    memcpy(name->text, text, text_bytes + 1);
    struct error refusal = {0};
    if (contributor_declare(wire->contributor, text, text_bytes, doc, kind, &name->index, &refusal) < 0)
        log_debug("pid=%d %s", (int)wire->pid, refusal.text); /* counted there; the rest of the client goes on */
    HASH_ADD_STR(wire->names, text, name);
    if (name->hh.tbl == NULL) {
        free(name);
        return error_set(err, -ENOMEM, "no memory for one more metric");
    }
    return 0;
}

static int wire_take_value(struct wire *wire, const json_t *message, int64_t now_wall_ms, struct error *err)
{
    const char *text = wire_text(message, "name");
    enum metric_kind kind;
    const json_t *given;
    if (text == NULL || !wire_kind(json_object_get(message, "value"), &kind, &given))
        return error_set(err, -EBADMSG, "a Value without a name and a Counter or Gauge");
    const struct wire_name *name = wire_find_name(wire, text);
    if (name == NULL || name->index == CONTRIBUTOR_NONE) {
        jobs_stats(wire->jobs)->values_refused++;
        return 0;
    }
    struct metric_value value;
    int64_t wall_us = now_wall_ms * 1000; /* ours: clocks of other processes tell nothing that we need */
    if (kind == METRIC_COUNTER) {
        value = metric_counter(wire_number(given, "value"), wall_us);
        struct metric_value sum = contributor_value(wire->contributor, name->index);
        if (metric_merge(&value, &sum))
            jobs_set_dirty(wire->jobs, true); /* nobody finds these again: the state keeps them */
    } else {
        value = metric_gauge_of((struct metric_gauge){.min = wire_number(given, "min"),
                                                      .max = wire_number(given, "max"),
                                                      .hits = wire_number(given, "hits"),
                                                      .total = wire_number(given, "total")},
                                wall_us);
    }
    contributor_set(wire->contributor, name->index, &value);
    return 0;
}

static int wire_take_job(struct wire *wire, const json_t *description, int64_t now_wall_ms, struct error *err)
{
    struct error failure = {0};
    int rc = job_text_join_json(wire->contributor, description, wire->pid, now_wall_ms, &failure);
    if (rc == 0 && contributor_job(wire->contributor) != NULL)
        job_set_process(contributor_job(wire->contributor), wire->pid);
    if (rc == -EINVAL)
        return error_set(err, -EBADMSG, "%s", failure.text);
    if (rc < 0) /* counted by jobs; not worth a line each in the log */
        log_debug("pid=%d %s: the client goes on without it", (int)wire->pid, failure.text);
    return 0;
}

static int wire_take_object(struct wire *wire, const json_t *object, int64_t now_wall_ms, struct error *err)
{
    const json_t *member;
    if ((member = json_object_get(object, "Value")) != NULL)
        return wire_take_value(wire, member, now_wall_ms, err);
    if ((member = json_object_get(object, "Desc")) != NULL)
        return wire_take_desc(wire, member, err);
    if ((member = json_object_get(object, "JobDesc")) != NULL)
        return wire_take_job(wire, member, now_wall_ms, err);
    return error_set(err, -EBADMSG, "a value that is neither JobDesc, Desc nor Value");
}

/* One whole value, without its NUL. */
static int wire_take_json(struct wire *wire, const char *text, size_t length, int64_t now_wall_ms, struct error *err)
{
    json_error_t where;
    json_t *object = json_loadb(text, length, 0, &where);
    if (object == NULL)
        return error_set(err, -EBADMSG, "not JSON: %s", where.text);
    int rc = wire_take_object(wire, object, now_wall_ms, err);
    json_decref(object);
    return rc;
}

static int wire_feed_json(struct wire *wire, const char *bytes, size_t length, int64_t now_wall_ms, struct error *err)
{
    while (length > 0) {
        const char *nul = memchr(bytes, '\0', length);
        size_t part_bytes = nul != NULL ? (size_t)(nul - bytes) : length;
        bool is_whole = nul != NULL && wire->rest.length == 0;
        if (!is_whole)
            buf_bytes(&wire->rest, bytes, part_bytes);
        if (buf_status(&wire->rest, NULL) == -E2BIG || part_bytes > WIRE_MESSAGE_MAX_BYTES)
            return error_set(err, -EMSGSIZE, "no NUL in %u bytes", WIRE_MESSAGE_MAX_BYTES);
        int rc = buf_status(&wire->rest, err);
        if (rc < 0 || nul == NULL)
            return rc;
        rc = is_whole ? wire_take_json(wire, bytes, part_bytes, now_wall_ms, err)
                      : wire_take_json(wire, wire->rest.data, wire->rest.length, now_wall_ms, err);
        buf_reset(&wire->rest);
        if (rc < 0)
            return rc;
        bytes += part_bytes + 1;
        length -= part_bytes + 1;
    }
    return 0;
}

static int wire_feed_hello(struct wire *wire, const char *bytes, size_t length, struct error *err)
{
    buf_bytes(&wire->rest, bytes, length);
    struct segment_hello hello;
    if (buf_status(&wire->rest, NULL) < 0 || wire->rest.length > sizeof hello)
        return error_set(err, -EBADMSG, "more than a greeting");
    if (wire->rest.length < sizeof hello)
        return 0;
    memcpy(&hello, wire->rest.data, sizeof hello);
    if (hello.magic != SEGMENT_HELLO_MAGIC || hello.version != SEGMENT_VERSION)
        return error_set(err, -EBADMSG, "a greeting of version %u; this proxy knows version %u", hello.version,
                         SEGMENT_VERSION);
    if (wire->fd < 0)
        return error_set(err, -EBADMSG, "a greeting without a segment");
    return segments_take(wire->segments, TAKE_FD(wire->fd), wire->uid, wire->pid, err);
}

/* Which protocol begins so? */
static int wire_begin(struct wire *wire, char first, struct error *err)
{
    uint64_t magic = SEGMENT_HELLO_MAGIC;
    char hello_first;
    memcpy(&hello_first, &magic, 1);
    if (first == hello_first) {
        wire->protocol = WIRE_HELLO;
        return 0;
    }
    if (first != '{')
        return error_set(err, -EPROTO, "neither JSON nor a greeting");
    wire->protocol = WIRE_JSON;
    wire->contributor = contributor_new(wire->jobs, &(struct contributor_config){.uid = wire->uid});
    if (wire->contributor == NULL)
        return error_set(err, -ENOMEM, "no memory for one more client");
    contributor_set_processes(wire->contributor, 1);
    return 0;
}

int wire_feed(struct wire *wire, const void *bytes, size_t length, int64_t now_wall_ms, struct error *err)
{
    if (length == 0)
        return 0;
    int rc = wire->protocol == WIRE_UNKNOWN ? wire_begin(wire, *(const char *)bytes, err) : 0;
    if (rc < 0)
        return rc;
    return wire->protocol == WIRE_JSON ? wire_feed_json(wire, bytes, length, now_wall_ms, err)
                                       : wire_feed_hello(wire, bytes, length, err);
}
