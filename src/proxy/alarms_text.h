/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * alarms_text: alarms as JSON: the answers of /alarms, what /alarms/add takes, the file in which they are kept.
 *
 * The file is {"version":1,"alarms":[{"name","target","metric","operation":"<"|">"|"=","value"}…]}: each entry is what
 * /alarms/add takes, so that a person can write one. Knows nothing of sockets and files. Loop thread only.
 */
#ifndef PROXY_ALARMS_TEXT_H
#define PROXY_ALARMS_TEXT_H

#include <stdbool.h>
#include <stddef.h>

#include "proxy/alarms.h"
#include "util/buf.h"
#include "util/error.h"

#define ALARMS_TEXT_FILE_MAX_BYTES (8u << 20)

/* Appends {"JOB":[alarm…]…}: all, or those that are raised. */
void alarms_text_list(const struct alarms *alarms, bool is_raised_only, struct buf *out);

/* Appends what a person reads: "name : metric (doc) = 51.5 (Min: …) GAUGE > 33". */
void alarms_text_pretty(const struct alarm_view *alarm, struct buf *out);

/* Adds what `text` describes: the body of /alarms/add. -EINVAL, and as alarms_add(). */
MUST_CHECK int alarms_text_add(struct alarms *alarms, const char *text, size_t length, struct error *err);

/* Removes what {"target","name"} names: the body of /alarms/del. -EINVAL, and as alarms_remove(). */
MUST_CHECK int alarms_text_remove(struct alarms *alarms, const char *text, size_t length, struct error *err);

/* Appends the file. */
void alarms_text_save(const struct alarms *alarms, struct buf *out);

/*
 * Adds the alarms of a file. One that is there already stays as it is; one that makes no sense is left out and counted
 * in `*out_bad`, the last reason is in `err`. -EBADMSG: it is no such file, and nothing was added.
 */
MUST_CHECK int alarms_text_load(struct alarms *alarms, const char *text, size_t length, size_t *out_bad,
                                struct error *err);

#endif
