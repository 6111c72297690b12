/* SPDX-License-Identifier: BSD-3-Clause */
#include "proxy/own.h"

#include <dirent.h>
#include <inttypes.h>
#include <stdlib.h>
#include <string.h>
#include <sys/resource.h>
#include <unistd.h>

#include "cicada_version.h"
#include "util/cleanup.h"
#include "util/clock.h"
#include "util/cursor.h"
#include "util/file.h"

enum { OWN_TEXT_MAX_BYTES = 4096 };

struct own {
    struct own_sources sources;
    double start_wall_s;
    uv_check_t awake;    /* the loop has come back from its descriptors */
    uv_prepare_t asleep; /* it goes to wait for them */
    int64_t awake_mono_ns;
    int64_t busy_ns; /* so far */
    int64_t longest_ns;
};

static void own_on_awake(uv_check_t *check)
{
    struct own *own = check->data;
    own->awake_mono_ns = clock_mono_ns();
}

static void own_on_asleep(uv_prepare_t *prepare)
{
    struct own *own = prepare->data;
    if (own->awake_mono_ns == 0)
        return;
    int64_t turn_ns = clock_mono_ns() - own->awake_mono_ns;
    own->busy_ns += turn_ns;
    own->longest_ns = turn_ns > own->longest_ns ? turn_ns : own->longest_ns;
}

int own_new(uv_loop_t *loop, struct own **out_own, struct error *err)
{
    struct own *own = calloc(1, sizeof *own);
    if (own == NULL)
        return error_set(err, -ENOMEM, "no memory to watch the loop");
    own->start_wall_s = (double)clock_wall_ns() / (double)CLOCK_NS_PER_SECOND;
    own->awake.data = own->asleep.data = own;
    (void)uv_check_init(loop, &own->awake); /* these four can't fail */
    (void)uv_prepare_init(loop, &own->asleep);
    (void)uv_check_start(&own->awake, own_on_awake);
    (void)uv_prepare_start(&own->asleep, own_on_asleep);
    uv_unref((uv_handle_t *)&own->awake);
    uv_unref((uv_handle_t *)&own->asleep);
    *out_own = own;
    return 0;
}

struct own_sources *own_sources(struct own *own)
{
    return &own->sources;
}

void own_close(struct own *own)
{
    if (own == NULL)
        return;
    uv_close((uv_handle_t *)&own->awake, NULL);
    uv_close((uv_handle_t *)&own->asleep, NULL);
}

void own_free(struct own *own)
{
    free(own);
}

/* One number. */
struct own_row {
    const char *name;
    enum metric_kind kind;
    double value;
    const char *doc;
};

static void own_put(const struct own_row *rows, size_t count, enum exposition_form form, struct buf *out)
{
    for (size_t i = 0; i < count; i++)
        exposition_one(form, rows[i].name, rows[i].kind, rows[i].doc, rows[i].value, out);
}

static double own_seconds(int64_t ns)
{
    return (double)ns / (double)CLOCK_NS_PER_SECOND;
}

static void own_put_build(enum exposition_form form, struct buf *out)
{
    exposition_one(form, "cicada_build_info{version=\"" CICADA_VERSION "\"}", METRIC_GAUGE,
                   "Version of Cicada; always 1", 1, out);
}

/* Pages of /proc/self/statm: virtual and resident. */
static void own_memory(uint64_t *out_virtual, uint64_t *out_resident)
{
    CLEANUP(buf_cleanup) struct buf text;
    buf_init(&text, OWN_TEXT_MAX_BYTES);
    *out_virtual = *out_resident = 0;
    if (file_read(AT_FDCWD, "/proc/self/statm", &text, NULL) < 0)
        return;
    struct cursor cursor = cursor_of(text.data, text.length);
    if (!cursor_u64(&cursor, out_virtual) || !cursor_u64(&cursor, out_resident))
        *out_virtual = *out_resident = 0;
}

static double own_open_descriptors(void)
{
    DIR *directory = opendir("/proc/self/fd");
    if (directory == NULL)
        return 0;
    double count = -1; /* its own goes again */
    for (const struct dirent *entry; (entry = readdir(directory)) != NULL;)
        count += entry->d_name[0] != '.';
    (void)closedir(directory); /* it was only read */
    return count;
}

static void own_put_process(const struct own *own, enum exposition_form form, struct buf *out)
{
    uint64_t virtual_pages, resident_pages;
    own_memory(&virtual_pages, &resident_pages);
    double page = (double)sysconf(_SC_PAGESIZE);
    struct rlimit files = {0};
    (void)getrlimit(RLIMIT_NOFILE, &files); /* fails only for a wrong argument */
    const struct own_row rows[] = {
        {"process_cpu_seconds_total", METRIC_COUNTER, own_seconds(clock_process_cpu_ns()), "CPU time of the proxy"},
        {"process_max_fds", METRIC_GAUGE, (double)files.rlim_cur, "Descriptors that it may have"},
        {"process_open_fds", METRIC_GAUGE, own_open_descriptors(), "Descriptors that it has"},
        {"process_resident_memory_bytes", METRIC_GAUGE, (double)resident_pages * page, "Memory in RAM"},
        {"process_start_time_seconds", METRIC_GAUGE, own->start_wall_s, "When it was started, since 1970"},
        {"process_virtual_memory_bytes", METRIC_GAUGE, (double)virtual_pages * page, "Address space"},
    };
    own_put(rows, ARRAY_LENGTH(rows), form, out);
}

static void own_put_jobs(const struct own *own, enum exposition_form form, struct buf *out)
{
    struct proxy *proxy = own->sources.proxy;
    const struct jobs *jobs = proxy_jobs(proxy);
    const struct jobs_stats *refused = jobs_stats(proxy_jobs(proxy));
    const struct own_row rows[] = {
        {"cicada_proxy_jobs", METRIC_GAUGE, (double)jobs_count(jobs) - 2, "Jobs that count now"},
        {"cicada_proxy_jobs_started_total", METRIC_COUNTER, (double)refused->jobs_started, "Jobs so far"},
        {"cicada_proxy_jobs_refused_total", METRIC_COUNTER, (double)refused->jobs_refused,
         "Jobs past --max-jobs or with a bad description; what they count is in main"},
        {"cicada_proxy_metrics", METRIC_GAUGE, (double)jobs_metrics_used(jobs), "Metrics of all jobs together"},
        {"cicada_proxy_metrics_refused_total", METRIC_COUNTER, (double)refused->metrics_refused,
         "Metrics for which there was no room"},
        {"cicada_proxy_metrics_conflicting_total", METRIC_COUNTER, (double)refused->metrics_conflicting,
         "Metrics declared as a counter here and as a gauge there"},
        {"cicada_proxy_names_mapped_total", METRIC_COUNTER, (double)refused->names_mapped,
         "Names that had to be made legal"},
        {"cicada_proxy_names_refused_total", METRIC_COUNTER, (double)refused->names_refused,
         "Names that could not be made legal"},
        {"cicada_proxy_values_refused_total", METRIC_COUNTER, (double)refused->values_refused,
         "Values of metrics that nobody declared"},
        {"cicada_proxy_profiles", METRIC_GAUGE, (double)profiles_count(proxy_profiles(proxy)),
         "Profiles that are kept"},
    };
    own_put(rows, ARRAY_LENGTH(rows), form, out);
}

static void own_put_segments(const struct own *own, enum exposition_form form, struct buf *out)
{
    const struct segments *segments = proxy_segments(own->sources.proxy);
    struct segments_stats stats = segments_stats(segments);
    const struct own_row rows[] = {
        {"cicada_proxy_segments", METRIC_GAUGE, (double)segments_count(segments), "Segments of programs in use"},
        {"cicada_proxy_segments_folded_total", METRIC_COUNTER, (double)stats.folded,
         "Segments of programs that have ended"},
        {"cicada_proxy_segments_refused_total", METRIC_COUNTER, (double)stats.refused,
         "Files and descriptors that are no segment of this user, or one too many"},
        {"cicada_proxy_segment_read_failures_total", METRIC_COUNTER, (double)stats.read_failures,
         "Reads of segments that failed"},
        {"cicada_proxy_client_metrics_refused_total", METRIC_COUNTER, (double)stats.metrics_refused,
         "Metrics that programs could not declare for want of memory"},
    };
    own_put(rows, ARRAY_LENGTH(rows), form, out);
}

static void own_put_ticks(const struct own *own, enum exposition_form form, struct buf *out)
{
    const struct proxy_stats *stats = proxy_stats(own->sources.proxy);
    const struct own_row rows[] = {
        {"cicada_proxy_loop_busy_seconds_total", METRIC_COUNTER, own_seconds(own->busy_ns),
         "Time that the loop did not wait"},
        {"cicada_proxy_loop_longest_turn_seconds", METRIC_GAUGE, own_seconds(own->longest_ns),
         "The longest time that the loop was away from its descriptors"},
        {"cicada_proxy_ticks_total", METRIC_COUNTER, (double)stats->ticks, "Ticks"},
        {"cicada_proxy_ticks_missed_total", METRIC_COUNTER, (double)stats->ticks_missed, "Periods without a tick"},
        {"cicada_proxy_tick_cpu_seconds_total", METRIC_COUNTER, own_seconds(stats->tick_cpu_ns), "CPU time of ticks"},
        {"cicada_proxy_tick_duration_seconds", METRIC_GAUGE, own_seconds(stats->tick_last_ns),
         "What the last tick took"},
        {"cicada_proxy_state_writes_total", METRIC_COUNTER, (double)stats->state_writes,
         "Times that the state for a successor was written"},
        {"cicada_proxy_state_failures_total", METRIC_COUNTER, (double)stats->state_failures,
         "Times that it could not be written"},
    };
    own_put(rows, ARRAY_LENGTH(rows), form, out);
}

static void own_put_clients(const struct own *own, enum exposition_form form, struct buf *out)
{
    if (own->sources.clients == NULL || own->sources.http == NULL)
        return;
    struct unix_listener_stats clients = unix_listener_stats(own->sources.clients);
    struct http_server_stats http = http_server_stats(own->sources.http);
    const struct own_row rows[] = {
        {"cicada_proxy_client_connections", METRIC_GAUGE, (double)clients.connections, "Programs connected now"},
        {"cicada_proxy_client_connections_total", METRIC_COUNTER, (double)clients.connections_total,
         "Programs that have connected"},
        {"cicada_proxy_client_connections_refused_total", METRIC_COUNTER, (double)clients.refused_total,
         "Connections refused for want of descriptors or memory"},
        {"cicada_proxy_client_connections_cut_total", METRIC_COUNTER,
         (double)proxy_stats(own->sources.proxy)->connections_cut, "Connections ended since they made no sense"},
        {"cicada_proxy_http_connections", METRIC_GAUGE, (double)http.connections, "HTTP connections now"},
        {"cicada_proxy_http_requests_total", METRIC_COUNTER, (double)http.requests_total, "HTTP requests"},
        {"cicada_proxy_http_refused_total", METRIC_COUNTER, (double)http.refused_total,
         "HTTP requests with a bad head or too large a body"},
        {"cicada_proxy_http_timeouts_total", METRIC_COUNTER, (double)http.timed_out_total,
         "HTTP connections that were too slow"},
        {"cicada_proxy_http_forbidden_total", METRIC_COUNTER, (double)*own->sources.refused_requests,
         "HTTP requests for want of a right"},
    };
    own_put(rows, ARRAY_LENGTH(rows), form, out);
}

void own_append(struct own *own, enum exposition_form form, struct buf *out)
{
    own_put_build(form, out);
    own_put_clients(own, form, out);
    own_put_jobs(own, form, out);
    own_put_segments(own, form, out);
    own_put_ticks(own, form, out);
    own_put_process(own, form, out);
}
