/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * stuckread: reads that don't come back, for tests. Preloaded, it lets pread() hang for good while the file
 * $STUCKREAD_FILE exists: what a fault in the kernel does to a collector.
 */
#include <stdlib.h>
#include <sys/syscall.h>
#include <unistd.h>

/* NOLINTNEXTLINE(readability-inconsistent-declaration-parameter-name): the C library's names are reserved */
__attribute__((visibility("default"))) ssize_t pread(int fd, void *bytes, size_t length, off_t offset)
{
    const char *path = getenv("STUCKREAD_FILE");
    while (path != NULL && access(path, F_OK) == 0)
        pause();
    return syscall(SYS_pread64, fd, bytes, length, offset);
}
