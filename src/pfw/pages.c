/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * A gzip member (RFC 1952):
 *
 *   1f 8b 08 FLG  MTIME=0 (4 bytes)  XFL=0  OS=3 | fill | deflate data | CRC-32 (4 bytes) | length (4 bytes)
 *
 * Fill of 6 bytes and more is an extra field (FEXTRA): length of the field, subfield "ci", length of the subfield,
 * zeros. Less is a comment (FCOMMENT): blanks and a NUL. A comment alone could have any length, but Go's reader refuses
 * one of 512 bytes and more, and Python's reads it byte by byte.
 */
#include "pfw/pages.h"

#include <assert.h>
#include <errno.h>
#include <libdeflate.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>

enum {
    PAGES_BATCH_BYTES = 64 * PFW_PAGE_BYTES,
    PAGES_MARKS_MAX = PAGES_BATCH_BYTES / PFW_PAGE_BYTES + 2,
    PAGES_LITTLE_ROOM_BYTES = PFW_PAGE_BYTES / 8, /* what doesn't fit into so little goes to the next page */

    MEMBER_HEADER_BYTES = 10,
    MEMBER_TRAILER_BYTES = 8,
    MEMBER_FRAME_BYTES = MEMBER_HEADER_BYTES + MEMBER_TRAILER_BYTES,
    MEMBER_EMPTY_BYTES = MEMBER_FRAME_BYTES + 2, /* the shortest member: an empty deflate block takes two bytes */
    MEMBER_EXTRA_BYTES = 6,                      /* an extra field with an empty subfield */
    MEMBER_TRIES_MAX = 3,                        /* sizes tried to fill a page, once one fits */
    MEMBER_SHRINK_PART = 8,                      /* what doesn't fit is tried again without so small a part */
    MEMBER_FLAG_EXTRA = 1 << 2,
    MEMBER_FLAG_COMMENT = 1 << 4,

    /* libdeflate gives up when the output ends less than so many bytes behind what it wrote. */
    DEFLATE_SLACK_BYTES = 16,
};

/*
 * Levels of libdeflate by the length of the lines at hand (docs/architecture): one tick of a small node, a few percent
 * larger at half the time; what has gathered in an interval, a fifth smaller; a burst, or a tick with thousands of
 * CPUs, a third of the time.
 */
static const struct {
    int level;
    size_t lines_max_bytes;
} pages_levels[] = {{1, 8 * 1024}, {8, 512 * 1024}, {6, SIZE_MAX}};

/* Made at the start: it serves for the others, too, when there is no memory for those. */
#define PAGES_LEVEL_FIRST 1

/* Lines that seem to need this much of the room are tried all at once. */
#define MEMBER_WHOLE_RATIO 1.25
/* A member shall fill this much of its room, if there are lines; so much is good enough. */
#define MEMBER_TARGET_RATIO 0.95
#define MEMBER_ENOUGH_RATIO 0.88
/* More lines cost at least this part of what lines cost on average: else a guess could be far off. */
#define MEMBER_MARGINAL_RATIO 0.125

/* Lines, and what they deflated to. */
struct pages_size {
    size_t length;
    size_t deflated;
};

/* How much is whole up to the last piece that ends in a page. */
struct pages_mark {
    size_t end;   /* in the batch */
    size_t lines; /* in the lines */
};

struct pfw_pages {
    bool is_compressed;
    struct libdeflate_compressor *levels[ARRAY_LENGTH(pages_levels)]; /* NULL until needed */
    struct libdeflate_compressor *compressor;                         /* for the lines at hand: one of these, or NULL */

    /*
     * The last members of two sizes, the newest first. The first lines of a member cost much, as nothing before them is
     * like them, and each further line little: two sizes tell how little.
     */
    struct pages_size seen[2];
    char best[PFW_PAGE_BYTES]; /* deflated: the largest so far that fits, while another size is tried */

    /*
     * The batch starts in `memory` as far behind a page boundary as in the file. A copy into the page cache that finds
     * one of our pages missing ends early at its boundary; this way that is a boundary of the file, too.
     */
    char *memory;
    char *large; /* for one line whose member is larger than a page, else NULL */

    struct pfw_batch batch;
    char *bytes;  /* batch.bytes while it may be changed */
    size_t lines; /* of the lines that are in the batch */
    struct pages_mark marks[PAGES_MARKS_MAX];
    size_t marks_count;
};

static size_t pages_room(const struct pfw_pages *pages)
{
    return PFW_PAGE_BYTES - (pages->batch.offset + pages->batch.length) % PFW_PAGE_BYTES;
}

/* A piece has been laid. */
static void pages_mark(struct pfw_pages *pages)
{
    uint64_t end = pages->batch.offset + pages->batch.length;
    struct pages_mark *last = pages->marks_count > 0 ? &pages->marks[pages->marks_count - 1] : NULL;
    bool is_in_same_page =
        last != NULL && (pages->batch.offset + last->end - 1) / PFW_PAGE_BYTES == (end - 1) / PFW_PAGE_BYTES;
    if (!is_in_same_page) {
        assert(pages->marks_count < PAGES_MARKS_MAX);
        last = &pages->marks[pages->marks_count++];
    }
    *last = (struct pages_mark){.end = pages->batch.length, .lines = pages->lines};
}

/* The largest part of the first `length` bytes that ends with a newline. */
static size_t pages_cut(const char *lines, size_t length)
{
    const char *newline = memrchr(lines, '\n', length);
    return newline != NULL ? (size_t)(newline - lines) + 1 : 0;
}

static size_t pages_first_line(const char *lines, size_t length)
{
    const char *newline = memchr(lines, '\n', length);
    assert(newline != NULL);
    return (size_t)(newline - lines) + 1;
}

static void member_put_u32(char *to, uint32_t number)
{
    for (unsigned i = 0; i < 4; i++)
        to[i] = (char)(number >> (8 * i));
}

/* Writes a header that is `fill` bytes longer than the shortest one. */
static void member_put_header(char *to, size_t fill)
{
    static const char start[MEMBER_HEADER_BYTES] = {'\x1f', '\x8b', 8, 0, 0, 0, 0, 0, 0, 3};
    memcpy(to, start, sizeof start);
    if (fill == 0)
        return;
    char *field = to + MEMBER_HEADER_BYTES;
    if (fill < MEMBER_EXTRA_BYTES) {
        to[3] = MEMBER_FLAG_COMMENT;
        memset(field, ' ', fill - 1);
        field[fill - 1] = '\0';
        return;
    }
    to[3] = MEMBER_FLAG_EXTRA;
    size_t field_length = fill - 2;
    size_t subfield_length = fill - MEMBER_EXTRA_BYTES;
    memset(field, 0, fill);
    field[0] = (char)(field_length & 0xff);
    field[1] = (char)(field_length >> 8);
    field[2] = 'c';
    field[3] = 'i';
    field[4] = (char)(subfield_length & 0xff);
    field[5] = (char)(subfield_length >> 8);
}

/* An empty member of exactly `length` bytes. */
static void member_put_empty(struct pfw_pages *pages, size_t length)
{
    char *to = pages->bytes + pages->batch.length;
    size_t fill = length - MEMBER_EMPTY_BYTES;
    member_put_header(to, fill);
    char *data = to + MEMBER_HEADER_BYTES + fill;
    data[0] = 3; /* last block, fixed codes, end of block */
    memset(data + 1, 0, 1 + MEMBER_TRAILER_BYTES);
    pages->batch.length += length;
    pages_mark(pages);
}

/* Makes a member of `deflated` bytes that lie where they would without fill; up to the page's end if `is_filling`. */
static void member_finish(struct pfw_pages *pages, const char *lines, size_t length, size_t deflated, bool is_filling)
{
    char *to = pages->bytes + pages->batch.length;
    uint64_t end = pages->batch.offset + pages->batch.length + MEMBER_FRAME_BYTES + deflated;
    size_t rest = (PFW_PAGE_BYTES - end % PFW_PAGE_BYTES) % PFW_PAGE_BYTES;
    /* No member fits into a rest that is shorter than the empty one. */
    size_t fill = rest < MEMBER_EMPTY_BYTES || (is_filling && rest < PFW_PAGE_BYTES / 2) ? rest : 0;
    if (fill > 0)
        memmove(to + MEMBER_HEADER_BYTES + fill, to + MEMBER_HEADER_BYTES, deflated);
    member_put_header(to, fill);
    char *trailer = to + MEMBER_HEADER_BYTES + fill + deflated;
    member_put_u32(trailer, libdeflate_crc32(0, lines, length));
    member_put_u32(trailer + 4, (uint32_t)length);
    pages->batch.length += MEMBER_FRAME_BYTES + fill + deflated;
    pages->lines += length;
    pages_mark(pages);
}

/* Deflates to where the next member's data will be; 0 when that takes more than `room` bytes. */
static size_t member_deflate(struct pfw_pages *pages, const char *lines, size_t length, size_t room)
{
    char *to = pages->bytes + pages->batch.length + MEMBER_HEADER_BYTES;
    size_t deflated = libdeflate_deflate_compress(pages->compressor, lines, length, to, room + DEFLATE_SLACK_BYTES);
    return deflated <= room ? deflated : 0;
}

static int pages_lay_large_member(struct pfw_pages *pages, const char *lines, size_t length)
{
    size_t bound = libdeflate_deflate_compress_bound(pages->compressor, length);
    pages->large = malloc(bound + MEMBER_FRAME_BYTES + MEMBER_EMPTY_BYTES + DEFLATE_SLACK_BYTES);
    if (pages->large == NULL)
        return -ENOMEM;
    pages->bytes = pages->large;
    size_t deflated = member_deflate(pages, lines, length, bound);
    assert(deflated > 0);
    member_finish(pages, lines, length, deflated, false);
    return 0;
}

static void member_learn(struct pfw_pages *pages, struct pages_size size)
{
    size_t last = pages->seen[0].length;
    bool is_like_last = size.length > last - last / 4 && size.length < last + last / 4;
    if (!is_like_last)
        pages->seen[1] = pages->seen[0];
    pages->seen[0] = size;
}

/* What one more byte of lines costs. */
static double member_marginal(const struct pfw_pages *pages)
{
    struct pages_size new = pages->seen[0];
    struct pages_size old = pages->seen[1];
    double average = (double)new.deflated / (double)new.length;
    if (new.length == old.length)
        return average;
    double marginal = ((double)new.deflated - (double)old.deflated) / ((double)new.length - (double)old.length);
    if (marginal > average)
        return average;
    return marginal > average * MEMBER_MARGINAL_RATIO ? marginal : average * MEMBER_MARGINAL_RATIO;
}

/* How many bytes of lines, deflated, will probably take `bytes`. */
static size_t member_guess(const struct pfw_pages *pages, double bytes)
{
    double more = (bytes - (double)pages->seen[0].deflated) / member_marginal(pages);
    double length = (double)pages->seen[0].length + more;
    return length > 0 ? (size_t)length : 0;
}

/*
 * Tries sizes until one fills most of the room, or enough have been tried. The deflated bytes then lie where the next
 * member's will be. `length` 0: not even the first line fits.
 */
static struct pages_size member_search(struct pfw_pages *pages, const char *lines, size_t left, size_t room)
{
    size_t first = pages_first_line(lines, left);
    size_t too_long = left + 1;
    struct pages_size best = {0};
    bool is_last_best = false;
    size_t length = member_guess(pages, (double)room * MEMBER_WHOLE_RATIO) >= left
                        ? left
                        : pages_cut(lines, member_guess(pages, (double)room * MEMBER_TARGET_RATIO));
    size_t part = MEMBER_SHRINK_PART;
    for (int tries = 0; tries < MEMBER_TRIES_MAX || best.length == 0; tries++) {
        if (length <= best.length)
            length = best.length > 0 ? best.length + pages_first_line(lines + best.length, left - best.length) : first;
        if (length >= too_long)
            break;
        size_t deflated = member_deflate(pages, lines, length, room);
        is_last_best = deflated > 0;
        if (deflated > 0) {
            best = (struct pages_size){.length = length, .deflated = deflated};
            member_learn(pages, best);
            if (length == left || (double)deflated >= (double)room * MEMBER_ENOUGH_RATIO)
                break;
            memcpy(pages->best, pages->bytes + pages->batch.length + MEMBER_HEADER_BYTES, deflated);
            length = member_guess(pages, (double)room * MEMBER_TARGET_RATIO);
            if (length >= too_long)
                length = best.length + (too_long - best.length) / 2;
        } else {
            too_long = length;
            length = best.length > 0 ? best.length + (length - best.length) / 2 : length - length / part;
            part = part > 2 ? part / 2 : 2;
        }
        length = pages_cut(lines, length < left ? length : left);
    }
    if (best.length > 0 && !is_last_best)
        memcpy(pages->bytes + pages->batch.length + MEMBER_HEADER_BYTES, pages->best, best.deflated);
    return best;
}

/* Lays one member, or fills up the page; -EAGAIN when the batch must be written first. */
static int pages_lay_member(struct pfw_pages *pages, const char *lines, size_t left)
{
    size_t room = pages_room(pages);
    if (room < MEMBER_EMPTY_BYTES) {
        /* Not our doing: the file was cut by somebody else. The one member that crosses a boundary, and it is empty. */
        member_put_empty(pages, MEMBER_EMPTY_BYTES);
        return 0;
    }
    struct pages_size size = {0};
    if (room >= PAGES_LITTLE_ROOM_BYTES || member_guess(pages, (double)room * MEMBER_WHOLE_RATIO) >= left)
        size = member_search(pages, lines, left, room - MEMBER_FRAME_BYTES);
    if (size.length > 0) {
        member_finish(pages, lines, size.length, size.deflated, size.length < left);
        return 0;
    }
    if (room < PFW_PAGE_BYTES) {
        member_put_empty(pages, room);
        return 0;
    }
    return pages->batch.length > 0 ? -EAGAIN : pages_lay_large_member(pages, lines, pages_first_line(lines, left));
}

/* Blanks up to the end of the page, before the newline that is the last byte. */
static void pages_fill_plain(struct pfw_pages *pages)
{
    size_t room = pages_room(pages);
    if (pages->batch.length == 0) {
        pages->batch.offset--;
        pages->bytes--;
        pages->batch.length = 1;
    }
    char *newline = pages->bytes + pages->batch.length - 1;
    memset(newline, ' ', room);
    newline[room] = '\n';
    pages->batch.length += room;
    pages_mark(pages);
}

/* Lays one line, filling up the page before it if it doesn't fit; -EAGAIN when the batch must be written first. */
static int pages_lay_plain(struct pfw_pages *pages, const char *lines, size_t left)
{
    size_t length = pages_first_line(lines, left);
    if (length > PFW_PAGE_BYTES && pages->batch.length > 0)
        return -EAGAIN;
    if (length > PFW_PAGE_BYTES) {
        pages->batch.bytes = lines; /* written from where it is */
    } else {
        if (length > pages_room(pages))
            pages_fill_plain(pages);
        memcpy(pages->bytes + pages->batch.length, lines, length);
    }
    pages->batch.length += length;
    pages->lines += length;
    pages_mark(pages);
    return 0;
}

struct pfw_pages *pfw_pages_new(bool is_compressed)
{
    struct pfw_pages *pages = calloc(1, sizeof *pages);
    if (pages == NULL)
        return NULL;
    pages->seen[0] = pages->seen[1] = (struct pages_size){.length = PFW_PAGE_BYTES, .deflated = PFW_PAGE_BYTES / 4};
    pages->memory =
        mmap(NULL, PAGES_BATCH_BYTES + 2 * PFW_PAGE_BYTES, PROT_READ | PROT_WRITE, MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);
    if (pages->memory == MAP_FAILED)
        pages->memory = NULL;
    pages->is_compressed = is_compressed;
    if (is_compressed)
        pages->levels[PAGES_LEVEL_FIRST] = libdeflate_alloc_compressor(pages_levels[PAGES_LEVEL_FIRST].level);
    if (pages->memory == NULL || (is_compressed && pages->levels[PAGES_LEVEL_FIRST] == NULL)) {
        pfw_pages_free(pages);
        return NULL;
    }
    return pages;
}

void pfw_pages_free(struct pfw_pages *pages)
{
    if (pages == NULL)
        return;
    for (size_t i = 0; i < ARRAY_LENGTH(pages->levels); i++)
        libdeflate_free_compressor(pages->levels[i]);
    if (pages->memory != NULL)
        (void)munmap(pages->memory, PAGES_BATCH_BYTES + 2 * PFW_PAGE_BYTES); /* of our own mapping: can't fail */
    free(pages->large);
    free(pages);
}

/* For lines of `length` bytes. */
static struct libdeflate_compressor *pages_choose(struct pfw_pages *pages, size_t length)
{
    if (!pages->is_compressed)
        return NULL;
    size_t choice = 0;
    while (length > pages_levels[choice].lines_max_bytes)
        choice++;
    if (pages->levels[choice] == NULL)
        pages->levels[choice] = libdeflate_alloc_compressor(pages_levels[choice].level);
    return pages->levels[choice] != NULL ? pages->levels[choice] : pages->levels[PAGES_LEVEL_FIRST];
}

int pfw_pages_lay(struct pfw_pages *pages, uint64_t offset, const char *lines, size_t length,
                  struct pfw_batch *out_batch)
{
    free(pages->large);
    pages->large = NULL;
    pages->compressor = pages_choose(pages, length);
    pages->bytes = pages->memory + offset % PFW_PAGE_BYTES;
    pages->batch = (struct pfw_batch){.offset = offset};
    pages->lines = 0;
    pages->marks_count = 0;

    int rc = 0;
    while (rc == 0 && pages->lines < length && pages->batch.length + PFW_PAGE_BYTES <= PAGES_BATCH_BYTES &&
           pages->large == NULL && pages->batch.bytes == NULL) {
        const char *next = lines + pages->lines;
        rc = pages->compressor != NULL ? pages_lay_member(pages, next, length - pages->lines)
                                       : pages_lay_plain(pages, next, length - pages->lines);
    }
    if (rc < 0 && rc != -EAGAIN)
        return rc;
    if (pages->batch.bytes == NULL)
        pages->batch.bytes = pages->bytes;
    *out_batch = pages->batch;
    return 0;
}

size_t pfw_pages_whole(const struct pfw_pages *pages, size_t written, size_t *out_lines)
{
    struct pages_mark whole = {0};
    for (size_t i = 0; i < pages->marks_count && pages->marks[i].end <= written; i++)
        whole = pages->marks[i];
    *out_lines = whole.lines;
    return whole.end;
}
