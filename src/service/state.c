/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * The file is one struct state_record, written with one pwrite(). Its checksum is FNV-1a, by words, over all before it:
 * a reader that overlaps a writer sees old and new bytes mixed, and the sum is wrong.
 */
#include "service/state.h"

#include <assert.h>
#include <errno.h>
#include <stddef.h>
#include <string.h>
#include <unistd.h>

enum { STATE_READ_ATTEMPTS = 100 };

/* Changes whenever struct state does, so that a command of another version doesn't misread it. */
#define STATE_MAGIC UINT64_C(0x31e7a7543adac1c)

struct state_record {
    uint64_t magic;
    uint64_t bytes; /* of the record */
    struct state state;
    uint64_t checksum;
};

static_assert(offsetof(struct state_record, checksum) % sizeof(uint64_t) == 0, "the sum is over whole words");

static uint64_t state_checksum(const struct state_record *record)
{
    const char *bytes = (const char *)record;
    uint64_t sum = UINT64_C(0xcbf29ce484222325);
    for (size_t at = 0; at < offsetof(struct state_record, checksum); at += sizeof(uint64_t)) {
        uint64_t word;
        memcpy(&word, bytes + at, sizeof word);
        sum = (sum ^ word) * UINT64_C(0x100000001b3);
        sum ^= sum >> 32; /* the product carries upwards only */
    }
    return sum;
}

int state_write(int fd, const struct state *state, struct error *err)
{
    struct state_record record;
    memset(&record, 0, sizeof record); /* padding is summed up, too */
    record.magic = STATE_MAGIC;
    record.bytes = sizeof record;
    memcpy(&record.state, state, sizeof record.state);
    record.checksum = state_checksum(&record);
    ssize_t written = pwrite(fd, &record, sizeof record, 0);
    if (written < 0)
        return error_errno(err, "writing the service's state");
    if ((size_t)written < sizeof record)
        return error_set(err, -ENOSPC, "writing the service's state: only %zd bytes fit", written);
    return 0;
}

int state_read(int fd, struct state *out_state, struct error *err)
{
    struct state_record record;
    for (int i = 0; i < STATE_READ_ATTEMPTS; i++) {
        ssize_t got = pread(fd, &record, sizeof record, 0);
        if (got < 0)
            return error_errno(err, "reading the service's state");
        if ((size_t)got < sizeof record || record.magic != STATE_MAGIC || record.bytes != sizeof record)
            return error_set(err, -ENODATA, "no state of a service of this version");
        if (record.checksum == state_checksum(&record)) {
            *out_state = record.state;
            return 0;
        }
    }
    return error_set(err, -EAGAIN, "the service's state changes faster than it can be read");
}
