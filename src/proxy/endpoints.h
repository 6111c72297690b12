/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * endpoints: finds the row of a request (endpoint.h) and calls its handler, if whoever asks may.
 */
#ifndef PROXY_ENDPOINTS_H
#define PROXY_ENDPOINTS_H

#include "net/auth.h"
#include "proxy/endpoint.h"
#include "proxy/settings.h"

struct endpoints {
    struct endpoint_parts parts;
    struct auth *auth; /* borrowed */
    enum settings_auth mode;
    uint64_t refused; /* for want of a right */
};

/* For http_server_config: `context` is a struct endpoints. */
void endpoints_handle(void *context, struct http_request *request);

#endif
