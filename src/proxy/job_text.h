/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * job_text: a client's own description of its job, as JSON, puts its contributor into that job. Loop thread only.
 */
#ifndef PROXY_JOB_TEXT_H
#define PROXY_JOB_TEXT_H

#include <jansson.h>
#include <stddef.h>
#include <stdint.h>

#include "proxy/contributor.h"
#include "util/error.h"

/* `text` is the JSON object (metric/job.h) with "launcher_start" perhaps. -EINVAL, and as contributor_join(). */
MUST_CHECK int job_text_join(struct contributor *contributor, const char *text, size_t bytes, int64_t now_wall_ms,
                             struct error *err);

/*
 * The same from a parsed object. `peer_pid`, when known, tells whether an id of digits is the pid of one of its
 * ancestors: clients of the existing proxy don't say so.
 */
MUST_CHECK int job_text_join_json(struct contributor *contributor, const json_t *object, pid_t peer_pid,
                                  int64_t now_wall_ms, struct error *err);

#endif
