/* SPDX-License-Identifier: BSD-3-Clause */
/* pfw: looks into DFTracer traces, checks and converts them. */
#include <signal.h>
#include <stdio.h>
#include <string.h>

#include "cicada_version.h"
#include "cli/commands.h"
#include "cli/input.h"
#include "cli/output.h"
#include "util/cleanup.h"

static const struct {
    const char *name;
    int (*run)(int argc, char **argv);
    const char *summary;
} pfw_commands[] = {
    {"info", commands_info, "tell what traces hold: events, hosts, span of time, series, gaps"},
    {"check", commands_check, "check that they are whole, well-formed and continuous"},
    {"cat", commands_cat, "print events, all or some"},
    {"stats", commands_stats, "print mean, p50, p99 and maximum of each number"},
    {"perfetto", commands_perfetto, "convert to a JSON trace for ui.perfetto.dev and chrome://tracing"},
};

static void pfw_usage(FILE *out)
{
    (void)fputs("Usage: pfw COMMAND [options] FILE...\n\nCommands:\n", out);
    for (size_t i = 0; i < ARRAY_LENGTH(pfw_commands); i++)
        (void)fprintf(out, "  %-9s %s\n", pfw_commands[i].name, pfw_commands[i].summary);
    (void)fputs("\npfw COMMAND --help tells more; pfw --version the version.\n", out);
}

int main(int argc, char **argv)
{
    output_guard_standard();
    /* Writing to a reader that has gone away is an error like others, and not one to talk about. */
    const struct sigaction ignore = {.sa_handler = SIG_IGN};
    (void)sigaction(SIGPIPE, &ignore, NULL); /* can't fail for these signals */
    (void)sigaction(SIGXFSZ, &ignore, NULL); /* a limit of file size is an error with a name, too */

    const char *name = argc > 1 ? argv[1] : "";
    if (strcmp(name, "--help") == 0 || strcmp(name, "-h") == 0 || strcmp(name, "help") == 0) {
        pfw_usage(stdout);
        return INPUT_FINE;
    }
    if (strcmp(name, "--version") == 0) {
        (void)printf("pfw (Cicada) %s\n", CICADA_VERSION);
        return INPUT_FINE;
    }
    for (size_t i = 0; i < ARRAY_LENGTH(pfw_commands); i++) {
        if (strcmp(name, pfw_commands[i].name) == 0)
            return pfw_commands[i].run(argc - 1, argv + 1);
    }
    if (argc > 1)
        (void)fprintf(stderr, "pfw: there is no command '%s'\n", name);
    pfw_usage(stderr);
    return INPUT_FAILED;
}
