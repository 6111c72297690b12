/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * claim: "this is mine while I live", by name, among the processes of one user on one node.
 *
 * A claim is a locked file in the node's own directory (file_node_directory()), never beside what it protects: locks of
 * network file systems may lie. The file goes when its owner gives the claim up; one that is left by a killed owner is
 * unlocked and taken over. Any process may ask who has it: what the file says is its owner's to write.
 * Any thread; a struct claim belongs to one.
 */
#ifndef SERVICE_CLAIM_H
#define SERVICE_CLAIM_H

#include <stdbool.h>
#include <stdint.h>

#include "util/error.h"

struct claim {
    char *path; /* owned; NULL: no claim */
    int fd;     /* locked */
};

#define CLAIM_NONE ((struct claim){.path = NULL, .fd = -1})

/*
 * Takes the claim `kind`:`name`. -EWOULDBLOCK when another process has it; waits up to `wait_ms` for it (0: not at
 * all). Given up by claim_drop().
 */
MUST_CHECK int claim_take(const char *kind, const char *name, int64_t wait_ms, struct claim *out_claim,
                          struct error *err);

/* Removes the file and gives the claim up. Accepts CLAIM_NONE. */
void claim_drop(struct claim *claim);

/*
 * Is the file still the one that others find under the name? Somebody may have cleaned the directory up (logind does,
 * with RemoveIPC=yes); if so, and nobody has the name now, takes it anew under the same descriptor: `*out_is_new`, and
 * the file is empty. False when the claim is lost for good.
 */
MUST_CHECK bool claim_renew(struct claim *claim, bool *out_is_new);

/*
 * Opens the file of a claim to look at it; the caller closes `*out_fd`. -ENOENT when nobody ever took it or its last
 * owner gave it up.
 */
MUST_CHECK int claim_find(const char *kind, const char *name, int *out_fd, struct error *err);

/* Has somebody (else) locked it? */
bool claim_is_held(int fd);

#endif
