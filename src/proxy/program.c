/* SPDX-License-Identifier: BSD-3-Clause */
#include "proxy/program.h"

#include <errno.h>
#include <fcntl.h>
#include <signal.h>
#include <spawn.h>
#include <stdbool.h>
#include <stdlib.h>
#include <string.h>
#include <sys/wait.h>
#include <unistd.h>

#include "net/work.h"
#include "util/clock.h"

enum {
    PROGRAM_LOOK_MS = 20, /* how often we look whether it has ended: kernels before 5.3 have no pidfd to wait for */
    PROGRAM_READ_BYTES = 1 << 16,
    PROGRAM_WORDS_MAX = 4096, /* arguments, and variables of the environment */
};

/* What the worker has; it outlives a program that is cancelled. */
struct program_birth {
    struct program *program;
    char **arguments, **variables;
    bool has_output;
    int rc;
    struct error err;
    pid_t pid;
    int output_fd;
};

struct program {
    uv_loop_t *loop;
    struct work *work; /* of the birth; NULL afterwards */
    pid_t pid;
    int output_fd; /* -1: at its end, or not wanted */
    int64_t end_mono_ns;
    unsigned timeout_ms;
    struct buf output;
    int code; /* of the result, as far as it is known */
    struct error err;
    bool is_told; /* on_done has been called: only the process must still be waited for */
    uv_timer_t timer;
    uv_poll_t poll;
    bool has_poll;
    unsigned handles;
    void (*on_done)(void *context, struct program_result *result);
    void *context;
};

static void program_free_words(char **words)
{
    for (size_t i = 0; words != NULL && words[i] != NULL; i++)
        free(words[i]);
    free(words);
}

static void program_birth_free(struct program_birth *birth)
{
    if (birth == NULL)
        return;
    program_free_words(birth->arguments);
    program_free_words(birth->variables);
    fd_cleanup(&birth->output_fd);
    free(birth);
}

static size_t program_count_words(const char *const *words)
{
    size_t count = 0;
    while (words != NULL && words[count] != NULL && count < PROGRAM_WORDS_MAX)
        count++;
    return count;
}

/* Is a variable of the name of `word` among `words`? */
static bool program_has_variable(const char *const *words, const char *word)
{
    size_t name_bytes = strcspn(word, "=");
    for (size_t i = 0; words != NULL && words[i] != NULL; i++) {
        if (strncmp(words[i], word, name_bytes) == 0 && words[i][name_bytes] == '=')
            return true;
    }
    return false;
}

/* Appends a copy of `word`; false without memory. */
static bool program_add_word(char **words, size_t *count, const char *word)
{
    words[*count] = strdup(word);
    return words[(*count)++] != NULL;
}

/* Copies `first`, then what `second` has beside; either may be NULL. NULL without memory. */
static char **program_copy_words(const char *const *first, const char *const *second)
{
    size_t count = 0;
    char **copy = calloc(program_count_words(first) + program_count_words(second) + 1, sizeof(char *));
    bool is_good = copy != NULL;
    for (size_t i = 0; is_good && first != NULL && i < PROGRAM_WORDS_MAX && first[i] != NULL; i++)
        is_good = program_add_word(copy, &count, first[i]);
    for (size_t i = 0; is_good && second != NULL && i < PROGRAM_WORDS_MAX && second[i] != NULL; i++) {
        if (!program_has_variable(first, second[i]))
            is_good = program_add_word(copy, &count, second[i]);
    }
    if (is_good)
        return copy;
    program_free_words(copy);
    return NULL;
}

/* On the worker */

static int program_prepare(posix_spawnattr_t *attributes, posix_spawn_file_actions_t *actions, int output_fd)
{
    sigset_t all;
    sigset_t none;
    sigfillset(&all);
    sigemptyset(&none);
    int rc = posix_spawnattr_setsigdefault(attributes, &all);
    if (rc == 0)
        rc = posix_spawnattr_setsigmask(attributes, &none);
    if (rc == 0)
        rc = posix_spawnattr_setpgroup(attributes, 0);
    if (rc == 0)
        rc = posix_spawnattr_setflags(attributes,
                                      POSIX_SPAWN_SETSIGDEF | POSIX_SPAWN_SETSIGMASK | POSIX_SPAWN_SETPGROUP);
    if (rc == 0)
        rc = posix_spawn_file_actions_addopen(actions, STDIN_FILENO, "/dev/null", O_RDONLY, 0);
    if (rc == 0 && output_fd >= 0)
        rc = posix_spawn_file_actions_adddup2(actions, output_fd, STDOUT_FILENO);
    else if (rc == 0)
        rc = posix_spawn_file_actions_addopen(actions, STDOUT_FILENO, "/dev/null", O_WRONLY, 0);
    return rc;
}

static void program_spawn(struct program_birth *birth, int output_fd)
{
    posix_spawnattr_t attributes;
    posix_spawn_file_actions_t actions;
    if (posix_spawnattr_init(&attributes) != 0) {
        birth->rc = error_set(&birth->err, -ENOMEM, "starting '%s'", birth->arguments[0]);
        return;
    }
    if (posix_spawn_file_actions_init(&actions) != 0) {
        posix_spawnattr_destroy(&attributes);
        birth->rc = error_set(&birth->err, -ENOMEM, "starting '%s'", birth->arguments[0]);
        return;
    }
    int rc = program_prepare(&attributes, &actions, output_fd);
    if (rc == 0)
        rc = posix_spawnp(&birth->pid, birth->arguments[0], &actions, &attributes, birth->arguments, birth->variables);
    posix_spawn_file_actions_destroy(&actions);
    posix_spawnattr_destroy(&attributes);
    errno = rc;
    birth->rc = rc == 0 ? 0 : error_errno(&birth->err, "starting '%s'", birth->arguments[0]);
}

static void program_run_birth(void *data)
{
    struct program_birth *birth = data;
    int ends[2] = {-1, -1};
    if (birth->has_output && pipe2(ends, O_CLOEXEC) < 0) {
        birth->rc = error_errno(&birth->err, "starting '%s'", birth->arguments[0]);
        return;
    }
    birth->output_fd = ends[0];
    program_spawn(birth, ends[1]);
    fd_cleanup(&ends[1]);
    if (birth->output_fd >= 0 && fcntl(birth->output_fd, F_SETFL, O_NONBLOCK) < 0 && birth->rc == 0)
        birth->rc = error_errno(&birth->err, "starting '%s'", birth->arguments[0]);
}

/* Back on the loop */

static void program_on_closed(uv_handle_t *handle)
{
    struct program *program = handle->data;
    if (--program->handles > 0)
        return;
    fd_cleanup(&program->output_fd);
    buf_fini(&program->output);
    free(program);
}

/* Closes what is open, and frees. */
static void program_dispose(struct program *program)
{
    if (program->has_poll)
        uv_close((uv_handle_t *)&program->poll, program_on_closed);
    uv_close((uv_handle_t *)&program->timer, program_on_closed);
}

static void program_tell(struct program *program)
{
    if (program->is_told)
        return;
    program->is_told = true;
    struct program_result result = {.code = program->code, .err = program->err, .output = &program->output};
    program->on_done(program->context, &result);
}

static void program_fail(struct program *program, int code, const char *why)
{
    if (program->code == 0)
        program->code = error_set(&program->err, code, "%s", why);
    (void)kill(-program->pid, SIGKILL); /* it may have ended meanwhile */
}

/* Takes what there is to read; at the end, or past the limit, no more is read. */
static void program_read(struct program *program)
{
    char piece[PROGRAM_READ_BYTES];
    ssize_t got = -1;
    while (program->output_fd >= 0 && (got = read(program->output_fd, piece, sizeof piece)) > 0)
        buf_bytes(&program->output, piece, (size_t)got);
    bool is_waiting = got < 0 && (errno == EAGAIN || errno == EINTR);
    if (buf_status(&program->output, NULL) < 0)
        program_fail(program, -E2BIG, "it writes too much");
    if ((is_waiting && program->code == 0) || program->output_fd < 0)
        return;
    (void)uv_poll_stop(&program->poll); /* can't fail */
    fd_cleanup(&program->output_fd);
    program->output_fd = -1;
}

static void program_on_output(uv_poll_t *poll, int status, int events)
{
    (void)status; /* read() tells */
    (void)events;
    program_read(poll->data);
}

static void program_set_status(struct program *program, int status)
{
    if (program->code != 0)
        return;
    if (WIFSIGNALED(status))
        program->code = error_set(&program->err, -ECHILD, "it was killed by signal %d", WTERMSIG(status));
    else if (WEXITSTATUS(status) != 0)
        program->code = error_set(&program->err, -ECHILD, "it ended with status %d", WEXITSTATUS(status));
}

static void program_on_timer(uv_timer_t *timer)
{
    struct program *program = timer->data;
    int status = 0;
    pid_t ended = waitpid(program->pid, &status, WNOHANG);
    if (ended == 0) {
        if (program->code == 0 && clock_mono_ns() >= program->end_mono_ns) {
            program_fail(program, -ETIMEDOUT, "it ran too long and was killed");
            program_tell(program); /* a process within a dead file system may stay for long */
        }
        return;
    }
    if (ended == program->pid)
        program_set_status(program, status);
    program_read(program); /* what its children write from now on is theirs */
    program_tell(program);
    program_dispose(program);
}

static void program_watch(struct program *program)
{
    int rc = 0;
    if (program->output_fd >= 0) {
        rc = uv_poll_init(program->loop, &program->poll, program->output_fd);
        program->has_poll = rc == 0;
        program->handles += rc == 0;
        program->poll.data = program;
        if (rc == 0)
            rc = uv_poll_start(&program->poll, UV_READABLE, program_on_output);
    }
    if (rc < 0)
        program_fail(program, rc, "its output can't be watched");
    (void)uv_timer_start(&program->timer, program_on_timer, PROGRAM_LOOK_MS, PROGRAM_LOOK_MS); /* can't fail */
}

static void program_on_born(void *data, bool is_wanted)
{
    struct program_birth *birth = data;
    if (!is_wanted) {
        if (birth->pid > 0)
            (void)kill(-birth->pid, SIGKILL);
        program_birth_free(birth);
        return;
    }
    struct program *program = birth->program;
    program->work = NULL;
    program->pid = birth->pid;
    program->output_fd = TAKE_FD(birth->output_fd);
    program->code = birth->rc;
    program->err = birth->err;
    bool is_running = birth->pid > 0;
    program_birth_free(birth);
    if (is_running) {
        program->end_mono_ns = clock_mono_ns() + program->timeout_ms * CLOCK_NS_PER_MS;
        program_watch(program);
        return;
    }
    program_tell(program);
    program_dispose(program);
}

static struct program_birth *program_birth_new(const struct program_config *config)
{
    struct program_birth *birth = calloc(1, sizeof *birth);
    if (birth == NULL)
        return NULL;
    birth->output_fd = -1;
    birth->has_output = config->output_max_bytes > 0;
    birth->arguments = program_copy_words(config->arguments, NULL);
    birth->variables = program_copy_words(config->variables, (const char *const *)environ);
    if (birth->arguments != NULL && birth->variables != NULL)
        return birth;
    program_birth_free(birth);
    return NULL;
}

int program_start(const struct program_config *config, struct program **out_program, struct error *err)
{
    struct program *program = calloc(1, sizeof *program);
    struct program_birth *birth = program_birth_new(config);
    if (program == NULL || birth == NULL) {
        free(program);
        program_birth_free(birth);
        return error_set(err, -ENOMEM, "no memory to start '%s'", config->arguments[0]);
    }
    *program = (struct program){.loop = config->loop,
                                .output_fd = -1,
                                .timeout_ms = config->timeout_ms,
                                .handles = 1,
                                .on_done = config->on_done,
                                .context = config->context};
    buf_init(&program->output, config->output_max_bytes);
    birth->program = program;
    (void)uv_timer_init(config->loop, &program->timer); /* can't fail */
    program->timer.data = program;
    const struct work_task task = {.run = program_run_birth, .done = program_on_born, .data = birth};
    int rc = work_start(config->loop, &task, &program->work, err);
    if (rc < 0) {
        program_birth_free(birth);
        program_dispose(program);
        return rc;
    }
    *out_program = program;
    return 0;
}

void program_cancel(struct program *program)
{
    if (program == NULL)
        return;
    if (program->work != NULL)
        work_abandon(program->work);
    else
        (void)kill(-program->pid, SIGKILL);
    program_dispose(program);
}
