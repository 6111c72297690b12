/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * The file is one struct state_record. Its two parts have a checksum each, FNV-1a by words: a reader that overlaps a
 * writer sees old and new bytes mixed, and a sum is wrong. The second part is written alone with every tick: 48 bytes,
 * where the whole would be 80 cache lines, which are cold by then and take longer than all else.
 */
#include "service/state.h"

#include <assert.h>
#include <errno.h>
#include <stddef.h>
#include <string.h>
#include <unistd.h>

enum { STATE_READ_ATTEMPTS = 100 };

/* Changes whenever struct state does, so that a command of another version doesn't misread it. */
#define STATE_MAGIC UINT64_C(0x31e7a7543adac1d)

struct state_live {
    struct state_progress progress;
    uint64_t checksum;
};

struct state_record {
    uint64_t magic;
    uint64_t bytes;     /* of the record */
    struct state state; /* without its progress: that is in `live` */
    uint64_t checksum;
    struct state_live live;
};

static_assert(offsetof(struct state_record, checksum) % sizeof(uint64_t) == 0, "the sum is over whole words");
static_assert(offsetof(struct state_live, checksum) % sizeof(uint64_t) == 0, "the sum is over whole words");

static uint64_t state_checksum(const void *bytes, size_t length)
{
    uint64_t sum = UINT64_C(0xcbf29ce484222325);
    for (size_t at = 0; at < length; at += sizeof(uint64_t)) {
        uint64_t word;
        memcpy(&word, (const char *)bytes + at, sizeof word);
        sum = (sum ^ word) * UINT64_C(0x100000001b3);
        sum ^= sum >> 32; /* the product carries upwards only */
    }
    return sum;
}

static struct state_live state_live_of(const struct state_progress *progress)
{
    struct state_live live = {.progress = *progress};
    live.checksum = state_checksum(&live, offsetof(struct state_live, checksum));
    return live;
}

static bool state_is_whole(const struct state_record *record)
{
    return record->checksum == state_checksum(record, offsetof(struct state_record, checksum)) &&
           record->live.checksum == state_checksum(&record->live, offsetof(struct state_live, checksum));
}

static int state_put(int fd, const void *bytes, size_t length, size_t offset, struct error *err)
{
    ssize_t written = pwrite(fd, bytes, length, (off_t)offset);
    if (written < 0)
        return error_errno(err, "writing the service's state");
    if ((size_t)written < length)
        return error_set(err, -ENOSPC, "writing the service's state: only %zd bytes fit", written);
    return 0;
}

int state_write(int fd, const struct state *state, struct error *err)
{
    struct state_record record;
    memset(&record, 0, sizeof record); /* padding is summed up, too */
    record.magic = STATE_MAGIC;
    record.bytes = sizeof record;
    memcpy(&record.state, state, sizeof record.state);
    memset(&record.state.progress, 0, sizeof record.state.progress);
    record.checksum = state_checksum(&record, offsetof(struct state_record, checksum));
    record.live = state_live_of(&state->progress);
    return state_put(fd, &record, sizeof record, 0, err);
}

int state_write_progress(int fd, const struct state_progress *progress, struct error *err)
{
    const struct state_live live = state_live_of(progress);
    return state_put(fd, &live, sizeof live, offsetof(struct state_record, live), err);
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
        if (state_is_whole(&record)) {
            *out_state = record.state;
            out_state->progress = record.live.progress;
            return 0;
        }
    }
    return error_set(err, -EAGAIN, "the service's state changes faster than it can be read");
}
