/* SPDX-License-Identifier: BSD-3-Clause */
#include "proxy/alarms_keeper.h"

#include <errno.h>
#include <fcntl.h>
#include <setjmp.h>
#include <stdarg.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

#include <cmocka.h>

#include "net/http_server.h"
#include "net/resolve.h"
#include "proxy/contributor.h"
#include "support/scratch.h"
#include "util/clock.h"
#include "util/file.h"
#include "util/log.h"

#define DEADLINE_NS (30 * CLOCK_NS_PER_SECOND)

enum { BODY_MAX_BYTES = 1 << 20 };

/* A keeper in a loop, and a receiver of its webhook. */
struct setting {
    uv_loop_t loop;
    struct scratch scratch;
    struct jobs *jobs;
    struct contributor *client;
    uint32_t slot;
    struct resolve *resolve;
    struct http_client *http;
    struct http_server *server;
    uint16_t port;
    unsigned posts;
    unsigned refusals_left; /* posts that get a 500 */
    struct buf body;        /* of the last post */
    struct alarms_keeper *keeper;
    bool is_closed;
};

static void on_request(void *context, struct http_request *request)
{
    struct setting *setting = context;
    setting->posts++;
    buf_reset(&setting->body);
    const struct buf *body = http_request_body(request);
    buf_bytes(&setting->body, body->data, body->length);
    if (setting->refusals_left > 0) {
        setting->refusals_left--;
        http_request_fail(request, 500, "not now");
        return;
    }
    struct buf answer;
    buf_init(&answer, 10);
    http_request_answer(request, &(struct http_request_answer){.body = &answer});
}

static void set_up(struct setting *setting)
{
    const struct jobs_config config = {
        .hostname = "host", .jobs_max = 10, .metrics_per_job_max = 100, .metrics_max = 1000, .linger_ns = 1};
    *setting = (struct setting){.scratch = scratch_new()};
    buf_init(&setting->body, BODY_MAX_BYTES);
    assert_int_equal(uv_loop_init(&setting->loop), 0);
    assert_int_equal(jobs_new(&config, &setting->jobs, NULL), 0);
    setting->client = contributor_new(setting->jobs, &(struct contributor_config){0});
    assert_int_equal(contributor_declare(setting->client, "load", 4, "", METRIC_GAUGE, &setting->slot, NULL), 0);
    setting->resolve = resolve_new(&setting->loop);
    assert_int_equal(http_client_new(&setting->loop, setting->resolve, 4, &setting->http, NULL), 0);
    const struct http_server_config server = {.loop = &setting->loop, .on_request = on_request, .context = setting};
    assert_int_equal(http_server_new(&server, &setting->server, NULL), 0);
    assert_int_equal(http_server_listen_tcp(setting->server, "127.0.0.1", 0, &setting->port, NULL), 0);
}

static void on_closed(void *context)
{
    struct setting *setting = context;
    setting->is_closed = true;
}

static void close_keeper(struct setting *setting)
{
    setting->is_closed = false;
    alarms_keeper_close(setting->keeper, on_closed, setting);
    while (!setting->is_closed)
        (void)uv_run(&setting->loop, UV_RUN_ONCE);
}

static void tear_down(struct setting *setting)
{
    close_keeper(setting);
    contributor_discard(setting->client);
    jobs_free(setting->jobs);
    http_client_close(setting->http, NULL, NULL);
    http_server_close(setting->server, NULL, NULL);
    assert_int_equal(uv_run(&setting->loop, UV_RUN_DEFAULT), 0);
    assert_int_equal(resolve_close(setting->resolve), 0);
    assert_int_equal(uv_run(&setting->loop, UV_RUN_DEFAULT), 0);
    assert_int_equal(uv_loop_close(&setting->loop), 0);
    buf_fini(&setting->body);
    scratch_cleanup(&setting->scratch);
}

static void open_keeper(struct setting *setting, const char *command, const char *webhook)
{
    const struct alarms_keeper_config config = {.loop = &setting->loop,
                                                .jobs = setting->jobs,
                                                .client = setting->http,
                                                .prefix = setting->scratch.path,
                                                .hostname = "host",
                                                .command = command,
                                                .webhook = webhook};
    struct error err = {0};
    if (alarms_keeper_open(&config, &setting->keeper, &err) < 0)
        fail_msg("%s", err.text);
}

static void tick(struct setting *setting, double load)
{
    struct metric_value value = metric_gauge(load, 1);
    contributor_set(setting->client, setting->slot, &value);
    jobs_begin(setting->jobs);
    struct contributor *contributor = jobs_first_contributor(setting->jobs);
    for (; contributor != NULL; contributor = contributor_links(contributor)->next)
        contributor_add(contributor);
    jobs_end(setting->jobs);
    alarms_keeper_tick(setting->keeper, clock_mono_ns(), clock_wall_ns() / CLOCK_NS_PER_MS);
}

static void add(struct setting *setting, const char *name)
{
    const struct alarm_rule rule = {
        .name = name, .target = "main", .metric = "load", .comparison = ALARM_MORE, .value = 33};
    assert_int_equal(alarms_add(alarms_keeper_alarms(setting->keeper), &rule, NULL), 0);
}

/* Ticks with `load` until `condition`; the loop runs in between. */
static void tick_until(struct setting *setting, double load, bool (*condition)(const struct setting *setting))
{
    int64_t end_ns = clock_mono_ns() + DEADLINE_NS;
    while (!condition(setting)) {
        assert_true(clock_mono_ns() < end_ns);
        tick(setting, load);
        (void)uv_run(&setting->loop, UV_RUN_NOWAIT);
        (void)usleep(1000);
    }
}

static bool has_one_alarm(const struct setting *setting)
{
    return alarms_count(alarms_keeper_alarms(setting->keeper)) == 1;
}

static bool has_firing(const struct setting *setting)
{
    return setting->posts >= 2 && setting->body.length > 0 &&
           memmem(setting->body.data, setting->body.length, "endsAt", 6) == NULL;
}

static bool has_resolved(const struct setting *setting)
{
    return setting->body.length > 0 && memmem(setting->body.data, setting->body.length, "endsAt", 6) != NULL;
}

static bool has_broken_file(const struct setting *setting)
{
    char path[PATH_MAX];
    return access(scratch_path(&setting->scratch, "nodes/host/alarms.json.broken", path), F_OK) == 0;
}

static void alarms_are_there_after_a_restart(void **state)
{
    (void)state;
    struct setting setting;
    set_up(&setting);
    open_keeper(&setting, NULL, NULL);
    add(&setting, "high"); /* before the file has been read */
    close_keeper(&setting);
    open_keeper(&setting, NULL, NULL);
    tick_until(&setting, 0, has_one_alarm);
    assert_string_equal(alarms_at(alarms_keeper_alarms(setting.keeper), 0).rule.name, "high");
    assert_int_equal(alarms_remove(alarms_keeper_alarms(setting.keeper), "main", "high", NULL), 0);
    close_keeper(&setting);
    open_keeper(&setting, NULL, NULL);
    close_keeper(&setting); /* reads, and ends */
    open_keeper(&setting, NULL, NULL);
    add(&setting, "other");
    tick_until(&setting, 0, has_one_alarm);
    tear_down(&setting);
}

static void a_broken_file_is_set_aside(void **state)
{
    (void)state;
    static const char half[] = "{\"version\":1,\"alarms\":[{\"na";
    char path[PATH_MAX];
    struct setting setting;
    set_up(&setting);
    assert_int_equal(file_make_directories(scratch_path(&setting.scratch, "nodes/host", path), 0755, NULL), 0);
    scratch_write(&setting.scratch, "nodes/host/alarms.json", half, sizeof half - 1);
    open_keeper(&setting, NULL, NULL);
    tick_until(&setting, 0, has_broken_file);
    add(&setting, "high");
    close_keeper(&setting);
    open_keeper(&setting, NULL, NULL);
    tick_until(&setting, 0, has_one_alarm);
    CLEANUP(buf_cleanup) struct buf text;
    buf_init(&text, BODY_MAX_BYTES);
    assert_int_equal(
        file_read(AT_FDCWD, scratch_path(&setting.scratch, "nodes/host/alarms.json.broken", path), &text, NULL), 0);
    assert_string_equal(buf_string(&text), half);
    tear_down(&setting);
}

static void the_webhook_hears_of_both_also_after_failures(void **state)
{
    (void)state;
    struct setting setting;
    set_up(&setting);
    char url[64];
    (void)snprintf(url, sizeof url, "http://127.0.0.1:%u", setting.port);
    open_keeper(&setting, NULL, url);
    setting.refusals_left = 1;
    add(&setting, "very \"high\"");
    tick_until(&setting, 51.5, has_firing);
    assert_true(setting.posts >= 2);
    static const char head[] =
        "[{\"labels\":{\"alertname\":\"very \\\"high\\\"\",\"instance\":\"host\",\"job\":\"main\","
        "\"metric\":\"load\"},\"annotations\":{\"summary\":\"very \\\"high\\\" : load = 51.5 ";
    assert_memory_equal(setting.body.data, head, sizeof head - 1);
    tick_until(&setting, 0, has_resolved);
    tear_down(&setting);
}

static bool has_told_twice(const struct setting *setting)
{
    char path[PATH_MAX];
    struct stat info;
    return stat(scratch_path(&setting->scratch, "cleared", path), &info) == 0;
}

static bool has_told_once(const struct setting *setting)
{
    char path[PATH_MAX];
    struct stat info;
    return stat(scratch_path(&setting->scratch, "raised", path), &info) == 0;
}

static void the_command_is_run_with_words_and_without_a_shell(void **state)
{
    (void)state;
    struct setting setting;
    set_up(&setting);
    char command[PATH_MAX];
    char script[PATH_MAX + 200];
    (void)snprintf(script, sizeof script,
                   "#!/bin/sh\ncd '%s' && echo \"$CICADA_ALARM_NAME|$CICADA_ALARM_JOB|$CICADA_ALARM_METRIC|"
                   "$CICADA_ALARM_OPERATOR|$CICADA_ALARM_THRESHOLD|$CICADA_ALARM_VALUE|$CICADA_ALARM_HOST\" > tmp.$1 "
                   "&& mv tmp.$1 $1\n",
                   setting.scratch.path);
    scratch_write(&setting.scratch, "tell it", script, strlen(script));
    assert_int_equal(chmod(scratch_path(&setting.scratch, "tell it", command), 0755), 0);
    open_keeper(&setting, command, NULL);
    add(&setting, "$(touch x)");
    tick_until(&setting, 51.5, has_told_once);
    tick_until(&setting, 0, has_told_twice);
    CLEANUP(buf_cleanup) struct buf text;
    buf_init(&text, BODY_MAX_BYTES);
    char path[PATH_MAX];
    assert_int_equal(file_read(AT_FDCWD, scratch_path(&setting.scratch, "raised", path), &text, NULL), 0);
    assert_string_equal(buf_string(&text), "$(touch x)|main|load|>|33|51.5|host\n");
    tear_down(&setting);
}

static void commands_that_hang_hold_up_nothing(void **state)
{
    (void)state;
    struct setting setting;
    set_up(&setting);
    open_keeper(&setting, "/bin/cat", NULL); /* "cat raised": fails; many of them: some wait */
    for (unsigned i = 0; i < 400; i++) {
        char name[32];
        (void)snprintf(name, sizeof name, "alarm %u", i);
        add(&setting, name);
    }
    tick(&setting, 51.5);
    (void)uv_run(&setting.loop, UV_RUN_NOWAIT);
    tear_down(&setting); /* cancels what runs and what waits */
}

static void a_bad_url_is_refused(void **state)
{
    (void)state;
    struct setting setting;
    set_up(&setting);
    const struct alarms_keeper_config config = {.loop = &setting.loop,
                                                .jobs = setting.jobs,
                                                .client = setting.http,
                                                .prefix = setting.scratch.path,
                                                .hostname = "host",
                                                .webhook = "ftp://x"};
    struct error err = {0};
    assert_int_equal(alarms_keeper_open(&config, &setting.keeper, &err), -EINVAL);
    assert_non_null(strstr(err.text, "'ftp://x'"));
    tear_down(&setting);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(alarms_are_there_after_a_restart),
        cmocka_unit_test(a_broken_file_is_set_aside),
        cmocka_unit_test(the_webhook_hears_of_both_also_after_failures),
        cmocka_unit_test(the_command_is_run_with_words_and_without_a_shell),
        cmocka_unit_test(commands_that_hang_hold_up_nothing),
        cmocka_unit_test(a_bad_url_is_refused),
    };
    log_open(2, LOG_LEVEL_ERROR); /* each alarm would be a line */
    return cmocka_run_group_tests(tests, NULL, NULL);
}
