/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * The loader knows the symbols that a library exports (dladdr1). What is static, or in a program that exports nothing,
 * only the file knows: its section .symtab (System V ABI, chapter 4), which strip(1) takes away.
 */
#include "client/symbol.h"

#include <dlfcn.h>
#include <elf.h>
#include <link.h>
#include <stdbool.h>
#include <string.h>

#include "client/sys.h"

struct symbol_file {
    const char *bytes;
    uint64_t length;
};

static const void *symbol_at(const struct symbol_file *file, uint64_t offset, uint64_t bytes)
{
    return offset <= file->length && bytes <= file->length - offset ? file->bytes + offset : NULL;
}

static bool symbol_section(const struct symbol_file *file, const Elf64_Ehdr *head, uint64_t index,
                           Elf64_Shdr *out_section)
{
    const void *at = index < head->e_shnum
                         ? symbol_at(file, head->e_shoff + index * sizeof *out_section, sizeof *out_section)
                         : NULL;
    if (at != NULL)
        memcpy(out_section, at, sizeof *out_section);
    return at != NULL;
}

/* The name of the function at `value` in one symbol table; NULL. */
static const char *symbol_search(const struct symbol_file *file, const Elf64_Shdr *symbols, const Elf64_Shdr *strings,
                                 uint64_t value)
{
    for (uint64_t i = 0; i < symbols->sh_size / sizeof(Elf64_Sym); i++) {
        Elf64_Sym symbol;
        const void *at = symbol_at(file, symbols->sh_offset + i * sizeof symbol, sizeof symbol);
        if (at == NULL)
            return NULL;
        memcpy(&symbol, at, sizeof symbol);
        if (symbol.st_value != value || ELF64_ST_TYPE(symbol.st_info) != STT_FUNC || symbol.st_name >= strings->sh_size)
            continue;
        const char *name = symbol_at(file, strings->sh_offset + symbol.st_name, 1);
        uint64_t room = strings->sh_size - symbol.st_name;
        if (name != NULL && symbol_at(file, strings->sh_offset + symbol.st_name, room) != NULL &&
            memchr(name, '\0', room) != NULL && name[0] != '\0')
            return name;
    }
    return NULL;
}

static const char *symbol_in_file(const struct symbol_file *file, uint64_t value)
{
    Elf64_Ehdr head;
    const void *start = symbol_at(file, 0, sizeof head);
    if (start == NULL || memcmp(start, ELFMAG, SELFMAG) != 0)
        return NULL;
    memcpy(&head, start, sizeof head);
    if (head.e_ident[EI_CLASS] != ELFCLASS64 || head.e_shentsize != sizeof(Elf64_Shdr))
        return NULL;
    Elf64_Shdr section;
    Elf64_Shdr strings;
    for (uint64_t i = 0; symbol_section(file, &head, i, &section); i++) {
        if (section.sh_type == SHT_SYMTAB && symbol_section(file, &head, section.sh_link, &strings))
            return symbol_search(file, &section, &strings, value);
    }
    return NULL;
}

/* Appends the name that the file `path` has for the function at `value`; false when it has none. */
static bool symbol_add_from_file(const char *path, uint64_t value, struct text *out)
{
    struct stat status;
    int fd = sys_open(AT_FDCWD, path, O_RDONLY, 0);
    if (fd < 0)
        return false;
    void *bytes = MAP_FAILED;
    if (sys_stat_fd(fd, &status) == 0 && status.st_size > 0)
        bytes = mmap(NULL, (size_t)status.st_size, PROT_READ, MAP_PRIVATE, fd, 0);
    sys_close(fd);
    if (bytes == MAP_FAILED)
        return false;
    const struct symbol_file file = {.bytes = bytes, .length = (uint64_t)status.st_size};
    const char *name = symbol_in_file(&file, value);
    if (name != NULL)
        text_add(out, name);
    (void)munmap(bytes, (size_t)status.st_size); /* of our own mapping: can't fail */
    return name != NULL;
}

static void symbol_add_hex(uint64_t number, struct text *out)
{
    text_add(out, "0x");
    bool has_begun = false;
    for (int shift = 60; shift >= 0; shift -= 4) {
        unsigned digit = (unsigned)(number >> shift) & 15;
        has_begun = has_begun || digit != 0 || shift == 0;
        if (has_begun)
            text_add_bytes(out, &"0123456789abcdef"[digit], 1);
    }
}

void symbol_name(const void *function, struct text *out)
{
    Dl_info info;
    struct link_map *map = NULL;
    bool is_known = dladdr1(function, &info, (void **)&map, RTLD_DL_LINKMAP) != 0 && map != NULL;
    uint64_t value = (uint64_t)(uintptr_t)function - (is_known ? (uint64_t)map->l_addr : 0);
    /* The program's own name in the loader's list is "". */
    const char *path = is_known && map->l_name != NULL && map->l_name[0] != '\0' ? map->l_name : "/proc/self/exe";
    const char *shown = is_known && info.dli_fname != NULL ? info.dli_fname : "";
    const char *slash = strrchr(shown, '/');
    if (is_known && info.dli_sname != NULL && info.dli_saddr == function)
        text_add(out, info.dli_sname);
    else if (!is_known || !symbol_add_from_file(path, value, out))
        symbol_add_hex(value, out);
    text_add(out, "_");
    text_add(out, slash != NULL ? slash + 1 : shown);
}
