/* SPDX-License-Identifier: BSD-3-Clause */
/* cicada: looks at a metric proxy, its jobs and what they count. */
#include <signal.h>
#include <stdio.h>
#include <string.h>

#include "cicada_version.h"
#include "cli/output.h"
#include "cli/proxy_command.h"
#include "cli/proxy_commands.h"
#include "util/cleanup.h"

static const struct {
    const char *name;
    int (*run)(int argc, char **argv);
    const char *summary;
} cicada_commands[] = {
    {"jobs", proxy_commands_jobs, "list the jobs that count now, with ranks expected and seen"},
    {"top", proxy_commands_top, "show rates of all jobs, or of a job's metrics, again and again"},
    {"metrics", proxy_commands_metrics, "print what a job has counted so far"},
    {"profiles", proxy_commands_profiles, "list jobs that have ended, or print what one of them counted"},
    {"topo", proxy_commands_topo, "print the tree of proxies"},
    {"doctor", proxy_commands_doctor, "tell whether programs would be measured here, and what to do if not"},
};

static void cicada_usage(FILE *out)
{
    (void)fputs("Usage: cicada COMMAND [options] [JOB]\n\nCommands:\n", out);
    for (size_t i = 0; i < ARRAY_LENGTH(cicada_commands); i++)
        (void)fprintf(out, "  %-9s %s\n", cicada_commands[i].name, cicada_commands[i].summary);
    (void)fputs("\ncicada COMMAND --help tells more; cicada --version the version.\n", out);
}

int main(int argc, char **argv)
{
    output_guard_standard();
    /* Writing to a reader that has gone away is an error like others, and not one to talk about. */
    const struct sigaction ignore = {.sa_handler = SIG_IGN};
    (void)sigaction(SIGPIPE, &ignore, NULL); /* can't fail for this signal */

    const char *name = argc > 1 ? argv[1] : "";
    if (strcmp(name, "--help") == 0 || strcmp(name, "-h") == 0 || strcmp(name, "help") == 0) {
        cicada_usage(stdout);
        return PROXY_COMMAND_FINE;
    }
    if (strcmp(name, "--version") == 0) {
        (void)printf("cicada (Cicada) %s\n", CICADA_VERSION);
        return PROXY_COMMAND_FINE;
    }
    for (size_t i = 0; i < ARRAY_LENGTH(cicada_commands); i++) {
        if (strcmp(name, cicada_commands[i].name) == 0)
            return cicada_commands[i].run(argc - 1, argv + 1);
    }
    if (argc > 1)
        (void)fprintf(stderr, "cicada: there is no command '%s'\n", name);
    cicada_usage(stderr);
    return PROXY_COMMAND_FAILED;
}
