/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * ELF (System V ABI, chapters 4 and 5; elf(5)): the header names the table of segments. Segment PT_INTERP names the
 * loader; PT_DYNAMIC lists tags, of which DT_NEEDED are offsets of library names in the string table, whose address
 * DT_STRTAB is turned into a place in the file by the PT_LOAD that holds it. All of it comes from outside: each offset
 * is checked against the file's length before it is used.
 */
#include "run/binary.h"

#include <elf.h>
#include <errno.h>
#include <fcntl.h>
#include <string.h>
#include <sys/mman.h>
#include <sys/stat.h>
#include <unistd.h>

#include "util/cleanup.h"

enum { BINARY_LIBRARIES_MAX = 4096, BINARY_SEGMENTS_MAX = 1024 };

#if __BYTE_ORDER__ == __ORDER_LITTLE_ENDIAN__
#define BINARY_OWN_ORDER ELFDATA2LSB
#else
#define BINARY_OWN_ORDER ELFDATA2MSB
#endif

#if defined __x86_64__
#define BINARY_OWN_MACHINE EM_X86_64
#elif defined __aarch64__
#define BINARY_OWN_MACHINE EM_AARCH64
#elif defined __powerpc64__
#define BINARY_OWN_MACHINE EM_PPC64
#else
#define BINARY_OWN_MACHINE EM_RISCV
#endif

static const char binary_hook[] = "__cyg_profile_func_enter";

/* `bytes` at `offset`; NULL when the file has not so many. */
static const void *binary_at(const struct cursor *file, uint64_t offset, uint64_t bytes)
{
    uint64_t length = cursor_left(file);
    return offset <= length && bytes <= length - offset ? file->at + offset : NULL;
}

/* The text at `offset`, which must end within the file. */
static const char *binary_text(const struct cursor *file, uint64_t offset)
{
    const char *text = binary_at(file, offset, 1);
    return text != NULL && memchr(text, '\0', (size_t)(file->end - text)) != NULL ? text : NULL;
}

static bool binary_segment(const struct cursor *file, const Elf64_Ehdr *head, unsigned index, Elf64_Phdr *out_segment)
{
    const void *at = binary_at(file, head->e_phoff + (uint64_t)index * sizeof *out_segment, sizeof *out_segment);
    if (at != NULL)
        memcpy(out_segment, at, sizeof *out_segment); /* may lie anywhere */
    return at != NULL;
}

/* Where in the file `address` is. */
static bool binary_offset(const struct cursor *file, const Elf64_Ehdr *head, uint64_t address, uint64_t *out_offset)
{
    Elf64_Phdr segment;
    for (unsigned i = 0; i < head->e_phnum && binary_segment(file, head, i, &segment); i++) {
        if (segment.p_type != PT_LOAD || address < segment.p_vaddr || address - segment.p_vaddr >= segment.p_filesz)
            continue;
        *out_offset = segment.p_offset + (address - segment.p_vaddr);
        return true;
    }
    return false;
}

static bool binary_dynamic(const struct cursor *file, const Elf64_Phdr *segment, size_t index, Elf64_Dyn *out_tag)
{
    if (index >= segment->p_filesz / sizeof *out_tag)
        return false;
    const void *at = binary_at(file, segment->p_offset + index * sizeof *out_tag, sizeof *out_tag);
    if (at != NULL)
        memcpy(out_tag, at, sizeof *out_tag);
    return at != NULL && out_tag->d_tag != DT_NULL;
}

/* Is the hook's name among the strings? They hold the names of all symbols that the loader must find. */
static bool binary_has_hook(const struct cursor *file, uint64_t strings, uint64_t bytes)
{
    const char *text = binary_at(file, strings, bytes);
    return text != NULL && bytes > 0 && memmem(text, bytes, binary_hook, sizeof binary_hook) != NULL;
}

static void binary_read_dynamic(const struct cursor *file, const Elf64_Ehdr *head, const Elf64_Phdr *segment,
                                struct binary *out_binary)
{
    uint64_t strings_address = 0;
    uint64_t strings_bytes = 0;
    uint64_t strings = 0;
    Elf64_Dyn tag;
    for (size_t i = 0; binary_dynamic(file, segment, i, &tag); i++) {
        if (tag.d_tag == DT_STRTAB)
            strings_address = tag.d_un.d_ptr;
        else if (tag.d_tag == DT_STRSZ)
            strings_bytes = tag.d_un.d_val;
    }
    if (!binary_offset(file, head, strings_address, &strings))
        return;
    out_binary->has_instrument_hooks = binary_has_hook(file, strings, strings_bytes);
    for (size_t i = 0; i < BINARY_LIBRARIES_MAX && binary_dynamic(file, segment, i, &tag); i++) {
        const char *library = tag.d_tag == DT_NEEDED ? binary_text(file, strings + tag.d_un.d_val) : NULL;
        enum binary_mpi mpi = library != NULL ? binary_mpi_of(library) : BINARY_MPI_NONE;
        if (mpi != BINARY_MPI_NONE)
            out_binary->mpi = mpi;
    }
}

enum binary_mpi binary_mpi_of(const char *library)
{
    /* libmpi.so.12 is what MPICH's descendants share (the ABI compatibility initiative); Open MPI's has other numbers.
     */
    static const struct {
        const char *start;
        enum binary_mpi mpi;
    } libraries[] = {
        {"libmpich.so", BINARY_MPI_MPICH},     {"libmpichfort.so", BINARY_MPI_MPICH},
        {"libmpichcxx.so", BINARY_MPI_MPICH},  {"libmpi.so.12", BINARY_MPI_MPICH},
        {"libmpifort.so", BINARY_MPI_MPICH},   {"libmpi_cray", BINARY_MPI_MPICH},
        {"libmpi.so", BINARY_MPI_OPENMPI},     {"libmpi_mpifh.so", BINARY_MPI_OPENMPI},
        {"libmpi_usempi", BINARY_MPI_OPENMPI}, {"libmpi_cxx.so", BINARY_MPI_OPENMPI},
    };
    for (size_t i = 0; i < ARRAY_LENGTH(libraries); i++) {
        if (strncmp(library, libraries[i].start, strlen(libraries[i].start)) == 0)
            return libraries[i].mpi;
    }
    return BINARY_MPI_NONE;
}

bool binary_is_starter(const char *path)
{
    static const char *const names[] = {"mpirun", "mpiexec", "orterun", "prterun", "srun",    "jsrun",   "aprun",
                                        "ibrun",  "sh",      "bash",    "dash",    "ksh",     "zsh",     "csh",
                                        "tcsh",   "env",     "numactl", "taskset", "timeout", "python3", "python"};
    const char *slash = strrchr(path, '/');
    const char *name = slash != NULL ? slash + 1 : path;
    for (size_t i = 0; i < ARRAY_LENGTH(names); i++) {
        size_t length = strlen(names[i]);
        if (strncmp(name, names[i], length) == 0 && (name[length] == '\0' || name[length] == '.'))
            return true;
    }
    return false;
}

bool binary_parse(struct cursor file, struct binary *out_binary)
{
    *out_binary = (struct binary){0};
    Elf64_Ehdr head;
    const void *start = binary_at(&file, 0, sizeof head);
    if (start == NULL || memcmp(start, ELFMAG, SELFMAG) != 0)
        return false;
    memcpy(&head, start, sizeof head);
    out_binary->is_elf = true;
    out_binary->is_foreign = head.e_ident[EI_CLASS] != ELFCLASS64 || head.e_ident[EI_DATA] != BINARY_OWN_ORDER ||
                             head.e_machine != BINARY_OWN_MACHINE;
    if (out_binary->is_foreign)
        return true;
    if (head.e_phentsize != sizeof(Elf64_Phdr) || head.e_phnum > BINARY_SEGMENTS_MAX)
        return false;
    out_binary->is_static = true;
    Elf64_Phdr segment;
    for (unsigned i = 0; i < head.e_phnum && binary_segment(&file, &head, i, &segment); i++) {
        if (segment.p_type == PT_INTERP)
            out_binary->is_static = false;
        else if (segment.p_type == PT_DYNAMIC)
            binary_read_dynamic(&file, &head, &segment, out_binary);
    }
    return true;
}

int binary_look(const char *path, struct binary *out_binary, struct error *err)
{
    *out_binary = (struct binary){0};
    CLEANUP(fd_cleanup) int fd = open(path, O_RDONLY | O_CLOEXEC | O_NONBLOCK);
    struct stat status;
    if (fd < 0 || fstat(fd, &status) < 0)
        return error_errno(err, "looking at '%s'", path);
    if (S_ISREG(status.st_mode) && status.st_size > 0) {
        /* A file that somebody cuts meanwhile would end us by SIGBUS: as it would end the program, too. */
        void *bytes = mmap(NULL, (size_t)status.st_size, PROT_READ, MAP_PRIVATE, fd, 0);
        if (bytes == MAP_FAILED)
            return error_errno(err, "looking at '%s'", path);
        (void)binary_parse(cursor_of(bytes, (size_t)status.st_size), out_binary); /* no ELF is an answer, too */
        (void)munmap(bytes, (size_t)status.st_size);                              /* of our own mapping: can't fail */
    }
    out_binary->is_privileged = ((status.st_mode & S_ISUID) != 0 && status.st_uid != geteuid()) ||
                                ((status.st_mode & S_ISGID) != 0 && status.st_gid != getegid());
    return 0;
}
