/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * line: one line of a DFTracer trace, scanned once as strict JSON (RFC 8259) in strict UTF-8.
 *
 * What it finds are slices of the caller's text: nothing is copied or allocated, strings stay escaped until somebody
 * asks. Keys may come in any order, and the last of two equal keys wins, as in other JSON readers. Letters and numbers
 * are both taken as phase, and a missing type is no fault: that is how older traces are. Whether an event makes sense
 * is for others to say (see summary.h). Pure; any thread.
 */
#ifndef PFW_LINE_H
#define PFW_LINE_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "pfw/event.h"
#include "pfw/json.h"
#include "util/cursor.h"
#include "util/error.h"

/* Objects and arrays inside each other; more than this is refused. */
#define PFW_LINE_DEPTH_MAX 64

/* An integer of the line. A fraction is rounded to the nearest; one beyond 64 bits makes the line invalid. */
struct pfw_line_number {
    int64_t value;
    bool is_present;
};

struct pfw_line {
    struct pfw_json name;
    struct pfw_json category;
    struct pfw_json args;      /* an object, or NONE */
    struct pfw_json host_hash; /* args.hhash: a string, or NONE */
    struct pfw_line_number ts; /* in the trace's unit of time, exact beyond 2^53 */
    struct pfw_line_number dur;
    struct pfw_line_number pid;
    struct pfw_line_number tid;
    struct pfw_json phase_text; /* `ph` as it is */
    enum pfw_phase phase;       /* 0: none of ours */
    struct pfw_line_number type;
};

/*
 * Scans the whole of `text`, which must be one JSON object with nothing but blanks around it; the slices in `*out_line`
 * live as long as it does. Fails with -EBADMSG: `err` names the byte (from 1) and what is wrong there.
 */
MUST_CHECK int pfw_line_parse(const char *text, size_t length, struct pfw_line *out_line, struct error *err);

/*
 * Walks the members of an object that pfw_line_parse() found: start with pfw_members() of it. False at the end. Equal
 * keys are given each (see args.h for the last of them).
 */
struct cursor pfw_members(const struct pfw_json *object);
bool pfw_members_next(struct cursor *members, struct pfw_json *out_key, struct pfw_json *out_value);

/* The last member of `object` with that key; NONE when there is none or `object` is no object. */
struct pfw_json pfw_member(const struct pfw_json *object, const char *key);

#endif
