/* SPDX-License-Identifier: BSD-3-Clause */
#include "store/trace.h"

#include <errno.h>
#include <fcntl.h>
#include <limits.h>
#include <sqlite3.h>
#include <stdbool.h>
#include <stdio.h>
#include <stdlib.h>
#include <unistd.h>

#include "util/cleanup.h"

#define TRACE_APPLICATION_ID 1128874817 /* "CICA" as a big-endian number: tells whose file it is */
#define TRACE_VERSION        1

/* Of one blob. The greatest epoch of a gauge of noise needs about a quarter. */
#define TRACE_BLOB_MAX_BYTES (16 << 20)

struct trace {
    sqlite3 *db;
};

static const char trace_schema[] =
    "CREATE TABLE job(id INTEGER PRIMARY KEY CHECK(id = 1), description TEXT NOT NULL);"
    "CREATE TABLE metric(id INTEGER PRIMARY KEY, name TEXT NOT NULL, kind TEXT NOT NULL, UNIQUE(name, kind));"
    "CREATE TABLE epoch(id INTEGER PRIMARY KEY, first_us INTEGER NOT NULL, last_us INTEGER NOT NULL,"
    " ticks INTEGER NOT NULL, times BLOB NOT NULL);"
    "CREATE TABLE chunk(metric INTEGER NOT NULL, epoch INTEGER NOT NULL, data BLOB NOT NULL,"
    " PRIMARY KEY(metric, epoch)) WITHOUT ROWID;"
    "PRAGMA application_id = 1128874817;"
    "PRAGMA user_version = 1;";

static int trace_fail(const struct trace *trace, struct error *err, const char *what)
{
    static const struct {
        int sqlite;
        int code;
    } codes[] = {
        {SQLITE_CORRUPT, -EBADMSG}, {SQLITE_NOTADB, -EBADMSG}, {SQLITE_FULL, -ENOSPC},
        {SQLITE_NOMEM, -ENOMEM},    {SQLITE_READONLY, -EROFS}, {SQLITE_BUSY, -EBUSY},
        {SQLITE_LOCKED, -EBUSY},    {SQLITE_ERROR, -EBADMSG},  {SQLITE_CONSTRAINT, -EINVAL},
    };
    int sqlite = sqlite3_errcode(trace->db) & 0xff;
    int code = -EIO;
    for (size_t i = 0; i < ARRAY_LENGTH(codes); i++)
        if (codes[i].sqlite == sqlite)
            code = codes[i].code;
    int system = sqlite3_system_errno(trace->db);
    if (sqlite == SQLITE_CANTOPEN && system != 0)
        code = system == EISDIR ? -EBADMSG : -system;
    return error_set(err, code, "%s: %s", what, sqlite3_errmsg(trace->db));
}

static void trace_statement_cleanup(sqlite3_stmt **statement)
{
    (void)sqlite3_finalize(*statement); /* repeats the failure of the last step, which was reported then */
}

static int trace_prepare(struct trace *trace, const char *sql, sqlite3_stmt **out_statement, struct error *err)
{
    if (sqlite3_prepare_v2(trace->db, sql, -1, out_statement, NULL) != SQLITE_OK)
        return trace_fail(trace, err, "preparing a query");
    return 0;
}

static int trace_execute(struct trace *trace, const char *sql, struct error *err)
{
    if (sqlite3_exec(trace->db, sql, NULL, NULL, NULL) != SQLITE_OK)
        return trace_fail(trace, err, "the file");
    return 0;
}

/* Steps a statement that has no rows, so that it can be bound and stepped again. */
static int trace_run(struct trace *trace, sqlite3_stmt *statement, struct error *err)
{
    if (sqlite3_step(statement) != SQLITE_DONE) {
        int rc = trace_fail(trace, err, "writing");
        (void)sqlite3_reset(statement); /* repeats that failure */
        return rc;
    }
    return sqlite3_reset(statement) == SQLITE_OK ? 0 : trace_fail(trace, err, "writing");
}

/* The one number that `sql` asks for, `missing` if it is NULL. */
static int trace_number(struct trace *trace, const char *sql, int64_t missing, int64_t *out_number, struct error *err)
{
    CLEANUP(trace_statement_cleanup) sqlite3_stmt *statement = NULL;
    int rc = trace_prepare(trace, sql, &statement, err);
    if (rc < 0)
        return rc;
    if (sqlite3_step(statement) != SQLITE_ROW)
        return trace_fail(trace, err, "reading");
    bool is_null = sqlite3_column_type(statement, 0) == SQLITE_NULL;
    *out_number = is_null ? missing : sqlite3_column_int64(statement, 0);
    return 0;
}

/* ---- opening ---- */

static int trace_check(struct trace *trace, struct error *err)
{
    int64_t application = 0;
    int64_t version = 0;
    int64_t tables = 0;
    int rc = trace_number(trace, "PRAGMA application_id", 0, &application, err);
    if (rc == 0)
        rc = trace_number(trace, "PRAGMA user_version", 0, &version, err);
    if (rc == 0)
        rc = trace_number(trace, "SELECT count(*) FROM sqlite_master", 0, &tables, err);
    if (rc < 0)
        return rc;
    if (application == 0 && version == 0 && tables == 0)
        return trace_execute(trace, trace_schema, err);
    if (application != TRACE_APPLICATION_ID)
        return error_set(err, -EBADMSG, "an SQLite file of somebody else");
    if (version != TRACE_VERSION)
        return error_set(err, -ENOTSUP, "a trace of version %lld; this program knows version %d", (long long)version,
                         TRACE_VERSION);
    return 0;
}

int trace_open(const char *path, struct trace **out_trace, struct error *err)
{
    CLEANUP(trace_cleanup) struct trace *trace = calloc(1, sizeof *trace);
    if (trace == NULL)
        return error_set(err, -ENOMEM, "no memory for a trace");
    int flags = SQLITE_OPEN_READWRITE | SQLITE_OPEN_CREATE | SQLITE_OPEN_NOMUTEX;
    if (sqlite3_open_v2(path, &trace->db, flags, NULL) != SQLITE_OK) {
        int rc = trace->db == NULL ? error_set(err, -ENOMEM, "no memory") : trace_fail(trace, err, "opening");
        return error_wrap(err, rc, "trace '%s'", path);
    }
    /* The lock before the look: what is looked at can't be half made by another. */
    int rc = trace_execute(trace, "BEGIN IMMEDIATE", err);
    if (rc == 0)
        rc = trace_check(trace, err);
    if (rc == 0)
        rc = trace_execute(trace, "COMMIT", err);
    if (rc < 0)
        return error_wrap(err, rc, "trace '%s'", path);
    *out_trace = TAKE(trace);
    return 0;
}

void trace_close(struct trace *trace)
{
    if (trace == NULL)
        return;
    (void)sqlite3_close(trace->db); /* fails only for statements that are left, and there are none */
    free(trace);
}

/* One file to a name that is free; one that isn't there is fine. */
static int trace_rename(const char *from, const char *to, struct error *err)
{
    if (renameat2(AT_FDCWD, from, AT_FDCWD, to, RENAME_NOREPLACE) < 0 && errno != ENOENT)
        return error_errno(err, "renaming '%s'", from);
    return 0;
}

int trace_set_aside(const char *path, struct buf *out, struct error *err)
{
    for (unsigned number = 1; number <= TRACE_BROKEN_MAX; number++) {
        char suffix[32] = "";
        char from_journal[PATH_MAX];
        char to[PATH_MAX];
        char to_journal[PATH_MAX];
        if (number > 1)
            (void)snprintf(suffix, sizeof suffix, ".%u", number);
        if (snprintf(from_journal, PATH_MAX, "%s-journal", path) >= PATH_MAX ||
            snprintf(to, PATH_MAX, "%s.broken%s", path, suffix) >= PATH_MAX ||
            snprintf(to_journal, PATH_MAX, "%s.broken%s-journal", path, suffix) >= PATH_MAX)
            return error_set(err, -ENAMETOOLONG, "trace '%s'", path);
        if (faccessat(AT_FDCWD, to, F_OK, AT_SYMLINK_NOFOLLOW) == 0)
            continue;
        /* The journal first: left beside a new trace it would be played back into that one. */
        int rc = trace_rename(from_journal, to_journal, err);
        if (rc == 0)
            rc = trace_rename(path, to, err);
        if (rc < 0)
            return rc;
        buf_text(out, to);
        return buf_status(out, err);
    }
    return error_set(err, -EEXIST, "trace '%s': %d broken ones are beside it; remove some", path, TRACE_BROKEN_MAX);
}

/* ---- writing ---- */

int trace_describe(struct trace *trace, const char *json, struct error *err)
{
    CLEANUP(trace_statement_cleanup) sqlite3_stmt *statement = NULL;
    int rc = trace_prepare(trace, "INSERT OR REPLACE INTO job(id, description) VALUES(1, ?)", &statement, err);
    if (rc < 0)
        return rc;
    if (sqlite3_bind_text(statement, 1, json, -1, SQLITE_STATIC) != SQLITE_OK)
        return trace_fail(trace, err, "the description");
    return trace_run(trace, statement, err);
}

static const char *trace_kind(enum metric_kind kind)
{
    return kind == METRIC_GAUGE ? "gauge" : "counter";
}

static int trace_put_epoch(struct trace *trace, const int64_t *wall_us, size_t ticks, int64_t *out_epoch,
                           struct error *err)
{
    CLEANUP(trace_statement_cleanup) sqlite3_stmt *statement = NULL;
    CLEANUP(buf_cleanup) struct buf times;
    buf_init(&times, TRACE_BLOB_MAX_BYTES);
    int rc = pack_numbers(wall_us, ticks, &times, err);
    if (rc == 0)
        rc = trace_prepare(trace, "INSERT INTO epoch(first_us, last_us, ticks, times) VALUES(?, ?, ?, ?)", &statement,
                           err);
    if (rc < 0)
        return rc;
    if (sqlite3_bind_int64(statement, 1, wall_us[0]) != SQLITE_OK ||
        sqlite3_bind_int64(statement, 2, wall_us[ticks - 1]) != SQLITE_OK ||
        sqlite3_bind_int64(statement, 3, (int64_t)ticks) != SQLITE_OK ||
        sqlite3_bind_blob(statement, 4, times.data, (int)times.length, SQLITE_STATIC) != SQLITE_OK)
        return trace_fail(trace, err, "an epoch");
    rc = trace_run(trace, statement, err);
    if (rc == 0)
        *out_epoch = sqlite3_last_insert_rowid(trace->db);
    return rc;
}

/* What trace_put_metric() uses for one metric after the other. */
struct trace_writer {
    sqlite3_stmt *name;  /* makes the metric if it is new */
    sqlite3_stmt *chunk; /* finds it, and adds its chunk */
    struct buf data;
};

static void trace_writer_cleanup(struct trace_writer *writer)
{
    trace_statement_cleanup(&writer->name);
    trace_statement_cleanup(&writer->chunk);
    buf_fini(&writer->data);
}

static int trace_bind_metric(struct trace *trace, sqlite3_stmt *statement, const char *name, enum metric_kind kind,
                             struct error *err)
{
    if (sqlite3_bind_text(statement, 1, name, -1, SQLITE_STATIC) != SQLITE_OK ||
        sqlite3_bind_text(statement, 2, trace_kind(kind), -1, SQLITE_STATIC) != SQLITE_OK)
        return trace_fail(trace, err, "a metric's name");
    return 0;
}

static int trace_put_metric(struct trace *trace, struct trace_writer *writer, int64_t epoch,
                            const struct trace_metric *metric, struct error *err)
{
    buf_reset(&writer->data);
    int rc = chunk_encode(&metric->chunk, &writer->data, err);
    if (rc == 0)
        rc = trace_bind_metric(trace, writer->name, metric->name, metric->chunk.kind, err);
    if (rc == 0)
        rc = trace_run(trace, writer->name, err);
    if (rc == 0)
        rc = trace_bind_metric(trace, writer->chunk, metric->name, metric->chunk.kind, err);
    if (rc < 0)
        return rc;
    if (sqlite3_bind_int64(writer->chunk, 3, epoch) != SQLITE_OK ||
        sqlite3_bind_blob(writer->chunk, 4, writer->data.data, (int)writer->data.length, SQLITE_STATIC) != SQLITE_OK)
        return trace_fail(trace, err, "a chunk");
    return trace_run(trace, writer->chunk, err);
}

static int trace_put_all(struct trace *trace, int64_t epoch, const struct trace_metric *metrics, size_t count,
                         struct error *err)
{
    CLEANUP(trace_writer_cleanup) struct trace_writer writer = {0};
    buf_init(&writer.data, TRACE_BLOB_MAX_BYTES);
    int rc = trace_prepare(trace, "INSERT OR IGNORE INTO metric(name, kind) VALUES(?1, ?2)", &writer.name, err);
    if (rc == 0)
        rc = trace_prepare(trace,
                           "INSERT INTO chunk(metric, epoch, data)"
                           " SELECT id, ?3, ?4 FROM metric WHERE name = ?1 AND kind = ?2",
                           &writer.chunk, err);
    for (size_t i = 0; rc == 0 && i < count; i++) {
        rc = trace_put_metric(trace, &writer, epoch, &metrics[i], err);
        if (rc < 0)
            return error_wrap(err, rc, "metric '%s'", metrics[i].name);
    }
    return rc;
}

static int trace_check_ticks(const int64_t *wall_us, size_t ticks, const struct trace_metric *metrics, size_t count,
                             struct error *err)
{
    if (ticks == 0 || ticks > CHUNK_TICKS_MAX)
        return error_set(err, -EINVAL, "an epoch has 1 to %d ticks, not %zu", CHUNK_TICKS_MAX, ticks);
    for (size_t i = 1; i < ticks; i++)
        if (wall_us[i] <= wall_us[i - 1])
            return error_set(err, -EINVAL, "tick %zu is not after the one before it", i);
    for (size_t i = 0; i < count; i++)
        if (metrics[i].chunk.ticks != ticks)
            return error_set(err, -EINVAL, "metric '%s' has other ticks than its epoch", metrics[i].name);
    return 0;
}

int trace_append(struct trace *trace, const int64_t *wall_us, size_t ticks, const struct trace_metric *metrics,
                 size_t count, struct error *err)
{
    int64_t last_us = INT64_MIN;
    int64_t epoch = 0;
    int rc = trace_check_ticks(wall_us, ticks, metrics, count, err);
    if (rc == 0)
        rc = trace_execute(trace, "BEGIN IMMEDIATE", err);
    if (rc < 0)
        return rc;
    rc = trace_last(trace, &last_us, err);
    if (rc == 0 && wall_us[0] <= last_us)
        rc = error_set(err, -EEXIST, "the trace has ticks up to here already");
    if (rc == 0)
        rc = trace_put_epoch(trace, wall_us, ticks, &epoch, err);
    if (rc == 0)
        rc = trace_put_all(trace, epoch, metrics, count, err);
    if (rc == 0)
        rc = trace_execute(trace, "COMMIT", err);
    if (rc < 0)
        (void)trace_execute(trace, "ROLLBACK", NULL); /* SQLite may have done it by itself */
    return rc;
}

/* ---- reading ---- */

int trace_last(struct trace *trace, int64_t *out_wall_us, struct error *err)
{
    return trace_number(trace, "SELECT max(last_us) FROM epoch", INT64_MIN, out_wall_us, err);
}

int trace_description(struct trace *trace, struct buf *out, struct error *err)
{
    CLEANUP(trace_statement_cleanup) sqlite3_stmt *statement = NULL;
    int rc = trace_prepare(trace, "SELECT CAST(description AS TEXT) FROM job", &statement, err);
    if (rc < 0)
        return rc;
    int step = sqlite3_step(statement);
    if (step == SQLITE_DONE)
        return 0;
    if (step != SQLITE_ROW)
        return trace_fail(trace, err, "reading the description");
    const unsigned char *text = sqlite3_column_text(statement, 0);
    buf_bytes(out, text, text == NULL ? 0 : (size_t)sqlite3_column_bytes(statement, 0));
    return buf_status(out, err);
}

int trace_metrics(struct trace *trace, void (*on_metric)(void *context, const char *name, enum metric_kind kind),
                  void *context, struct error *err)
{
    CLEANUP(trace_statement_cleanup) sqlite3_stmt *statement = NULL;
    int rc = trace_prepare(trace, "SELECT name, kind = 'gauge' FROM metric ORDER BY name, kind", &statement, err);
    if (rc < 0)
        return rc;
    int step;
    while ((step = sqlite3_step(statement)) == SQLITE_ROW) {
        const char *name = (const char *)sqlite3_column_text(statement, 0);
        if (name == NULL)
            return error_set(err, -EBADMSG, "a metric without a name");
        on_metric(context, name, sqlite3_column_int(statement, 1) != 0 ? METRIC_GAUGE : METRIC_COUNTER);
    }
    return step == SQLITE_DONE ? 0 : trace_fail(trace, err, "reading the metrics");
}

/* One epoch of one metric, decoded. */
struct trace_epoch {
    int64_t *wall_us;
    struct chunk chunk;
};

static void trace_epoch_cleanup(struct trace_epoch *epoch)
{
    free(epoch->wall_us);
    free(epoch->chunk.missing);
    for (size_t i = 0; i < CHUNK_COLUMNS_MAX; i++)
        free(epoch->chunk.columns[i]);
}

static int trace_epoch_allocate(struct trace_epoch *epoch, struct error *err)
{
    size_t ticks = epoch->chunk.ticks;
    epoch->wall_us = malloc(ticks * sizeof *epoch->wall_us);
    epoch->chunk.missing = malloc(ticks * sizeof *epoch->chunk.missing);
    bool is_whole = epoch->wall_us != NULL && epoch->chunk.missing != NULL;
    for (size_t i = 0; i < chunk_columns(epoch->chunk.kind); i++) {
        epoch->chunk.columns[i] = calloc(ticks, sizeof *epoch->chunk.columns[i]);
        is_whole = is_whole && epoch->chunk.columns[i] != NULL;
    }
    return is_whole ? 0 : error_set(err, -ENOMEM, "no memory for an epoch");
}

/* Decodes the row ticks, times, data, which may hold anything. */
static int trace_take_epoch(sqlite3_stmt *statement, struct trace_epoch *epoch, struct error *err)
{
    int64_t ticks = sqlite3_column_int64(statement, 0);
    const unsigned char *times = sqlite3_column_blob(statement, 1);
    size_t times_bytes = (size_t)sqlite3_column_bytes(statement, 1);
    const void *data = sqlite3_column_blob(statement, 2);
    size_t data_bytes = (size_t)sqlite3_column_bytes(statement, 2);
    if (ticks < 1 || ticks > CHUNK_TICKS_MAX || times == NULL || data == NULL)
        return error_set(err, -EBADMSG, "an epoch is damaged");
    epoch->chunk.ticks = (size_t)ticks;
    int rc = trace_epoch_allocate(epoch, err);
    if (rc < 0)
        return rc;
    struct pack_input input = {.at = times, .end = times + times_bytes};
    rc = pack_take_numbers(&input, epoch->wall_us, epoch->chunk.ticks, err);
    if (rc == 0 && input.at != input.end)
        return error_set(err, -EBADMSG, "an epoch's ticks are damaged");
    for (size_t i = 1; rc == 0 && i < epoch->chunk.ticks; i++)
        if (epoch->wall_us[i] <= epoch->wall_us[i - 1])
            return error_set(err, -EBADMSG, "an epoch's ticks run backwards");
    return rc < 0 ? rc : chunk_decode(data, data_bytes, &epoch->chunk, err);
}

static int trace_read_epoch(sqlite3_stmt *statement, const struct trace_query *query,
                            void (*on_point)(void *context, const struct trace_point *point), void *context,
                            struct error *err)
{
    CLEANUP(trace_epoch_cleanup) struct trace_epoch epoch = {.chunk.kind = query->kind};
    int rc = trace_take_epoch(statement, &epoch, err);
    for (size_t i = 0; rc == 0 && i < epoch.chunk.ticks; i++) {
        if (epoch.wall_us[i] < query->from_wall_us || epoch.wall_us[i] > query->to_wall_us)
            continue;
        struct trace_point point = {.wall_us = epoch.wall_us[i], .missing = epoch.chunk.missing[i]};
        for (size_t column = 0; column < CHUNK_COLUMNS_MAX && epoch.chunk.columns[column] != NULL; column++)
            point.values[column] = epoch.chunk.columns[column][i];
        on_point(context, &point);
    }
    return rc;
}

int trace_read(struct trace *trace, const struct trace_query *query,
               void (*on_point)(void *context, const struct trace_point *point), void *context, struct error *err)
{
    CLEANUP(trace_statement_cleanup) sqlite3_stmt *statement = NULL;
    int rc = trace_prepare(trace,
                           "SELECT e.ticks, e.times, c.data FROM metric m JOIN chunk c ON c.metric = m.id"
                           " JOIN epoch e ON e.id = c.epoch WHERE m.name = ?1 AND m.kind = ?2"
                           " AND e.last_us >= ?3 AND e.first_us <= ?4 ORDER BY e.first_us",
                           &statement, err);
    if (rc == 0)
        rc = trace_bind_metric(trace, statement, query->name, query->kind, err);
    if (rc < 0)
        return rc;
    if (sqlite3_bind_int64(statement, 3, query->from_wall_us) != SQLITE_OK ||
        sqlite3_bind_int64(statement, 4, query->to_wall_us) != SQLITE_OK)
        return trace_fail(trace, err, "a range");
    for (;;) {
        int step = sqlite3_step(statement);
        if (step == SQLITE_DONE)
            return 0;
        if (step != SQLITE_ROW)
            return trace_fail(trace, err, "reading");
        rc = trace_read_epoch(statement, query, on_point, context, err);
        if (rc < 0)
            return error_wrap(err, rc, "metric '%s'", query->name);
    }
}
