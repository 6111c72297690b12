/* SPDX-License-Identifier: BSD-3-Clause */
/* Whatever a scraped target answers. The first byte's lowest bit chooses the format. */
#include <assert.h>
#include <string.h>

#include "fuzz.h"
#include "metric/exposition_parse.h"
#include "metric/name.h"

enum { SAMPLES_MAX = 1000 };

static void on_sample(void *context, const struct exposition_sample *sample)
{
    size_t *count = context;
    assert(++*count <= SAMPLES_MAX);
    assert(sample->name_bytes > 0 && strlen(sample->name) == sample->name_bytes);
    assert(sample->name_bytes <= EXPOSITION_PARSE_LINE_MAX_BYTES);
    assert(strlen(sample->doc) <= EXPOSITION_PARSE_DOC_MAX_BYTES);
    struct buf legal;
    buf_init(&legal, 8 * (size_t)EXPOSITION_PARSE_LINE_MAX_BYTES);
    bool was_legal;
    /* A name that it lets through is refused for its length alone. */
    int rc = metric_name_parse(sample->name, sample->name_bytes, &legal, &was_legal, NULL);
    assert(rc == 0 || sample->name_bytes > METRIC_NAME_MAX_BYTES / 3);
    buf_fini(&legal);
}

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size)
{
    if (size == 0)
        return 0;
    size_t count = 0;
    const struct exposition_parse_config config = {
        .is_openmetrics = (data[0] & 1) != 0, .samples_max = SAMPLES_MAX, .on_sample = on_sample, .context = &count};
    struct exposition_parse_report report;
    if (exposition_parse_text((const char *)data + 1, size - 1, &config, &report) < 0)
        return 0;
    assert(report.samples == count && (report.lines_bad == 0) == (report.first_bad_line == 0));
    return 0;
}
