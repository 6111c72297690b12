/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * trace_until_killed: writes numbered events into a trace as fast as it can, until somebody kills it.
 *
 *     trace_until_killed PATH.pfw.gz [SEED]     gzip members
 *     trace_until_killed PATH.pfw    [SEED]     plain lines
 *
 * Says on stdout, one number a line, how many events are in the file for certain. Events are
 * {"i":0,"noise":"<some digits>"}, {"i":1,…; they come in flushes of very different size.
 */
#include <fcntl.h>
#include <inttypes.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "pfw/writer.h"
#include "util/buf.h"
#include "util/cursor.h"

enum { LINES_MAX_BYTES = 16 * 1024 * 1024, EVENTS_MAX = 3000, NOISE_MAX = 12, DRAIN_MS = 60000 };

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

int main(int argc, char **argv)
{
    if (argc < 2) {
        (void)fputs("usage: trace_until_killed PATH [SEED]\n", stderr);
        return EXIT_FAILURE;
    }
    const char *path = argv[1];
    uint64_t random = 1;
    if (argc > 2) {
        struct cursor seed = cursor_of(argv[2], strlen(argv[2]));
        (void)cursor_u64(&seed, &random); /* no number: 1 */
    }
    const char *end = strrchr(path, '.');
    struct pfw_writer_options options = {
        .is_compressed = end != NULL && strcmp(end, ".gz") == 0,
        .buffer_max_bytes = LINES_MAX_BYTES,
    };
    struct pfw_writer *writer = NULL;
    struct error err = {0};
    int fd = open(path, O_WRONLY | O_CREAT | O_EXCL | O_CLOEXEC, 0600);
    int rc = fd < 0 ? error_errno(&err, "creating '%s'", path) : pfw_writer_open(fd, path, &options, &writer, &err);
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
