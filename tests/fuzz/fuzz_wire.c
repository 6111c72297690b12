/* SPDX-License-Identifier: BSD-3-Clause */
/* Whatever a client of the proxy's socket sends, in whichever pieces. The first byte says how long the pieces are. */
#include <stdlib.h>
#include <unistd.h>

#include "fuzz.h"
#include "proxy/contributor.h"
#include "proxy/wire.h"

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size)
{
    struct jobs *jobs = NULL;
    struct segments *segments = NULL;
    const struct jobs_config config = {
        .hostname = "host", .jobs_max = 4, .metrics_per_job_max = 50, .metrics_max = 100, .linger_ns = 1};
    if (size < 1 || jobs_new(&config, &jobs, NULL) < 0)
        return 0;
    struct wire *wire = NULL;
    if (segments_new(jobs, "/nowhere", 0, &segments, NULL) == 0)
        wire = wire_open(jobs, segments, 0, 0);
    size_t piece = (size_t)data[0] + 1;
    int rc = wire != NULL ? 0 : -1;
    for (size_t at = 1; at < size && rc == 0; at += piece)
        rc = wire_feed(wire, data + at, size - at < piece ? size - at : piece, 1, NULL);
    jobs_begin(jobs);
    struct contributor *contributor = jobs_first_contributor(jobs);
    for (; contributor != NULL; contributor = contributor_links(contributor)->next)
        contributor_add(contributor);
    jobs_end(jobs);
    wire_close(wire, 1, 1);
    segments_free(segments);
    jobs_free(jobs);
    return 0;
}
