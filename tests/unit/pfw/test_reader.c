/* SPDX-License-Identifier: BSD-3-Clause */
#include "pfw/reader.h"

#include <errno.h>
#include <fcntl.h>
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>
#include <unistd.h>

#include <cmocka.h>
#include <zlib.h>

#include "support/allocation.h"
#include "util/buf.h"
#include "util/file.h"

enum { IMAGE_MAX_BYTES = 64 << 20, GAPS_MAX = 8 };

/* What a reader gave: its lines, each with a newline behind it, and its gaps. */
struct reading {
    struct buf lines;
    size_t count;
    bool is_last_cut;
    struct pfw_gap gaps[GAPS_MAX];
    size_t gaps_count;
    struct pfw_reader_status status;
};

static void reading_cleanup(struct reading *reading)
{
    buf_fini(&reading->lines);
}

/* Appends one gzip member. `header` may be NULL. */
static void put_member_with(struct buf *image, const char *text, size_t length, int level, gz_header *header)
{
    z_stream stream = {0};
    assert_int_equal(deflateInit2(&stream, level, Z_DEFLATED, 15 + 16, 8, Z_DEFAULT_STRATEGY), Z_OK);
    if (header != NULL)
        assert_int_equal(deflateSetHeader(&stream, header), Z_OK);
    size_t room = deflateBound(&stream, length) + 8192;
    stream.next_out = (Bytef *)buf_reserve(image, room);
    assert_non_null(stream.next_out);
    stream.avail_out = (uInt)room;
    /* zlib doesn't change its input, it only lacks the const */
    stream.next_in = (z_const Bytef *)(uintptr_t)text;
    stream.avail_in = (uInt)length;
    assert_int_equal(deflate(&stream, Z_FINISH), Z_STREAM_END);
    buf_commit(image, stream.total_out);
    assert_int_equal(deflateEnd(&stream), Z_OK);
}

static void put_member(struct buf *image, const char *text)
{
    put_member_with(image, text, strlen(text), 6, NULL);
}

/* A member of lines with numbers from `first` on, which are different enough to make it a few hundred bytes long. */
static void put_numbered(struct buf *image, unsigned first, unsigned count)
{
    CLEANUP(buf_cleanup) struct buf text;
    buf_init(&text, IMAGE_MAX_BYTES);
    for (unsigned i = first; i < first + count; i++)
        buf_printf(&text, "{\"name\":\"n%u\",\"v\":%u}\n", i, i * 2654435761U);
    put_member_with(image, text.data, text.length, 6, NULL);
}

static void expect_numbered(const struct reading *reading, unsigned first, unsigned count, size_t *at)
{
    for (unsigned i = first; i < first + count; i++) {
        char want[64];
        int length = snprintf(want, sizeof want, "{\"name\":\"n%u\",\"v\":%u}\n", i, i * 2654435761U);
        if (reading->lines.length - *at < (size_t)length ||
            memcmp(reading->lines.data + *at, want, (size_t)length) != 0)
            fail_msg("line %u is missing or wrong", i);
        *at += (size_t)length;
    }
}

static void read_fd(int fd, const struct pfw_reader_options *options, struct reading *out)
{
    *out = (struct reading){0};
    buf_init(&out->lines, 2 * (size_t)IMAGE_MAX_BYTES);
    CLEANUP(pfw_reader_cleanup) struct pfw_reader *reader = NULL;
    struct error err = {0};
    if (pfw_reader_open_fd(fd, options, &reader, &err) < 0)
        fail_msg("%s", err.text);
    for (;;) {
        struct pfw_item item;
        if (pfw_reader_next(reader, &item, &err) < 0)
            fail_msg("%s", err.text);
        if (item.kind == PFW_ITEM_END)
            break;
        if (item.kind == PFW_ITEM_GAP) {
            assert_true(out->gaps_count < GAPS_MAX);
            out->gaps[out->gaps_count++] = item.gap;
            continue;
        }
        assert_true(item.length > 0);
        out->count++;
        out->is_last_cut = item.is_cut;
        buf_bytes(&out->lines, item.text, item.length);
        buf_char(&out->lines, '\n');
    }
    out->status = pfw_reader_status(reader);
    assert_int_equal(buf_status(&out->lines, NULL), 0);
}

static void read_bytes_with(const void *bytes, size_t length, const struct pfw_reader_options *options,
                            struct reading *out)
{
    int fd = memfd_create("trace", MFD_CLOEXEC);
    assert_true(fd >= 0);
    assert_int_equal(file_write_all(fd, bytes, length, NULL), 0);
    assert_int_equal(lseek(fd, 0, SEEK_SET), 0);
    read_fd(fd, options, out);
}

static void read_bytes(const void *bytes, size_t length, struct reading *out)
{
    const struct pfw_reader_options options = {0};
    read_bytes_with(bytes, length, &options, out);
}

static void expect_text(const char *image, const char *lines)
{
    CLEANUP(reading_cleanup) struct reading reading;
    read_bytes(image, strlen(image), &reading);
    assert_string_equal(buf_string(&reading.lines), lines);
    assert_int_equal(reading.gaps_count, 0);
    assert_false(reading.status.unpack.is_compressed);
}

static void plain_lines_come_without_blanks_and_empty_ones_not_at_all(void **state)
{
    (void)state;
    expect_text("", "");
    expect_text("\n\n \t\r\n", "");
    expect_text("{\"a\":1}\n  {\"b\":2}   \r\n\n{\"c\":3}", "{\"a\":1}\n{\"b\":2}\n{\"c\":3}\n");
    expect_text("rubbish\n{}\n", "rubbish\n{}\n");
    expect_text("\xef\xbb\xbf{\"a\":1}\n{}\n", "{\"a\":1}\n{}\n"); /* an editor's mark of UTF-8 */
    expect_text("\xef\xbb\xbf[\n{\"a\":1},\n{}]\n", "{\"a\":1}\n{}\n");
    expect_text("{}\n\xef\xbb\xbf{}\n", "{}\n\xef\xbb\xbf{}\n");
}

static void lines_of_a_json_array_come_without_its_brackets_and_commas(void **state)
{
    (void)state;
    expect_text("[\n{\"a\":1},\n{\"b\":2} , \n{\"c\":3}\n]\n", "{\"a\":1}\n{\"b\":2}\n{\"c\":3}\n");
    expect_text("[{\"a\":1},\n{\"b\":2}]\n", "{\"a\":1}\n{\"b\":2}\n");
    expect_text("[\n{\"a\":[1]},\n{\"b\":2},\n", "{\"a\":[1]}\n{\"b\":2}\n"); /* of a process that was killed */
    expect_text("[\n{\"a\":1},\n[\n{\"b\":2},\n]\n{\"c\":3}\n", "{\"a\":1}\n{\"b\":2}\n{\"c\":3}\n");
    expect_text("{\"a\":1},\n", "{\"a\":1},\n"); /* without '[' a comma is the line's own fault */
}

static void a_last_line_without_newline_is_marked(void **state)
{
    (void)state;
    CLEANUP(reading_cleanup) struct reading whole;
    read_bytes("{}\n{}\n", 6, &whole);
    assert_false(whole.is_last_cut);
    CLEANUP(reading_cleanup) struct reading cut;
    read_bytes("{}\n{\"a", 6, &cut);
    assert_true(cut.is_last_cut);
    assert_int_equal(cut.count, 2);
}

static void any_number_of_members_is_one_text(void **state)
{
    (void)state;
    CLEANUP(buf_cleanup) struct buf image;
    buf_init(&image, IMAGE_MAX_BYTES);
    put_member(&image, "");
    put_member(&image, "{\"a\":1}\n{\"b\"");
    put_member(&image, "");
    put_member(&image, ":");
    put_member(&image, "2}\n");
    unsigned char extra[3000] = {1, 2, 3};
    unsigned char name[] = "name";
    unsigned char comment[4000];
    memset(comment, 'x', sizeof comment - 1);
    comment[sizeof comment - 1] = 0;
    gz_header header = {.extra = extra, .extra_len = sizeof extra, .name = name, .comment = comment, .hcrc = 1};
    put_member_with(&image, "{\"c\":3}\n", 8, 9, &header);
    put_member_with(&image, "{\"d\":4}\n", 8, 0, NULL); /* stored */
    put_member(&image, "");

    CLEANUP(reading_cleanup) struct reading reading;
    read_bytes(image.data, image.length, &reading);
    assert_string_equal(buf_string(&reading.lines), "{\"a\":1}\n{\"b\":2}\n{\"c\":3}\n{\"d\":4}\n");
    assert_int_equal(reading.gaps_count, 0);
    assert_int_equal(reading.status.unpack.members, 8);
    assert_int_equal(reading.status.unpack.file_bytes, image.length);
    assert_int_equal(reading.status.unpack.text_bytes, 32);
    assert_true(reading.status.unpack.is_compressed);
}

static void a_pipe_is_read_like_a_file(void **state)
{
    (void)state;
    CLEANUP(buf_cleanup) struct buf image;
    buf_init(&image, IMAGE_MAX_BYTES);
    put_numbered(&image, 0, 100);
    int ends[2];
    assert_int_equal(pipe(ends), 0);
    assert_int_equal(file_write_all(ends[1], image.data, image.length, NULL), 0);
    close(ends[1]);
    CLEANUP(reading_cleanup) struct reading reading;
    const struct pfw_reader_options options = {0};
    read_fd(ends[0], &options, &reading);
    size_t at = 0;
    expect_numbered(&reading, 0, 100, &at);
    assert_int_equal(reading.status.size_bytes, 0);
}

static void zero_bytes_at_the_end_are_told(void **state)
{
    (void)state;
    CLEANUP(buf_cleanup) struct buf image;
    buf_init(&image, IMAGE_MAX_BYTES);
    put_numbered(&image, 0, 10);
    size_t good = image.length;
    char *zeros = buf_reserve(&image, 1 << 20);
    memset(zeros, 0, 1 << 20);
    buf_commit(&image, 1 << 20);

    CLEANUP(reading_cleanup) struct reading reading;
    read_bytes(image.data, image.length, &reading);
    size_t at = 0;
    expect_numbered(&reading, 0, 10, &at);
    assert_int_equal(reading.gaps_count, 1);
    assert_int_equal(reading.gaps[0].kind, PFW_GAP_ZEROS);
    assert_int_equal(reading.gaps[0].offset, good);
    assert_int_equal(reading.gaps[0].length, 1 << 20);

    put_numbered(&image, 10, 10);
    CLEANUP(reading_cleanup) struct reading inside;
    read_bytes(image.data, image.length, &inside);
    at = 0;
    expect_numbered(&inside, 0, 20, &at);
    assert_int_equal(inside.gaps_count, 1);
    assert_int_equal(inside.gaps[0].kind, PFW_GAP_DAMAGED);
    assert_int_equal(inside.gaps[0].offset, good);
    assert_int_equal(inside.gaps[0].length, 1 << 20);
}

/* Cut at every length: whole members before the cut give all of their lines, the cut one gives true lines. */
static void a_cut_file_gives_all_before_the_cut(void **state)
{
    (void)state;
    CLEANUP(buf_cleanup) struct buf image;
    buf_init(&image, IMAGE_MAX_BYTES);
    put_numbered(&image, 0, 20);
    size_t first = image.length;
    put_numbered(&image, 20, 20);
    CLEANUP(reading_cleanup) struct reading whole;
    read_bytes(image.data, image.length, &whole);
    for (size_t length = 0; length < image.length; length++) {
        CLEANUP(reading_cleanup) struct reading reading;
        read_bytes(image.data, length, &reading);
        size_t begin = length < first ? 0 : first;
        size_t at = 0;
        if (length >= first)
            expect_numbered(&reading, 0, 20, &at);
        if (reading.lines.length > 0 && memcmp(reading.lines.data, whole.lines.data, reading.lines.length - 1) != 0)
            fail_msg("cut at %zu: a line is wrong", length);
        if (length == begin) {
            assert_int_equal(reading.gaps_count, 0);
            continue;
        }
        if (reading.gaps_count != 1 || reading.gaps[0].kind != PFW_GAP_CUT || reading.gaps[0].offset != begin ||
            reading.gaps[0].length != length - begin)
            fail_msg("cut at %zu: %zu gaps", length, reading.gaps_count);
    }
}

/*
 * Every byte of the middle of three members changed in every bit: the lines of the others are all there, those of the
 * damaged one are there in full (the change hurts nobody: a time stamp) or not at all, and damage is told.
 */
static void damage_costs_its_own_member_and_no_wrong_line_appears(void **state)
{
    (void)state;
    CLEANUP(buf_cleanup) struct buf image;
    buf_init(&image, IMAGE_MAX_BYTES);
    put_numbered(&image, 0, 12);
    size_t begin = image.length;
    put_numbered(&image, 12, 12);
    size_t end = image.length;
    put_numbered(&image, 24, 12);
    for (size_t offset = begin; offset < end; offset++) {
        for (unsigned bit = 0; bit < 8; bit++) {
            image.data[offset] = (char)(image.data[offset] ^ (1 << bit));
            CLEANUP(reading_cleanup) struct reading reading;
            read_bytes(image.data, image.length, &reading);
            image.data[offset] = (char)(image.data[offset] ^ (1 << bit));

            size_t at = 0;
            expect_numbered(&reading, 0, 12, &at);
            if (reading.count == 36)
                expect_numbered(&reading, 12, 12, &at);
            expect_numbered(&reading, 24, 12, &at);
            assert_int_equal(at, reading.lines.length);
            if (reading.count == 36) {
                assert_int_equal(reading.gaps_count, 0);
                continue;
            }
            if (reading.gaps_count != 1 || reading.gaps[0].kind != PFW_GAP_DAMAGED || reading.gaps[0].offset != begin ||
                reading.gaps[0].length != end - begin)
                fail_msg("bit %u of byte %zu: %zu gaps, the first of kind %d at %llu", bit, offset, reading.gaps_count,
                         (int)reading.gaps[0].kind, (unsigned long long)reading.gaps[0].offset);
        }
    }
}

/* The same for a file's only member: nothing wrong is given but where the file seems to end within it. */
static void damage_of_the_only_member_is_told(void **state)
{
    (void)state;
    CLEANUP(buf_cleanup) struct buf image;
    buf_init(&image, IMAGE_MAX_BYTES);
    put_numbered(&image, 0, 12);
    for (size_t offset = 2; offset < image.length; offset++) {
        for (unsigned bit = 0; bit < 8; bit++) {
            image.data[offset] = (char)(image.data[offset] ^ (1 << bit));
            CLEANUP(reading_cleanup) struct reading reading;
            read_bytes(image.data, image.length, &reading);
            image.data[offset] = (char)(image.data[offset] ^ (1 << bit));
            size_t at = 0;
            if (reading.gaps_count == 0)
                expect_numbered(&reading, 0, 12, &at);
            else if (reading.gaps[0].kind == PFW_GAP_DAMAGED)
                assert_int_equal(reading.count, 0);
            else
                assert_int_equal(reading.gaps[0].kind, PFW_GAP_CUT);
        }
    }
}

static void salvaging_gives_what_precedes_the_damage(void **state)
{
    (void)state;
    CLEANUP(buf_cleanup) struct buf image;
    buf_init(&image, IMAGE_MAX_BYTES);
    put_numbered(&image, 0, 2000);
    size_t second = image.length;
    put_numbered(&image, 2000, 10);
    memset(image.data + second / 2, 0xff, 64);

    CLEANUP(reading_cleanup) struct reading strict;
    read_bytes(image.data, image.length, &strict);
    size_t at = 0;
    expect_numbered(&strict, 2000, 10, &at);
    assert_int_equal(strict.count, 10);
    assert_int_equal(strict.gaps_count, 1);

    CLEANUP(reading_cleanup) struct reading salvaged;
    const struct pfw_reader_options options = {.unpack.is_salvaging = true};
    read_bytes_with(image.data, image.length, &options, &salvaged);
    at = 0;
    expect_numbered(&salvaged, 0, 500, &at);
    assert_true(salvaged.count > 510 && salvaged.count < 2000);
    assert_int_equal(salvaged.gaps_count, 2);
    assert_int_equal(salvaged.gaps[0].kind, PFW_GAP_UNCHECKED);
    assert_int_equal(salvaged.gaps[0].offset, 0);
    assert_int_equal(salvaged.gaps[1].kind, PFW_GAP_DAMAGED);
    assert_int_equal(salvaged.gaps[0].length, salvaged.gaps[1].offset);
    assert_int_equal(salvaged.gaps[1].offset + salvaged.gaps[1].length, second);
    assert_non_null(memmem(salvaged.lines.data, salvaged.lines.length, "\"n2009\"", 7));
}

static void a_member_too_large_to_be_held_is_given_and_its_damage_told_after_it(void **state)
{
    (void)state;
    CLEANUP(buf_cleanup) struct buf image;
    buf_init(&image, IMAGE_MAX_BYTES);
    put_numbered(&image, 0, 20000);
    size_t second = image.length;
    put_numbered(&image, 20000, 10);
    const struct pfw_reader_options options = {.unpack.hold_max_bytes = 4096};

    CLEANUP(reading_cleanup) struct reading good;
    read_bytes_with(image.data, image.length, &options, &good);
    size_t at = 0;
    expect_numbered(&good, 0, 20010, &at);
    assert_int_equal(good.gaps_count, 0);
    assert_int_equal(good.status.unpack.members, 2);

    image.data[second - 5] = (char)(image.data[second - 5] ^ 1); /* its check sum */
    CLEANUP(reading_cleanup) struct reading bad;
    read_bytes_with(image.data, image.length, &options, &bad);
    at = 0;
    expect_numbered(&bad, 0, 20010, &at);
    assert_int_equal(bad.gaps[0].kind, PFW_GAP_UNCHECKED);
    assert_int_equal(bad.gaps[0].offset, 0);
    assert_int_equal(bad.gaps[1].kind, PFW_GAP_DAMAGED);
    assert_int_equal(bad.gaps[1].offset + bad.gaps[1].length, second);

    CLEANUP(reading_cleanup) struct reading last;
    read_bytes_with(image.data, second, &options, &last);
    assert_int_equal(last.count, 20000);
    assert_int_equal(last.gaps_count, 2); /* damage at the end of the file is not a cut file */
    assert_int_equal(last.gaps[1].kind, PFW_GAP_DAMAGED);

    CLEANUP(reading_cleanup) struct reading cut;
    read_bytes_with(image.data, second - 1000, &options, &cut);
    assert_true(cut.count > 15000);
    assert_int_equal(cut.gaps_count, 1);
    assert_int_equal(cut.gaps[0].kind, PFW_GAP_CUT);
    assert_int_equal(cut.gaps[0].length, second - 1000);
}

/* What looks like the begin of a member, again and again, in front of a good one at every place near a read's edge. */
static void the_next_good_member_is_found_wherever_it_begins(void **state)
{
    (void)state;
    enum { EDGE = 256 << 10 };
    for (size_t good = EDGE - 6; good <= EDGE + 2; good++) {
        CLEANUP(buf_cleanup) struct buf image;
        buf_init(&image, IMAGE_MAX_BYTES);
        put_numbered(&image, 0, 10);
        size_t begin = image.length;
        char *damage = buf_reserve(&image, good - begin);
        memset(damage, 0x1f, good - begin);
        for (size_t i = 0; i + 1000 < good - begin; i += 1000)
            memcpy(damage + i, "\x1f\x8b\x08\x00\x00\x00\x00\x00\x00\x03", 10);
        buf_commit(&image, good - begin);
        put_numbered(&image, 10, 10);
        CLEANUP(reading_cleanup) struct reading reading;
        read_bytes(image.data, image.length, &reading);
        size_t at = 0;
        expect_numbered(&reading, 0, 20, &at);
        assert_int_equal(reading.gaps_count, 1);
        assert_int_equal(reading.gaps[0].kind, PFW_GAP_DAMAGED);
        assert_int_equal(reading.gaps[0].offset, begin);
        assert_int_equal(reading.gaps[0].length, good - begin);
    }
}

/* What looks like a member and says that the good one behind it is a part of it. */
static void a_false_member_does_not_hide_the_good_one_behind_it(void **state)
{
    (void)state;
    CLEANUP(buf_cleanup) struct buf image;
    buf_init(&image, IMAGE_MAX_BYTES);
    put_numbered(&image, 0, 10);
    size_t begin = image.length;
    static const unsigned char stored[] = {0x1f, 0x8b, 8, 0, 0, 0, 0, 0, 0, 3, 0, 0x40, 0, 0xbf, 0xff}; /* 64 bytes */
    buf_bytes(&image, stored, sizeof stored);
    buf_text(&image, "damage");
    size_t good = image.length;
    put_numbered(&image, 10, 10);
    CLEANUP(reading_cleanup) struct reading reading;
    read_bytes(image.data, image.length, &reading);
    size_t at = 0;
    expect_numbered(&reading, 0, 20, &at);
    assert_int_equal(reading.gaps_count, 1);
    assert_int_equal(reading.gaps[0].offset, begin);
    assert_int_equal(reading.gaps[0].length, good - begin);

    /* The same once more: the false one comes where a candidate is looked for, not where a member should begin. */
    CLEANUP(buf_cleanup) struct buf later;
    buf_init(&later, IMAGE_MAX_BYTES);
    buf_bytes(&later, image.data, begin);
    buf_text(&later, "rubbish");
    buf_bytes(&later, image.data + begin, image.length - begin);
    CLEANUP(reading_cleanup) struct reading again;
    read_bytes(later.data, later.length, &again);
    at = 0;
    expect_numbered(&again, 0, 20, &at);
}

/* The file ends in the middle of a line in the middle of a member: what there is of it comes last, marked. */
static void the_line_that_a_cut_member_ends_in_is_marked(void **state)
{
    (void)state;
    CLEANUP(buf_cleanup) struct buf image;
    buf_init(&image, IMAGE_MAX_BYTES);
    put_member_with(&image, "{\"a\":1}\n{\"b\":2}\n", 16, 0, NULL); /* stored: a byte of text is one of the file */
    CLEANUP(reading_cleanup) struct reading reading;
    read_bytes(image.data, image.length - 8 - 4, &reading);
    assert_string_equal(buf_string(&reading.lines), "{\"a\":1}\n{\"b\"\n");
    assert_true(reading.is_last_cut);
    assert_int_equal(reading.gaps_count, 1);
    assert_int_equal(reading.gaps[0].kind, PFW_GAP_CUT);
}

static void the_search_for_a_good_member_has_an_end(void **state)
{
    (void)state;
    CLEANUP(buf_cleanup) struct buf image;
    buf_init(&image, IMAGE_MAX_BYTES);
    put_numbered(&image, 0, 10);
    size_t begin = image.length;
    for (unsigned i = 0; i < PFW_UNPACK_TRIES_MAX + 1; i++)
        buf_bytes(&image, "\x1f\x8b\x08\x00\xff", 5);
    put_numbered(&image, 10, 10);
    CLEANUP(reading_cleanup) struct reading reading;
    read_bytes(image.data, image.length, &reading);
    assert_int_equal(reading.count, 10);
    assert_int_equal(reading.gaps_count, 1);
    assert_int_equal(reading.gaps[0].offset, begin);
    assert_int_equal(reading.gaps[0].length, image.length - begin);
}

static void the_rest_of_a_line_whose_begin_is_damaged_is_left_out(void **state)
{
    (void)state;
    CLEANUP(buf_cleanup) struct buf image;
    buf_init(&image, IMAGE_MAX_BYTES);
    put_member(&image, "{\"a\":1}\n{\"b\"");
    size_t begin = image.length;
    put_member(&image, ":2,");
    image.data[image.length - 1] = 1; /* its length */
    put_member(&image, "\"c\":3}\n{\"d\":4}\nrubbish\n");
    CLEANUP(reading_cleanup) struct reading reading;
    read_bytes(image.data, image.length, &reading);
    assert_string_equal(buf_string(&reading.lines), "{\"a\":1}\n{\"d\":4}\nrubbish\n");
    assert_int_equal(reading.gaps_count, 1);
    assert_int_equal(reading.gaps[0].offset, begin);
}

static void a_line_longer_than_the_limit_is_left_out_and_told(void **state)
{
    (void)state;
    CLEANUP(buf_cleanup) struct buf text;
    buf_init(&text, IMAGE_MAX_BYTES);
    buf_text(&text, "{\"a\":1}\n");
    for (int i = 0; i < 1000; i++)
        buf_text(&text, "0123456789");
    buf_text(&text, "\n{\"b\":2}\n");
    for (int i = 0; i < 7; i++)
        buf_text(&text, "0123456789");
    const struct pfw_reader_options options = {.line_max_bytes = 64, .unpack.hold_max_bytes = 100};
    CLEANUP(buf_cleanup) struct buf image;
    buf_init(&image, IMAGE_MAX_BYTES);
    put_member_with(&image, text.data, text.length, 6, NULL);
    const struct buf *const images[] = {&text, &image}; /* in one piece, and in pieces of 100 bytes */
    for (size_t i = 0; i < 2; i++) {
        CLEANUP(reading_cleanup) struct reading reading;
        read_bytes_with(images[i]->data, images[i]->length, &options, &reading);
        assert_string_equal(buf_string(&reading.lines), "{\"a\":1}\n{\"b\":2}\n");
        assert_int_equal(reading.gaps_count, 2);
        assert_int_equal(reading.gaps[0].kind, PFW_GAP_LONG_LINE);
        assert_int_equal(reading.gaps[0].offset, 8);
        assert_int_equal(reading.gaps[0].length, 10001);
        assert_int_equal(reading.gaps[1].offset, 8 + 10001 + 8);
        assert_int_equal(reading.gaps[1].length, 70);
    }
}

static void content_tells_gzip_from_text_even_when_its_begin_is_damaged(void **state)
{
    (void)state;
    CLEANUP(buf_cleanup) struct buf image;
    buf_init(&image, IMAGE_MAX_BYTES);
    put_numbered(&image, 0, 10);
    size_t second = image.length;
    put_numbered(&image, 10, 10);
    for (size_t i = 0; i < 3; i++) {
        char kept = image.data[i];
        image.data[i] = 'Q';
        CLEANUP(reading_cleanup) struct reading reading;
        read_bytes(image.data, image.length, &reading);
        image.data[i] = kept;
        size_t at = 0;
        expect_numbered(&reading, 10, 10, &at);
        assert_int_equal(reading.count, 10);
        assert_int_equal(reading.gaps_count, 1);
        assert_int_equal(reading.gaps[0].offset, 0);
        assert_int_equal(reading.gaps[0].length, second);
    }
}

static void what_cannot_be_read_is_named(void **state)
{
    (void)state;
    static const struct {
        const char *path;
        int rc;
    } cases[] = {{"/", -EISDIR}, {"/nonexistent/x.pfw.gz", -ENOENT}, {"", -ENOENT}};
    for (size_t i = 0; i < sizeof cases / sizeof cases[0]; i++) {
        struct pfw_reader *reader = NULL;
        struct error err = {0};
        const struct pfw_reader_options options = {0};
        char want[64];
        (void)snprintf(want, sizeof want, "'%s': ", cases[i].path);
        assert_int_equal(pfw_reader_open(cases[i].path, &options, &reader, &err), cases[i].rc);
        assert_null(reader);
        assert_ptr_equal(strstr(err.text, want), err.text);
    }
    pfw_reader_close(NULL);
}

static int read_whole(const struct buf *image, size_t *out_lines)
{
    int fd = memfd_create("trace", MFD_CLOEXEC);
    assert_true(fd >= 0);
    assert_int_equal(file_write_all(fd, image->data, image->length, NULL), 0);
    assert_int_equal(lseek(fd, 0, SEEK_SET), 0);
    const struct pfw_reader_options options = {.unpack.hold_max_bytes = 256 << 10};
    CLEANUP(pfw_reader_cleanup) struct pfw_reader *reader = NULL;
    int rc = pfw_reader_open_fd(fd, &options, &reader, NULL);
    struct pfw_item item = {.kind = PFW_ITEM_LINE};
    for (*out_lines = 0; rc == 0 && item.kind != PFW_ITEM_END; *out_lines += item.kind == PFW_ITEM_LINE)
        rc = pfw_reader_next(reader, &item, NULL);
    return rc;
}

static void want_of_memory_is_told_and_leaks_nothing(void **state)
{
    (void)state;
    CLEANUP(buf_cleanup) struct buf image;
    buf_init(&image, IMAGE_MAX_BYTES);
    put_numbered(&image, 0, 20000); /* grows the hold, and lines lie across its pieces */
    for (size_t n = 0;; n++) {
        size_t lines;
        allocation_fail_at(n);
        int rc = read_whole(&image, &lines);
        bool has_failed = allocation_stop();
        assert_int_equal(rc, has_failed ? -ENOMEM : 0);
        if (!has_failed) {
            assert_int_equal(lines, 20000);
            break;
        }
    }
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(plain_lines_come_without_blanks_and_empty_ones_not_at_all),
        cmocka_unit_test(lines_of_a_json_array_come_without_its_brackets_and_commas),
        cmocka_unit_test(a_last_line_without_newline_is_marked),
        cmocka_unit_test(any_number_of_members_is_one_text),
        cmocka_unit_test(a_pipe_is_read_like_a_file),
        cmocka_unit_test(zero_bytes_at_the_end_are_told),
        cmocka_unit_test(a_cut_file_gives_all_before_the_cut),
        cmocka_unit_test(damage_costs_its_own_member_and_no_wrong_line_appears),
        cmocka_unit_test(damage_of_the_only_member_is_told),
        cmocka_unit_test(salvaging_gives_what_precedes_the_damage),
        cmocka_unit_test(a_member_too_large_to_be_held_is_given_and_its_damage_told_after_it),
        cmocka_unit_test(the_next_good_member_is_found_wherever_it_begins),
        cmocka_unit_test(a_false_member_does_not_hide_the_good_one_behind_it),
        cmocka_unit_test(the_line_that_a_cut_member_ends_in_is_marked),
        cmocka_unit_test(the_search_for_a_good_member_has_an_end),
        cmocka_unit_test(the_rest_of_a_line_whose_begin_is_damaged_is_left_out),
        cmocka_unit_test(a_line_longer_than_the_limit_is_left_out_and_told),
        cmocka_unit_test(content_tells_gzip_from_text_even_when_its_begin_is_damaged),
        cmocka_unit_test(what_cannot_be_read_is_named),
        cmocka_unit_test(want_of_memory_is_told_and_leaks_nothing),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
