/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * mounts: which mounts of /proc/self/mounts are worth watching. Pure but for memory; any thread.
 *
 * All that can have a size count, on a disk, in memory or on a server. Left out are
 *   - what holds no files of anybody (proc, cgroup, …) and images that are full by nature (squashfs, …);
 *   - what lies below /proc, /sys and /dev (but for /dev/shm), and where container engines mount for their containers;
 *   - overlays that are not the root: they tell the numbers of the file system beneath them, once for each container.
 * The mark "nodev" of /proc/filesystems decides nothing here: NFS, Lustre and ZFS carry it as proc does.
 *
 * Of several mounts on one point the newest counts, since it hides the others. A file system that is mounted at many
 * points (bind mounts, subvolumes) counts once, under the shortest of them.
 */
#ifndef SAMPLE_MOUNTS_H
#define SAMPLE_MOUNTS_H

#include <stddef.h>

#include "util/cleanup.h"
#include "util/error.h"

struct mount {
    char *point;  /* a path, without the kernel's escapes; any bytes but NUL */
    char *device; /* "/dev/sda1", "server:/export", "tmpfs" */
    char *type;
};

struct mounts {
    struct mount *list; /* [count], in the kernel's order */
    size_t count;
    size_t refused; /* past MOUNTS_MAX */
};

#define MOUNTS_MAX 1024

/*
 * Chooses from the text of /proc/self/mounts; a line that makes no sense is skipped. `*out_mounts` is to be freed by
 * mounts_fini(). -ENOMEM, and then it is empty.
 */
MUST_CHECK int mounts_parse(const char *text, size_t length, struct mounts *out_mounts, struct error *err);
void mounts_fini(struct mounts *mounts);

#endif
