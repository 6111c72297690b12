/* SPDX-License-Identifier: BSD-3-Clause */
/* cicada topo: which proxy sums up which. */
#include <string.h>

#include "cli/proxy_command.h"
#include "cli/proxy_commands.h"

enum { TOPO_TEXT_MAX_BYTES = 64 << 20, TOPO_DEPTH_MAX = 64, TOPO_INDENT = 2 };

static const struct cli_option topo_options[] = {PROXY_COMMAND_COMMON_OPTIONS};

static const struct cli_command topo_command = {
    .name = "cicada topo",
    .operands = "",
    .summary = "Prints the tree of proxies, each below the one that sums it up",
    .details = PROXY_COMMAND_STATUS_DETAILS,
    .options = topo_options,
    .options_count = ARRAY_LENGTH(topo_options),
};

static const char *topo_end(const json_t *edge, size_t which)
{
    const char *name = json_string_value(json_array_get(edge, which));
    return name != NULL ? name : "";
}

/* Is it nobody's child, but perhaps its own? */
static bool topo_is_root(const json_t *edges, const char *name)
{
    size_t index;
    const json_t *edge;
    json_array_foreach(edges, index, edge)
    {
        if (strcmp(topo_end(edge, 1), name) == 0 && strcmp(topo_end(edge, 0), name) != 0)
            return false;
    }
    return true;
}

/* The depth is bounded, since what a proxy answers may have a cycle. */
static void topo_put(const json_t *edges, const char *name, unsigned depth, struct buf *out)
{
    for (unsigned i = 0; i < depth * TOPO_INDENT; i++)
        buf_char(out, ' ');
    buf_text(out, name);
    buf_char(out, '\n');
    size_t index;
    const json_t *edge;
    json_array_foreach(edges, index, edge)
    {
        bool is_child = strcmp(topo_end(edge, 0), name) == 0 && strcmp(topo_end(edge, 1), name) != 0;
        if (is_child && depth < TOPO_DEPTH_MAX)
            topo_put(edges, topo_end(edge, 1), depth + 1, out);
    }
}

static int topo_print(const json_t *edges, struct error *err)
{
    CLEANUP(buf_cleanup) struct buf out;
    buf_init(&out, TOPO_TEXT_MAX_BYTES);
    json_t *seen = json_object();
    size_t index;
    const json_t *edge;
    json_array_foreach(edges, index, edge)
    {
        const char *parent = topo_end(edge, 0);
        if (json_object_get(seen, parent) != NULL || !topo_is_root(edges, parent))
            continue;
        (void)json_object_set_new(seen, parent, json_true()); /* no memory: it is told twice */
        topo_put(edges, parent, 0, &out);
    }
    json_decref(seen);
    return proxy_command_print(&out, err);
}

int proxy_commands_topo(int argc, char **argv)
{
    struct proxy_command_common values = {0};
    const char *operand;
    int status;
    if (!proxy_command_begin(&topo_command, argc, argv, &values, &operand, &status))
        return status;
    CLEANUP(remote_cleanup) struct remote *remote = NULL;
    struct error err = {0};
    json_t *edges = NULL;
    int rc = remote_open(values.proxy, &remote, &err);
    if (rc == 0)
        rc = remote_get_json(remote, "/topo", &edges, &err);
    if (rc == 0)
        rc = topo_print(edges, &err);
    json_decref(edges);
    return rc < 0 ? proxy_command_fail(&topo_command, rc, &err) : PROXY_COMMAND_FINE;
}
