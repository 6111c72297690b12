/* SPDX-License-Identifier: BSD-3-Clause */
#include "pfw/reader.h"

#include <errno.h>
#include <fcntl.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

#include "util/buf.h"
#include "util/cursor.h"

struct pfw_reader {
    struct pfw_unpack *unpack;
    struct pfw_reader_options options;
    uint64_t size_bytes;
    struct cursor piece;  /* text not yet taken; the unpacker's memory */
    struct buf carry;     /* the begin of a line that goes on in the next piece */
    bool has_carry_taken; /* the last line given was the carry: it is emptied at the next call */
    uint64_t lines;
    uint64_t text_offset; /* of `piece.at` in the text */
    bool is_array;        /* a '[' was seen */
    bool is_resuming;     /* text was left out: up to the begin of the next line it is the rest of one */
    bool is_at_end;
    bool has_gap;             /* `gap` was found and is still to be given */
    struct pfw_gap gap;       /* when `has_gap` */
    uint64_t long_line_bytes; /* of a line that is being left out; 0: none is */
};

static bool reader_is_blank(char character)
{
    return character == ' ' || character == '\t' || character == '\r' || character == '\n';
}

static struct cursor reader_trim(struct cursor line)
{
    while (line.at < line.end && reader_is_blank(*line.at))
        line.at++;
    while (line.at < line.end && reader_is_blank(line.end[-1]))
        line.end--;
    return line;
}

/* The event of a line of a JSON array: "[", "{…},", "{…}]" and all their mixtures. */
static struct cursor reader_strip_array(struct pfw_reader *reader, struct cursor line)
{
    if (line.at < line.end && *line.at == '[') {
        reader->is_array = true;
        line.at++;
    }
    if (!reader->is_array)
        return line;
    line = reader_trim(line);
    if (line.at < line.end && line.end[-1] == ']') {
        line.end--;
        line = reader_trim(line);
    }
    if (line.at < line.end && line.end[-1] == ',') {
        line.end--;
        line = reader_trim(line);
    }
    return line;
}

/* Makes an item of a whole line; false when there is nothing in it to be given. */
static bool reader_line(struct pfw_reader *reader, struct cursor line, bool is_cut, struct pfw_item *out_item)
{
    if (reader->lines++ == 0)
        (void)cursor_accept_text(&line, "\xef\xbb\xbf"); /* a mark of UTF-8 that some editors leave */
    line = reader_trim(line);
    bool is_rest = reader->is_resuming && !cursor_is_empty(&line) && *line.at != '{' && *line.at != '[';
    reader->is_resuming = false;
    if (is_rest)
        return false;
    line = reader_strip_array(reader, line);
    if (cursor_is_empty(&line))
        return false;
    *out_item = (struct pfw_item){
        .kind = PFW_ITEM_LINE,
        .text = line.at,
        .length = cursor_left(&line),
        .number = reader->lines,
        .is_cut = is_cut,
    };
    return true;
}

/* The line that was being left out has ended. */
static void reader_end_long_line(struct pfw_reader *reader, struct pfw_item *out_item)
{
    reader->lines++;
    *out_item = (struct pfw_item){
        .kind = PFW_ITEM_GAP,
        .number = reader->lines,
        .gap = {.kind = PFW_GAP_LONG_LINE,
                .offset = reader->text_offset - reader->long_line_bytes,
                .length = reader->long_line_bytes,
                .reason = "the line is longer than the limit"},
    };
    reader->long_line_bytes = 0;
}

/* Puts what there is of an unfinished line aside. */
static int reader_carry(struct pfw_reader *reader, struct error *err)
{
    size_t left = cursor_left(&reader->piece);
    reader->text_offset += left;
    if (reader->long_line_bytes > 0 || reader->carry.length + left > reader->options.line_max_bytes) {
        reader->long_line_bytes += reader->carry.length + left;
        buf_reset(&reader->carry);
    } else {
        buf_bytes(&reader->carry, reader->piece.at, left);
    }
    reader->piece.at = reader->piece.end;
    return buf_status(&reader->carry, err);
}

/* Takes the line that ends at `newline`. `*out_is_item` tells whether that gave one. */
static int reader_take_line(struct pfw_reader *reader, const char *newline, struct pfw_item *out_item,
                            bool *out_is_item, struct error *err)
{
    struct cursor line = {.at = reader->piece.at, .end = newline};
    size_t taken = cursor_left(&line) + 1;
    reader->piece.at = newline + 1;
    reader->text_offset += taken;
    *out_is_item = true;
    if (reader->long_line_bytes > 0 || reader->carry.length + taken > reader->options.line_max_bytes) {
        reader->long_line_bytes += reader->carry.length + taken;
        buf_reset(&reader->carry);
        reader_end_long_line(reader, out_item);
        return 0;
    }
    if (reader->carry.length > 0) {
        buf_bytes(&reader->carry, line.at, cursor_left(&line));
        int rc = buf_status(&reader->carry, err);
        if (rc < 0)
            return rc;
        line = cursor_of(reader->carry.data, reader->carry.length);
        reader->has_carry_taken = true;
    }
    *out_is_item = reader_line(reader, line, false, out_item);
    return 0;
}

/* No more text comes for the unfinished line: gives it as it is. True when that gives an item. */
static bool reader_finish_line(struct pfw_reader *reader, struct pfw_item *out_item)
{
    if (reader->long_line_bytes > 0) {
        reader_end_long_line(reader, out_item);
        return true;
    }
    if (reader->carry.length == 0)
        return false;
    reader->has_carry_taken = true;
    return reader_line(reader, cursor_of(reader->carry.data, reader->carry.length), true, out_item);
}

/* Gets the next piece of text or gap. `*out_is_item` tells whether it ended a line. */
static int reader_next_piece(struct pfw_reader *reader, struct pfw_item *out_item, bool *out_is_item, struct error *err)
{
    *out_is_item = false;
    struct pfw_piece piece;
    int rc = pfw_unpack_next(reader->unpack, &piece, err);
    if (rc < 0)
        return rc;
    if (piece.kind == PFW_PIECE_TEXT) {
        reader->piece = cursor_of(piece.text, piece.length);
        return 0;
    }
    reader->is_at_end = piece.kind == PFW_PIECE_END;
    reader->has_gap = piece.kind == PFW_PIECE_GAP;
    if (reader->has_gap)
        reader->gap = piece.gap;
    if (reader->is_at_end || piece.gap.kind == PFW_GAP_CUT || piece.gap.kind == PFW_GAP_ZEROS) {
        *out_is_item = reader_finish_line(reader, out_item);
        return 0;
    }
    buf_reset(&reader->carry); /* its rest is lost */
    reader->long_line_bytes = 0;
    reader->is_resuming = true;
    return 0;
}

int pfw_reader_next(struct pfw_reader *reader, struct pfw_item *out_item, struct error *err)
{
    for (;;) {
        if (reader->has_carry_taken) {
            buf_reset(&reader->carry);
            reader->has_carry_taken = false;
        }
        if (reader->has_gap) {
            *out_item = (struct pfw_item){.kind = PFW_ITEM_GAP, .number = reader->lines, .gap = reader->gap};
            reader->has_gap = false;
            return 0;
        }
        if (reader->is_at_end) {
            *out_item = (struct pfw_item){.kind = PFW_ITEM_END, .number = reader->lines};
            return 0;
        }
        bool is_item = false;
        const char *newline =
            cursor_is_empty(&reader->piece) ? NULL : memchr(reader->piece.at, '\n', cursor_left(&reader->piece));
        int rc;
        if (newline != NULL) {
            rc = reader_take_line(reader, newline, out_item, &is_item, err);
        } else {
            rc = reader_carry(reader, err);
            if (rc == 0)
                rc = reader_next_piece(reader, out_item, &is_item, err);
        }
        if (rc < 0 || is_item)
            return rc;
    }
}

int pfw_reader_open_fd(int fd, const struct pfw_reader_options *options, struct pfw_reader **out_reader,
                       struct error *err)
{
    CLEANUP(fd_cleanup) int owned_fd = fd;
    CLEANUP(pfw_reader_cleanup) struct pfw_reader *reader = calloc(1, sizeof *reader);
    if (reader == NULL)
        return error_set(err, -ENOMEM, "no memory to read a trace");
    reader->options = *options;
    if (reader->options.line_max_bytes == 0)
        reader->options.line_max_bytes = PFW_READER_LINE_MAX_BYTES;
    buf_init(&reader->carry, reader->options.line_max_bytes);
    struct stat status;
    if (fstat(fd, &status) == 0 && S_ISREG(status.st_mode))
        reader->size_bytes = (uint64_t)status.st_size;
    (void)posix_fadvise(fd, 0, 0, POSIX_FADV_SEQUENTIAL); /* only advice, and a pipe takes none */
    int rc = pfw_unpack_open(TAKE_FD(owned_fd), &reader->options.unpack, &reader->unpack, err);
    if (rc < 0)
        return rc;
    *out_reader = TAKE(reader);
    return 0;
}

int pfw_reader_open(const char *path, const struct pfw_reader_options *options, struct pfw_reader **out_reader,
                    struct error *err)
{
    bool is_stdin = strcmp(path, "-") == 0;
    int fd = is_stdin ? fcntl(STDIN_FILENO, F_DUPFD_CLOEXEC, 0) : open(path, O_RDONLY | O_CLOEXEC | O_NOCTTY);
    const char *name = is_stdin ? "standard input" : path;
    if (fd < 0)
        return error_errno(err, "'%s'", name);
    int rc = pfw_reader_open_fd(fd, options, out_reader, err);
    return rc < 0 ? error_wrap(err, rc, "'%s'", name) : 0;
}

void pfw_reader_close(struct pfw_reader *reader)
{
    if (reader == NULL)
        return;
    pfw_unpack_close(reader->unpack);
    buf_fini(&reader->carry);
    free(reader);
}

struct pfw_reader_status pfw_reader_status(const struct pfw_reader *reader)
{
    return (struct pfw_reader_status){
        .unpack = pfw_unpack_status(reader->unpack),
        .size_bytes = reader->size_bytes,
    };
}
