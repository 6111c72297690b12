/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * scrape_url: where a target is, from the forms in which people and scripts write it.
 *
 *     node7:9100    [::1]:9100    http://node7:9100/    https://node7/custom/metrics?x=1    http://node7:1337/job
 *
 * Two forms of one target have one key: case, a blank path, "localhost", the paths that /join/list shows. Looks no name
 * up. Pure; any thread.
 */
#ifndef PROXY_SCRAPE_URL_H
#define PROXY_SCRAPE_URL_H

#include <stdbool.h>
#include <stdint.h>

#include "util/error.h"

#define SCRAPE_URL_HOST_MAX_BYTES 253
#define SCRAPE_URL_PATH_MAX_BYTES 1024
#define SCRAPE_URL_TEXT_MAX_BYTES (SCRAPE_URL_HOST_MAX_BYTES + SCRAPE_URL_PATH_MAX_BYTES + 32)

struct scrape_url {
    char host[SCRAPE_URL_HOST_MAX_BYTES + 1]; /* lower case; an IPv6 address without its brackets */
    uint16_t port;
    char path[SCRAPE_URL_PATH_MAX_BYTES + 1]; /* "" : the usual one of its kind */
    bool is_metrics;                          /* the path says that it is no proxy */
    char origin[SCRAPE_URL_TEXT_MAX_BYTES];   /* "http://host:port", what a path is appended to */
    char key[SCRAPE_URL_TEXT_MAX_BYTES];      /* the same for all forms of one target */
};

/* -EINVAL says what is wrong: a port is missing, a scheme other than http and https, a user, a blank, … */
MUST_CHECK int scrape_url_parse(const char *text, struct scrape_url *out_url, struct error *err);

#endif
