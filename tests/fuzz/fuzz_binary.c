/* SPDX-License-Identifier: BSD-3-Clause */
#include "fuzz.h"

#include <assert.h>

#include "run/binary.h"

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size)
{
    struct binary binary;
    bool is_whole = binary_parse(cursor_of((const char *)data, size), &binary);
    assert(binary.is_elf || !is_whole);
    assert(!(binary.is_foreign && (binary.is_static || binary.mpi != BINARY_MPI_NONE)));
    return 0;
}
