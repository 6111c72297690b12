/* SPDX-License-Identifier: BSD-3-Clause */
/* What test_file.c leaves of util/file.h: directories, names and locks. */
#include "util/file.h"

#include <errno.h>
#include <fcntl.h>
#include <setjmp.h>
#include <signal.h>
#include <stdarg.h>
#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>
#include <stdio.h>
#include <string.h>
#include <sys/stat.h>
#include <sys/wait.h>
#include <unistd.h>

#include <cmocka.h>

#include "support/child.h"
#include "support/random.h"
#include "support/scratch.h"

enum { TEXT_MAX_BYTES = 4096, RANDOM_ROUNDS = 5000, RANDOM_TEXT_MAX = 300, FOREIGN_UID = 54321 };

static mode_t mode_of(const char *path)
{
    struct stat status;
    assert_int_equal(lstat(path, &status), 0);
    return status.st_mode & 07777;
}

static void directories_are_made_with_their_parents(void **state)
{
    (void)state;
    CLEANUP(scratch_cleanup) struct scratch scratch = scratch_new();
    static const char *const names[] = {"a/b/c", "a/b/c", "a//b/./d/", "a/b/c/../e", "x"};
    char path[PATH_MAX];
    for (size_t i = 0; i < ARRAY_LENGTH(names); i++) {
        struct error err = {0};
        if (file_make_directories(scratch_path(&scratch, names[i], path), 0755, &err) != 0)
            fail_msg("'%s': %s", names[i], err.text);
        assert_int_equal(access(path, X_OK), 0);
    }
    assert_int_equal(access(scratch_path(&scratch, "a/b/e", path), X_OK), 0);
    assert_int_equal(file_make_directories("/", 0755, NULL), 0);
    assert_int_equal(file_make_directories(".", 0755, NULL), 0);
    assert_int_equal(file_make_directories("", 0755, NULL), -ENOENT);
}

static void made_directories_have_the_mode_and_parents_can_be_entered(void **state)
{
    (void)state;
    CLEANUP(scratch_cleanup) struct scratch scratch = scratch_new();
    char path[PATH_MAX];
    mode_t old_mask = umask(0);
    int rc = file_make_directories(scratch_path(&scratch, "p/q", path), 0550, NULL);
    (void)umask(old_mask);
    assert_int_equal(rc, 0);
    assert_int_equal(mode_of(path), 0550);
    assert_int_equal(mode_of(scratch_path(&scratch, "p", path)), 0750);
}

static void directory_that_can_not_be_made_is_named(void **state)
{
    (void)state;
    CLEANUP(scratch_cleanup) struct scratch scratch = scratch_new();
    char path[PATH_MAX];
    char expected[PATH_MAX];
    scratch_write(&scratch, "file", "", 0);
    assert_int_equal(mkdir(scratch_path(&scratch, "real", path), 0700), 0);
    assert_int_equal(symlink("real", scratch_path(&scratch, "link", path)), 0);
    assert_int_equal(symlink("nowhere", scratch_path(&scratch, "dangling", path)), 0);
    static const struct {
        const char *name;
        int rc;
        const char *culprit;
    } cases[] = {
        {"file", -ENOTDIR, "file"},
        {"file/a", -ENOTDIR, "file"},
        {"dangling", -ENOTDIR, "dangling"},
        {"dangling/a", -ENOTDIR, "dangling"},
        {"link", 0, NULL},
        {"link/a/b", 0, NULL},
    };
    for (size_t i = 0; i < ARRAY_LENGTH(cases); i++) {
        struct error err = {0};
        int rc = file_make_directories(scratch_path(&scratch, cases[i].name, path), 0755, &err);
        if (rc != cases[i].rc)
            fail_msg("'%s': %d, %s", cases[i].name, rc, err.text);
        if (rc != 0) {
            (void)snprintf(expected, sizeof expected, "/%s'", cases[i].culprit);
            assert_non_null(strstr(err.text, expected));
        }
    }
}

static int make_in_a_foreign_directory(void *context)
{
    const struct scratch *scratch = context;
    char path[PATH_MAX];
    struct error err = {0};
    CHILD_CHECK(chmod(scratch->path, 0755) == 0);
    CHILD_CHECK(mkdir(scratch_path(scratch, "there", path), 0755) == 0);
    CHILD_CHECK(chmod(scratch->path, 0555) == 0);
    CHILD_CHECK(child_leave_root());
    CHILD_CHECK(file_make_directories(path, 0755, &err) == 0); /* nothing to make: no right needed */
    CHILD_CHECK(file_make_directories(scratch_path(scratch, "new/a", path), 0755, &err) == -EACCES);
    CHILD_CHECK(strstr(err.text, "/new'") != NULL);
    return 0;
}

static void existing_directories_need_no_right_to_make_them(void **state)
{
    (void)state;
    CLEANUP(scratch_cleanup) struct scratch scratch = scratch_new();
    child_run(make_in_a_foreign_directory, &scratch);
}

static void safe_names_are_these(void **state)
{
    (void)state;
    static const struct {
        const char *text, *name;
    } cases[] = {
        {"job-1_a.b", "job-1_a.b"},
        {"", "%"},
        {".", "%2E"},
        {"..", "%2E."},
        {".hidden", "%2Ehidden"},
        {"../../etc/passwd", "%2E.%2F..%2Fetc%2Fpasswd"},
        {"a/b", "a%2Fb"},
        {"a%2Fb", "a%252Fb"},
        {"%", "%25"},
        {"a b\n", "a%20b%0A"},
        {"\xc3\xa4", "%C3%A4"},
        {"~x", "%7Ex"},
        {"-rf", "-rf"},
    };
    for (size_t i = 0; i < ARRAY_LENGTH(cases); i++) {
        CLEANUP(buf_cleanup) struct buf name;
        buf_init(&name, TEXT_MAX_BYTES);
        file_safe_name(cases[i].text, &name);
        assert_string_equal(buf_string(&name), cases[i].name);
    }
}

static void long_safe_names_are_cut_and_end_in_a_hash(void **state)
{
    (void)state;
    char text[FILE_NAME_MAX_BYTES + 2];
    memset(text, 'a', sizeof text);
    text[FILE_NAME_MAX_BYTES] = '\0';
    CLEANUP(buf_cleanup) struct buf name;
    buf_init(&name, TEXT_MAX_BYTES);
    file_safe_name(text, &name);
    assert_string_equal(buf_string(&name), text); /* fits as it is */

    text[FILE_NAME_MAX_BYTES] = 'a';
    text[FILE_NAME_MAX_BYTES + 1] = '\0';
    buf_reset(&name);
    file_safe_name(text, &name);
    assert_int_equal(name.length, FILE_NAME_MAX_BYTES);
    /* printf 'a%.0s' {1..201} | sha256sum */
    static const char hash[] = "%-A92EFD82109373E58F9A2056DEE01E80";
    assert_string_equal(buf_string(&name) + FILE_NAME_MAX_BYTES - strlen(hash), hash);

    /* The cut name as a text of its own has another name. */
    char cut[FILE_NAME_MAX_BYTES + 1];
    (void)snprintf(cut, sizeof cut, "%s", buf_string(&name));
    buf_reset(&name);
    file_safe_name(cut, &name);
    assert_string_not_equal(buf_string(&name), cut);
}

static bool is_safe(const char *name)
{
    size_t length = strlen(name);
    if (length == 0 || length > FILE_NAME_MAX_BYTES || name[0] == '.')
        return false;
    return strspn(name, "abcdefghijklmnopqrstuvwxyzABCDEFGHIJKLMNOPQRSTUVWXYZ0123456789._-%") == length;
}

/* Undoes the escapes of a name that isn't cut. */
static void decode_name(const char *name, char *out_text)
{
    static const char hex[] = "0123456789ABCDEF";
    for (; *name != '\0'; name++) {
        if (*name != '%') {
            *out_text++ = *name;
        } else if (name[1] != '\0') { /* "%" alone is the name of "" */
            *out_text++ = (char)((strchr(hex, name[1]) - hex) << 4 | (strchr(hex, name[2]) - hex));
            name += 2;
        }
    }
    *out_text = '\0';
}

static void random_texts_have_safe_names_of_their_own(void **state)
{
    (void)state;
    static const char favourites[] = "././%-2Faz%\x01\xff \xc3";
    struct random random = random_new(__func__);
    CLEANUP(buf_cleanup) struct buf name;
    CLEANUP(buf_cleanup) struct buf other;
    buf_init(&name, TEXT_MAX_BYTES);
    buf_init(&other, TEXT_MAX_BYTES);
    for (int i = 0; i < RANDOM_ROUNDS; i++) {
        char text[RANDOM_TEXT_MAX + 1];
        char decoded[RANDOM_TEXT_MAX + 1];
        size_t length =
            random_below(&random, 2) == 0 ? random_below(&random, 8) : random_below(&random, RANDOM_TEXT_MAX);
        for (size_t at = 0; at < length; at++)
            text[at] = random_below(&random, 4) == 0 ? favourites[random_below(&random, sizeof favourites - 1)]
                                                     : (char)(1 + random_below(&random, 255));
        text[length] = '\0';
        buf_reset(&name);
        file_safe_name(text, &name);
        if (!is_safe(buf_string(&name)))
            fail_msg("'%s' became '%s'", text, buf_string(&name));
        if (strstr(buf_string(&name), "%-") == NULL) {
            decode_name(buf_string(&name), decoded);
            assert_string_equal(decoded, text);
        }
        if (length == 0)
            continue;
        size_t changed = random_below(&random, length);
        text[changed] = text[changed] == 'q' ? 'r' : 'q';
        buf_reset(&other);
        file_safe_name(text, &other);
        assert_string_not_equal(buf_string(&name), buf_string(&other));
    }
}

static void safe_name_that_does_not_fit_leaves_the_text(void **state)
{
    (void)state;
    CLEANUP(buf_cleanup) struct buf out;
    buf_init(&out, 6);
    buf_text(&out, "dir/");
    file_safe_name("abc", &out);
    assert_int_equal(out.length, 4);
    assert_int_equal(buf_status(&out, NULL), -E2BIG);
}

static void lock_belongs_to_one_open(void **state)
{
    (void)state;
    CLEANUP(scratch_cleanup) struct scratch scratch = scratch_new();
    char path[PATH_MAX];
    struct error err = {0};
    scratch_write(&scratch, "lock", "", 0);
    (void)scratch_path(&scratch, "lock", path);
    CLEANUP(fd_cleanup) int first = open(path, O_RDWR | O_CLOEXEC);
    CLEANUP(fd_cleanup) int second = open(path, O_RDWR | O_CLOEXEC);
    CLEANUP(fd_cleanup) int read_only = open(path, O_RDONLY | O_CLOEXEC);

    assert_int_equal(file_lock(first, &err), 0);
    assert_int_equal(file_lock(first, &err), 0); /* it has it already */
    assert_int_equal(file_lock(second, &err), -EWOULDBLOCK);
    assert_non_null(strstr(err.text, "somebody else"));
    file_unlock(first);
    assert_int_equal(file_lock(second, &err), 0);
    assert_int_equal(file_lock(first, &err), -EWOULDBLOCK);
    assert_int_equal(file_lock(read_only, &err), -EBADF);

    /* Another descriptor of the file that is closed takes nothing away, as it does with process locks. */
    int third = open(path, O_RDWR | O_CLOEXEC);
    close(third);
    assert_int_equal(file_lock(first, &err), -EWOULDBLOCK);
    int twin = dup(second);
    close(TAKE_FD(second));
    assert_int_equal(file_lock(first, &err), -EWOULDBLOCK);
    close(twin);
    assert_int_equal(file_lock(first, &err), 0);
}

static void lock_of_a_process_ends_with_it(void **state)
{
    (void)state;
    CLEANUP(scratch_cleanup) struct scratch scratch = scratch_new();
    char path[PATH_MAX];
    scratch_write(&scratch, "lock", "", 0);
    (void)scratch_path(&scratch, "lock", path);
    int ready[2];
    assert_int_equal(pipe2(ready, O_CLOEXEC), 0);
    pid_t holder = fork();
    assert_true(holder >= 0);
    if (holder == 0) {
        int fd = open(path, O_RDWR | O_CLOEXEC);
        char answer = fd >= 0 && file_lock(fd, NULL) == 0 ? 'y' : 'n';
        if (write(ready[1], &answer, 1) != 1)
            _exit(1);
        for (;;)
            pause();
    }
    char answer = 0;
    ssize_t got = read(ready[0], &answer, 1);
    CLEANUP(fd_cleanup) int fd = open(path, O_RDWR | O_CLOEXEC);
    int rc_while_held = file_lock(fd, NULL);
    assert_int_equal(kill(holder, SIGKILL), 0);
    assert_int_equal(waitpid(holder, NULL, 0), holder);
    close(ready[0]);
    close(ready[1]);
    assert_true(got == 1 && answer == 'y');
    assert_int_equal(rc_while_held, -EWOULDBLOCK);
    assert_int_equal(file_lock(fd, NULL), 0);
}

static void private_directory_is_made_or_taken_if_it_is_ours(void **state)
{
    (void)state;
    CLEANUP(scratch_cleanup) struct scratch scratch = scratch_new();
    char path[PATH_MAX];
    struct error err = {0};
    (void)scratch_path(&scratch, "p", path);
    assert_int_equal(file_private_directory(path, &err), 0);
    assert_int_equal(mode_of(path), 0700);
    assert_int_equal(file_private_directory(path, &err), 0);
    assert_int_equal(chmod(path, 0755), 0);
    assert_int_equal(file_private_directory(path, &err), 0); /* others may look, if the owner says so */
}

static void private_directory_refuses_what_others_could_have_made(void **state)
{
    (void)state;
    CLEANUP(scratch_cleanup) struct scratch scratch = scratch_new();
    char path[PATH_MAX];
    scratch_write(&scratch, "file", "", 0);
    assert_int_equal(mkdir(scratch_path(&scratch, "ours", path), 0700), 0);
    assert_int_equal(symlink("ours", scratch_path(&scratch, "link", path)), 0);
    assert_int_equal(mkdir(scratch_path(&scratch, "group", path), 0700), 0);
    assert_int_equal(chmod(path, 0720), 0);
    assert_int_equal(mkdir(scratch_path(&scratch, "world", path), 0700), 0);
    assert_int_equal(chmod(path, 01702), 0);
    static const struct {
        const char *name;
        int rc;
    } cases[] = {{"file", -ENOTDIR}, {"link", -ENOTDIR}, {"group", -EPERM}, {"world", -EPERM}, {"no/where", -ENOENT}};
    for (size_t i = 0; i < ARRAY_LENGTH(cases); i++) {
        struct error err = {0};
        int rc = file_private_directory(scratch_path(&scratch, cases[i].name, path), &err);
        if (rc != cases[i].rc || strstr(err.text, path) == NULL)
            fail_msg("'%s': %d, %s", cases[i].name, rc, err.text);
    }
}

static void private_directory_refuses_a_foreign_owner(void **state)
{
    (void)state;
    if (geteuid() != 0) {
        print_message("only root can give a directory to somebody else\n");
        skip();
    }
    CLEANUP(scratch_cleanup) struct scratch scratch = scratch_new();
    char path[PATH_MAX];
    struct error err = {0};
    assert_int_equal(mkdir(scratch_path(&scratch, "foreign", path), 0700), 0);
    assert_int_equal(chown(path, FOREIGN_UID, FOREIGN_UID), 0);
    assert_int_equal(file_private_directory(path, &err), -EPERM);
    assert_non_null(strstr(err.text, "54321"));
}

static int check_node_directory(const char *expected)
{
    CLEANUP(buf_cleanup) struct buf path;
    struct error err = {0};
    buf_init(&path, PATH_MAX);
    int rc = file_node_directory(&path, &err);
    if (rc != 0)
        (void)fprintf(stderr, "%s\n", err.text);
    CHILD_CHECK(rc == 0);
    CHILD_CHECK(strcmp(buf_string(&path), expected) == 0);
    CHILD_CHECK(access(expected, W_OK | X_OK) == 0);
    return 0;
}

/* Every place in turn is taken by something that isn't ours; the next one is used. */
static int use_node_directories(void *context)
{
    (void)context;
    if (!child_enter_mounts()) {
        (void)printf("mounts are not allowed here\n");
        return CHILD_SKIP;
    }
    char shm[64];
    char run[64];
    char run_parent[64];
    char tmp[64];
    unsigned uid = (unsigned)geteuid();
    (void)snprintf(shm, sizeof shm, "/dev/shm/cicada-%u", uid);
    (void)snprintf(run_parent, sizeof run_parent, "/run/user/%u", uid);
    (void)snprintf(run, sizeof run, "/run/user/%u/cicada", uid);
    (void)snprintf(tmp, sizeof tmp, "/tmp/cicada-%u", uid);
    CHILD_CHECK(child_mount_tmpfs("/dev/shm", "1m") && child_mount_tmpfs("/run", "1m") &&
                child_mount_tmpfs("/tmp", "1m"));
    CHILD_CHECK(check_node_directory(shm) == 0);
    CHILD_CHECK(check_node_directory(shm) == 0);

    CHILD_CHECK(rmdir(shm) == 0 && symlink("/tmp", shm) == 0);
    CHILD_CHECK(check_node_directory(tmp) == 0); /* there is no /run/user/<uid> */
    CHILD_CHECK(file_make_directories(run_parent, 0700, NULL) == 0);
    CHILD_CHECK(check_node_directory(run) == 0);

    CHILD_CHECK(chmod(run, 0777) == 0 && rmdir(tmp) == 0 && symlink("/dev", tmp) == 0);
    CLEANUP(buf_cleanup) struct buf path;
    struct error err = {0};
    buf_init(&path, PATH_MAX);
    CHILD_CHECK(file_node_directory(&path, &err) == -EACCES);
    CHILD_CHECK(path.length == 0);
    CHILD_CHECK(strstr(err.text, shm) != NULL && strstr(err.text, run) != NULL && strstr(err.text, tmp) != NULL);
    return 0;
}

static void node_directory_is_the_first_that_nobody_squats(void **state)
{
    (void)state;
    child_run(use_node_directories, NULL);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(directories_are_made_with_their_parents),
        cmocka_unit_test(made_directories_have_the_mode_and_parents_can_be_entered),
        cmocka_unit_test(directory_that_can_not_be_made_is_named),
        cmocka_unit_test(existing_directories_need_no_right_to_make_them),
        cmocka_unit_test(safe_names_are_these),
        cmocka_unit_test(long_safe_names_are_cut_and_end_in_a_hash),
        cmocka_unit_test(random_texts_have_safe_names_of_their_own),
        cmocka_unit_test(safe_name_that_does_not_fit_leaves_the_text),
        cmocka_unit_test(lock_belongs_to_one_open),
        cmocka_unit_test(lock_of_a_process_ends_with_it),
        cmocka_unit_test(private_directory_is_made_or_taken_if_it_is_ours),
        cmocka_unit_test(private_directory_refuses_what_others_could_have_made),
        cmocka_unit_test(private_directory_refuses_a_foreign_owner),
        cmocka_unit_test(node_directory_is_the_first_that_nobody_squats),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
