/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * proxy_run: runs a program with exporters in it.
 *
 * It becomes the program (exec): signals, descriptors, the terminal and the exit status are the program's own.
 */
#include <errno.h>
#include <getopt.h>
#include <inttypes.h>
#include <limits.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "cicada_version.h"
#include "run/binary.h"
#include "run/check.h"
#include "run/exporters.h"
#include "run/search.h"
#include "util/beacon.h"
#include "util/cleanup.h"
#include "util/cursor.h"

enum {
    MAIN_FAILED = 125,         /* as env(1), timeout(1) and others have it */
    MAIN_NOT_EXECUTABLE = 126, /* and shells */
    MAIN_NOT_FOUND = 127,
    MAIN_TEXT_MAX_BYTES = 1 << 20,
    MAIN_PERIOD_MS_MIN = 10,
    MAIN_PERIOD_MS_MAX = 3600000,
    MAIN_ASSIGNMENTS_MAX = 8,
};

struct main_options {
    bool wants_list, wants_help, wants_version;
    bool is_required, is_dry;
    const char *exporters, *job, *socket, *period, *calls;
};

static const char main_help[] =
    "Usage: proxy_run [options] [--] COMMAND [ARGUMENTS]\n\n"
    "Runs COMMAND with exporters, which count what it does for the metric proxy.\n\n"
    "Options:\n"
    "  -l, --list              list the exporters that are installed\n"
    "  -e, --exporter NAME,... use these, or 'all' (default: those that cost nothing; PROXY_EXPORTERS)\n"
    "  -j, --jobid ID          count for this job (PROXY_JOB_ID)\n"
    "  -u, --unixsocket PATH   the proxy's socket (PROXY_PATH)\n"
    "  -S, --period MS         time between two looks of clients that push (PROXY_PERIOD)\n"
    "  -T, --strace-trace SET  system calls to count, as strace's -e trace=\n"
    "      --require           don't run COMMAND without a proxy\n"
    "      --dry-run           print what would be run\n"
    "  -h, --help              show this and end\n"
    "      --version           show the version and end\n\n"
    "The exit status is COMMAND's; 127: it was not found, 126: it can't be run, 125: proxy_run itself failed.\n";

static int main_complain(const struct error *err, int status)
{
    (void)fprintf(stderr, "proxy_run: %s\n", err->text);
    return status;
}

/* ---- options ---- */

static int main_check_period(const char *period, struct error *err)
{
    uint64_t period_ms;
    struct cursor cursor = cursor_of(period, period != NULL ? strlen(period) : 0);
    if (period != NULL && (!cursor_u64(&cursor, &period_ms) || !cursor_is_empty(&cursor) ||
                           period_ms < MAIN_PERIOD_MS_MIN || period_ms > MAIN_PERIOD_MS_MAX))
        return error_set(err, -EINVAL, "--period '%s': a number of milliseconds from %d to %d", period,
                         MAIN_PERIOD_MS_MIN, MAIN_PERIOD_MS_MAX);
    return 0;
}

static int main_parse(int argc, char **argv, struct main_options *options, struct error *err)
{
    enum { REQUIRE = 256, DRY_RUN, VERSION };
    static const struct option rows[] = {
        {"list", no_argument, NULL, 'l'},
        {"exporter", required_argument, NULL, 'e'},
        {"jobid", required_argument, NULL, 'j'},
        {"unixsocket", required_argument, NULL, 'u'},
        {"period", required_argument, NULL, 'S'},
        {"strace-trace", required_argument, NULL, 'T'},
        {"require", no_argument, NULL, REQUIRE},
        {"dry-run", no_argument, NULL, DRY_RUN},
        {"help", no_argument, NULL, 'h'},
        {"version", no_argument, NULL, VERSION},
        {0},
    };
    for (int letter; (letter = getopt_long(argc, argv, "+:le:j:u:S:T:h", rows, NULL)) != -1;) {
        switch (letter) {
        case 'l':
            options->wants_list = true;
            break;
        case 'e':
            options->exporters = optarg;
            break;
        case 'j':
            options->job = optarg;
            break;
        case 'u':
            options->socket = optarg;
            break;
        case 'S':
            options->period = optarg;
            break;
        case 'T':
            options->calls = optarg;
            break;
        case 'h':
            options->wants_help = true;
            break;
        case REQUIRE:
            options->is_required = true;
            break;
        case DRY_RUN:
            options->is_dry = true;
            break;
        case VERSION:
            options->wants_version = true;
            break;
        default:
            return error_set(err, -EINVAL, "%s '%s'; --help lists all options, and '--' begins the command",
                             letter == ':' ? "a value is missing behind" : "there is no option", argv[optind - 1]);
        }
    }
    return main_check_period(options->period, err);
}

static int main_list(const struct exporters *exporters)
{
    for (size_t i = 0; i < exporters->count; i++) {
        CLEANUP(buf_cleanup) struct buf path;
        buf_init(&path, 2 * PATH_MAX);
        exporters_path(exporters, exporters->names[i], BINARY_MPI_NONE, &path);
        (void)printf("%-12s %s\n", exporters->names[i], buf_string(&path));
    }
    if (exporters->strace != NULL)
        (void)printf("%-12s %s\n", "strace", exporters->strace);
    return EXIT_SUCCESS;
}

/* ---- the command ---- */

/* Under whose mpirun this is: tells for scripts, which don't say what they will load. */
static enum binary_mpi main_launcher(void)
{
    if (getenv("OMPI_COMM_WORLD_SIZE") != NULL)
        return BINARY_MPI_OPENMPI;
    return getenv("PMI_SIZE") != NULL || getenv("MPI_LOCALNRANKS") != NULL ? BINARY_MPI_MPICH : BINARY_MPI_NONE;
}

static void main_warn_of_binary(const char *path, const struct binary *binary)
{
    const char *why = binary->is_static       ? "is linked statically: nothing can be preloaded into it"
                      : binary->is_privileged ? "is set-uid or set-gid: the loader ignores what is preloaded"
                      : binary->is_foreign    ? "is of another architecture: our exporters can't be loaded into it"
                                              : NULL;
    if (why != NULL)
        (void)fprintf(stderr, "proxy_run: warning: '%s' %s; only what it counts itself is seen\n", path, why);
}

/* ---- what is run ---- */

/* Variables that the program gets; texts are borrowed. */
struct main_assignment {
    const char *name;
    const char *value;
};

struct main_plan {
    struct main_assignment assignments[MAIN_ASSIGNMENTS_MAX];
    size_t count;
    char launcher[16];
    struct buf preload;
    char **argv;
    const char *path;
};

static void main_assign(struct main_plan *plan, const char *name, const char *value)
{
    if (value != NULL)
        plan->assignments[plan->count++] = (struct main_assignment){.name = name, .value = value};
}

/* Ours comes first: wrappers of others, as of a debugger or a profiler, then see the calls as before. */
static void main_plan_preload(struct main_plan *plan, const struct exporters_choice *choice)
{
    const char *before = getenv("LD_PRELOAD");
    if (choice->preload.length == 0)
        return;
    buf_bytes(&plan->preload, choice->preload.data, choice->preload.length);
    if (before != NULL && before[0] != '\0')
        buf_printf(&plan->preload, ":%s", before);
    main_assign(plan, "LD_PRELOAD", buf_string(&plan->preload));
}

static void main_quote(const char *text)
{
    static const char plain[] = "abcdefghijklmnopqrstuvwxyzABCDEFGHIJKLMNOPQRSTUVWXYZ0123456789_-./:=,+@%^";
    if (text[0] != '\0' && strspn(text, plain) == strlen(text)) {
        (void)fputs(text, stdout);
        return;
    }
    (void)putchar('\'');
    for (; *text != '\0'; text++) {
        if (*text == '\'')
            (void)fputs("'\\''", stdout);
        else
            (void)putchar(*text);
    }
    (void)putchar('\'');
}

static int main_print_plan(const struct main_plan *plan)
{
    for (size_t i = 0; i < plan->count; i++) {
        (void)printf("%s=", plan->assignments[i].name);
        main_quote(plan->assignments[i].value);
        (void)putchar(' ');
    }
    for (char **word = plan->argv; *word != NULL; word++) {
        if (word != plan->argv)
            (void)putchar(' ');
        main_quote(*word);
    }
    (void)putchar('\n');
    return EXIT_SUCCESS;
}

static int main_execute(const struct main_plan *plan, struct error *err)
{
    for (size_t i = 0; i < plan->count; i++) {
        if (setenv(plan->assignments[i].name, plan->assignments[i].value, 1) < 0)
            return main_complain(err, MAIN_FAILED);
    }
    (void)execv(plan->path, plan->argv);
    if (errno == ENOEXEC) /* a script without a first line: the shell's, as execvp() has it */
        (void)execvp(plan->path, plan->argv);
    (void)error_errno(err, "running '%s'", plan->path);
    return main_complain(err, errno == ENOENT ? MAIN_NOT_FOUND : MAIN_NOT_EXECUTABLE);
}

/* False: a proxy is needed, and there is none. */
static bool main_check(const struct main_options *options, const char *socket_path)
{
    struct error err = {0};
    if (check_proxy(socket_path, &err) == 0)
        return true;
    (void)fprintf(stderr, "proxy_run: %s: no proxy of this user answers here (%s)\n",
                  options->is_required ? "error" : "WARNING", err.text);
    (void)fprintf(stderr, "proxy_run: %s; start one with proxy_v2, 'cicada doctor' tells more\n",
                  options->is_required ? "the program is not started, as --require says"
                                       : "what the program counts waits in /dev/shm until one starts on this node");
    return !options->is_required;
}

static int main_run(const struct main_options *options, const struct exporters *exporters, char **argv)
{
    struct error err = {0};
    struct binary binary;
    CLEANUP(buf_cleanup) struct buf path;
    CLEANUP(buf_cleanup) struct buf socket_path;
    buf_init(&path, MAIN_TEXT_MAX_BYTES);
    buf_init(&socket_path, MAIN_TEXT_MAX_BYTES);
    int rc = search_program(argv[0], &path, &err);
    if (rc < 0)
        return main_complain(&err, rc == -ENOENT ? MAIN_NOT_FOUND : MAIN_NOT_EXECUTABLE);
    if (binary_look(buf_string(&path), &binary, &err) < 0)
        binary = (struct binary){0}; /* it may be run though it can't be read */
    const char *wanted = options->exporters != NULL ? options->exporters : getenv("PROXY_EXPORTERS");
    const struct exporters_program program = {
        .path = buf_string(&path), .binary = &binary, .launcher = main_launcher()};
    struct exporters_choice choice = {0};
    buf_init(&choice.preload, MAIN_TEXT_MAX_BYTES);
    if (exporters_choose(exporters, wanted, &program, &choice, &err) < 0)
        return main_complain(&err, MAIN_FAILED);
    if (options->socket != NULL)
        buf_text(&socket_path, options->socket);
    else
        beacon_socket_path(&socket_path);
    if (!options->is_dry && !main_check(options, buf_string(&socket_path)))
        return MAIN_FAILED;
    if (wanted == NULL && exporters->strace != NULL)
        (void)fputs("proxy_run: system calls are not counted; -e all counts them\n", stderr);
    main_warn_of_binary(buf_string(&path), &binary);

    struct main_plan plan = {.argv = argv, .path = buf_string(&path)};
    buf_init(&plan.preload, MAIN_TEXT_MAX_BYTES);
    (void)snprintf(plan.launcher, sizeof plan.launcher, "%d", (int)getppid());
    main_assign(&plan, "METRIC_PROXY_LAUNCHER_PPID", plan.launcher);
    main_assign(&plan, "PROXY_PATH", options->socket);
    main_assign(&plan, "PROXY_JOB_ID", options->job);
    main_assign(&plan, "PROXY_PERIOD", options->period);
    main_plan_preload(&plan, &choice);
    int status = options->is_dry ? main_print_plan(&plan) : main_execute(&plan, &err);
    buf_fini(&plan.preload);
    buf_fini(&choice.preload);
    return status;
}

int main(int argc, char **argv)
{
    struct main_options options = {0};
    struct error err = {0};
    if (main_parse(argc, argv, &options, &err) < 0)
        return main_complain(&err, MAIN_FAILED);
    if (options.wants_help)
        return fputs(main_help, stdout) < 0 ? EXIT_FAILURE : EXIT_SUCCESS;
    if (options.wants_version)
        return printf("proxy_run (Cicada) %s\n", CICADA_VERSION) < 0 ? EXIT_FAILURE : EXIT_SUCCESS;
    CLEANUP(exporters_cleanup) struct exporters exporters;
    if (exporters_find(&exporters, &err) < 0)
        return main_complain(&err, MAIN_FAILED);
    if (options.wants_list)
        return main_list(&exporters);
    if (optind == argc) {
        (void)fputs(
            "proxy_run: no command is given\nUsage: proxy_run [options] [--] COMMAND [ARGUMENTS]; --help tells more\n",
            stderr);
        return MAIN_FAILED;
    }
    return main_run(&options, &exporters, argv + optind);
}
