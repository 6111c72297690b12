/* SPDX-License-Identifier: BSD-3-Clause */
#include "cli/input.h"

#include <inttypes.h>
#include <stdarg.h>
#include <stdio.h>
#include <string.h>
#include <unistd.h>

#include "util/clock.h"
#include "util/utf8.h"

enum {
    INPUT_CLOCK_LINES = 4096, /* lines between two looks at the clock */
};

static const int64_t input_progress_after_ns = CLOCK_NS_PER_SECOND;
static const int64_t input_progress_every_ns = 200 * CLOCK_NS_PER_MS;

/* One file being read. */
struct input {
    const char *program;
    const struct input_handler *handler;
    bool is_salvaging;
    struct pfw_reader *reader;
    struct input_totals totals;
    uint64_t first_bad_line;
    struct error first_bad_reason;
    bool has_progress; /* stderr is a terminal */
    bool is_shown;     /* a line of progress stands on it */
    uint64_t items;
    int64_t start_mono_ns;
    int64_t shown_mono_ns;
    bool is_enough; /* the handler wants no more */
    bool is_over;   /* the handler failed */
};

/* ---- progress ---- */

static void input_hide_progress(struct input *input)
{
    if (input->is_shown)
        (void)fputs("\r\033[K", stderr); /* a terminal that is gone needs no words */
    input->is_shown = false;
}

/* The name as a terminal can show it: escapes in it have no effect there. */
static void input_put_name(const struct input *input)
{
    char name[ERROR_TEXT_MAX_BYTES];
    size_t length = strnlen(input->totals.name, sizeof name);
    memcpy(name, input->totals.name, length);
    length = utf8_clean_line(name, length);
    (void)fwrite(name, 1, length, stderr); /* a terminal that is gone needs no words */
}

static void input_show_progress(struct input *input, int64_t now_mono_ns)
{
    struct pfw_reader_status status = pfw_reader_status(input->reader);
    double seconds = (double)(now_mono_ns - input->start_mono_ns) / 1e9;
    double speed = (double)status.unpack.text_bytes / 1e6 / seconds;
    input_hide_progress(input);
    input_put_name(input);
    if (status.size_bytes > 0)
        (void)fprintf(stderr, ": %.0f %%, %" PRIu64 " events, %.0f MB/s",
                      100.0 * (double)status.unpack.file_bytes / (double)status.size_bytes, input->totals.lines, speed);
    else
        (void)fprintf(stderr, ": %.0f MB, %" PRIu64 " events, %.0f MB/s", (double)status.unpack.file_bytes / 1e6,
                      input->totals.lines, speed);
    (void)fflush(stderr);
    input->is_shown = true;
    input->shown_mono_ns = now_mono_ns;
}

static void input_tick(struct input *input)
{
    if (!input->has_progress || input->items++ % INPUT_CLOCK_LINES != 0)
        return;
    int64_t now_mono_ns = clock_mono_ns();
    if (now_mono_ns - input->start_mono_ns >= input_progress_after_ns &&
        now_mono_ns - input->shown_mono_ns >= input_progress_every_ns)
        input_show_progress(input, now_mono_ns);
}

/* ---- what is wrong ---- */

static void PRINTF_LIKE(2, 3) input_tell(struct input *input, const char *format, ...)
{
    char text[ERROR_TEXT_MAX_BYTES];
    va_list args;
    va_start(args, format);
    int length = vsnprintf(text, sizeof text, format, args);
    va_end(args);
    size_t shown = length < 0 ? 0 : (size_t)length < sizeof text ? (size_t)length : sizeof text - 1;
    shown = utf8_clean_line(text, shown);
    input_hide_progress(input);
    (void)fprintf(stderr, "%s: %.*s\n", input->program, (int)shown, text);
}

/* Words for a gap, and what it adds to the totals. */
static void input_describe_gap(struct input *input, const struct pfw_gap *gap, char *out, size_t size)
{
    struct input_totals *totals = &input->totals;
    switch (gap->kind) {
    case PFW_GAP_DAMAGED:
        totals->left_bytes += gap->length;
        (void)snprintf(out, size, "%" PRIu64 " bytes from byte %" PRIu64 " on are damaged (%s) and were left out%s",
                       gap->length, gap->offset, gap->reason,
                       input->is_salvaging ? "" : "; --salvage gives what precedes the damage in its gzip member");
        break;
    case PFW_GAP_UNCHECKED:
        totals->unchecked_bytes += gap->length;
        (void)snprintf(out, size,
                       "%" PRIu64 " bytes from byte %" PRIu64 " on were read, but their check failed (%s): some of it "
                       "may be wrong",
                       gap->length, gap->offset, gap->reason);
        break;
    case PFW_GAP_CUT:
        totals->is_cut = true;
        (void)snprintf(out, size,
                       "the file is cut off: its last %" PRIu64 " bytes, from byte %" PRIu64
                       " on, are an incomplete gzip member, of which only whole lines were read",
                       gap->length, gap->offset);
        break;
    case PFW_GAP_ZEROS:
        totals->zero_bytes += gap->length;
        (void)snprintf(out, size, "%" PRIu64 " zero bytes at the end, from byte %" PRIu64 " on, were passed over",
                       gap->length, gap->offset);
        break;
    case PFW_GAP_LONG_LINE:
        totals->long_lines++;
        (void)snprintf(out, size,
                       "the line of %" PRIu64 " bytes at byte %" PRIu64 " of the text is longer than %u and "
                       "was left out",
                       gap->length, gap->offset, PFW_READER_LINE_MAX_BYTES);
        break;
    }
}

static void input_on_gap(struct input *input, const struct pfw_item *item)
{
    char reason[ERROR_TEXT_MAX_BYTES] = "";
    input_describe_gap(input, &item->gap, reason, sizeof reason);
    if (input->handler->on_fault != NULL)
        input->handler->on_fault(input->handler->context, item, reason);
    else
        input_tell(input, "%s: %s", input->totals.name, reason);
}

static void input_on_bad_line(struct input *input, const struct pfw_item *item, struct error *why)
{
    if (item->is_cut) {
        input->totals.cut_bytes = item->length;
        (void)error_set(why, why->code, "the last line is cut off: %zu bytes were left out", item->length);
    } else {
        input->totals.bad_lines++;
        (void)error_wrap(why, why->code, "not JSON");
    }
    if (input->handler->on_fault != NULL) {
        input->handler->on_fault(input->handler->context, item, why->text);
    } else if (item->is_cut) {
        input_tell(input, "%s: %s", input->totals.name, why->text);
    } else if (input->totals.bad_lines == 1) {
        input->first_bad_line = item->number;
        input->first_bad_reason = *why;
    }
}

/* ---- reading ---- */

static int input_on_line(struct input *input, const struct pfw_item *item, struct error *err)
{
    struct pfw_line line;
    struct error why = {0};
    if (pfw_line_parse(item->text, item->length, &line, &why) < 0) {
        input_on_bad_line(input, item, &why);
        return 0;
    }
    input->totals.lines++;
    int rc = input->handler->on_line(input->handler->context, &line, item, &input->is_enough, err);
    if (rc == 0)
        return 0;
    input->is_over = true;
    return error_wrap(err, rc, "%s, line %" PRIu64, input->totals.name, item->number);
}

static int input_read_items(struct input *input, struct error *err)
{
    while (!input->is_enough) {
        struct pfw_item item;
        int rc = pfw_reader_next(input->reader, &item, err);
        if (rc < 0)
            return error_wrap(err, rc, "%s", input->totals.name);
        input_tick(input);
        if (item.kind == PFW_ITEM_END)
            return 0;
        if (item.kind == PFW_ITEM_GAP)
            input_on_gap(input, &item);
        else
            rc = input_on_line(input, &item, err);
        if (rc < 0)
            return rc;
    }
    return 0;
}

/* The status of a file that could be read, and the words for what was counted. */
static enum input_status input_verdict(struct input *input)
{
    const struct input_totals *totals = &input->totals;
    bool is_incomplete = totals->bad_lines > 0 || totals->cut_bytes > 0 || totals->left_bytes > 0 ||
                         totals->unchecked_bytes > 0 || totals->long_lines > 0 || totals->is_cut;
    if (totals->lines == 0 && (totals->bad_lines > 0 || totals->left_bytes > 0)) {
        input_tell(input, "%s: not a trace: it holds no event%s%s", totals->name,
                   totals->bad_lines > 0 ? "; its first line is " : "", input->first_bad_reason.text);
        return INPUT_FAILED;
    }
    if (totals->bad_lines > 0 && input->handler->on_fault == NULL)
        input_tell(input, "%s: %" PRIu64 " lines are no events and were left out; the first is line %" PRIu64 ": %s",
                   totals->name, totals->bad_lines, input->first_bad_line, input->first_bad_reason.text);
    return is_incomplete ? INPUT_INCOMPLETE : INPUT_FINE;
}

/* A file that can't be opened or read is told, and the others are still read; a handler's failure ends all. */
static enum input_status input_read_file(struct input *input, const char *path, bool *out_is_over)
{
    const struct input_handler *handler = input->handler;
    const struct pfw_reader_options options = {.unpack.is_salvaging = input->is_salvaging};
    CLEANUP(pfw_reader_cleanup) struct pfw_reader *reader = NULL;
    struct error err = {0};
    if (pfw_reader_open(path, &options, &reader, &err) < 0) {
        input_tell(input, "%s", err.text);
        return INPUT_FAILED;
    }
    input->reader = reader;
    int rc = handler->on_file != NULL ? handler->on_file(handler->context, input->totals.name, &err) : 0;
    input->is_over = rc < 0;
    if (rc == 0)
        rc = input_read_items(input, &err);
    input_hide_progress(input);
    input->totals.reader = pfw_reader_status(reader);
    enum input_status status = rc == 0 ? input_verdict(input) : INPUT_FAILED;
    if (rc == 0 && handler->on_end != NULL && status != INPUT_FAILED) {
        rc = handler->on_end(handler->context, &input->totals, &err);
        input->is_over = rc < 0;
    }
    *out_is_over = input->is_over || input->is_enough;
    if (rc < 0) {
        input_tell(input, "%s", err.text);
        return INPUT_FAILED;
    }
    return status;
}

enum input_status input_read(const char *program, char *const *paths, int count, bool is_salvaging,
                             const struct input_handler *handler)
{
    enum input_status worst = INPUT_FINE;
    bool is_over = false;
    for (int i = 0; i < count && !is_over; i++) {
        struct input input = {
            .program = program,
            .handler = handler,
            .is_salvaging = is_salvaging,
            .totals.name = strcmp(paths[i], "-") == 0 ? "standard input" : paths[i],
            .has_progress = isatty(STDERR_FILENO) == 1,
            .start_mono_ns = clock_mono_ns(),
        };
        enum input_status status = input_read_file(&input, paths[i], &is_over);
        worst = status > worst ? status : worst;
    }
    return worst;
}
