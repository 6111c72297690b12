/* SPDX-License-Identifier: BSD-3-Clause */
#include "net/auth.h"

#include <errno.h>
#include <openssl/crypto.h>
#include <stdlib.h>
#include <string.h>
#include <strings.h>

#include "net/auth_nonces.h"
#include "net/http_check.h"
#include "net/peer.h"
#include "net/socket_address.h"

struct auth {
    struct auth_token token; /* length 0: none */
    uid_t own_uid;
    struct auth_nonces *nonces;
    size_t host_count;
    char hosts[AUTH_HOSTS_MAX][HTTP_CHECK_HOST_MAX_BYTES];
};

int auth_new(const struct auth_token *token, uid_t own_uid, struct auth **out_auth, struct error *err)
{
    struct auth *auth = calloc(1, sizeof *auth);
    struct auth_nonces *nonces = auth != NULL ? auth_nonces_new(AUTH_NONCES_WINDOW_MS, AUTH_NONCES_MAX) : NULL;
    if (nonces == NULL) {
        free(auth);
        return error_set(err, -ENOMEM, "authentication");
    }
    auth->own_uid = own_uid;
    auth->nonces = nonces;
    if (token != NULL)
        auth->token = *token;
    *out_auth = auth;
    return 0;
}

void auth_free(struct auth *auth)
{
    if (auth == NULL)
        return;
    auth_nonces_free(auth->nonces);
    OPENSSL_cleanse(&auth->token, sizeof auth->token);
    free(auth);
}

int auth_add_host(struct auth *auth, const char *name, struct error *err)
{
    struct http_check_host host;
    if (!http_check_split_host(name, strlen(name), &host) || host.port != 0)
        return error_set(err, -EINVAL, "'%s' is not a host's name", name);
    if (auth->host_count == AUTH_HOSTS_MAX)
        return error_set(err, -ENOSPC, "more than %d names of this host", AUTH_HOSTS_MAX);
    memcpy(auth->hosts[auth->host_count++], host.name, sizeof host.name);
    return 0;
}

static bool auth_is_own_host(const struct auth *auth, const char *name)
{
    struct sockaddr_storage number;
    if (http_check_is_loopback_name(name) || socket_address_parse(name, 0, &number))
        return true;
    for (size_t i = 0; i < auth->host_count; i++)
        if (strcmp(auth->hosts[i], name) == 0)
            return true;
    return false;
}

/* Is `url` ("http://node7:1337/page", or without a path) of the host and port that the request is for? */
static bool auth_is_same_site(const char *url, const struct http_check_host *host)
{
    enum { HTTP_PORT = 80, HTTPS_PORT = 443 };
    struct http_check_host other;
    bool is_https = strncasecmp(url, "https://", 8) == 0;
    if (!is_https && strncasecmp(url, "http://", 7) != 0)
        return false; /* "null" as well */
    const char *name = url + (is_https ? 8 : 7);
    if (!http_check_split_host(name, strcspn(name, "/?#"), &other))
        return false;
    uint32_t otherwise = is_https ? HTTPS_PORT : HTTP_PORT;
    uint32_t port = host->port != 0 ? host->port : otherwise;
    return strcmp(other.name, host->name) == 0 && (other.port != 0 ? other.port : otherwise) == port;
}

/* How a page of somebody else in a browser of ours would ask. */
static int auth_check_site(const struct auth *auth, const struct auth_facts *facts, struct http_check_host *out_host,
                           struct error *err)
{
    *out_host = (struct http_check_host){0};
    if (facts->host != NULL && !http_check_split_host(facts->host, strlen(facts->host), out_host))
        return error_set(err, -EACCES, "Host '%s' is no host's name", facts->host);
    if (facts->host != NULL && !auth_is_own_host(auth, out_host->name))
        return error_set(err, -EACCES, "Host '%s' is not this proxy; ask it by its own name or its address",
                         facts->host);
    if (facts->origin != NULL && !auth_is_same_site(facts->origin, out_host))
        return error_set(err, -EACCES, "the request comes from another site's page: Origin '%s'", facts->origin);
    if (facts->referer != NULL && !auth_is_same_site(facts->referer, out_host))
        return error_set(err, -EACCES, "the request comes from another site's page: Referer '%s'", facts->referer);
    if (facts->sec_fetch_site != NULL && strcmp(facts->sec_fetch_site, "same-origin") != 0 &&
        strcmp(facts->sec_fetch_site, "none") != 0)
        return error_set(err, -EACCES, "the request comes from another site's page: Sec-Fetch-Site '%s'",
                         facts->sec_fetch_site);
    return 0;
}

static int auth_check_bearer(const struct auth *auth, const char *authorization, struct error *err)
{
    static const char scheme[] = "Bearer ";
    if (strncasecmp(authorization, scheme, sizeof scheme - 1) != 0)
        return error_set(err, -EACCES, "Authorization is not 'Bearer <token>'");
    const char *given = authorization + sizeof scheme - 1;
    given += strspn(given, " ");
    size_t length = strlen(given); /* that the length can be measured doesn't help: it is known */
    if (auth->token.length == 0 || length != auth->token.length || CRYPTO_memcmp(given, auth->token.text, length) != 0)
        return error_set(err, -EACCES, "the token is wrong");
    return 0;
}

static int auth_check_mac(struct auth *auth, const struct auth_facts *facts, int64_t now_wall_ms, struct error *err)
{
    struct auth_mac mac;
    int rc = auth_mac_parse(facts->mac, &mac, err);
    if (rc == 0 && auth->token.length == 0)
        rc = error_set(err, -EACCES, "this proxy has no token");
    if (rc == 0)
        rc = auth_mac_verify(&mac, auth->token.text, auth->token.length, &facts->signed_request, err);
    if (rc == 0)
        rc = auth_nonces_use(auth->nonces, mac.nonce, mac.time_wall_ms, now_wall_ms, err);
    return rc;
}

int auth_may_change(struct auth *auth, const struct auth_facts *facts, int64_t now_wall_ms, struct error *err)
{
    struct http_check_host host;
    int rc = auth_check_site(auth, facts, &host, err);
    if (rc < 0)
        return rc;
    /* Who names a token means it: a wrong one is told, also where none is needed. */
    if (facts->authorization != NULL)
        return auth_check_bearer(auth, facts->authorization, err);
    if (facts->mac != NULL)
        return auth_check_mac(auth, facts, now_wall_ms, err);
    if (facts->is_unix && (facts->unix_uid == auth->own_uid || facts->unix_uid == 0))
        return 0;
    if (facts->is_unix)
        return error_set(err, -EACCES, "this is the proxy of user %u, not of user %u", (unsigned)auth->own_uid,
                         (unsigned)facts->unix_uid);
    if (!facts->has_peer_uid)
        return error_set(err, -EACCES, "changes need the token, or the proxy's UNIX socket");
    if (facts->peer_uid != auth->own_uid)
        return error_set(err, -EACCES, "this is the proxy of user %u, not of user %u; others need its token",
                         (unsigned)auth->own_uid, (unsigned)facts->peer_uid);
    if (facts->host == NULL || !http_check_is_loopback_name(host.name))
        return error_set(err, -EACCES, "without a token, changes must be asked for at localhost");
    return 0;
}

void auth_gather(const struct http_request *request, struct auth_facts *out_facts)
{
    const struct http_request_peer *peer = http_request_peer(request);
    const struct buf *body = http_request_body(request);
    *out_facts = (struct auth_facts){
        .is_unix = peer->is_unix,
        .unix_uid = peer->uid,
        .host = http_request_header(request, "Host"),
        .origin = http_request_header(request, "Origin"),
        .referer = http_request_header(request, "Referer"),
        .sec_fetch_site = http_request_header(request, "Sec-Fetch-Site"),
        .authorization = http_request_header(request, "Authorization"),
        .mac = http_request_header(request, AUTH_MAC_HEADER),
        .signed_request = {.method = http_request_method(request),
                           .target = http_request_raw_target(request),
                           .body = body->data,
                           .body_length = body->length},
    };
    if (!peer->is_unix)
        out_facts->has_peer_uid = peer_uid(&peer->local, &peer->peer, &out_facts->peer_uid, NULL) == 0;
}
