/* SPDX-License-Identifier: BSD-3-Clause */
#include "members.h"

#include <fcntl.h>
#include <setjmp.h>
#include <stdarg.h>
#include <stdint.h>
#include <stdlib.h>
#include <unistd.h>

#include <cmocka.h>
#define ZLIB_CONST /* what is read stays as it is */
#include <zlib.h>

enum { MEMBERS_TEXT_MAX_BYTES = 256 * 1024 * 1024, MEMBERS_WINDOW_BITS_GZIP = 15 + 16, MEMBERS_STEP_BYTES = 65536 };

static void members_add(struct members *members, struct member member)
{
    if (members->count == members->capacity) {
        members->capacity = members->capacity != 0 ? members->capacity * 2 : 64;
        members->list = realloc(members->list, members->capacity * sizeof *members->list);
        assert_non_null(members->list);
    }
    members->list[members->count++] = member;
}

/* Inflates one member; false when it isn't whole. */
static bool members_inflate(z_stream *stream, struct buf *text)
{
    int rc;
    do {
        char *to = buf_reserve(text, MEMBERS_STEP_BYTES);
        assert_non_null(to);
        stream->next_out = (Bytef *)to;
        stream->avail_out = MEMBERS_STEP_BYTES;
        rc = inflate(stream, Z_NO_FLUSH);
        buf_commit(text, MEMBERS_STEP_BYTES - stream->avail_out);
    } while (rc == Z_OK && (stream->avail_in > 0 || stream->avail_out == 0));
    return rc == Z_STREAM_END;
}

bool members_read(struct members *members, const char *bytes, size_t length)
{
    *members = (struct members){0};
    buf_init(&members->text, MEMBERS_TEXT_MAX_BYTES);
    z_stream stream = {0};
    assert_int_equal(inflateInit2(&stream, MEMBERS_WINDOW_BITS_GZIP), Z_OK);
    bool is_whole = true;
    for (size_t at = 0; at < length && is_whole;) {
        struct member member = {.start = at, .text_start = members->text.length};
        stream.next_in = (const Bytef *)(bytes + at);
        stream.avail_in = (uInt)(length - at);
        is_whole = members_inflate(&stream, &members->text);
        at = length - stream.avail_in;
        member.end = at;
        member.text_end = members->text.length;
        if (is_whole)
            members_add(members, member);
        assert_int_equal(inflateReset(&stream), Z_OK);
    }
    assert_int_equal(inflateEnd(&stream), Z_OK);
    return is_whole;
}

void members_fini(struct members *members)
{
    free(members->list);
    buf_fini(&members->text);
    *members = (struct members){0};
}

void members_read_file(const char *path, struct buf *out)
{
    int fd = open(path, O_RDONLY | O_CLOEXEC);
    assert_true(fd >= 0);
    ssize_t count;
    do {
        char *to = buf_reserve(out, MEMBERS_STEP_BYTES);
        assert_non_null(to);
        count = read(fd, to, MEMBERS_STEP_BYTES);
        assert_true(count >= 0);
        buf_commit(out, (size_t)count);
    } while (count > 0);
    close(fd);
}
