/* SPDX-License-Identifier: BSD-3-Clause */
#include "proxy/settings.h"

#include <errno.h>
#include <getopt.h>
#include <pwd.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "proxy/proxy.h"
#include "proxy/retention.h"
#include "util/beacon.h"
#include "util/cleanup.h"
#include "util/cursor.h"

enum {
    SETTINGS_FIRST_LONG = 256, /* values of options without a letter */
    SETTINGS_BRANCHES_MAX = 1024,
    SETTINGS_TRACE_MAX_MB = 1 << 20,
    SETTINGS_TRACE_MB_DEFAULT = 32,
    SETTINGS_BRANCHES_DEFAULT = 2,
    SETTINGS_DAY_S = 86400,
    SETTINGS_COUNT_MAX = 100000000,
    SETTINGS_KEEP_DAYS_MAX = 36500,
    SETTINGS_HELP_COLUMN = 38,
};

enum settings_kind {
    SETTINGS_FLAG,  /* a bool */
    SETTINGS_TEXT,  /* a const char * */
    SETTINGS_COUNT, /* an unsigned within min and max */
    SETTINGS_WORD,  /* an enum: the index in `words`, separated by '|' */
    SETTINGS_OTHER, /* settings_take_other() */
};

struct settings_row {
    const char *name;
    char letter;
    enum settings_kind kind;
    const char *argument;
    size_t offset;
    unsigned min, max;
    const char *words;
    const char *help; /* NULL: another spelling, not shown */
};

static const struct settings_row settings_rows[] = {
    {"port", 'p', SETTINGS_OTHER, "N", 0, 0, 0, NULL,
     "HTTP port (1337, or the next free one when another user has it; 0: any)"},
    {"listen", '\0', SETTINGS_TEXT, "ADDRESS", offsetof(struct settings, listen), 0, 0, NULL,
     "numeric address to listen at (all)"},
    {"unix", 'u', SETTINGS_OTHER, "PATH", 0, 0, 0, NULL,
     "socket for programs (PROXY_PATH, or /tmp/metric-proxy-<uid>.socket)"},
    {"target-prefix", 't', SETTINGS_OTHER, "DIR", 0, 0, 0, NULL, "profiles and the like (~/.proxyprofiles)"},
    {"sampling-period", 'S', SETTINGS_COUNT, "MS", offsetof(struct settings, period_ms), PROXY_PERIOD_MS_MIN,
     PROXY_PERIOD_MS_MAX, NULL, "time between two ticks (1000)"},
    {"sub-proxies", 's', SETTINGS_TEXT, "A,B[@MS]", offsetof(struct settings, targets), 0, 0, NULL,
     "scrape these: proxies, or Prometheus exporters"},
    {"root-proxy", 'r', SETTINGS_TEXT, "ADDR[@MS]", offsetof(struct settings, root), 0, 0, NULL,
     "proxy that sums up this one (PROXY_ROOT_URL)"},
    {"auto-root", '\0', SETTINGS_FLAG, NULL, offsetof(struct settings, waits_for_root), 0, 0, NULL,
     "find it by the file root.url"},
    {"root-url-dir", '\0', SETTINGS_TEXT, "DIR", offsetof(struct settings, root_url_dir), 0, 0, NULL,
     "where that file is (the prefix)"},
    {"branches", 'b', SETTINGS_COUNT, "N", offsetof(struct settings, branches), 0, SETTINGS_BRANCHES_MAX, NULL,
     "children of each proxy of the tree (2; 0: binomial)"},
    {"max-trace-size", 'm', SETTINGS_COUNT, "MB", offsetof(struct settings, trace_max_mb), 1, SETTINGS_TRACE_MAX_MB,
     NULL, "of a job's trace (32)"},
    {"inhibit-profile-aggregation", 'i', SETTINGS_FLAG, NULL, offsetof(struct settings, is_without_profiles), 0, 0,
     NULL, "save no profiles: the root does"},
    {"inhibit-profile-agreggation", '\0', SETTINGS_FLAG, NULL, offsetof(struct settings, is_without_profiles), 0, 0,
     NULL, NULL},
    {"instrumentation", '\0', SETTINGS_COUNT, "SECONDS", offsetof(struct settings, instrumentation_s), 1,
     SETTINGS_DAY_S, NULL, "log what ticks cost, so often"},
    {"no-ftio", '\0', SETTINGS_FLAG, NULL, offsetof(struct settings, is_without_ftio), 0, 0, NULL,
     "no periodic analysis"},
    {"names", '\0', SETTINGS_OTHER, "legacy|cicada|both", 0, 0, 0, NULL, "names of the node's metrics (both)"},
    {"no-telemetry", '\0', SETTINGS_FLAG, NULL, offsetof(struct settings, is_without_telemetry), 0, 0, NULL,
     "leave the node's own metrics out"},
    {"linger", '\0', SETTINGS_COUNT, "MS", offsetof(struct settings, linger_ms), 1, PROXY_PERIOD_MS_MAX, NULL,
     "how long a job outlives its last process (3000)"},
    {"max-jobs", '\0', SETTINGS_COUNT, "N", offsetof(struct settings, jobs_max), 1, SETTINGS_COUNT_MAX, NULL,
     "live jobs (10000)"},
    {"max-metrics", '\0', SETTINGS_COUNT, "N", offsetof(struct settings, metrics_max), 1, SETTINGS_COUNT_MAX, NULL,
     "metrics of all jobs together (1000000)"},
    {"max-metrics-per-job", '\0', SETTINGS_COUNT, "N", offsetof(struct settings, metrics_per_job_max), 1,
     SETTINGS_COUNT_MAX, NULL, "metrics of one (100000)"},
    {"keep-days", '\0', SETTINGS_COUNT, "N", offsetof(struct settings, keep_days), 0, SETTINGS_KEEP_DAYS_MAX, NULL,
     "remove profiles that are older (365; 0: never)"},
    {"keep-mb", '\0', SETTINGS_COUNT, "MB", offsetof(struct settings, keep_mb), 0, SETTINGS_TRACE_MAX_MB, NULL,
     "remove the oldest profiles past this size of all (4096; 0: none)"},
    {"auth", '\0', SETTINGS_WORD, "changes|all|none", offsetof(struct settings, auth), 0, 0, "changes|all|none",
     "what needs a right: changes, reading too, nothing"},
    {"token-file", '\0', SETTINGS_TEXT, "PATH", offsetof(struct settings, token_file), 0, 0, NULL,
     "the token (PROXY_TOKEN_FILE, or root.token beside root.url)"},
    {"legacy-peers", '\0', SETTINGS_TEXT, "CIDR,...", offsetof(struct settings, legacy_peers), 0, 0, NULL,
     "admit proxies of the existing implementation"},
    {"alarm-command", '\0', SETTINGS_TEXT, "PROGRAM", offsetof(struct settings, alarm_command), 0, 0, NULL,
     "run it when an alarm is raised or cleared"},
    {"alarm-webhook", '\0', SETTINGS_TEXT, "URL", offsetof(struct settings, alarm_webhook), 0, 0, NULL,
     "post alarms there, as Prometheus would to Alertmanager"},
    {"segments", '\0', SETTINGS_TEXT, "DIR", offsetof(struct settings, segments_path), 0, 0, NULL,
     "where programs share their counters (/dev/shm/cicada-<uid>)"},
    {"log-level", '\0', SETTINGS_WORD, "LEVEL", offsetof(struct settings, log_level), 0, 0, "error|warn|info|debug",
     "error, warn, info or debug (info)"},
    {"help", 'h', SETTINGS_FLAG, NULL, offsetof(struct settings, wants_help), 0, 0, NULL, "show this and end"},
    {"version", '\0', SETTINGS_FLAG, NULL, offsetof(struct settings, wants_version), 0, 0, NULL,
     "show the version and end"},
};

static int settings_refuse(const struct settings_row *row, const char *value, const char *takes, struct error *err)
{
    return error_set(err, -EINVAL, "--%s '%s': %s", row->name, value, takes);
}

static int settings_count(const struct settings_row *row, const char *value, unsigned min, unsigned max,
                          unsigned *out_count, struct error *err)
{
    struct cursor cursor = cursor_of(value, strlen(value));
    uint64_t number;
    if (!cursor_u64(&cursor, &number) || !cursor_is_empty(&cursor) || number < min || number > max)
        return error_set(err, -EINVAL, "--%s '%s': a whole number from %u to %u", row->name, value, min, max);
    *out_count = (unsigned)number;
    return 0;
}

/* The index of `value` among words that '|' separates; -1. */
static int settings_word(const char *words, const char *value)
{
    struct cursor rest = cursor_of(words, strlen(words));
    for (int index = 0; !cursor_is_empty(&rest); index++) {
        const char *end = memchr(rest.at, '|', cursor_left(&rest));
        struct cursor word = {.at = rest.at, .end = end != NULL ? end : rest.end};
        if (cursor_equals_any_case(&word, value))
            return index;
        rest.at = end != NULL ? end + 1 : rest.end;
    }
    return -1;
}

static int settings_copy(char **text, const char *value, struct error *err)
{
    free(*text);
    *text = strdup(value);
    return *text != NULL ? 0 : error_set(err, -ENOMEM, "no memory for the settings");
}

static int settings_take_other(struct settings *settings, const struct settings_row *row, const char *value,
                               struct error *err)
{
    unsigned port = 0;
    int rc = 0;
    switch (row->letter) {
    case 'p':
        rc = settings_count(row, value, 0, UINT16_MAX, &port, err);
        settings->port = (uint16_t)port;
        settings->has_port = true;
        return rc;
    case 'u':
        return settings_copy(&settings->socket_path, value, err);
    case 't':
        return settings_copy(&settings->prefix, value, err);
    default: {
        int names = settings_word("legacy|cicada|both", value);
        settings->is_without_cicada = names == 0;
        settings->is_without_legacy = names == 1;
        return names < 0 ? settings_refuse(row, value, row->argument, err) : 0;
    }
    }
}

static int settings_take(struct settings *settings, const struct settings_row *row, const char *value,
                         struct error *err)
{
    char *field = (char *)settings + row->offset;
    if (row->kind == SETTINGS_FLAG || value == NULL) {
        *(bool *)field = true;
        return 0;
    }
    if (value[0] == '\0')
        return settings_refuse(row, value, "may not be empty", err);
    switch (row->kind) {
    case SETTINGS_TEXT:
        *(const char **)field = value;
        return 0;
    case SETTINGS_COUNT:
        return settings_count(row, value, row->min, row->max, (unsigned *)field, err);
    case SETTINGS_WORD: {
        int word = settings_word(row->words, value);
        if (word < 0)
            return settings_refuse(row, value, row->words, err);
        *(int *)field = word; /* gcc's enums without negative values are as large as an int */
        return 0;
    }
    case SETTINGS_FLAG:
    case SETTINGS_OTHER:
        break;
    }
    return settings_take_other(settings, row, value, err);
}

/* What was not asked for. */
static int settings_complete(struct settings *settings, struct error *err)
{
    CLEANUP(buf_cleanup) struct buf text;
    buf_init(&text, SETTINGS_TEXT_MAX_BYTES);
    int rc = 0;
    if (settings->socket_path == NULL) {
        beacon_socket_path(&text);
        rc = settings_copy(&settings->socket_path, buf_string(&text), err);
    }
    if (rc == 0 && settings->prefix == NULL) {
        const char *home = getenv("HOME");
        const struct passwd *user = home == NULL || home[0] == '\0' ? getpwuid(getuid()) : NULL;
        if (user != NULL)
            home = user->pw_dir;
        if (home == NULL || home[0] != '/')
            return error_set(err, -EINVAL, "no HOME to keep profiles in: name a directory with --target-prefix");
        buf_reset(&text);
        buf_printf(&text, "%s/.proxyprofiles", home);
        rc = settings_copy(&settings->prefix, buf_string(&text), err);
    }
    if (settings->root == NULL) {
        settings->root = getenv("PROXY_ROOT_URL");
        if (settings->root != NULL && settings->root[0] == '\0')
            settings->root = NULL;
    }
    if (settings->token_file == NULL)
        settings->token_file = getenv("PROXY_TOKEN_FILE");
    if (settings->root_url_dir == NULL)
        settings->root_url_dir = settings->prefix;
    return rc;
}

/* The row of what getopt_long() returned, which is one of them. */
static size_t settings_row_of(int value)
{
    if (value >= SETTINGS_FIRST_LONG)
        return (size_t)(value - SETTINGS_FIRST_LONG);
    size_t index = 0;
    while (settings_rows[index].letter != value)
        index++;
    return index;
}

int settings_parse(int argc, char **argv, struct settings *out_settings, struct error *err)
{
    *out_settings = (struct settings){
        .port = SETTINGS_PORT_DEFAULT,
        .branches = SETTINGS_BRANCHES_DEFAULT,
        .trace_max_mb = SETTINGS_TRACE_MB_DEFAULT,
        .keep_days = RETENTION_DAYS_DEFAULT,
        .keep_mb = RETENTION_MB_DEFAULT,
        .log_level = LOG_LEVEL_INFO,
    };
    struct option options[ARRAY_LENGTH(settings_rows) + 1] = {0};
    char letters[2 * ARRAY_LENGTH(settings_rows) + 2] = ":";
    size_t length = 1;
    for (size_t i = 0; i < ARRAY_LENGTH(settings_rows); i++) {
        bool has_value = settings_rows[i].kind != SETTINGS_FLAG;
        options[i] = (struct option){.name = settings_rows[i].name,
                                     .has_arg = has_value ? required_argument : no_argument,
                                     .val = SETTINGS_FIRST_LONG + (int)i};
        if (settings_rows[i].letter == '\0')
            continue;
        letters[length++] = settings_rows[i].letter;
        if (has_value)
            letters[length++] = ':';
    }
    optind = 0; /* from the first, also the second time: tests do that */
    for (int value; (value = getopt_long(argc, argv, letters, options, NULL)) != -1;) {
        if (value == '?' || value == ':')
            return error_set(err, -EINVAL, "%s '%s'; --help lists all options",
                             value == ':' ? "a value is missing behind" : "there is no option", argv[optind - 1]);
        const struct settings_row *row = &settings_rows[settings_row_of(value)];
        int rc = settings_take(out_settings, row, optarg, err);
        if (rc < 0)
            return rc;
    }
    if (optind < argc)
        return error_set(err, -EINVAL, "'%s' is one argument too many; --help lists the options", argv[optind]);
    return settings_complete(out_settings, err);
}

void settings_fini(struct settings *settings)
{
    free(settings->socket_path);
    free(settings->prefix);
    settings->socket_path = NULL;
    settings->prefix = NULL;
}

void settings_help(struct buf *out)
{
    buf_text(out, "Usage: proxy_v2 [options]\n\nCollects what the jobs of this node count, and answers.\n\nOptions:\n");
    for (size_t i = 0; i < ARRAY_LENGTH(settings_rows); i++) {
        const struct settings_row *row = &settings_rows[i];
        if (row->help == NULL)
            continue;
        size_t start = out->length;
        if (row->letter != '\0')
            buf_printf(out, "  -%c, --%s", row->letter, row->name);
        else
            buf_printf(out, "      --%s", row->name);
        if (row->argument != NULL)
            buf_printf(out, " %s", row->argument);
        size_t width = out->length - start;
        buf_printf(out, "%*s%s\n", width < SETTINGS_HELP_COLUMN ? (int)(SETTINGS_HELP_COLUMN - width) : 1, "",
                   row->help);
    }
    buf_text(out, "\nSignals: TERM and INT end it and save the profiles of running jobs.\n");
}
