/* SPDX-License-Identifier: BSD-3-Clause */
/* dftracer_service: its command line. */
#include <stdio.h>
#include <string.h>

#include "cicada_version.h"
#include "service/control.h"
#include "service/options.h"
#include "service/paths.h"
#include "util/buf.h"
#include "util/cleanup.h"

enum { MAIN_HELP_MAX_BYTES = 65536 };

static const struct main_command {
    const char *name;
    enum control_exit (*run)(const char *log_dir);
    const char *help;
} main_commands[] = {
    {"start", control_start, "start the service in the background; returns when its first sample is taken"},
    {"stop", control_stop, "end it; returns when its trace is complete"},
    {"status", control_status, "tell whether it runs (exit status 0) or not (1 after a crash, 3)"},
    {"restart", control_restart, "stop it if it runs, and start it"},
    {"run", control_run, "run in the foreground, for systemd, containers and job steps; logs to stderr"},
};

static void main_help(void)
{
    CLEANUP(buf_cleanup) struct buf text;
    buf_init(&text, MAIN_HELP_MAX_BYTES);
    buf_text(&text, "Usage: dftracer_service <command> [log_dir]\n\n"
                    "Samples this node at each interval and writes a DFTracer trace.\n\nCommands:\n");
    for (size_t i = 0; i < ARRAY_LENGTH(main_commands); i++)
        buf_printf(&text, "  %-8s %s\n", main_commands[i].name, main_commands[i].help);
    buf_printf(&text,
               "\nlog_dir (%s if not given) holds dftracer_server_<host>.pid, .out and .err; it is created if it is "
               "missing.\nSignals: TERM and INT end the service, HUP reopens .out and .err, USR1 flushes the trace.\n"
               "\nVariables, and keys of the YAML file that DFTRACER_CONFIGURATION names (variables win):\n",
               PATHS_LOG_DIR_INITIAL);
    options_help(&text);
    (void)fputs(buf_string(&text), stdout); /* who closed stdout wants no words */
}

static int main_usage(void)
{
    (void)fprintf(stderr, "Usage: dftracer_service <start|stop|status|restart|run> [log_dir]\n"
                          "       dftracer_service --help | --version\n");
    return CONTROL_USAGE;
}

int main(int argc, char **argv)
{
    const char *command = argc > 1 ? argv[1] : "";
    if (strcmp(command, "--help") == 0 || strcmp(command, "-h") == 0) {
        main_help();
        return CONTROL_OK;
    }
    if (strcmp(command, "--version") == 0) {
        (void)printf("dftracer_service (Cicada) %s\n", CICADA_VERSION);
        return CONTROL_OK;
    }
    if (argc > 3)
        return main_usage();
    const char *log_dir = argc > 2 && argv[2][0] != '\0' ? argv[2] : PATHS_LOG_DIR_INITIAL;
    for (size_t i = 0; i < ARRAY_LENGTH(main_commands); i++) {
        if (strcmp(command, main_commands[i].name) == 0)
            return (int)main_commands[i].run(log_dir);
    }
    return main_usage();
}
