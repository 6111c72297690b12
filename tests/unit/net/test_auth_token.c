/* SPDX-License-Identifier: BSD-3-Clause */
#include "net/auth_token.h"

#include <errno.h>
#include <setjmp.h>
#include <stdarg.h>
#include <stdio.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

#include <cmocka.h>

#include "support/scratch.h"

static int read_text(const struct scratch *scratch, const char *text, mode_t mode, struct auth_token *out_token)
{
    char path[PATH_MAX];
    struct error err = {0};
    scratch_write(scratch, "token", text, strlen(text));
    assert_int_equal(chmod(scratch_path(scratch, "token", path), mode), 0);
    int rc = auth_token_read(path, out_token, &err);
    if (rc < 0)
        assert_non_null(strstr(err.text, path));
    return rc;
}

static void token_is_read_without_its_newline(void **state)
{
    (void)state;
    CLEANUP(scratch_cleanup) struct scratch scratch = scratch_new();
    struct auth_token token;
    assert_int_equal(read_text(&scratch, "0123456789abcdef\n", 0600, &token), 0);
    assert_string_equal(token.text, "0123456789abcdef");
    assert_int_equal(token.length, 16);
    assert_int_equal(read_text(&scratch, "0123456789abcdef", 0400, &token), 0);
}

static void bad_tokens_are_refused_and_leave_the_output(void **state)
{
    (void)state;
    CLEANUP(scratch_cleanup) struct scratch scratch = scratch_new();
    struct auth_token token = {.length = 99};
    char longest[AUTH_TOKEN_MAX_BYTES + 1] = "";
    static const char *const bad[] = {
        "", "\n", "short", "0123456789abcde\n", "0123456789 abcdef", "0123456789abcdef\n\n", "0123456789abcd\xc3\xa9"};
    for (size_t i = 0; i < ARRAY_LENGTH(bad); i++)
        assert_int_equal(read_text(&scratch, bad[i], 0600, &token), -EINVAL);
    memset(longest, 'x', sizeof longest - 1);
    assert_int_equal(read_text(&scratch, longest, 0600, &token), 0);
    char more[sizeof longest + 1] = "";
    memset(more, 'x', sizeof more - 1);
    token.length = 99;
    assert_int_equal(read_text(&scratch, more, 0600, &token), -EINVAL);
    assert_int_equal(read_text(&scratch, "0123456789abcdef", 0644, &token), -EPERM);
    assert_int_equal(read_text(&scratch, "0123456789abcdef", 0620, &token), -EPERM);
    assert_int_equal(token.length, 99);
}

static void links_directories_and_pipes_are_no_tokens(void **state)
{
    (void)state;
    CLEANUP(scratch_cleanup) struct scratch scratch = scratch_new();
    char path[PATH_MAX], other[PATH_MAX];
    struct auth_token token;
    assert_int_equal(read_text(&scratch, "0123456789abcdef", 0600, &token), 0);
    assert_int_equal(symlink(scratch_path(&scratch, "token", path), scratch_path(&scratch, "link", other)), 0);
    assert_int_equal(auth_token_read_or_create(other, &token, NULL), -ELOOP);
    assert_int_equal(auth_token_read(scratch.path, &token, NULL), -EINVAL);
    assert_int_equal(mkfifo(scratch_path(&scratch, "pipe", path), 0600), 0);
    assert_int_equal(auth_token_read(path, &token, NULL), -EINVAL); /* and doesn't wait for a writer */
}

static void missing_token_is_made_private_and_random(void **state)
{
    (void)state;
    CLEANUP(scratch_cleanup) struct scratch scratch = scratch_new();
    char path[PATH_MAX], other[PATH_MAX];
    struct auth_token first, again, second;
    struct stat file;
    assert_int_equal(auth_token_read(scratch_path(&scratch, "a", path), &first, NULL), -ENOENT);
    assert_int_equal(auth_token_read_or_create(path, &first, NULL), 0);
    assert_int_equal(auth_token_read_or_create(path, &again, NULL), 0);
    assert_int_equal(auth_token_read_or_create(scratch_path(&scratch, "b", other), &second, NULL), 0);
    assert_int_equal(first.length, 64);
    assert_string_equal(first.text, again.text);
    assert_string_not_equal(first.text, second.text);
    assert_int_equal(stat(path, &file), 0);
    assert_int_equal(file.st_mode & 0777, 0600);
    assert_int_equal(scratch_entries(&scratch), 2);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(token_is_read_without_its_newline),
        cmocka_unit_test(bad_tokens_are_refused_and_leave_the_output),
        cmocka_unit_test(links_directories_and_pipes_are_no_tokens),
        cmocka_unit_test(missing_token_is_made_private_and_random),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
