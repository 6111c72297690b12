/* SPDX-License-Identifier: BSD-3-Clause */
/* cicada jobs: the live jobs of a proxy, with the ranks that are expected and seen. */
#include <string.h>

#include "cli/proxy_command.h"
#include "cli/proxy_commands.h"
#include "util/clock.h"

enum { JOBS_TEXT_MAX_BYTES = 64 << 20, JOBS_COMMAND_CHARACTERS = 60, MS_PER_S = 1000, NS_PER_MS = 1000000 };

struct jobs_values {
    struct proxy_command_common common;
    bool is_json;
};

static const struct cli_option jobs_options[] = {
    {"json", '\0', CLI_FLAG, NULL, offsetof(struct jobs_values, is_json), "print JSON, for programs"},
    PROXY_COMMAND_COMMON_OPTIONS,
};

static const struct cli_command jobs_command = {
    .name = "cicada jobs",
    .operands = "",
    .summary = "Lists the jobs that count on a proxy",
    .details =
        "RANKS are the MPI ranks that are seen, of those that the launcher says there are. With fewer seen, some run\n"
        "uninstrumented, or have not called MPI yet. PROCS are the processes that count now.\n"
        "With --json: what /ranks and /job/list answer, joined.\n" PROXY_COMMAND_STATUS_DETAILS,
    .options = jobs_options,
    .options_count = ARRAY_LENGTH(jobs_options),
};

/* The description of `id` in the answer of /job/list, or NULL. */
static const json_t *jobs_find(const json_t *list, const char *id)
{
    size_t index;
    const json_t *description;
    json_array_foreach(list, index, description)
    {
        if (strcmp(proxy_command_text(description, "jobid"), id) == 0)
            return description;
    }
    return NULL;
}

static void jobs_fill(struct columns *columns, const json_t *job, const json_t *description)
{
    struct buf *line = columns_begin(columns);
    proxy_command_cell_text(columns, proxy_command_text(job, "jobid"), 0);
    buf_printf(line, "%.0f/%.0f", proxy_command_number(job, "ranks"), proxy_command_number(job, "size"));
    columns_end_cell(columns);
    proxy_command_cell_number(columns, proxy_command_number(job, "processes"));
    double start_ms = proxy_command_number(description, "start_time");
    double end_ms = proxy_command_number(description, "end_time");
    double until_ms = end_ms > 0 ? end_ms : (double)clock_wall_ns() / NS_PER_MS;
    proxy_command_cell_duration(columns, start_ms > 0 ? (until_ms - start_ms) / MS_PER_S : 0);
    proxy_command_cell_text(columns, proxy_command_text(description, "command"), JOBS_COMMAND_CHARACTERS);
}

static int jobs_print(const json_t *ranks, const json_t *list, struct error *err)
{
    static const char *const heads[] = {"JOB", "RANKS", "PROCS", "TIME", "COMMAND"};
    const json_t *jobs = json_object_get(ranks, "jobs");
    CLEANUP(buf_cleanup) struct buf out;
    CLEANUP(columns_cleanup) struct columns columns;
    buf_init(&out, JOBS_TEXT_MAX_BYTES);
    columns_init(&columns, "lrrrl");
    size_t index;
    const json_t *job;
    columns_heads(&columns, heads);
    columns_measure(&columns);
    json_array_foreach(jobs, index, job)
    {
        jobs_fill(&columns, job, jobs_find(list, proxy_command_text(job, "jobid")));
        columns_measure(&columns);
    }
    columns_heads(&columns, heads);
    int rc = columns_put(&columns, &out, err);
    json_array_foreach(jobs, index, job)
    {
        jobs_fill(&columns, job, jobs_find(list, proxy_command_text(job, "jobid")));
        if (rc == 0)
            rc = columns_put(&columns, &out, err);
    }
    if (json_array_size(jobs) == 0)
        buf_text(&out, "(no job counts here now; finished ones: cicada profiles)\n");
    return rc < 0 ? rc : proxy_command_print(&out, err);
}

static int jobs_print_json(json_t *ranks, const json_t *list, struct error *err)
{
    size_t index;
    json_t *job;
    json_array_foreach(json_object_get(ranks, "jobs"), index, job)
    {
        const json_t *description = jobs_find(list, proxy_command_text(job, "jobid"));
        (void)json_object_update_missing(job, (json_t *)(uintptr_t)description); /* without: less is printed */
    }
    CLEANUP(buf_cleanup) struct buf out;
    buf_init(&out, JOBS_TEXT_MAX_BYTES);
    CLEANUP(memory_cleanup) char *text = json_dumps(json_object_get(ranks, "jobs"), JSON_INDENT(1));
    buf_text(&out, text != NULL ? text : "[]");
    buf_char(&out, '\n');
    return proxy_command_print(&out, err);
}

static int jobs_ask(const struct jobs_values *values, struct error *err)
{
    CLEANUP(remote_cleanup) struct remote *remote = NULL;
    json_t *ranks = NULL;
    json_t *list = NULL;
    int rc = remote_open(values->common.proxy, &remote, err);
    if (rc == 0)
        rc = remote_get_json(remote, "/ranks", &ranks, err);
    if (rc == 0)
        rc = remote_get_json(remote, "/job/list", &list, err);
    if (rc == 0)
        rc = values->is_json ? jobs_print_json(ranks, list, err) : jobs_print(ranks, list, err);
    json_decref(list);
    json_decref(ranks);
    return rc;
}

int proxy_commands_jobs(int argc, char **argv)
{
    struct jobs_values values = {0};
    const char *operand;
    int status;
    if (!proxy_command_begin(&jobs_command, argc, argv, &values, &operand, &status))
        return status;
    struct error err = {0};
    int rc = jobs_ask(&values, &err);
    return rc < 0 ? proxy_command_fail(&jobs_command, rc, &err) : PROXY_COMMAND_FINE;
}
