/* SPDX-License-Identifier: BSD-3-Clause */
/* Whatever the kernel's socket for questions says. */
#include "net/peer.h"

#include "fuzz.h"
#include "net/socket_address.h"

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size)
{
    struct sockaddr_storage local, peer;
    uid_t uid;
    if (socket_address_parse("127.0.0.1", 1337, &local) && socket_address_parse("127.0.0.1", 40000, &peer))
        (void)peer_judge(data, size, &local, &peer, &uid, NULL);
    return 0;
}
