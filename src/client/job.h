/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * job: which job this process belongs to, from its environment, as the JSON that the proxy's protocol uses.
 */
#ifndef CLIENT_JOB_H
#define CLIENT_JOB_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

/*
 * Writes {"jobid":…,"command":…,"size":…,…} of at most `max` bytes, without a NUL; returns its length, 0 when it didn't
 * fit. The rules of the fields: docs/metric-semantics.md.
 */
size_t job_describe(char *text_bytes, size_t max);

/* How many processes the job has, where the environment doesn't say it. False: it has been described already. */
bool job_set_size(uint64_t size);

#endif
