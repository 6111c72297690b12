/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * alarms_file: keeps the list of alarms over restarts, in one file that is replaced whole.
 *
 * It is read and written by workers: the directory may be a file server's. A file that makes no sense is set aside as
 * *.broken and named in the log; one that can't be written is tried again. Nothing is written before the old one has
 * been read. Loop thread only.
 */
#ifndef PROXY_ALARMS_FILE_H
#define PROXY_ALARMS_FILE_H

#include <stdint.h>
#include <uv.h>

#include "proxy/alarms.h"
#include "util/error.h"

struct alarms_file;

/* Begins to read `path` (copied), whose alarms are then in `alarms`. Borrows both others for its life. -ENOMEM. */
MUST_CHECK int alarms_file_open(uv_loop_t *loop, const char *path, struct alarms *alarms, struct alarms_file **out_file,
                                struct error *err);

/* The list has changed: it is written soon. */
void alarms_file_touch(struct alarms_file *file);

/* Tries again what failed. Once a tick. */
void alarms_file_tick(struct alarms_file *file, int64_t now_mono_ns);

/* What is unwritten is written; then it is freed and `on_closed` comes from the loop. NULL `file`: it comes at once. */
void alarms_file_close(struct alarms_file *file, void (*on_closed)(void *context), void *context);

#endif
