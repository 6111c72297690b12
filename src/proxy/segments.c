/* SPDX-License-Identifier: BSD-3-Clause */
#include "proxy/segments.h"

#include <dirent.h>
#include <errno.h>
#include <fcntl.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/inotify.h>
#include <sys/resource.h>
#include <sys/stat.h>
#include <unistd.h>
#define HASH_NONFATAL_OOM 1 /* a segment is left for the next scan; uthash would end the proxy */
#include <uthash.h>

#include "proxy/liveness.h"
#include "proxy/segment_source.h"
#include "util/file.h"
#include "util/log.h"

enum {
    SEGMENTS_ID_DIGITS = 2 * SEGMENT_ID_BYTES,
    SEGMENTS_NAME_BYTES = SEGMENTS_ID_DIGITS + sizeof ".segment",
    SEGMENTS_FD_PATH_BYTES = 32,
    SEGMENTS_EVENTS_BYTES = 1 << 14,
    SEGMENTS_PIDFDS_SHARE = 4,  /* pidfds may take one in so many of our descriptors */
    SEGMENTS_UNFINISHED_S = 60, /* a file that its maker did not finish in this time, and doesn't use, is rubbish */
};

static const char segments_suffix[] = ".segment";

struct segment {
    uint8_t id[SEGMENT_ID_BYTES];
    bool has_file; /* of its id's name in our directory */
    struct segment_source *source;
    UT_hash_handle hh;
};

/* A segment that is in the bases; its file may still be there. */
struct segments_folded {
    uint8_t id[SEGMENT_ID_BYTES];
};

struct segments {
    struct jobs *jobs;
    char *path;
    uint32_t uid;
    int dir_fd;
    int inotify_fd;
    bool needs_scan;
    struct segment *by_id; /* in the order in which they were found */
    struct segments_folded *folded;
    size_t folded_count, folded_capacity;
    size_t pidfds_left;
    uint64_t own_namespace;
    struct segments_stats stats;
    struct log_repeat directory_repeat;
};

static size_t segments_pidfds_max(void)
{
    struct rlimit limit;
    if (getrlimit(RLIMIT_NOFILE, &limit) < 0)
        return 0;
    return (size_t)limit.rlim_cur / SEGMENTS_PIDFDS_SHARE;
}

int segments_new(struct jobs *jobs, const char *path, uint32_t uid, struct segments **out_segments, struct error *err)
{
    struct segments *segments = calloc(1, sizeof *segments);
    char *copy = strdup(path);
    if (segments == NULL || copy == NULL) {
        free(segments);
        free(copy);
        return error_set(err, -ENOMEM, "no memory for segments");
    }
    *segments = (struct segments){
        .jobs = jobs,
        .path = copy,
        .uid = uid,
        .dir_fd = -1,
        .inotify_fd = -1,
        .needs_scan = true,
        .pidfds_left = segments_pidfds_max(),
        .own_namespace = liveness_own_namespace(),
    };
    *out_segments = segments;
    return 0;
}

static void segments_close_directory(struct segments *segments)
{
    if (segments->dir_fd >= 0)
        close(segments->dir_fd);
    if (segments->inotify_fd >= 0)
        close(segments->inotify_fd);
    segments->dir_fd = -1;
    segments->inotify_fd = -1;
    segments->needs_scan = true;
}

void segments_free(struct segments *segments)
{
    if (segments == NULL)
        return;
    struct segment *segment;
    struct segment *next;
    HASH_ITER(hh, segments->by_id, segment, next)
    {
        HASH_DEL(segments->by_id, segment);
        segment_source_free(segment->source);
        free(segment);
    }
    segments_close_directory(segments);
    free(segments->folded);
    free(segments->path);
    free(segments);
}

/* Opens the directory and begins to watch it, so that nothing is missed between a scan and the first event. */
static int segments_open_directory(struct segments *segments, struct error *err)
{
    if (segments->dir_fd >= 0)
        return 0;
    int rc = file_private_directory(segments->path, err);
    if (rc < 0)
        return rc;
    segments->dir_fd = open(segments->path, O_RDONLY | O_DIRECTORY | O_NOFOLLOW | O_CLOEXEC);
    if (segments->dir_fd < 0)
        return error_errno(err, "opening '%s'", segments->path);
    segments->inotify_fd = inotify_init1(IN_NONBLOCK | IN_CLOEXEC);
    int watch = segments->inotify_fd < 0
                    ? -1
                    : inotify_add_watch(segments->inotify_fd, segments->path,
                                        IN_CREATE | IN_MOVED_TO | IN_DELETE_SELF | IN_MOVE_SELF | IN_ONLYDIR);
    if (watch < 0 && segments->inotify_fd >= 0) {
        close(segments->inotify_fd); /* too many watches on this machine: each tick looks into the directory */
        segments->inotify_fd = -1;
    }
    segments->needs_scan = true;
    return 0;
}

static void segments_file_name(const uint8_t id[SEGMENT_ID_BYTES], char out_name[SEGMENTS_NAME_BYTES])
{
    static const char digits[] = "0123456789abcdef";
    for (size_t i = 0; i < SEGMENT_ID_BYTES; i++) {
        out_name[2 * i] = digits[id[i] >> 4];
        out_name[2 * i + 1] = digits[id[i] & 15];
    }
    memcpy(out_name + SEGMENTS_ID_DIGITS, segments_suffix, sizeof segments_suffix);
}

static int segments_hex(char digit)
{
    if (digit >= '0' && digit <= '9')
        return digit - '0';
    return digit >= 'a' && digit <= 'f' ? digit - 'a' + 10 : -1;
}

/* The id in a file's name; false when it is no segment's. */
static bool segments_parse_name(const char *name, uint8_t out_id[SEGMENT_ID_BYTES])
{
    if (strlen(name) != SEGMENTS_NAME_BYTES - 1 || strcmp(name + SEGMENTS_ID_DIGITS, segments_suffix) != 0)
        return false;
    for (size_t i = 0; i < SEGMENT_ID_BYTES; i++) {
        int high = segments_hex(name[2 * i]);
        int low = segments_hex(name[2 * i + 1]);
        if (high < 0 || low < 0)
            return false;
        out_id[i] = (uint8_t)(high << 4 | low);
    }
    return true;
}

static struct segment *segments_find(const struct segments *segments, const uint8_t *id)
{
    struct segment *segment;
    HASH_FIND(hh, segments->by_id, id, SEGMENT_ID_BYTES, segment);
    return segment;
}

static struct segments_folded *segments_find_folded(const struct segments *segments, const uint8_t *id)
{
    for (size_t i = 0; i < segments->folded_count; i++) {
        if (memcmp(segments->folded[i].id, id, SEGMENT_ID_BYTES) == 0)
            return &segments->folded[i];
    }
    return NULL;
}

/* Room for one more folded id, taken before the values go into the bases. */
static bool segments_reserve_folded(struct segments *segments)
{
    if (segments->folded_count < segments->folded_capacity)
        return true;
    size_t capacity = segments->folded_capacity > 0 ? segments->folded_capacity * 2 : 16;
    struct segments_folded *grown = realloc(segments->folded, capacity * sizeof *grown);
    if (grown == NULL)
        return false;
    segments->folded = grown;
    segments->folded_capacity = capacity;
    return true;
}

static void segments_add_folded(struct segments *segments, const uint8_t *id)
{
    memcpy(segments->folded[segments->folded_count++].id, id, SEGMENT_ID_BYTES);
}

/* Takes `reader`, whose id is not known yet. */
static int segments_add(struct segments *segments, struct segment_reader *reader, bool has_file, pid_t peer_pid,
                        struct error *err)
{
    if (HASH_COUNT(segments->by_id) >= SEGMENTS_MAX_DEFAULT) {
        segment_reader_close(reader);
        segments->stats.refused++;
        return error_set(err, -ENOSPC, "there are %d segments already", SEGMENTS_MAX_DEFAULT);
    }
    struct segment *segment = calloc(1, sizeof *segment);
    if (segment == NULL) {
        segment_reader_close(reader);
        return error_set(err, -ENOMEM, "no memory for one more segment");
    }
    memcpy(segment->id, segment_reader_id(reader), SEGMENT_ID_BYTES);
    segment->has_file = has_file;
    segment->source =
        segment_source_new(reader, &(struct segment_source_config){.jobs = segments->jobs,
                                                                   .uid = segments->uid,
                                                                   .is_adoptable = has_file,
                                                                   .peer_pid = peer_pid,
                                                                   .own_namespace = segments->own_namespace,
                                                                   .pidfds_left = &segments->pidfds_left});
    if (segment->source == NULL) {
        free(segment);
        return error_set(err, -ENOMEM, "no memory for one more segment");
    }
    HASH_ADD(hh, segments->by_id, id, SEGMENT_ID_BYTES, segment);
    if (segment->hh.tbl == NULL) {
        segment_source_free(segment->source);
        free(segment);
        return error_set(err, -ENOMEM, "no memory for one more segment");
    }
    segments->stats.found++;
    return 0;
}

/* Is `fd` the file of that name in our directory? */
static bool segments_is_file(const struct segments *segments, int fd, const char *name)
{
    struct stat given;
    struct stat named;
    return segments->dir_fd >= 0 && fstat(fd, &given) == 0 &&
           fstatat(segments->dir_fd, name, &named, AT_SYMLINK_NOFOLLOW) == 0 && given.st_dev == named.st_dev &&
           given.st_ino == named.st_ino;
}

/*
 * Opens the file of `fd` anew. What came by the socket is the maker's own open file: with it we would hold its lock
 * ourselves, and never see it from outside.
 */
static int segments_reopen(int fd)
{
    char path[SEGMENTS_FD_PATH_BYTES];
    (void)snprintf(path, sizeof path, "/proc/self/fd/%d", fd);
    return open(path, O_RDONLY | O_NONBLOCK | O_CLOEXEC);
}

int segments_take(struct segments *segments, int fd, uint32_t uid, pid_t peer_pid, struct error *err)
{
    CLEANUP(fd_cleanup) int given_fd = fd;
    int own_fd = segments_reopen(fd);
    if (own_fd < 0)
        return error_errno(err, "opening a segment that was sent");
    struct segment_reader *reader = NULL;
    int rc = segment_reader_open(own_fd, uid, &reader, err);
    if (rc < 0) {
        segments->stats.refused++;
        return rc;
    }
    const uint8_t *id = segment_reader_id(reader);
    if (segments_find(segments, id) != NULL || segments_find_folded(segments, id) != NULL) {
        segment_reader_close(reader);
        return 0;
    }
    char name[SEGMENTS_NAME_BYTES];
    segments_file_name(id, name);
    bool has_file = segments_open_directory(segments, NULL) == 0 && segments_is_file(segments, given_fd, name);
    return segments_add(segments, reader, has_file, peer_pid, err);
}

/* A file that its maker was killed over: nobody will ever finish it. */
static void segments_remove_unfinished(struct segments *segments, const char *name, int64_t now_wall_ms)
{
    struct stat info;
    if (fstatat(segments->dir_fd, name, &info, AT_SYMLINK_NOFOLLOW) == 0 &&
        now_wall_ms / 1000 - info.st_mtime > SEGMENTS_UNFINISHED_S)
        (void)unlinkat(segments->dir_fd, name, 0); /* gone is gone; else it is tried again */
}

/* Looks at a file that may be a segment. False when it has to be looked at again. */
static bool segments_look_at(struct segments *segments, const char *name, int64_t now_wall_ms)
{
    uint8_t id[SEGMENT_ID_BYTES];
    if (!segments_parse_name(name, id) || segments_find(segments, id) != NULL ||
        segments_find_folded(segments, id) != NULL)
        return true;
    int fd = openat(segments->dir_fd, name, O_RDONLY | O_NOFOLLOW | O_NONBLOCK | O_CLOEXEC);
    if (fd < 0)
        return errno != EMFILE && errno != ENFILE && errno != ENOMEM; /* gone, or a link: nothing of ours */
    struct error err = {0};
    struct segment_reader *reader = NULL;
    int rc = segment_reader_open(fd, segments->uid, &reader, &err);
    if (rc == -EAGAIN) {
        segments_remove_unfinished(segments, name, now_wall_ms);
        return false;
    }
    if (rc == 0 && memcmp(segment_reader_id(reader), id, SEGMENT_ID_BYTES) != 0) {
        segment_reader_close(reader);
        rc = error_set(&err, -EBADMSG, "its name is not its id");
    } else if (rc == 0) {
        rc = segments_add(segments, reader, true, 0, &err);
    }
    if (rc == -ENOMEM)
        return false;
    if (rc == -EBADMSG) {
        segments->stats.refused++;
        log_warn("segment=%s %s: it is not counted", name, err.text);
    }
    return true;
}

static void segments_scan(struct segments *segments, int64_t now_wall_ms)
{
    int fd = openat(segments->dir_fd, ".", O_RDONLY | O_DIRECTORY | O_CLOEXEC);
    DIR *opened = fd >= 0 ? fdopendir(fd) : NULL;
    if (opened == NULL) {
        if (fd >= 0)
            close(fd);
        return; /* tried again in the next tick */
    }
    CLEANUP(dir_cleanup) DIR *dir = opened;
    segments->needs_scan = segments->inotify_fd < 0;
    for (struct dirent *entry; (entry = readdir(dir)) != NULL;) {
        if (!segments_look_at(segments, entry->d_name, now_wall_ms))
            segments->needs_scan = true;
    }
}

/* New names since the last tick. */
static void segments_take_events(struct segments *segments, int64_t now_wall_ms)
{
    _Alignas(struct inotify_event) char events[SEGMENTS_EVENTS_BYTES];
    ssize_t got;
    while (segments->inotify_fd >= 0 && (got = read(segments->inotify_fd, events, sizeof events)) > 0) {
        for (ssize_t at = 0; at < got;) {
            const struct inotify_event *event = (const struct inotify_event *)(const void *)(events + at);
            at += (ssize_t)(sizeof *event + event->len);
            if ((event->mask & (IN_DELETE_SELF | IN_MOVE_SELF | IN_IGNORED)) != 0) {
                segments_close_directory(segments); /* it is opened, or made, again */
                break;
            }
            if (event->len == 0 || !segments_look_at(segments, event->name, now_wall_ms))
                segments->needs_scan = true; /* the queue was too short, or a file is still being made */
        }
    }
}

static void segments_discover(struct segments *segments, int64_t now_mono_ns, int64_t now_wall_ms)
{
    segments_take_events(segments, now_wall_ms);
    struct error err = {0};
    uint64_t held_back;
    int rc = segments_open_directory(segments, &err);
    if (rc < 0 && log_repeat_is_due(&segments->directory_repeat, now_mono_ns, INT64_C(60000000000), &held_back))
        log_error("%s: no segments are found there", err.text);
    if (rc == 0 && segments->needs_scan)
        segments_scan(segments, now_wall_ms);
}

/* It has been read for the last time. Without memory for its id it stays, and is folded in a later tick. */
static void segments_fold(struct segments *segments, struct segment *segment, int64_t now_mono_ns, int64_t now_wall_ms)
{
    if (segment->has_file) {
        if (!segments_reserve_folded(segments))
            return;
        segments_add_folded(segments, segment->id);
    }
    const struct segment_reader *reader = segment_source_reader(segment->source);
    segments->stats.read_failures += segment_source_failures(segment->source);
    segments->stats.bad_records += segment_reader_bad_records(reader);
    segments->stats.metrics_refused += segment_reader_refused(reader);
    segments->stats.folded++;
    HASH_DEL(segments->by_id, segment);
    segment_source_fold(segment->source, now_mono_ns, now_wall_ms);
    free(segment);
}

void segments_tick(struct segments *segments, int64_t now_mono_ns, int64_t now_wall_ms)
{
    segments_discover(segments, now_mono_ns, now_wall_ms);
    struct segment *segment;
    struct segment *next;
    HASH_ITER(hh, segments->by_id, segment, next)
    {
        if (segment_source_read(segment->source, now_wall_ms))
            segments_fold(segments, segment, now_mono_ns, now_wall_ms);
    }
}

size_t segments_folded_count(const struct segments *segments)
{
    return segments->folded_count;
}

const uint8_t *segments_folded_at(const struct segments *segments, size_t index)
{
    return segments->folded[index].id;
}

int segments_restore_folded(struct segments *segments, const uint8_t id[SEGMENT_ID_BYTES], struct error *err)
{
    if (!segments_reserve_folded(segments))
        return error_set(err, -ENOMEM, "no memory for the ids of segments");
    segments_add_folded(segments, id);
    return 0;
}

void segments_unlink_folded(struct segments *segments)
{
    if (segments->dir_fd < 0)
        return;
    size_t kept = 0;
    for (size_t i = 0; i < segments->folded_count; i++) {
        struct segments_folded folded = segments->folded[i];
        char name[SEGMENTS_NAME_BYTES];
        segments_file_name(folded.id, name);
        if (unlinkat(segments->dir_fd, name, 0) < 0 && errno != ENOENT)
            segments->folded[kept++] = folded; /* remembered until it is gone */
    }
    segments->folded_count = kept;
}

size_t segments_count(const struct segments *segments)
{
    return HASH_COUNT(segments->by_id);
}

struct segments_stats segments_stats(const struct segments *segments)
{
    struct segments_stats stats = segments->stats;
    for (const struct segment *segment = segments->by_id; segment != NULL; segment = segment->hh.next) {
        const struct segment_reader *reader = segment_source_reader(segment->source);
        stats.read_failures += segment_source_failures(segment->source);
        stats.bad_records += segment_reader_bad_records(reader);
        stats.metrics_refused += segment_reader_refused(reader);
    }
    return stats;
}
