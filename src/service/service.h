/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * service: the running daemon: samples at each tick, hands the lines to the recorder, and ends when it is told to.
 *
 * One loop: a timer, signals, the collectors' threads. Nothing on the loop waits: the trace is written by its writer's
 * thread, log lines by the journal's. Signals: TERM and INT end it gracefully, HUP reopens the .out and .err files,
 * USR1 flushes the trace. Leaves being the only one, and being a daemon, to others.
 */
#ifndef SERVICE_SERVICE_H
#define SERVICE_SERVICE_H

#include "service/instance.h"
#include "service/journal.h"
#include "service/options.h"
#include "service/paths.h"
#include "util/buf.h"
#include "util/error.h"

struct service_request {
    const struct options *options;
    const struct paths *paths;
    struct instance *instance; /* the claim that this service lives on */
    struct journal *journal;
    const char *notify_socket; /* NULL: none */
    /*
     * The trace is open and the first sample taken. `notes` are lines for the person who started it. A failure ends the
     * service. Loop thread.
     */
    int (*on_ready)(void *context, const char *notes, struct error *err);
    void *context;
};

/*
 * Runs until a signal ends it. A failure before it was ready leaves no trace behind; afterwards, the trace's state is
 * in `instance->state`, and a failure is mostly one to write the rest of it. -ETIMEDOUT: a thread is left that hangs in
 * the kernel or in a collector, so the process must end without waiting for its threads.
 */
MUST_CHECK int service_run(const struct service_request *request, struct error *err);

#endif
