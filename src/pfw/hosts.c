/* SPDX-License-Identifier: BSD-3-Clause */
#include "pfw/hosts.h"

#include <errno.h>
#include <stdlib.h>
#include <string.h>

enum { HOSTS_BYTES_MAX = 16 << 20, HOSTS_NAME_MAX_BYTES = 4096 };

void pfw_hosts_init(struct pfw_hosts *hosts)
{
    *hosts = (struct pfw_hosts){0};
    pfw_names_init(&hosts->hashes, PFW_HOSTS_MAX, HOSTS_BYTES_MAX);
}

void pfw_hosts_fini(struct pfw_hosts *hosts)
{
    for (uint32_t i = 0; i < hosts->capacity; i++)
        free(hosts->names[i]);
    free(hosts->names);
    pfw_names_fini(&hosts->hashes);
    *hosts = (struct pfw_hosts){0};
}

bool pfw_hosts_is_naming(const struct pfw_line *line)
{
    return line->phase == PFW_METADATA && pfw_json_equals(&line->name, "HH");
}

static int hosts_grow(struct pfw_hosts *hosts, struct error *err)
{
    uint32_t capacity = hosts->hashes.capacity;
    char **names = realloc(hosts->names, capacity * sizeof *names);
    if (names == NULL)
        return error_set(err, -ENOMEM, "no memory for %u hosts", capacity);
    for (uint32_t i = hosts->capacity; i < capacity; i++)
        names[i] = NULL;
    hosts->names = names;
    hosts->capacity = capacity;
    return 0;
}

static int hosts_number(struct pfw_hosts *hosts, const struct pfw_json *hash, uint32_t *out_host, struct error *err)
{
    int rc = pfw_names_add_json(&hosts->hashes, hash, out_host, err);
    if (rc == 0 && *out_host >= hosts->capacity)
        rc = hosts_grow(hosts, err);
    return rc;
}

static int hosts_set_name(struct pfw_hosts *hosts, uint32_t host, const struct pfw_json *name, struct error *err)
{
    CLEANUP(buf_cleanup) struct buf text;
    buf_init(&text, HOSTS_NAME_MAX_BYTES);
    pfw_json_unescape(name, &text);
    const char *copied = buf_string(&text);
    if (text.status == -E2BIG)
        return 0; /* no host name is that long: it stays without one */
    int rc = buf_status(&text, err);
    if (rc < 0)
        return rc;
    char *copy = strdup(copied);
    if (copy == NULL)
        return error_set(err, -ENOMEM, "no memory for a host name");
    free(hosts->names[host]);
    hosts->names[host] = copy;
    return 0;
}

int pfw_hosts_of(struct pfw_hosts *hosts, const struct pfw_line *line, uint32_t *out_host, struct error *err)
{
    int rc = hosts_number(hosts, &line->host_hash, out_host, err);
    if (rc < 0 || !pfw_hosts_is_naming(line))
        return rc;
    /* The name belongs to the hash in `value`; it is the writer's own in all traces of the service. */
    struct pfw_json name = pfw_member(&line->args, "name");
    struct pfw_json hash = pfw_member(&line->args, "value");
    if (name.kind != PFW_JSON_STRING)
        return 0;
    uint32_t named = *out_host;
    if (hash.kind == PFW_JSON_STRING)
        rc = hosts_number(hosts, &hash, &named, err);
    return rc < 0 ? rc : hosts_set_name(hosts, named, &name, err);
}

const char *pfw_hosts_name(const struct pfw_hosts *hosts, uint32_t host)
{
    return host < hosts->capacity ? hosts->names[host] : NULL; /* not there yet when memory was short */
}

const char *pfw_hosts_hash(const struct pfw_hosts *hosts, uint32_t host)
{
    return pfw_names_text(&hosts->hashes, host).at;
}

const char *pfw_hosts_label(const struct pfw_hosts *hosts, uint32_t host)
{
    const char *label = pfw_hosts_name(hosts, host);
    if (label == NULL)
        label = pfw_hosts_hash(hosts, host);
    return *label != '\0' ? label : "unknown";
}
