/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * Lines and words of any bytes: a cursor stays where it was or moves on within its text, and numbers are those that the
 * C library reads.
 */
#include <assert.h>
#include <errno.h>
#include <math.h>
#include <stdbool.h>
#include <stdlib.h>
#include <string.h>

#include "fuzz.h"
#include "util/cleanup.h"
#include "util/cursor.h"

/* `ahead` is where `before` was (nothing taken), or further on within it. */
static void check_moved(const struct cursor *before, const struct cursor *ahead, bool has_taken)
{
    assert(ahead->end == before->end && ahead->at <= ahead->end);
    assert(has_taken ? ahead->at > before->at : ahead->at == before->at);
}

static void check_integers(struct cursor word, const char *text)
{
    struct cursor ahead = word;
    uint64_t u64 = 0;
    char *end;
    bool has_u64 = cursor_u64(&ahead, &u64);
    check_moved(&word, &ahead, has_u64);
    errno = 0;
    unsigned long long expected_u64 = strtoull(text, &end, 10);
    bool is_u64 = end != text && errno == 0 && *text >= '0' && *text <= '9'; /* strtoull() takes signs and line ends */
    assert(has_u64 == is_u64);
    assert(!has_u64 || (u64 == expected_u64 && ahead.at - word.at == end - text));

    ahead = word;
    int64_t i64 = 0;
    bool has_i64 = cursor_i64(&ahead, &i64);
    check_moved(&word, &ahead, has_i64);
    errno = 0;
    long long expected_i64 = strtoll(text, &end, 10);
    bool is_i64 = end != text && errno == 0 && strchr("+-0123456789", *text) != NULL;
    assert(has_i64 == is_i64);
    assert(!has_i64 || (i64 == expected_i64 && ahead.at - word.at == end - text));
}

static void check_double(struct cursor word, const char *text)
{
    struct cursor ahead = word;
    double number = 0;
    bool has_number = cursor_double(&ahead, &number);
    check_moved(&word, &ahead, has_number);
    if (!has_number)
        return;
    assert(isfinite(number));
    char *end;
    double expected = strtod(text, &end);
    if (text[strspn(text, "+-0123456789.eE")] == '\0') /* no hexadecimal ones, which strtod() reads on */
        assert(ahead.at - word.at == end - text && number == expected && signbit(number) == signbit(expected));
}

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size)
{
    struct cursor text = cursor_of((const char *)data, size);
    struct cursor line;
    size_t lines_bytes = 0;
    while (cursor_line(&text, &line)) {
        lines_bytes += cursor_left(&line) + 1;
        struct cursor word;
        while (cursor_word(&line, &word)) {
            assert(!cursor_is_empty(&word) && word.end <= line.end);
            CLEANUP(memory_cleanup) char *copy = strndup(word.at, cursor_left(&word));
            assert(copy != NULL);
            if (strlen(copy) != cursor_left(&word))
                continue; /* the C library ends at a NUL */
            assert(cursor_equals(&word, copy) && cursor_equals_any_case(&word, copy));
            check_integers(word, copy);
            check_double(word, copy);
        }
        assert(cursor_is_empty(&line));
    }
    assert(lines_bytes == size || lines_bytes == size + 1);
    return 0;
}
