/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * profiles: what is kept of jobs that have ended: <prefix>/profiles/<key>.profile, and the samples for Extra-P of each
 * command, <prefix>/profiles/<md5 of command>.jsonl.
 *
 * A profile is one JSON object, {"desc":JobDesc,"counters":[…],"cicada":{…}}: the form of /job, and what we know beside
 * it (ranks expected and seen, whether it is complete). It is replaced whole or not at all. A profile of another run
 * with the same key is never overwritten: the new one gets the name <key>.2.profile, and so on, and a note. Files that
 * can't be read are set aside as *.broken, with a word in the log, and everything else goes on.
 *
 * Files are touched on libuv's pool, never on the loop; the index is the loop's. Loop thread, but for
 * profiles_read_file().
 */
#ifndef PROXY_PROFILES_H
#define PROXY_PROFILES_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>
#include <uv.h>

#include "proxy/jobs.h"
#include "util/buf.h"
#include "util/error.h"

struct profiles;

#define PROFILES_FILE_MAX_BYTES (64u << 20)

/* One finished job. */
struct profile {
    char *file; /* name in the directory: "42.profile" */
    char *key;  /* job_key() of the run, or its id in files of an older proxy */
    struct metric_job desc;
    bool is_complete;
    int64_t changed_wall_ms; /* of the file: for retention */
    uint64_t size_bytes;
};

/*
 * `prefix` is copied; <prefix>/profiles is made when the first is saved. With `loop` files are touched by workers, and
 * the index is filled in a while after; without it (tests) at once.
 */
MUST_CHECK int profiles_new(uv_loop_t *loop, const char *prefix, struct profiles **out_profiles, struct error *err);

/* Reads what is there. profiles_is_loaded() tells when it has been read. */
void profiles_load(struct profiles *profiles);
bool profiles_is_loaded(const struct profiles *profiles);

/* Work of the pool that has not come back: not to be freed before it is 0. */
size_t profiles_pending(const struct profiles *profiles);
void profiles_free(struct profiles *profiles);
DEFINE_CLEANUP(profiles, profiles_free);

/* Sorted by start time; valid until the loop turns. */
size_t profiles_count(const struct profiles *profiles);
const struct profile *profiles_at(const struct profiles *profiles, size_t index);

/* The newest whose key, file name without ".profile", or job id is `id`; NULL. */
const struct profile *profiles_find(const struct profiles *profiles, const char *id);

/* Its file has been removed (retention.h): the index lacks it from now on. */
void profiles_forget(struct profiles *profiles, const char *file);

/* The directory, for profiles_read_file() and for whoever reads the .jsonl files. */
const char *profiles_path(const struct profiles *profiles);

/* Appends the whole JSON text of `file`. Blocks: for a worker. Any thread. As file_read(). */
MUST_CHECK int profiles_read_file(const char *directory, const char *file, struct buf *out, struct error *err);

/* The name of the samples of a command: 32 hex digits of its MD5 and ".jsonl", to `out`. Any thread. */
void profiles_samples_file(const char *command, struct buf *out);

/*
 * Saves the job as it is now. `on_saved` (may be NULL) is called on the loop with 0 or what failed; the job's values
 * are copied before this returns. A complete job whose end time is set adds a sample for Extra-P. -ENOMEM: nothing was
 * begun, and `on_saved` is not called.
 */
MUST_CHECK int profiles_save(struct profiles *profiles, const struct job *job,
                             void (*on_saved)(void *context, const char *key, int status), void *context,
                             struct error *err);

/* Appends the profile of a job: also the text of /job/?job=ID, but for "cicada". `has_zeros`: zero values, too. */
void profiles_job_to_json(const struct job *job, bool has_zeros, bool has_extras, struct buf *out);

#endif
