/* SPDX-License-Identifier: BSD-3-Clause */
#include "pfw/unpack.h"

#include <errno.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <zlib.h>

#include "pfw/window.h"

enum {
    UNPACK_FIRST_BYTES = 64 << 10, /* of the hold; members of our writer unpack to about that */
    UNPACK_STREAM_BYTES = 256 << 10,
    UNPACK_DETECT_BYTES = 64 << 10, /* looked at when a file begins neither as gzip nor as text */
    UNPACK_MAGIC_BYTES = 4,
    UNPACK_GZIP_WINDOW_BITS = 15 + 16, /* zlib: the largest window, and only gzip */
    UNPACK_QUEUE_MAX = 2,              /* a step finds a text and a gap, in either order */
    UNPACK_REASON_BYTES = sizeof((struct pfw_gap *)NULL)->reason,
};

/* A damaged place from which the search for a good member is still to be made. */
struct unpack_damage {
    bool is_open;
    uint64_t begin;
    uint64_t search_from;
    char reason[UNPACK_REASON_BYTES];
};

struct pfw_unpack {
    struct pfw_window window;
    struct pfw_unpack_options options;
    z_stream stream;
    bool has_stream;
    bool is_compressed;
    bool is_streaming;      /* text of the present member has been given before its check */
    uint64_t member_offset; /* of the present member in the file */
    uint64_t members;
    uint64_t text_bytes;
    char *hold; /* unpacked text of the present member */
    size_t hold_length;
    size_t hold_capacity;
    size_t stream_max_bytes; /* given at once from a member that is too large to be held */
    struct unpack_damage damage;
    struct pfw_piece queue[UNPACK_QUEUE_MAX]; /* found, not yet given */
    size_t queue_length;
    size_t queue_next;
};

enum unpack_result {
    UNPACK_WHOLE, /* the member ended, and its check sum is right */
    UNPACK_FULL,  /* it goes on, but the hold is at its limit */
    UNPACK_CUT,   /* the file ended first */
    UNPACK_BAD,   /* it is damaged: stream.msg */
};

static void unpack_push_text(struct pfw_unpack *unpack, const char *text, size_t length)
{
    if (length == 0)
        return;
    unpack->queue[unpack->queue_length++] = (struct pfw_piece){.kind = PFW_PIECE_TEXT, .text = text, .length = length};
    unpack->text_bytes += length;
}

static void unpack_push_gap(struct pfw_unpack *unpack, enum pfw_gap_kind kind, uint64_t begin, uint64_t end,
                            const char *reason)
{
    struct pfw_piece *piece = &unpack->queue[unpack->queue_length++];
    *piece = (struct pfw_piece){.kind = PFW_PIECE_GAP, .gap = {.kind = kind, .offset = begin, .length = end - begin}};
    (void)snprintf(piece->gap.reason, sizeof piece->gap.reason, "%s", reason); /* a cut reason is still one */
}

/* ---- one member ---- */

static int unpack_grow(struct pfw_unpack *unpack, size_t limit, struct error *err)
{
    size_t capacity = unpack->hold_capacity == 0 ? UNPACK_FIRST_BYTES : unpack->hold_capacity * 2;
    if (capacity > limit)
        capacity = limit;
    char *hold = realloc(unpack->hold, capacity);
    if (hold == NULL)
        return error_set(err, -ENOMEM, "no memory to unpack into");
    unpack->hold = hold;
    unpack->hold_capacity = capacity;
    return 0;
}

static int unpack_inflate(struct pfw_unpack *unpack, size_t limit)
{
    z_stream *stream = &unpack->stream;
    size_t room = (unpack->hold_capacity < limit ? unpack->hold_capacity : limit) - unpack->hold_length;
    size_t left = pfw_window_left(&unpack->window);
    stream->next_in = unpack->window.data + unpack->window.at;
    stream->avail_in = (uInt)left;
    stream->next_out = (Bytef *)unpack->hold + unpack->hold_length;
    stream->avail_out = (uInt)room;
    int rc = inflate(stream, Z_NO_FLUSH);
    unpack->window.at += left - stream->avail_in;
    unpack->hold_length += room - stream->avail_out;
    return rc;
}

/* Goes on unpacking the present member until it ends or `limit` bytes of it are held. */
static int unpack_decode(struct pfw_unpack *unpack, size_t limit, enum unpack_result *out_result, struct error *err)
{
    for (;;) {
        if (unpack->hold_length >= limit) {
            *out_result = UNPACK_FULL;
            return 0;
        }
        int rc = unpack->hold_length == unpack->hold_capacity ? unpack_grow(unpack, limit, err) : 0;
        if (rc == 0)
            rc = pfw_window_need(&unpack->window, 1, err);
        if (rc < 0)
            return rc;
        if (pfw_window_left(&unpack->window) == 0) {
            *out_result = UNPACK_CUT;
            return 0;
        }
        switch (unpack_inflate(unpack, limit)) {
        case Z_OK:
        case Z_BUF_ERROR: /* needs more input or more room; the loop sees to both */
            break;
        case Z_STREAM_END:
            *out_result = UNPACK_WHOLE;
            return 0;
        case Z_MEM_ERROR:
            return error_set(err, -ENOMEM, "no memory to unpack");
        default:
            *out_result = UNPACK_BAD;
            return 0;
        }
    }
}

/* Begins the member at the window's place and unpacks it as far as it may be held. */
static int unpack_member(struct pfw_unpack *unpack, enum unpack_result *out_result, struct error *err)
{
    pfw_window_mark(&unpack->window);
    unpack->member_offset = pfw_window_offset(&unpack->window);
    unpack->hold_length = 0;
    (void)inflateReset(&unpack->stream); /* fails only for a stream that is none */
    return unpack_decode(unpack, unpack->options.hold_max_bytes, out_result, err);
}

/* ---- after damage ---- */

/* 1f 8b, deflate, and no flags that RFC 1952 reserves. */
static bool unpack_is_magic(const unsigned char *bytes)
{
    return bytes[0] == 0x1f && bytes[1] == 0x8b && bytes[2] == 0x08 && (bytes[3] & 0xe0) == 0;
}

/* Index of the first place from `bytes` on where a member may begin; `length` when there is none. */
static size_t unpack_find_magic(const unsigned char *bytes, size_t length)
{
    size_t at = 0;
    while (length - at >= UNPACK_MAGIC_BYTES) {
        const unsigned char *found = memchr(bytes + at, 0x1f, length - at - (UNPACK_MAGIC_BYTES - 1));
        if (found == NULL)
            break;
        at = (size_t)(found - bytes);
        if (unpack_is_magic(found))
            return at;
        at++;
    }
    return length;
}

/* Moves to the next place at or after the present one where a member may begin, else to the end of the file. */
static int unpack_seek_magic(struct pfw_unpack *unpack, bool *out_is_found, struct error *err)
{
    struct pfw_window *window = &unpack->window;
    for (;;) {
        size_t left = pfw_window_left(window);
        size_t at = unpack_find_magic(pfw_window_bytes(window), left);
        *out_is_found = at < left;
        if (!*out_is_found && !window->is_at_end && left >= UNPACK_MAGIC_BYTES)
            at = left - (UNPACK_MAGIC_BYTES - 1); /* a magic may lie across the edge */
        else if (!*out_is_found && !window->is_at_end)
            at = 0;
        window->at += at;
        pfw_window_mark(window);
        if (*out_is_found || window->is_at_end)
            return 0;
        int rc = pfw_window_fill(window, err);
        if (rc < 0)
            return rc;
    }
}

/*
 * Looks for a member from offset `from` on that can be trusted: one that is whole, or one so long that it can't be held
 * and was right so far. It is then the present member, its text held. Else the window is at the end of the file.
 */
static int unpack_search(struct pfw_unpack *unpack, uint64_t from, enum unpack_result *out_result, bool *out_is_found,
                         struct error *err)
{
    struct pfw_window *window = &unpack->window;
    pfw_window_seek(window, from);
    for (unsigned tries = 0;; tries++) {
        int rc = unpack_seek_magic(unpack, out_is_found, err);
        if (rc < 0 || !*out_is_found)
            return rc;
        if (tries >= PFW_UNPACK_TRIES_MAX)
            break;
        rc = unpack_member(unpack, out_result, err);
        if (rc < 0 || *out_result == UNPACK_WHOLE || *out_result == UNPACK_FULL)
            return rc;
        pfw_window_seek(window, unpack->member_offset + 1);
    }
    *out_is_found = false;
    while (!window->is_at_end) {
        window->at = window->length;
        pfw_window_mark(window);
        int rc = pfw_window_fill(window, err);
        if (rc < 0)
            return rc;
    }
    window->at = window->length;
    return 0;
}

/* The held text is good as far as one can know: gives it. */
static void unpack_accept(struct pfw_unpack *unpack, enum unpack_result result)
{
    unpack->is_streaming = result == UNPACK_FULL;
    unpack->members += result == UNPACK_WHOLE;
    unpack_push_text(unpack, unpack->hold, unpack->hold_length);
}

static void unpack_open_damage(struct pfw_unpack *unpack, uint64_t begin, uint64_t search_from, const char *reason)
{
    unpack->damage = (struct unpack_damage){.is_open = true, .begin = begin, .search_from = search_from};
    (void)snprintf(unpack->damage.reason, sizeof unpack->damage.reason, "%s", reason); /* may be cut */
}

/* Leaves out what lies between the damage and the next member that can be trusted. */
static int unpack_skip_damage(struct pfw_unpack *unpack, struct error *err)
{
    unpack->damage.is_open = false;
    bool is_found;
    enum unpack_result result;
    int rc = unpack_search(unpack, unpack->damage.search_from, &result, &is_found, err);
    if (rc < 0)
        return rc;
    uint64_t end = is_found ? unpack->member_offset : pfw_window_offset(&unpack->window);
    if (end > unpack->damage.begin)
        unpack_push_gap(unpack, PFW_GAP_DAMAGED, unpack->damage.begin, end, unpack->damage.reason);
    if (is_found)
        unpack_accept(unpack, result);
    return 0;
}

/* The present member is damaged at the window's place. */
static void unpack_on_bad(struct pfw_unpack *unpack)
{
    uint64_t begin = unpack->member_offset;
    uint64_t bad = pfw_window_offset(&unpack->window);
    const char *reason = unpack->stream.msg != NULL ? unpack->stream.msg : "not gzip";
    if (!unpack->is_streaming && !unpack->options.is_salvaging) {
        unpack_open_damage(unpack, begin, begin + 1, reason);
        return;
    }
    unpack_push_text(unpack, unpack->hold, unpack->hold_length);
    if (unpack->is_streaming || unpack->hold_length > 0)
        unpack_push_gap(unpack, PFW_GAP_UNCHECKED, begin, bad, reason);
    else
        bad = begin;
    unpack_open_damage(unpack, bad, begin + 1, reason);
    unpack->is_streaming = false;
}

/*
 * The file ended within the present member. Either it was cut off there, or damage made us run past the members that
 * follow: then one of those can be found.
 */
static int unpack_on_cut(struct pfw_unpack *unpack, struct error *err)
{
    struct pfw_window *window = &unpack->window;
    uint64_t begin = unpack->member_offset;
    if (!unpack->is_streaming && pfw_window_holds(window, begin)) {
        bool is_found;
        enum unpack_result result = UNPACK_CUT;
        int rc = unpack_search(unpack, begin + 1, &result, &is_found, err);
        if (rc < 0)
            return rc;
        if (is_found) {
            unpack_push_gap(unpack, PFW_GAP_DAMAGED, begin, unpack->member_offset, "the member has no end");
            unpack_accept(unpack, result);
            return 0;
        }
        /* The search unpacked over the text: once more from the start. */
        pfw_window_seek(window, begin);
        rc = unpack_member(unpack, &result, err);
        if (rc < 0)
            return rc;
    }
    unpack_push_text(unpack, unpack->hold, unpack->hold_length);
    unpack_push_gap(unpack, PFW_GAP_CUT, begin, pfw_window_offset(window), "the file ends within a gzip member");
    unpack->is_streaming = false;
    return 0;
}

/* ---- steps ---- */

static int unpack_step_zeros(struct pfw_unpack *unpack, struct error *err)
{
    struct pfw_window *window = &unpack->window;
    uint64_t begin = pfw_window_offset(window);
    for (;;) {
        while (window->at < window->length && window->data[window->at] == 0)
            window->at++;
        if (window->at < window->length) {
            uint64_t end = pfw_window_offset(window);
            unpack_open_damage(unpack, begin, end, "zero bytes where a gzip member should begin");
            return 0;
        }
        if (window->is_at_end)
            break;
        pfw_window_mark(window);
        int rc = pfw_window_fill(window, err);
        if (rc < 0)
            return rc;
    }
    unpack_push_gap(unpack, PFW_GAP_ZEROS, begin, pfw_window_offset(window), "zero bytes at the end of the file");
    return 0;
}

static int unpack_step_compressed(struct pfw_unpack *unpack, struct error *err)
{
    if (unpack->damage.is_open)
        return unpack_skip_damage(unpack, err);
    enum unpack_result result;
    int rc;
    if (unpack->is_streaming) {
        unpack->hold_length = 0;
        rc = unpack_decode(unpack, unpack->stream_max_bytes, &result, err);
    } else {
        if (*pfw_window_bytes(&unpack->window) == 0)
            return unpack_step_zeros(unpack, err);
        rc = unpack_member(unpack, &result, err);
    }
    if (rc < 0)
        return rc;
    switch (result) {
    case UNPACK_WHOLE:
    case UNPACK_FULL:
        unpack_accept(unpack, result);
        return 0;
    case UNPACK_CUT:
        return unpack_on_cut(unpack, err);
    case UNPACK_BAD:
        unpack_on_bad(unpack);
        return 0;
    }
    return 0;
}

static int unpack_step(struct pfw_unpack *unpack, bool *out_is_end, struct error *err)
{
    struct pfw_window *window = &unpack->window;
    int rc = pfw_window_need(window, 1, err);
    if (rc < 0)
        return rc;
    bool has_work = unpack->damage.is_open || unpack->is_streaming;
    *out_is_end = pfw_window_left(window) == 0 && !has_work;
    if (*out_is_end)
        return 0;
    if (unpack->is_compressed)
        return unpack_step_compressed(unpack, err);
    unpack_push_text(unpack, (const char *)pfw_window_bytes(window), pfw_window_left(window));
    window->at = window->length;
    pfw_window_mark(window);
    return 0;
}

int pfw_unpack_next(struct pfw_unpack *unpack, struct pfw_piece *out_piece, struct error *err)
{
    while (unpack->queue_next == unpack->queue_length) {
        unpack->queue_next = unpack->queue_length = 0;
        bool is_end;
        int rc = unpack_step(unpack, &is_end, err);
        if (rc < 0)
            return rc;
        if (is_end) {
            *out_piece = (struct pfw_piece){.kind = PFW_PIECE_END};
            return 0;
        }
    }
    *out_piece = unpack->queue[unpack->queue_next++];
    return 0;
}

/* ---- life ---- */

/* Text begins like text. A file that begins with neither is one of gzip if a member can begin somewhere near. */
static int unpack_detect(struct pfw_unpack *unpack, struct error *err)
{
    struct pfw_window *window = &unpack->window;
    int rc = pfw_window_need(window, 2, err);
    if (rc < 0 || pfw_window_left(window) == 0)
        return rc;
    const unsigned char *bytes = pfw_window_bytes(window);
    unpack->is_compressed = bytes[0] == 0x1f && (pfw_window_left(window) < 2 || bytes[1] == 0x8b);
    if (unpack->is_compressed || memchr("{[ \t\r\n", bytes[0], 6) != NULL)
        return 0;
    rc = pfw_window_need(window, UNPACK_DETECT_BYTES, err);
    size_t left = pfw_window_left(window);
    unpack->is_compressed = rc == 0 && unpack_find_magic(pfw_window_bytes(window), left) < left;
    return rc;
}

int pfw_unpack_open(int fd, const struct pfw_unpack_options *options, struct pfw_unpack **out_unpack, struct error *err)
{
    CLEANUP(fd_cleanup) int owned_fd = fd;
    struct stat status;
    if (fstat(fd, &status) == 0 && S_ISDIR(status.st_mode))
        return error_set(err, -EISDIR, "is a directory, not a trace");
    CLEANUP(pfw_unpack_cleanup) struct pfw_unpack *unpack = calloc(1, sizeof *unpack);
    if (unpack == NULL)
        return error_set(err, -ENOMEM, "no memory to read a trace");
    unpack->window.fd = -1;
    unpack->options = *options;
    if (unpack->options.hold_max_bytes == 0)
        unpack->options.hold_max_bytes = PFW_UNPACK_HOLD_MAX_BYTES;
    unpack->stream_max_bytes = unpack->options.hold_max_bytes;
    if (unpack->stream_max_bytes > UNPACK_STREAM_BYTES)
        unpack->stream_max_bytes = UNPACK_STREAM_BYTES;
    if (inflateInit2(&unpack->stream, UNPACK_GZIP_WINDOW_BITS) != Z_OK)
        return error_set(err, -ENOMEM, "no memory to unpack");
    unpack->has_stream = true;
    int rc = pfw_window_init(&unpack->window, TAKE_FD(owned_fd), err);
    if (rc == 0)
        rc = unpack_detect(unpack, err);
    if (rc < 0)
        return rc;
    *out_unpack = TAKE(unpack);
    return 0;
}

void pfw_unpack_close(struct pfw_unpack *unpack)
{
    if (unpack == NULL)
        return;
    if (unpack->has_stream)
        (void)inflateEnd(&unpack->stream); /* fails only for a stream that is none */
    pfw_window_fini(&unpack->window);
    free(unpack->hold);
    free(unpack);
}

struct pfw_unpack_status pfw_unpack_status(const struct pfw_unpack *unpack)
{
    return (struct pfw_unpack_status){
        .is_compressed = unpack->is_compressed,
        .members = unpack->members,
        .file_bytes = pfw_window_offset(&unpack->window),
        .text_bytes = unpack->text_bytes,
    };
}
