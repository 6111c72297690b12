/* SPDX-License-Identifier: BSD-3-Clause */
#include "support/comma.h"

#include <fcntl.h>
#include <locale.h>
#include <setjmp.h>
#include <spawn.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/wait.h>
#include <unistd.h>

#include <cmocka.h>

#include "util/buf.h"

enum { COMMA_CHARACTERS = 128, COMMA_SOURCE_MAX_BYTES = 16384 };

static const char comma_source[] = "LC_NUMERIC\n"
                                   "decimal_point \",\"\n"
                                   "thousands_sep \".\"\n"
                                   "grouping 3;3\n"
                                   "END LC_NUMERIC\n";

/* localedef wants to be told what ASCII is; the files that do are in a package that not every machine has. */
static void comma_write_charmap(const struct scratch *scratch)
{
    struct buf map;
    buf_init(&map, COMMA_SOURCE_MAX_BYTES);
    buf_text(&map, "<code_set_name> ANSI_X3.4-1968\n<comment_char> %\n<escape_char> /\nCHARMAP\n");
    for (unsigned i = 0; i < COMMA_CHARACTERS; i++)
        buf_printf(&map, "<U%04X> /x%02x -\n", i, i);
    buf_text(&map, "END CHARMAP\n");
    assert_int_equal(buf_status(&map, NULL), 0);
    scratch_write(scratch, "comma.map", map.data, map.length);
    buf_fini(&map);
}

static bool comma_run_localedef(char *source, char *charmap, char *output)
{
    char *const arguments[] = {(char[]){"localedef"}, (char[]){"-c"}, (char[]){"-i"}, source,
                               (char[]){"-f"},        charmap,        output,         NULL};
    posix_spawn_file_actions_t actions;
    assert_int_equal(posix_spawn_file_actions_init(&actions), 0);
    assert_int_equal(posix_spawn_file_actions_addopen(&actions, STDOUT_FILENO, "/dev/null", O_WRONLY, 0), 0);
    /* It warns that the locale has numbers only, and ends with 1 for that. */
    assert_int_equal(posix_spawn_file_actions_addopen(&actions, STDERR_FILENO, "/dev/null", O_WRONLY, 0), 0);
    pid_t pid;
    int rc = posix_spawnp(&pid, "localedef", &actions, NULL, arguments, environ);
    (void)posix_spawn_file_actions_destroy(&actions);
    if (rc != 0)
        return false;
    int status;
    assert_int_equal(waitpid(pid, &status, 0), pid);
    return WIFEXITED(status) && WEXITSTATUS(status) != 127;
}

bool comma_enter(const struct scratch *scratch)
{
    char source[PATH_MAX];
    char charmap[PATH_MAX];
    char output[PATH_MAX];
    scratch_write(scratch, "comma.source", comma_source, strlen(comma_source));
    comma_write_charmap(scratch);
    if (!comma_run_localedef(scratch_path(scratch, "comma.source", source), scratch_path(scratch, "comma.map", charmap),
                             scratch_path(scratch, "comma", output))) {
        print_message("no localedef on this machine: numbers aren't tried under a locale with a comma\n");
        return false;
    }
    assert_int_equal(setenv("LOCPATH", scratch->path, 1), 0);
    const char *locale = setlocale(LC_ALL, "comma");
    assert_int_equal(unsetenv("LOCPATH"), 0);
    assert_non_null(locale);
    assert_string_equal(localeconv()->decimal_point, ",");
    return true;
}

void comma_leave(void)
{
    assert_non_null(setlocale(LC_ALL, "C"));
}
