/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * settings: what the command line and the environment of proxy_v2 ask for. Reads argv and variables, nothing else.
 */
#ifndef PROXY_SETTINGS_H
#define PROXY_SETTINGS_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "util/buf.h"
#include "util/error.h"
#include "util/log.h"

#define SETTINGS_PORT_DEFAULT   1337
#define SETTINGS_TEXT_MAX_BYTES 4096

enum settings_auth {
    SETTINGS_AUTH_CHANGES, /* reading is open, changing needs a right */
    SETTINGS_AUTH_ALL,     /* reading needs it, too */
    SETTINGS_AUTH_NONE,    /* everything is open */
};

struct settings {
    bool wants_help;
    bool wants_version;
    uint16_t port; /* 0: the kernel chooses */
    bool has_port; /* it was asked for: no other will do */
    const char *listen;
    char *socket_path; /* owned */
    char *prefix;      /* owned */
    const char *root_url_dir;
    const char *root;    /* -r or PROXY_ROOT_URL; NULL */
    const char *targets; /* -s; NULL */
    const char *token_file;
    const char *legacy_peers;
    const char *alarm_command;
    const char *alarm_webhook;
    const char *segments_path;
    bool waits_for_root; /* --auto-root */
    bool is_without_profiles;
    bool is_without_ftio;
    bool is_without_telemetry;
    bool is_without_legacy;
    bool is_without_cicada;
    enum settings_auth auth;
    enum log_level log_level;
    unsigned period_ms;
    unsigned linger_ms;
    unsigned branches;
    unsigned trace_max_mb;
    unsigned keep_days;         /* 0: for ever */
    unsigned keep_mb;           /* 0: without a limit */
    unsigned instrumentation_s; /* 0: off */
    unsigned jobs_max;
    unsigned metrics_max;
    unsigned metrics_per_job_max;
};

/*
 * Reads argv and the environment; texts of argv are borrowed. -EINVAL: `err` names the option, its value and what it
 * takes; -ENOMEM. settings_fini() in any case.
 */
MUST_CHECK int settings_parse(int argc, char **argv, struct settings *out_settings, struct error *err);
void settings_fini(struct settings *settings);

static inline void settings_cleanup(struct settings *settings)
{
    settings_fini(settings);
}

/* Appends what --help shows. */
void settings_help(struct buf *out);

#endif
