/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * file: reading small files whole, replacing files so that a reader or a crash never sees half of one, names that
 * can't leave their directory, locks. Blocks on the file system: not for a loop's callbacks. Any thread.
 */
#ifndef UTIL_FILE_H
#define UTIL_FILE_H

#include <stddef.h>
#include <sys/types.h>

#include "util/buf.h"
#include "util/error.h"

/*
 * Appends all of `path` (relative to `dir_fd`, or AT_FDCWD) to `out`. Fails with -E2BIG past `out`'s limit (which
 * sticks to it), -EINVAL for a pipe (a read could wait for ever), or open()'s and read()'s errno; nothing is appended
 * then.
 */
MUST_CHECK int file_read(int dir_fd, const char *path, struct buf *out, struct error *err);

/* Writes all bytes, going on after short writes and EINTR. On failure some may have been written. */
MUST_CHECK int file_write_all(int fd, const void *bytes, size_t length, struct error *err);

/*
 * Replaces `path` by `bytes`: temporary name beside it (".<name>.<random>.tmp"), fsync, rename, fsync of the directory.
 * `mode` is that of open(): the umask takes its part. A link at `path` is replaced, not followed. A failure leaves the
 * old file and no temporary one; only a failing sync of the directory, after the rename, is reported with the new file
 * in place.
 */
MUST_CHECK int file_replace(const char *path, const void *bytes, size_t length, mode_t mode, struct error *err);

/*
 * Creates `path` and its missing parents; the umask takes its part of `mode`. An existing directory is fine; -ENOTDIR
 * when something else has the name.
 */
MUST_CHECK int file_make_directories(const char *path, mode_t mode, struct error *err);

/*
 * A file name from text that nobody vouches for: bytes other than letters, digits, '.', '_', '-' become %XX, a leading
 * dot too, and what is longer than FILE_NAME_MAX_BYTES is cut and ends in "%-" and a hash of the whole; "" becomes "%".
 * Different texts give different names; a name is never "", "." or "..".
 */
#define FILE_NAME_MAX_BYTES 200
void file_safe_name(const char *text, struct buf *out);

/*
 * Takes an exclusive lock of the open file description (fcntl OFD): it is gone when the last descriptor of this open is
 * closed, however the process ends, and isn't inherited through another open(). -EWOULDBLOCK when somebody else has it.
 */
MUST_CHECK int file_lock(int fd, struct error *err);
void file_unlock(int fd);

/*
 * Creates the directory `path` with mode 0700, or accepts one that is there if it is ours, is no link, and nobody else
 * may write it. -ENOTDIR (a link or a file), -EPERM (somebody else's, or writable by others), mkdir()'s and open()'s
 * errnos. Its parent must be one in which others can't rename it (sticky, or ours).
 */
MUST_CHECK int file_private_directory(const char *path, struct error *err);

/*
 * The directory for what must stay on this node and end with it (locks, sockets, state): /dev/shm/cicada-<uid>, else
 * /run/user/<uid>/cicada, else /tmp/cicada-<uid>: the first that file_private_directory() grants, so that who squats on
 * one name stops nobody. Appends the path to `out`. -EACCES names the reason of each.
 */
MUST_CHECK int file_node_directory(struct buf *out, struct error *err);

#endif
