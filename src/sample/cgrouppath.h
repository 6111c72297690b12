/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * cgrouppath: in which directories the numbers of a job's cgroup are, on version 1, version 2, or both at once.
 *
 * A process is in one cgroup of each hierarchy, and they need not be the same: a batch system may move it in some and
 * leave it with all others in the rest, whose numbers would be the machine's. So the job is what the most telling path
 * names (a job of Slurm, else the deepest), and only hierarchies in which that cgroup exists by that name are used.
 *
 * Slurm has a cgroup for each step and task below that of the job; the job's is meant:
 *     version 1    /slurm/uid_1000/job_42/step_0/task_0
 *     version 2    /system.slice/slurmstepd.scope/job_42/step_0/user/task_0
 *
 * One thread at a time; what parses is pure.
 */
#ifndef SAMPLE_CGROUPPATH_H
#define SAMPLE_CGROUPPATH_H

#include <stdbool.h>
#include <stddef.h>

#include "util/cleanup.h"
#include "util/cursor.h"
#include "util/error.h"

struct cgrouppath_place {
    const char *controller; /* of version 1: "memory"; NULL for version 2. Static */
    char *directory;
};

#define CGROUPPATH_PLACES_MAX 8

struct cgrouppath {
    char *name; /* "job_42"; "/" for the root */
    char *path; /* "/slurm/uid_1000/job_42" */
    size_t count;
    struct cgrouppath_place places[CGROUPPATH_PLACES_MAX];
};

/*
 * Finds the cgroup that `cgroup` names: "self", a pid, or a path, which may start with where it is mounted and is taken
 * as it is. `*out_path` is to be freed by cgrouppath_fini(). -ENODEV says what was looked for; -ENOMEM.
 */
MUST_CHECK int cgrouppath_find(const char *proc_path, const char *sys_path, const char *cgroup,
                               struct cgrouppath *out_path, struct error *err);
void cgrouppath_fini(struct cgrouppath *path);

/* A line of /proc/<pid>/cgroup: "4:cpu,cpuacct:/slurm/uid_0", or of version 2 "0::/user.slice". */
struct cgrouppath_line {
    struct cursor controllers; /* empty for version 2 */
    struct cursor path;
};

/*
 * The next line that has a path of this name space; a bad one is skipped. Borrows the text. False at the end.
 */
bool cgrouppath_next_line(struct cursor *text, struct cgrouppath_line *out_line);

/* The job's part of a process's path: up to "job_<number>"; without one, all of it. */
struct cursor cgrouppath_job(struct cursor path);

#endif
