/* SPDX-License-Identifier: BSD-3-Clause */
#include "pfw/event.h"

#include <md5.h>
#include <stdbool.h>
#include <string.h>

/* Keys in a program's tables need no escape: found out in one pass that costs less than buf_json_string()'s. */
static bool event_key_is_plain(const char *key, size_t length)
{
    for (size_t i = 0; i < length; i++) {
        unsigned char character = (unsigned char)key[i];
        if (character < 0x20 || character >= 0x7f || character == '"' || character == '\\')
            return false;
    }
    return true;
}

/* Appends `,"key":`. */
static void event_key(struct buf *out, const char *key)
{
    size_t length = strlen(key);
    if (!event_key_is_plain(key, length)) {
        buf_char(out, ',');
        buf_json_bytes(out, key, length);
        buf_char(out, ':');
        return;
    }
    size_t bytes = length + sizeof ",\"\":" - 1;
    char *to = buf_reserve(out, bytes);
    if (to == NULL)
        return;
    to[0] = ',';
    to[1] = '"';
    memcpy(to + 2, key, length);
    to[bytes - 2] = '"';
    to[bytes - 1] = ':';
    buf_commit(out, bytes);
}

/* `,"pid":17,"tid":0` */
static void event_process(struct buf *out, int64_t pid, int64_t tid)
{
    buf_text(out, ",\"pid\":");
    buf_i64(out, pid);
    buf_text(out, ",\"tid\":");
    buf_i64(out, tid);
}

static void event_begin_args(struct buf *out, const struct pfw_source *source)
{
    buf_text(out, ",\"args\":{\"hhash\":\"");
    buf_text(out, source->host_hash);
    buf_char(out, '"');
}

void pfw_host_hash(const char *host_name, char out_hash[PFW_HOST_HASH_BYTES + 1])
{
    char hex[MD5_DIGEST_STRING_LENGTH];
    (void)MD5Data((const uint8_t *)host_name, strlen(host_name), hex); /* returns `hex` */
    for (size_t i = 0; i < PFW_HOST_HASH_BYTES / 2; i++)               /* two digits each of bytes 0, 2, 4 … */
        memcpy(out_hash + 2 * i, hex + 4 * i, 2);
    out_hash[PFW_HOST_HASH_BYTES] = '\0';
}

void pfw_event_begin(struct buf *out, const struct pfw_source *source, enum pfw_phase phase, const char *name,
                     size_t name_length, const char *category, enum pfw_type type, int64_t ts)
{
    buf_text(out, "{\"name\":");
    buf_json_bytes(out, name, name_length);
    buf_text(out, ",\"cat\":");
    buf_json_string(out, category);
    buf_text(out, ",\"type\":");
    buf_u64(out, (uint64_t)type);
    buf_text(out, ",\"ts\":");
    buf_i64(out, ts);
    buf_text(out, ",\"ph\":");
    buf_u64(out, (uint64_t)phase);
    event_process(out, source->pid, phase == PFW_COUNTER ? 0 : source->tid);
    event_begin_args(out, source);
}

void pfw_event_begin_complete(struct buf *out, const struct pfw_source *source, uint64_t id, const char *name,
                              int64_t ts)
{
    buf_text(out, "{\"id\":");
    buf_u64(out, id);
    buf_text(out, ",\"name\":");
    buf_json_string(out, name);
    buf_text(out, ",\"cat\":\"dftracer\",\"type\":1");
    event_process(out, source->pid, source->tid);
    buf_text(out, ",\"ts\":");
    buf_i64(out, ts);
    buf_text(out, ",\"dur\":0,\"ph\":1");
    event_begin_args(out, source);
}

void pfw_event_host(struct buf *out, const struct pfw_source *source, const char *host_name)
{
    buf_text(out, "{\"name\":\"HH\",\"cat\":\"dftracer\",\"type\":1");
    event_process(out, source->pid, source->tid);
    buf_text(out, ",\"ph\":4");
    event_begin_args(out, source);
    pfw_event_text(out, "name", host_name);
    pfw_event_text(out, "value", source->host_hash);
    pfw_event_end(out);
}

void pfw_event_begin_metadata(struct buf *out, const struct pfw_source *source, const char *name, int64_t ts)
{
    pfw_event_begin(out, source, PFW_METADATA, name, strlen(name), "dftracer", PFW_TYPE_DFTRACER, ts);
}

void pfw_event_u64(struct buf *out, const char *key, uint64_t number)
{
    event_key(out, key);
    buf_u64(out, number);
}

void pfw_event_i64(struct buf *out, const char *key, int64_t number)
{
    event_key(out, key);
    buf_i64(out, number);
}

void pfw_event_fixed(struct buf *out, const char *key, double number, unsigned decimals)
{
    event_key(out, key);
    buf_fixed(out, number, decimals);
}

void pfw_event_text(struct buf *out, const char *key, const char *text)
{
    pfw_event_bytes(out, key, text, strlen(text));
}

void pfw_event_bytes(struct buf *out, const char *key, const char *bytes, size_t length)
{
    event_key(out, key);
    buf_json_bytes(out, bytes, length);
}

void pfw_event_json(struct buf *out, const char *key, const char *json, size_t length)
{
    event_key(out, key);
    buf_bytes(out, json, length);
}

void pfw_event_end(struct buf *out)
{
    buf_text(out, "}}\n");
}
