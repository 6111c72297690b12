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
    UNPACK_FIRST_BYTES = 64 << 10,   /* of the hold; members of our writer unpack to about that */
    UNPACK_STREAM_BYTES = 256 << 10, /* given at once from a member too large to be held */
    UNPACK_DETECT_BYTES = 64 << 10,  /* looked at when a file begins neither as gzip nor as text */
    UNPACK_MAGIC_BYTES = 4,
    UNPACK_GZIP_WINDOW_BITS = 15 + 16, /* zlib: the largest window, and only gzip */
    UNPACK_QUEUE_MAX = 3,
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

/* What begins at `begin` is damaged: leaves it out up to the next member that can be trusted. */
static int unpack_skip_damage(struct pfw_unpack *unpack, uint64_t begin, uint64_t search_from, const char *reason,
                              struct error *err)
{
    bool is_found;
    enum unpack_result result;
    int rc = unpack_search(unpack, search_from, &result, &is_found, err);
    if (rc < 0)
        return rc;
    uint64_t end = is_found ? unpack->member_offset : pfw_window_offset(&unpack->window);
    if (end > begin)
        unpack_push_gap(unpack, PFW_GAP_DAMAGED, begin, end, reason);
    if (is_found)
        unpack_accept(unpack, result);
    return 0;
}

static int unpack_damaged_member(struct pfw_unpack *unpack, struct error *err)
{
    char reason[sizeof((struct pfw_gap *)NULL)->reason];
    (void)snprintf(reason, sizeof reason, "%s", unpack->stream.msg != NULL ? unpack->stream.msg : "not gzip");
    uint64_t begin = unpack->member_offset;
    if (unpack->options.is_salvaging) {
        /* The text lies where the search unpacks to: it is given first, and the search comes with the next step. */
        unpack_push_text(unpack, unpack->hold, unpack->hold_length);
        unpack_push_gap(unpack, PFW_GAP_UNCHECKED, begin, pfw_window_offset(&unpack->window), reason);
        unpack->is_searching = true;
        return 0;
    }
    return unpack_skip_damage(unpack, begin, begin + 1, reason, err);
}
