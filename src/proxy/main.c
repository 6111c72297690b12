/* SPDX-License-Identifier: BSD-3-Clause */
/* proxy_v2: the metric proxy of a node. */
#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <unistd.h>

#include "cicada_version.h"
#include "proxy/daemon.h"
#include "proxy/settings.h"
#include "util/log.h"

enum { MAIN_HELP_MAX_BYTES = 1 << 16, MAIN_USAGE = 2 };

static void main_help(void)
{
    CLEANUP(buf_cleanup) struct buf text;
    buf_init(&text, MAIN_HELP_MAX_BYTES);
    settings_help(&text);
    (void)fputs(buf_string(&text), stdout); /* who closed stdout wants no words */
}

int main(int argc, char **argv)
{
    /* Writing to a client that has gone is an error like others. */
    const struct sigaction ignore = {.sa_handler = SIG_IGN};
    (void)sigaction(SIGPIPE, &ignore, NULL); /* can't fail for these signals */
    (void)sigaction(SIGXFSZ, &ignore, NULL); /* a limit of file size is an error with a name, too */

    CLEANUP(settings_cleanup) struct settings settings;
    struct error err = {0};
    if (settings_parse(argc, argv, &settings, &err) < 0) {
        (void)fprintf(stderr, "proxy_v2: %s\n", err.text);
        return MAIN_USAGE;
    }
    if (settings.wants_help) {
        main_help();
        return EXIT_SUCCESS;
    }
    if (settings.wants_version) {
        (void)printf("proxy_v2 (Cicada) %s\n", CICADA_VERSION);
        return EXIT_SUCCESS;
    }
    log_open(STDERR_FILENO, settings.log_level);
    if (daemon_run(&settings, &err) < 0) {
        log_error("%s", err.text);
        return EXIT_FAILURE;
    }
    return EXIT_SUCCESS;
}
