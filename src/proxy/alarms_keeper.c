/* SPDX-License-Identifier: BSD-3-Clause */
#include "proxy/alarms_keeper.h"

#include <errno.h>
#include <stdlib.h>

#include "proxy/alarms_command.h"
#include "proxy/alarms_file.h"
#include "proxy/alarms_webhook.h"
#include "util/buf.h"
#include "util/file.h"

enum { ALARMS_KEEPER_PATH_MAX_BYTES = 8192 };

struct alarms_keeper {
    struct alarms *alarms;
    struct alarms_file *file;
    struct alarms_command *command; /* NULL: none */
    struct alarms_webhook *webhook; /* NULL: none */
    void (*on_closed)(void *context);
    void *context;
};

static void alarms_keeper_on_event(void *context, const struct alarm_view *alarm)
{
    struct alarms_keeper *keeper = context;
    if (keeper->command != NULL)
        alarms_command_tell(keeper->command, alarm);
    if (keeper->webhook != NULL)
        alarms_webhook_tell(keeper->webhook, alarm);
}

static void alarms_keeper_on_change(void *context)
{
    struct alarms_keeper *keeper = context;
    alarms_file_touch(keeper->file);
}

static void alarms_keeper_free(struct alarms_keeper *keeper)
{
    alarms_command_free(keeper->command);
    alarms_webhook_free(keeper->webhook);
    alarms_free(keeper->alarms);
    free(keeper);
}

static int alarms_keeper_open_file(struct alarms_keeper *keeper, const struct alarms_keeper_config *config,
                                   struct error *err)
{
    CLEANUP(buf_cleanup) struct buf path;
    buf_init(&path, ALARMS_KEEPER_PATH_MAX_BYTES);
    buf_printf(&path, "%s/nodes/", config->prefix);
    file_safe_name(config->hostname, &path);
    buf_text(&path, "/alarms.json");
    const char *text = buf_string(&path);
    int rc = buf_status(&path, err);
    return rc == 0 ? alarms_file_open(config->loop, text, keeper->alarms, &keeper->file, err) : rc;
}

int alarms_keeper_open(const struct alarms_keeper_config *config, struct alarms_keeper **out_keeper, struct error *err)
{
    struct alarms_keeper *keeper = calloc(1, sizeof *keeper);
    if (keeper == NULL)
        return error_set(err, -ENOMEM, "no memory for alarms");
    const struct alarms_config alarms_config = {.jobs = config->jobs,
                                                .on_event = alarms_keeper_on_event,
                                                .on_change = alarms_keeper_on_change,
                                                .context = keeper};
    keeper->alarms = alarms_new(&alarms_config);
    int rc = keeper->alarms != NULL ? 0 : error_set(err, -ENOMEM, "no memory for alarms");
    if (rc == 0 && config->command != NULL) {
        keeper->command = alarms_command_new(config->loop, config->command, config->hostname);
        rc = keeper->command != NULL ? 0 : error_set(err, -ENOMEM, "no memory for alarms");
    }
    if (rc == 0 && config->webhook != NULL)
        rc = alarms_webhook_new(config->client, config->webhook, config->hostname, &keeper->webhook, err);
    if (rc == 0)
        rc = alarms_keeper_open_file(keeper, config, err); /* last: it can't be taken back at once */
    if (rc < 0) {
        alarms_keeper_free(keeper);
        return rc;
    }
    *out_keeper = keeper;
    return 0;
}

struct alarms *alarms_keeper_alarms(struct alarms_keeper *keeper)
{
    return keeper->alarms;
}

void alarms_keeper_tick(struct alarms_keeper *keeper, int64_t now_mono_ns, int64_t now_wall_ms)
{
    alarms_tick(keeper->alarms, now_mono_ns, now_wall_ms);
    alarms_file_tick(keeper->file, now_mono_ns);
    if (keeper->webhook != NULL)
        alarms_webhook_tick(keeper->webhook, keeper->alarms, now_mono_ns);
}

static void alarms_keeper_on_file_closed(void *context)
{
    struct alarms_keeper *keeper = context;
    void (*on_closed)(void *context) = keeper->on_closed;
    void *closed_context = keeper->context;
    alarms_keeper_free(keeper);
    on_closed(closed_context);
}

void alarms_keeper_close(struct alarms_keeper *keeper, void (*on_closed)(void *context), void *context)
{
    if (keeper == NULL) {
        on_closed(context);
        return;
    }
    keeper->on_closed = on_closed;
    keeper->context = context;
    alarms_file_close(keeper->file, alarms_keeper_on_file_closed, keeper);
}
