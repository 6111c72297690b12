/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * input: the traces that a pfw command reads, one after another: their lines parsed, what is wrong with them told on
 * stderr, progress shown there when it is a terminal and reading takes long, and the exit status that follows.
 *
 * Handlers are called in the order of the file. One thread.
 */
#ifndef CLI_INPUT_H
#define CLI_INPUT_H

#include <stdbool.h>
#include <stdint.h>

#include "pfw/line.h"
#include "pfw/reader.h"

/* Exit statuses of all pfw commands. */
enum input_status {
    INPUT_FINE = 0,
    INPUT_INCOMPLETE = 1, /* something of a trace could not be read and was left out, or `check` found a problem */
    INPUT_FAILED = 2,     /* a file that can't be read or is no trace; bad usage; output that can't be written */
};

/* What one file held. */
struct input_totals {
    const char *name; /* for messages: the path, or "standard input" */
    uint64_t lines;   /* that are events */
    uint64_t bad_lines;
    uint64_t cut_bytes;       /* of a last line that is not whole */
    uint64_t left_bytes;      /* of the file, damaged and left out */
    uint64_t unchecked_bytes; /* of the file, given though their check failed */
    uint64_t zero_bytes;      /* at the end of the file */
    uint64_t long_lines;
    bool is_cut; /* the file ends within a gzip member */
    struct pfw_reader_status reader;
};

struct input_handler {
    void *context;

    /* A file begins. May be NULL. */
    int (*on_file)(void *context, const char *name, struct error *err);

    /* An event. `*out_is_enough` ends the reading of all files. */
    int (*on_line)(void *context, const struct pfw_line *line, const struct pfw_item *item, bool *out_is_enough,
                   struct error *err);

    /*
     * A line that is no event, or a gap (`item` tells which); `reason` says it to a person, without the file's name.
     * NULL: gaps are told on stderr as they come, bad lines counted and told at the file's end.
     */
    void (*on_fault)(void *context, const struct pfw_item *item, const char *reason);

    /* A file ends. May be NULL. */
    int (*on_end)(void *context, const struct input_totals *totals, struct error *err);
};

/* Reads `paths`. A handler that fails ends it with INPUT_FAILED, its error told on stderr. */
enum input_status input_read(const char *program, char *const *paths, int count, bool is_salvaging,
                             const struct input_handler *handler);

#endif
