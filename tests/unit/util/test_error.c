/* SPDX-License-Identifier: BSD-3-Clause */
#include "util/error.h"

#include <errno.h>
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <string.h>

#include <cmocka.h>

#include "util/utf8.h"

/* A path that leaves no room for the reason. */
static void fill_path(char *path, size_t size)
{
    memset(path, 'd', size - 1);
    path[0] = '/';
    path[size - 1] = '\0';
}

static void set_stores_code_and_words(void **state)
{
    (void)state;
    struct error err = {0};
    assert_int_equal(error_set(&err, -EINVAL, "job '%s': %d", "a", 7), -EINVAL);
    assert_int_equal(err.code, -EINVAL);
    assert_string_equal(err.text, "job 'a': 7");
}

static void null_error_is_fine(void **state)
{
    (void)state;
    errno = ENOENT;
    assert_int_equal(error_set(NULL, -EINVAL, "x"), -EINVAL);
    assert_int_equal(error_errno(NULL, "x"), -ENOENT);
    assert_int_equal(error_wrap(NULL, -EIO, "x"), -EIO);
}

static void errno_gives_code_and_reason(void **state)
{
    (void)state;
    struct error err = {0};
    errno = ENOENT;
    assert_int_equal(error_errno(&err, "opening '%s'", "/x"), -ENOENT);
    assert_int_equal(err.code, -ENOENT);
    assert_string_equal(err.text, "opening '/x': No such file or directory");
}

static void wrapping_adds_words_in_front(void **state)
{
    (void)state;
    struct error err = {0};
    errno = ENOSPC;
    int rc = error_errno(&err, "opening '%s'", "/x");
    assert_int_equal(error_wrap(&err, rc, "trace %d", 3), -ENOSPC);
    assert_int_equal(error_wrap(&err, -EIO, "service"), -EIO);
    assert_int_equal(err.code, -EIO);
    assert_string_equal(err.text, "service: trace 3: opening '/x': No space left on device");
}

static void long_words_are_cut_but_not_the_reason(void **state)
{
    (void)state;
    static const char reason[] = ": No such file or directory";
    char path[3 * ERROR_TEXT_MAX_BYTES];
    struct error err = {0};
    fill_path(path, sizeof path);
    errno = ENOENT;
    (void)error_errno(&err, "opening '%s'", path);

    size_t length = strlen(err.text);
    assert_int_equal(length, sizeof err.text - 1);
    assert_string_equal(err.text + length - strlen(reason), reason);
    assert_memory_equal(err.text, "opening '/ddd", strlen("opening '/ddd"));
    assert_non_null(strstr(err.text, "d...: No"));
}

static void reason_survives_long_words_at_every_level(void **state)
{
    (void)state;
    static const char reason[] = ": opening: No such file or directory";
    char path[ERROR_TEXT_MAX_BYTES / 2];
    struct error err = {0};
    fill_path(path, sizeof path);
    errno = ENOENT;
    int rc = error_errno(&err, "opening");
    for (int level = 0; level < 10; level++) {
        (void)error_wrap(&err, rc, "level %d '%s'", level, path);
        assert_string_equal(err.text + strlen(err.text) - strlen(reason), reason);
    }
    assert_memory_equal(err.text, "level 9 '/ddd", strlen("level 9 '/ddd"));
}

static void text_that_is_just_as_long_as_fits_is_whole(void **state)
{
    (void)state;
    char words[ERROR_TEXT_MAX_BYTES];
    struct error err = {0};
    for (size_t less = 0; less < 8; less++) {
        /* "<words>: why" with `less` bytes to spare */
        size_t words_length = sizeof err.text - 1 - strlen(": why") - less;
        memset(words, 'w', words_length);
        words[words_length] = '\0';
        (void)error_set(&err, -EIO, "why");
        (void)error_wrap(&err, -EIO, "%s", words);
        assert_int_equal(strlen(err.text), sizeof err.text - 1 - less);
        assert_null(strstr(err.text, "..."));
    }
}

/* Is the text whole characters, with none replaced? */
static void assert_whole_characters(const struct error *err)
{
    assert_null(strchr(err->text, '?'));
    for (size_t at = 0, bad = 0, length = strlen(err->text); at < length;) {
        size_t good = utf8_sequence((const unsigned char *)err->text + at, length - at, &bad);
        assert_int_not_equal(good, 0);
        at += good;
    }
}

static void cuts_split_no_character(void **state)
{
    (void)state;
    /* Every remainder of 4-byte characters against the end of the text, and against the cut before the reason. */
    static const int reasons[] = {EPERM, EIO, ENOENT, EBADF, ENOMEM, EACCES, ENOSPC};
    for (size_t i = 0; i < 4 * ARRAY_LENGTH(reasons); i++) {
        char words[2 * ERROR_TEXT_MAX_BYTES] = {0};
        memset(words, 'x', i % 4);
        for (size_t at = i % 4; at + 4 < sizeof words; at += 4)
            memcpy(words + at, "\xf0\x9f\xa6\x97", 4);
        struct error err = {0};
        (void)error_set(&err, -EIO, "%s", words);
        assert_whole_characters(&err);
        assert_in_range(strlen(err.text), sizeof err.text - 5, sizeof err.text - 1);
        errno = reasons[i / 4];
        int rc = error_errno(&err, "%s", words);
        assert_whole_characters(&err);
        (void)error_wrap(&err, rc, "%s", words);
        assert_whole_characters(&err);
    }
}

static void text_from_outside_becomes_one_printable_line(void **state)
{
    (void)state;
    struct error err = {0};
    (void)error_set(&err, -EINVAL, "name 'a\nb\x1b[2J\xff'");
    assert_string_equal(err.text, "name 'a b [2J?'");
    (void)error_wrap(&err, -EINVAL, "job\t1");
    assert_string_equal(err.text, "job 1: name 'a b [2J?'");
    errno = EIO;
    (void)error_errno(&err, "\r");
    assert_string_equal(err.text, " : Input/output error");
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(set_stores_code_and_words),
        cmocka_unit_test(null_error_is_fine),
        cmocka_unit_test(errno_gives_code_and_reason),
        cmocka_unit_test(wrapping_adds_words_in_front),
        cmocka_unit_test(long_words_are_cut_but_not_the_reason),
        cmocka_unit_test(reason_survives_long_words_at_every_level),
        cmocka_unit_test(text_that_is_just_as_long_as_fits_is_whole),
        cmocka_unit_test(cuts_split_no_character),
        cmocka_unit_test(text_from_outside_becomes_one_printable_line),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
