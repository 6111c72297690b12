/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * event: one DFTracer event as a line of JSON, built field by field into a buf.
 *
 *   pfw_event_begin(&out, &source, PFW_COUNTER, "cpu-0", 5, "sys", PFW_TYPE_PSUTIL, ts);
 *   pfw_event_fixed(&out, "user_pct", 12.5, 4);
 *   pfw_event_end(&out);
 *   {"name":"cpu-0","cat":"sys","type":7,"ts":1796098782398492,"ph":2,"pid":17,"tid":0,"args":{"hhash":"…","user_pct":12.5}}
 *
 * Names of events may hold any bytes; keys of arguments too. Any thread; a buf belongs to one.
 */
#ifndef PFW_EVENT_H
#define PFW_EVENT_H

#include <stdint.h>

#include "util/buf.h"

/* `ph`: the phase of a record. */
enum pfw_phase { PFW_COMPLETE = 1, PFW_COUNTER = 2, PFW_AGGREGATED = 3, PFW_METADATA = 4 };

/* `type`: who made it. */
enum pfw_type {
    PFW_TYPE_DFTRACER = 1,
    PFW_TYPE_C_APP = 2,
    PFW_TYPE_LIBC_IO = 3,
    PFW_TYPE_HIP = 4,
    PFW_TYPE_HDF5 = 5,
    PFW_TYPE_PYTHON = 6,
    PFW_TYPE_PSUTIL = 7,
    PFW_TYPE_FINSTRUMENT = 8,
    PFW_TYPE_CPP_APP = 9,
    PFW_TYPE_MPI = 10,
    PFW_TYPE_CUDA = 11,
    PFW_TYPE_OMNISTAT = 12,
    PFW_TYPE_VARIORUM = 13,
};

#define PFW_HOST_HASH_BYTES 16

/* Who writes: the same in every event of a trace. */
struct pfw_source {
    char host_hash[PFW_HOST_HASH_BYTES + 1]; /* pfw_host_hash() */
    int64_t pid;
    int64_t tid;
};

/*
 * Every second byte of the MD5 of `host_name`, the first among them, as 16 hex digits: what DFTracer writes (its
 * documents say the first 16 digits). Readers join a node's trace with those of its applications by this.
 */
void pfw_host_hash(const char *host_name, char out_hash[PFW_HOST_HASH_BYTES + 1]);

/* An event up to its host hash; a counter's tid is 0. `ts` is in the trace's unit of time. */
void pfw_event_begin(struct buf *out, const struct pfw_source *source, enum pfw_phase phase, const char *name,
                     size_t name_length, const char *category, enum pfw_type type, int64_t ts);

/* The service's first and last event: complete ones with an id and a duration of 0. Arguments follow. */
void pfw_event_begin_complete(struct buf *out, const struct pfw_source *source, uint64_t id, const char *name,
                              int64_t ts);

/* "HH": which host a hash stands for. A whole line. */
void pfw_event_host(struct buf *out, const struct pfw_source *source, const char *host_name);

/* A metadata event of category "dftracer" with an instant (dropped events, clock steps). Arguments follow. */
void pfw_event_begin_metadata(struct buf *out, const struct pfw_source *source, const char *name, int64_t ts);

/* One more argument. */
void pfw_event_u64(struct buf *out, const char *key, uint64_t number);
void pfw_event_i64(struct buf *out, const char *key, int64_t number);
void pfw_event_fixed(struct buf *out, const char *key, double number, unsigned decimals); /* buf_fixed() */
void pfw_event_text(struct buf *out, const char *key, const char *text);
void pfw_event_bytes(struct buf *out, const char *key, const char *bytes, size_t length); /* text without a NUL */
void pfw_event_json(struct buf *out, const char *key, const char *json, size_t length);   /* JSON, no newline */

/* Closes the arguments and the line. */
void pfw_event_end(struct buf *out);

#endif
