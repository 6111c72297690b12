/* SPDX-License-Identifier: BSD-3-Clause */
/* What somebody names as a target, and as a set of addresses. A target's own form is the same target. */
#include <assert.h>
#include <stdlib.h>
#include <string.h>

#include "fuzz.h"
#include "net/cidr.h"
#include "proxy/scrape_url.h"

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size)
{
    char *text = strndup((const char *)data, size);
    assert(text != NULL);
    struct scrape_url url;
    if (scrape_url_parse(text, &url, NULL) == 0) {
        char again[2 * SCRAPE_URL_TEXT_MAX_BYTES];
        assert(strlen(url.origin) + strlen(url.path) < sizeof again);
        memcpy(again, url.origin, strlen(url.origin));
        memcpy(again + strlen(url.origin), url.path, strlen(url.path) + 1);
        struct scrape_url same;
        assert(scrape_url_parse(again, &same, NULL) == 0);
        assert(strcmp(same.key, url.key) == 0 && same.port == url.port && strchr(url.host, '/') == NULL);
    }
    struct cidr cidr;
    if (cidr_parse(text, &cidr, NULL) == 0)
        assert(cidr.count > 0 && cidr.count <= CIDR_RANGES_MAX);
    free(text);
    return 0;
}
