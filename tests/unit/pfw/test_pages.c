/* SPDX-License-Identifier: BSD-3-Clause */
#include "pfw/pages.h"

#include <errno.h>
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include <cmocka.h>
#include <libdeflate.h>

#include "members.h"
#include "support/allocation.h"
#include "support/random.h"
#include "util/buf.h"

enum {
    IMAGE_MAX_BYTES = 64 * 1024 * 1024,
    MIXES = 2000,
    APPENDS_MAX = 10,
    EMPTY_MEMBER_BYTES = 20,
    TICK_CPUS = 4096,
};

/* What the file would be, and what was appended to it. */
struct image {
    struct pfw_pages *pages;
    struct buf bytes;
    struct buf lines;
};

static struct image image_new(bool is_compressed)
{
    struct image image = {.pages = pfw_pages_new(is_compressed)};
    assert_non_null(image.pages);
    buf_init(&image.bytes, IMAGE_MAX_BYTES);
    buf_init(&image.lines, IMAGE_MAX_BYTES);
    return image;
}

static void image_cleanup(struct image *image)
{
    pfw_pages_free(image->pages);
    buf_fini(&image->bytes);
    buf_fini(&image->lines);
}

/* Puts a batch where it belongs; it may begin with the last byte that is there. */
static void image_put(struct image *image, const struct pfw_batch *batch)
{
    size_t overlap = image->bytes.length - (size_t)batch->offset;
    assert_true(overlap <= 1);
    buf_truncate(&image->bytes, (size_t)batch->offset);
    buf_bytes(&image->bytes, batch->bytes, batch->length);
    assert_int_equal(buf_status(&image->bytes, NULL), 0);
}

/* Appends lines as file.c does. */
static void image_append(struct image *image, const char *lines, size_t length)
{
    for (size_t taken = 0; taken < length;) {
        struct pfw_batch batch;
        assert_int_equal(pfw_pages_lay(image->pages, image->bytes.length, lines + taken, length - taken, &batch), 0);
        size_t lines_bytes;
        assert_int_equal(pfw_pages_whole(image->pages, batch.length, &lines_bytes), batch.length);
        assert_true(lines_bytes > 0 || batch.length > 0);
        image_put(image, &batch);
        taken += lines_bytes;
    }
    buf_bytes(&image->lines, lines, length);
}

/* A line like those of a counter; digits that differ. */
static void counter_line(struct buf *out, struct random *random)
{
    buf_printf(out,
               "{\"name\":\"cpu-%zu\",\"cat\":\"sys\",\"type\":7,\"ts\":%zu,\"ph\":2,\"pid\":17,\"tid\":0,\"args\":{",
               random_below(random, 64), random_below(random, 1000000000));
    buf_printf(out, "\"user_pct\":%zu.%zu,\"system_pct\":%zu,\"idle_pct\":%zu}}\n", random_below(random, 100),
               random_below(random, 100), random_below(random, 100), random_below(random, 100));
}

/* A line that does not deflate. */
static void noise_line(struct buf *out, struct random *random, size_t length)
{
    buf_char(out, '"');
    for (size_t i = 0; i < length; i++)
        buf_char(out, (char)('#' + random_below(random, 57)));
    buf_text(out, "\"\n");
}

static void random_line(struct buf *out, struct random *random)
{
    size_t kind = random_below(random, 100);
    if (kind < 60)
        counter_line(out, random);
    else if (kind < 75)
        buf_text(out, "{}\n");
    else if (kind < 85)
        noise_line(out, random, random_below(random, 300));
    else if (kind < 97)
        noise_line(out, random, random_below(random, PFW_PAGE_BYTES + 500));
    else if (kind < 99)
        buf_printf(out, "[%0*d]\n", (int)random_below(random, 30000), 0);
    else
        noise_line(out, random, random_below(random, 40000));
}

static void assert_same(const struct buf *actual, const struct buf *expected)
{
    assert_int_equal(actual->length, expected->length);
    if (expected->length > 0)
        assert_memory_equal(actual->data, expected->data, expected->length);
}

static bool crosses_page(size_t start, size_t end)
{
    return start / PFW_PAGE_BYTES != (end - 1) / PFW_PAGE_BYTES;
}

static void assert_members_keep_to_pages(const struct members *members)
{
    for (size_t i = 0; i < members->count; i++) {
        const struct member *member = &members->list[i];
        const char *text = members->text.data + member->text_start;
        size_t text_length = member->text_end - member->text_start;
        if (!crosses_page(member->start, member->end))
            continue;
        assert_true(member->end - member->start > PFW_PAGE_BYTES); /* the exception: */
        assert_ptr_equal(memchr(text, '\n', text_length), text + text_length - 1);
        assert_int_equal(member->start % PFW_PAGE_BYTES, 0);
    }
}

/* A flush: some lines, or many; of one kind, or of all. */
static void random_lines(struct buf *out, struct random *random)
{
    bool is_uniform = random_below(random, 2) != 0;
    size_t count = 1 + random_below(random, 15);
    if (random_below(random, 30) == 0)
        count += is_uniform ? 2000 : 200;
    for (size_t i = 0; i < count; i++) {
        if (is_uniform)
            counter_line(out, random);
        else
            random_line(out, random);
    }
}

/* Appends random flushes. */
static void image_append_random(struct image *image, struct random *random)
{
    size_t appends = 1 + random_below(random, APPENDS_MAX);
    for (size_t i = 0; i < appends; i++) {
        CLEANUP(buf_cleanup) struct buf lines;
        buf_init(&lines, IMAGE_MAX_BYTES);
        random_lines(&lines, random);
        image_append(image, lines.data, lines.length);
    }
}

static void members_of_any_lines_keep_to_pages_and_hold_all(void **state)
{
    (void)state;
    struct random random = random_new(__func__);
    for (int mix = 0; mix < MIXES; mix++) {
        CLEANUP(image_cleanup) struct image image = image_new(true);
        image_append_random(&image, &random);
        struct members members;
        assert_true(members_read(&members, image.bytes.data, image.bytes.length));
        assert_same(&members.text, &image.lines);
        assert_members_keep_to_pages(&members);
        members_fini(&members);
    }
}

/* The lines without the blanks that fill up pages. */
static void strip_blanks(const struct buf *bytes, struct buf *out)
{
    const char *end = bytes->data + bytes->length;
    for (const char *at = bytes->data; at < end;) {
        const char *newline = memchr(at, '\n', (size_t)(end - at));
        assert_non_null(newline);
        const char *last = newline;
        while (last > at && last[-1] == ' ')
            last--;
        buf_bytes(out, at, (size_t)(last - at));
        buf_char(out, '\n');
        at = newline + 1;
    }
}

static void plain_lines_keep_to_pages_and_differ_by_blanks_alone(void **state)
{
    (void)state;
    struct random random = random_new(__func__);
    for (int mix = 0; mix < MIXES; mix++) {
        CLEANUP(image_cleanup) struct image image = image_new(false);
        image_append_random(&image, &random);
        CLEANUP(buf_cleanup) struct buf stripped;
        buf_init(&stripped, IMAGE_MAX_BYTES);
        strip_blanks(&image.bytes, &stripped);
        assert_same(&stripped, &image.lines);
        size_t start = 0;
        while (start < image.bytes.length) {
            const char *newline = memchr(image.bytes.data + start, '\n', image.bytes.length - start);
            size_t end = (size_t)(newline - image.bytes.data) + 1;
            assert_true(!crosses_page(start, end) || end - start > PFW_PAGE_BYTES);
            start = end;
        }
    }
}

/* What a write() that SIGKILL ends can leave: the file up to a page boundary. */
static void file_cut_at_any_page_boundary_is_valid_and_of_whole_lines(void **state)
{
    (void)state;
    struct random random = random_new(__func__);
    CLEANUP(image_cleanup) struct image image = image_new(true);
    for (size_t flush = 0; flush < 40; flush++) {
        CLEANUP(buf_cleanup) struct buf lines;
        buf_init(&lines, IMAGE_MAX_BYTES);
        size_t count = random_below(&random, 2) != 0 ? 10 : 1000;
        for (size_t i = 0; i < count; i++)
            counter_line(&lines, &random);
        image_append(&image, lines.data, lines.length);
    }
    assert_true(image.bytes.length > 50 * PFW_PAGE_BYTES);
    for (size_t cut = 0; cut < image.bytes.length; cut += PFW_PAGE_BYTES) {
        struct members members;
        assert_true(members_read(&members, image.bytes.data, cut));
        assert_true(members.text.length <= image.lines.length);
        if (members.text.length > 0) {
            assert_memory_equal(members.text.data, image.lines.data, members.text.length);
            assert_int_equal(members.text.data[members.text.length - 1], '\n');
        }
        members_fini(&members);
    }
}

static void part_of_a_batch_is_whole_up_to_a_line(void **state)
{
    (void)state;
    struct random random = random_new(__func__);
    static const bool kinds[] = {true, false};
    for (size_t kind = 0; kind < ARRAY_LENGTH(kinds); kind++) {
        CLEANUP(image_cleanup) struct image image = image_new(kinds[kind]);
        CLEANUP(buf_cleanup) struct buf lines;
        buf_init(&lines, IMAGE_MAX_BYTES);
        for (int i = 0; i < 2000; i++)
            counter_line(&lines, &random);
        struct pfw_batch batch;
        assert_int_equal(pfw_pages_lay(image.pages, 0, lines.data, lines.length, &batch), 0);
        size_t last_whole = 0;
        for (size_t written = 0; written <= batch.length; written += 61) {
            size_t lines_bytes;
            size_t whole = pfw_pages_whole(image.pages, written, &lines_bytes);
            assert_true(whole <= written && whole >= last_whole);
            assert_true(written - whole < 2 * PFW_PAGE_BYTES);
            assert_true(lines_bytes == 0 || lines.data[lines_bytes - 1] == '\n');
            last_whole = whole;
        }
        assert_true(last_whole > 0);
    }
}

static void whole_part_of_a_batch_holds_the_lines_it_says(void **state)
{
    (void)state;
    struct random random = random_new(__func__);
    CLEANUP(image_cleanup) struct image image = image_new(true);
    CLEANUP(buf_cleanup) struct buf lines;
    buf_init(&lines, IMAGE_MAX_BYTES);
    for (int i = 0; i < 2000; i++)
        counter_line(&lines, &random);
    struct pfw_batch batch;
    assert_int_equal(pfw_pages_lay(image.pages, 0, lines.data, lines.length, &batch), 0);
    for (size_t written = 0; written <= batch.length; written += PFW_PAGE_BYTES / 4) {
        size_t lines_bytes;
        size_t whole = pfw_pages_whole(image.pages, written, &lines_bytes);
        struct members members;
        assert_true(members_read(&members, batch.bytes, whole));
        assert_int_equal(members.text.length, lines_bytes);
        members_fini(&members);
    }
}

/* A copy into the page cache that finds one of our pages missing ends at its boundary. */
static void batch_lies_in_memory_as_it_will_in_the_file(void **state)
{
    (void)state;
    CLEANUP(image_cleanup) struct image compressed = image_new(true);
    CLEANUP(image_cleanup) struct image plain = image_new(false);
    static const char line[] = "{\"name\":\"cpu\"}\n";
    for (uint64_t offset = 0; offset < 3 * PFW_PAGE_BYTES; offset += 7) {
        struct pfw_batch batch;
        assert_int_equal(pfw_pages_lay(compressed.pages, offset, line, sizeof line - 1, &batch), 0);
        assert_int_equal((uintptr_t)batch.bytes % PFW_PAGE_BYTES, batch.offset % PFW_PAGE_BYTES);
        assert_int_equal(pfw_pages_lay(plain.pages, offset, line, sizeof line - 1, &batch), 0);
        assert_int_equal((uintptr_t)batch.bytes % PFW_PAGE_BYTES, batch.offset % PFW_PAGE_BYTES);
    }
}

static void small_flush_is_one_member(void **state)
{
    (void)state;
    struct random random = random_new(__func__);
    CLEANUP(image_cleanup) struct image image = image_new(true);
    CLEANUP(buf_cleanup) struct buf lines;
    buf_init(&lines, IMAGE_MAX_BYTES);
    while (lines.length < 4000)
        counter_line(&lines, &random);
    for (int i = 0; i < 3; i++)
        image_append(&image, lines.data, lines.length);
    struct members members;
    assert_true(members_read(&members, image.bytes.data, image.bytes.length));
    assert_int_equal(members.count, 3);
    members_fini(&members);
}

static void large_tick_fills_its_pages(void **state)
{
    (void)state;
    struct random random = random_new(__func__);
    CLEANUP(image_cleanup) struct image image = image_new(true);
    CLEANUP(buf_cleanup) struct buf lines;
    buf_init(&lines, IMAGE_MAX_BYTES);
    for (int i = 0; i < TICK_CPUS; i++)
        counter_line(&lines, &random);
    image_append(&image, lines.data, lines.length);

    /* The same members without what fills them up: deflated again, each by itself. */
    struct members members;
    assert_true(members_read(&members, image.bytes.data, image.bytes.length));
    struct libdeflate_compressor *compressor = libdeflate_alloc_compressor(8);
    assert_non_null(compressor);
    size_t needed = 0;
    for (size_t i = 0; i < members.count; i++) {
        assert_true(members.list[i].text_end > members.list[i].text_start); /* filled in its header, not by another */
        char out[2 * PFW_PAGE_BYTES];
        const struct member *member = &members.list[i];
        needed += libdeflate_gzip_compress(compressor, members.text.data + member->text_start,
                                           member->text_end - member->text_start, out, sizeof out);
    }
    libdeflate_free_compressor(compressor);
    members_fini(&members);
    assert_true(needed > 10 * PFW_PAGE_BYTES);
    if (image.bytes.length > needed + needed / 5)
        fail_msg("%zu bytes in the file for members of %zu bytes", image.bytes.length, needed);
}

static void file_that_ends_anywhere_is_gone_on_with(void **state)
{
    (void)state;
    struct random random = random_new(__func__);
    for (size_t rest = 1; rest < PFW_PAGE_BYTES; rest += rest < 64 ? 1 : 97) {
        CLEANUP(image_cleanup) struct image image = image_new(true);
        CLEANUP(buf_cleanup) struct buf lines;
        buf_init(&lines, IMAGE_MAX_BYTES);
        for (int i = 0; i < 200; i++)
            counter_line(&lines, &random);
        buf_printf(&image.bytes, "%0*d", (int)(PFW_PAGE_BYTES - rest), 0);
        size_t start = image.bytes.length;
        image_append(&image, lines.data, lines.length);
        struct members members;
        assert_true(members_read(&members, image.bytes.data + start, image.bytes.length - start));
        assert_same(&members.text, &image.lines);
        for (size_t i = 0; i < members.count; i++) {
            const struct member *member = &members.list[i];
            bool is_first_filler = rest < EMPTY_MEMBER_BYTES && i == 0 && member->text_end == 0;
            assert_true(is_first_filler || !crosses_page(start + member->start, start + member->end));
        }
        members_fini(&members);
    }
}

static void without_memory_there_is_no_object_and_no_leak(void **state)
{
    (void)state;
    allocation_fail_at(0);
    assert_null(pfw_pages_new(true));
    assert_true(allocation_stop());
}

static void without_memory_a_line_larger_than_a_page_is_refused_and_taken_later(void **state)
{
    (void)state;
    struct random random = random_new(__func__);
    CLEANUP(image_cleanup) struct image image = image_new(true);
    CLEANUP(buf_cleanup) struct buf lines;
    buf_init(&lines, IMAGE_MAX_BYTES);
    noise_line(&lines, &random, 3 * PFW_PAGE_BYTES);
    struct pfw_batch batch;
    allocation_fail_at(0);
    int rc = pfw_pages_lay(image.pages, 0, lines.data, lines.length, &batch);
    assert_true(allocation_stop());
    assert_int_equal(rc, -ENOMEM);
    image_append(&image, lines.data, lines.length);
    struct members members;
    assert_true(members_read(&members, image.bytes.data, image.bytes.length));
    assert_same(&members.text, &image.lines);
    members_fini(&members);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(members_of_any_lines_keep_to_pages_and_hold_all),
        cmocka_unit_test(plain_lines_keep_to_pages_and_differ_by_blanks_alone),
        cmocka_unit_test(file_cut_at_any_page_boundary_is_valid_and_of_whole_lines),
        cmocka_unit_test(part_of_a_batch_is_whole_up_to_a_line),
        cmocka_unit_test(whole_part_of_a_batch_holds_the_lines_it_says),
        cmocka_unit_test(batch_lies_in_memory_as_it_will_in_the_file),
        cmocka_unit_test(small_flush_is_one_member),
        cmocka_unit_test(large_tick_fills_its_pages),
        cmocka_unit_test(file_that_ends_anywhere_is_gone_on_with),
        cmocka_unit_test(without_memory_there_is_no_object_and_no_leak),
        cmocka_unit_test(without_memory_a_line_larger_than_a_page_is_refused_and_taken_later),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
