/* SPDX-License-Identifier: BSD-3-Clause */
/* Whatever the kernel's socket for questions says. */
#include "net/peer.h"

#include <stdbool.h>
#include <stdlib.h>

#include "fuzz.h"
#include "net/socket_address.h"

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size)
{
    struct sockaddr_storage local, peer;
    uid_t uid = 0;
    bool is_parsed = socket_address_parse("127.0.0.1", 1337, &local) && socket_address_parse("127.0.0.1", 40000, &peer);
    if (is_parsed && peer_judge(data, size, &local, &peer, &uid, NULL) == 0 && uid == 65534)
        abort(); /* the user that nobody is */
    return 0;
}
