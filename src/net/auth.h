/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * auth: may this request change something? Reading is another question: see whoever serves it.
 *
 * Refused whoever asks: a Host that is not this proxy, an Origin, Referer or Sec-Fetch-Site of another page. That is
 * how a web page that a user of this machine looks at would ask. Then one of these is needed: the UNIX socket as the
 * same user or root; the token; a MAC under it (auth_mac.h); a loopback peer of the same user (peer.h), under a
 * loopback Host. No rule for root over TCP. Loop thread only.
 */
#ifndef NET_AUTH_H
#define NET_AUTH_H

#include <stdbool.h>
#include <stdint.h>
#include <sys/types.h>

#include "net/auth_mac.h"
#include "net/auth_token.h"
#include "net/http_request.h"
#include "util/error.h"

struct auth;

#define AUTH_HOSTS_MAX 16

/* What a decision needs to know of a request. Texts are borrowed, NULL when there is none. */
struct auth_facts {
    bool is_unix;
    uid_t unix_uid;
    bool has_peer_uid; /* a loopback peer whose user is known for certain */
    uid_t peer_uid;
    const char *host;
    const char *origin;
    const char *referer;
    const char *sec_fetch_site;
    const char *authorization;
    const char *mac; /* X-Cicada-Auth */
    struct auth_mac_request signed_request;
};

/*
 * `token` (copied; NULL: there is none, and nobody has it) and `own_uid`, who is served. -ENOMEM.
 */
MUST_CHECK int auth_new(const struct auth_token *token, uid_t own_uid, struct auth **out_auth, struct error *err);
void auth_free(struct auth *auth);
DEFINE_CLEANUP(auth, auth_free);

/*
 * This machine's name, as a Host may have it: "node7", "node7.cluster". Numbers and loopback names are always ours: no
 * page of others can have them as its Host. -ENOSPC past AUTH_HOSTS_MAX; -EINVAL: no name.
 */
MUST_CHECK int auth_add_host(struct auth *auth, const char *name, struct error *err);

/* 0: yes. -EACCES: no, with the reason and what would help; also -EBADMSG and what auth_nonces_use() says. */
MUST_CHECK int auth_may_change(struct auth *auth, const struct auth_facts *facts, int64_t now_wall_ms,
                               struct error *err);

/* The facts of `request`; asks the kernel about a loopback peer. Borrows from the request. */
void auth_gather(const struct http_request *request, struct auth_facts *out_facts);

#endif
