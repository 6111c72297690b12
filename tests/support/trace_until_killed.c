/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * trace_until_killed: writes numbered events into a trace as fast as it can, until somebody kills it.
 *
 *     trace_until_killed PATH.pfw.gz SEED [WRITES]     gzip members
 *     trace_until_killed PATH.pfw    SEED [WRITES]     plain lines
 *
 * With WRITES it kills itself, while it is in the so many-th large write(): few who kill at random hit one, as most of
 * the time goes into compression. A thread waits for it to begin, and then for a part of the time that it may take.
 *
 * Says on stdout, one number a line, how many events are in the file for certain. Events are
 * {"i":0,"noise":"<some digits>"}, {"i":1,…; they come in flushes of very different size.
 */
#include <fcntl.h>
#include <inttypes.h>
#include <pthread.h>
#include <sched.h>
#include <signal.h>
#include <stdatomic.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "pfw/writer.h"
#include "util/buf.h"
#include "util/clock.h"
#include "util/cursor.h"

enum {
    LINES_MAX_BYTES = 16 * 1024 * 1024,
    EVENTS_MAX = 10000,
    NOISE_MAX = 12,
    DRAIN_MS = 60000,
    LARGE_WRITE_BYTES = 128 * 1024
};

/* Half of what a byte takes to be copied into the page cache; the signal itself takes the other half. */
#define COPY_NS_PER_BYTE 0.1

/* Shared by the wrapped pwrite(), which has no other way to find it, and the thread that kills. */
static struct {
    atomic_uint_fast64_t writes_left;
    atomic_size_t last_write_bytes; /* 0 before the last write */
    double wait_part;
} killer;

ssize_t __real_pwrite(int fd, const void *bytes, size_t length, off_t offset);
ssize_t __wrap_pwrite(int fd, const void *bytes, size_t length, off_t offset);

ssize_t __wrap_pwrite(int fd, const void *bytes, size_t length, off_t offset)
{
    if (length >= LARGE_WRITE_BYTES && atomic_fetch_sub(&killer.writes_left, 1) == 1)
        atomic_store(&killer.last_write_bytes, length);
    return __real_pwrite(fd, bytes, length, offset);
}

/* Leaves the calling thread, and those that it makes, one CPU: the n-th that it may use. Fewer: no harm. */
static void use_cpu(size_t n)
{
    cpu_set_t all;
    if (sched_getaffinity(0, sizeof all, &all) < 0)
        return;
    for (size_t cpu = 0; cpu < CPU_SETSIZE; cpu++) {
        if (!CPU_ISSET(cpu, &all) || n-- > 0)
            continue;
        cpu_set_t one;
        CPU_ZERO(&one);
        CPU_SET(cpu, &one);
        (void)sched_setaffinity(0, sizeof one, &one); /* fails: it runs where it did */
        return;
    }
}

static void *kill_in_write(void *context)
{
    (void)context;
    use_cpu(1);
    size_t bytes;
    while ((bytes = atomic_load(&killer.last_write_bytes)) == 0)
        ; /* sleeping would take longer than the write */
    int64_t wait_ns = (int64_t)(killer.wait_part * COPY_NS_PER_BYTE * (double)bytes);
    for (int64_t end_ns = clock_mono_ns() + wait_ns; clock_mono_ns() < end_ns;)
        ;
    (void)kill(getpid(), SIGKILL); /* doesn't come back */
    return NULL;
}

/* Numerical Recipes' generator: good enough for noise, and the same everywhere. */
static uint64_t next_random(uint64_t *state)
{
    *state = *state * UINT64_C(6364136223846793005) + UINT64_C(1442695040888963407);
    return *state >> 33;
}

static void append_events(struct pfw_writer *writer, struct buf *lines, uint64_t *next, uint64_t *random)
{
    buf_reset(lines);
    uint64_t events =
        next_random(random) % 3 == 0 ? 1 + next_random(random) % 10 : 1 + next_random(random) % EVENTS_MAX;
    for (uint64_t i = 0; i < events; i++) {
        buf_text(lines, "{\"i\":");
        buf_u64(lines, (*next)++);
        buf_text(lines, ",\"noise\":\"");
        for (uint64_t k = next_random(random) % NOISE_MAX; k > 0; k--)
            buf_u64(lines, next_random(random));
        buf_text(lines, "\"}\n");
    }
    pfw_writer_append(writer, lines->data, lines->length, events);
}

static uint64_t number_of(const char *text)
{
    struct cursor cursor = cursor_of(text, strlen(text));
    uint64_t number = 0;
    return cursor_u64(&cursor, &number) ? number : 0;
}

static int start_killer(uint64_t writes, uint64_t *random, struct error *err)
{
    pthread_t thread;
    atomic_store(&killer.writes_left, writes);
    killer.wait_part = (double)(next_random(random) % 100) / 100;
    int rc = writes > 0 ? pthread_create(&thread, NULL, kill_in_write, NULL) : 0;
    if (writes > 0)
        use_cpu(0); /* not the one of the thread that must see the write begin */
    return rc != 0 ? error_set(err, -rc, "no thread that kills") : 0;
}

static int open_writer(const char *path, struct pfw_writer **out_writer, struct error *err)
{
    const char *end = strrchr(path, '.');
    struct pfw_writer_options options = {
        .is_compressed = end != NULL && strcmp(end, ".gz") == 0,
        .buffer_max_bytes = LINES_MAX_BYTES,
    };
    int fd = open(path, O_WRONLY | O_CREAT | O_EXCL | O_CLOEXEC, 0600);
    return fd < 0 ? error_errno(err, "creating '%s'", path) : pfw_writer_open(fd, path, &options, out_writer, err);
}

int main(int argc, char **argv)
{
    if (argc < 3) {
        (void)fputs("usage: trace_until_killed PATH SEED [WRITES]\n", stderr);
        return EXIT_FAILURE;
    }
    uint64_t random = number_of(argv[2]);
    struct pfw_writer *writer = NULL;
    struct error err = {0};
    int rc = start_killer(argc > 3 ? number_of(argv[3]) : 0, &random, &err);
    if (rc == 0)
        rc = open_writer(argv[1], &writer, &err);
    CLEANUP(buf_cleanup) struct buf lines;
    buf_init(&lines, LINES_MAX_BYTES);
    uint64_t next = 0;
    while (rc == 0) {
        append_events(writer, &lines, &next, &random);
        rc = pfw_writer_drain(writer, DRAIN_MS, &err);
        if (rc == 0 && dprintf(STDOUT_FILENO, "%" PRIu64 "\n", next) < 0)
            rc = error_errno(&err, "writing to stdout");
    }
    (void)fprintf(stderr, "trace_until_killed: %s\n", err.text);
    return EXIT_FAILURE;
}
