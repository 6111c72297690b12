/* SPDX-License-Identifier: BSD-3-Clause */
/* cicada doctor: would a program of mine be measured here, by what, and what to do where it would not. */
#include <errno.h>
#include <fcntl.h>
#include <inttypes.h>
#include <limits.h>
#include <stdarg.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/resource.h>
#include <sys/stat.h>
#include <sys/statvfs.h>
#include <unistd.h>

#include "cli/command.h"
#include "cli/proxy_command.h"
#include "cli/proxy_commands.h"
#include "run/binary.h"
#include "run/check.h"
#include "run/exporters.h"
#include "run/search.h"
#include "util/beacon.h"
#include "util/cursor.h"
#include "util/file.h"

enum {
    DOCTOR_TEXT_MAX_BYTES = 1 << 20,
    DOCTOR_PATH_MAX_BYTES = 2 * PATH_MAX,
    DOCTOR_SHARED_MIN_BYTES = 16 << 20, /* of /dev/shm: the segments of some hundred processes */
};

static const struct cli_option doctor_options[] = {PROXY_COMMAND_COMMON_OPTIONS};

static const struct cli_command doctor_command = {
    .name = "cicada doctor",
    .operands = "[PROGRAM]",
    .summary = "Tells whether programs of mine would be measured on this node, by what, and what to do if not",
    .details = "With PROGRAM (a path, or a name that PATH has): also what would count in it.\n"
               "Exit status: 0 all is well; 1 something is to be mended; 2 bad usage.\n",
    .options = doctor_options,
    .options_count = ARRAY_LENGTH(doctor_options),
};

struct doctor {
    struct buf text;
    unsigned faults;
};

static void PRINTF_LIKE(2, 3) doctor_say_fine(struct doctor *doctor, const char *format, ...)
{
    char line[DOCTOR_PATH_MAX_BYTES];
    va_list arguments;
    va_start(arguments, format);
    (void)vsnprintf(line, sizeof line, format, arguments); /* cut when too long */
    va_end(arguments);
    buf_text(&doctor->text, "  ok     ");
    command_clean(&doctor->text, line, strlen(line));
    buf_char(&doctor->text, '\n');
}

/* `remedy`: what to do. */
static void doctor_say_fault(struct doctor *doctor, const char *what, const char *remedy)
{
    doctor->faults++;
    buf_text(&doctor->text, "  FAULT  ");
    command_clean(&doctor->text, what, strlen(what));
    buf_text(&doctor->text, "\n         -> ");
    command_clean(&doctor->text, remedy, strlen(remedy));
    buf_char(&doctor->text, '\n');
}

/* ---- the proxy ---- */

static void doctor_look_at_socket(struct doctor *doctor, const char *path)
{
    struct error err = {0};
    int rc = check_proxy(path, &err);
    if (rc == 0)
        doctor_say_fine(doctor, "a proxy of this user answers at %s", path);
    else if (rc == -EPERM)
        doctor_say_fault(doctor, err.text, "set PROXY_PATH to a path of yours, for proxy_v2 and for programs");
    else
        doctor_say_fault(doctor, err.text,
                         "start proxy_v2 on this node; if it runs, PROXY_PATH must be the same for both");
}

static void doctor_look_at_http(struct doctor *doctor, const char *address)
{
    CLEANUP(remote_cleanup) struct remote *remote = NULL;
    CLEANUP(buf_cleanup) struct buf answer;
    buf_init(&answer, DOCTOR_TEXT_MAX_BYTES);
    struct error err = {0};
    int rc = remote_open(address, &remote, &err);
    if (rc == 0)
        rc = remote_get(remote, "/readyz", &answer, &err);
    if (rc == 0)
        doctor_say_fine(doctor, "it is ready at %s", remote_url(remote));
    else
        doctor_say_fault(doctor, err.text,
                         "look into the proxy's log; a proxy that was killed leaves its beacon behind");
    json_t *edges = NULL;
    if (rc == 0 && remote_get_json(remote, "/topo", &edges, &err) == 0)
        doctor_say_fine(doctor, "%s",
                        json_array_size(edges) <= 1 ? "it sums up this node alone, and is its own root"
                                                    : "it belongs to a tree of proxies: cicada topo");
    json_decref(edges);
}

static void doctor_look_at_token(struct doctor *doctor, const char *path)
{
    if (access(path, R_OK) == 0)
        doctor_say_fine(doctor, "the token for changes can be read: %s", path);
    else
        doctor_say_fault(doctor, path,
                         "the token can't be read: changes (alarms, /set) need the proxy's UNIX socket then");
}

static void doctor_look_at_proxy(struct doctor *doctor, const char *address)
{
    CLEANUP(buf_cleanup) struct buf path;
    buf_init(&path, BEACON_TEXT_MAX_BYTES);
    buf_text(&doctor->text, "The proxy\n");
    if (address != NULL) {
        doctor_look_at_http(doctor, address);
        return;
    }
    beacon_socket_path(&path);
    doctor_look_at_socket(doctor, buf_string(&path));
    struct beacon beacon;
    struct error err = {0};
    if (beacon_read(buf_string(&path), &beacon, &err) < 0)
        return; /* said already: there is none */
    doctor_look_at_http(doctor, beacon.address);
    doctor_look_at_token(doctor, beacon.token_file);
}

/* ---- where programs count ---- */

static void doctor_look_at_directory(struct doctor *doctor)
{
    CLEANUP(buf_cleanup) struct buf path;
    buf_init(&path, DOCTOR_PATH_MAX_BYTES);
    buf_printf(&path, "/dev/shm/cicada-%u", (unsigned)getuid());
    struct error err = {0};
    if (file_private_directory(buf_string(&path), &err) < 0)
        doctor_say_fault(doctor, err.text,
                         "programs then count in memory that only a connected proxy sees: remove what is there");
    else
        doctor_say_fine(doctor, "programs share their counters in %s", buf_string(&path));
}

static void doctor_look_at_shared_memory(struct doctor *doctor)
{
    struct statvfs space;
    buf_text(&doctor->text, "Shared memory\n");
    doctor_look_at_directory(doctor);
    if (statvfs("/dev/shm", &space) < 0 || (uint64_t)space.f_bavail * space.f_frsize < DOCTOR_SHARED_MIN_BYTES)
        doctor_say_fault(doctor, "/dev/shm is full, or not there",
                         "free some of it: counters of new processes need room there");
    struct rlimit limit;
    if (getrlimit(RLIMIT_FSIZE, &limit) == 0 && limit.rlim_cur < DOCTOR_SHARED_MIN_BYTES)
        doctor_say_fault(doctor, "ulimit -f allows programs only small files",
                         "raise it where programs start: a segment is a file, too");
}

/* ---- exporters and programs ---- */

static void doctor_look_at_exporters(struct doctor *doctor, const struct exporters *exporters)
{
    buf_text(&doctor->text, "Exporters\n");
    for (size_t i = 0; i < exporters->count; i++) {
        CLEANUP(buf_cleanup) struct buf path;
        buf_init(&path, DOCTOR_PATH_MAX_BYTES);
        exporters_path(exporters, exporters->names[i], BINARY_MPI_NONE, &path);
        doctor_say_fine(doctor, "%s: %s", exporters->names[i], buf_string(&path));
    }
    const char *preload = getenv("LD_PRELOAD");
    if (preload != NULL && preload[0] != '\0')
        doctor_say_fine(doctor, "LD_PRELOAD has '%s': proxy_run puts ours before it", preload);
}

/* Kernel's own switch for looking into other processes, which tools for system calls need. */
static void doctor_look_at_ptrace(struct doctor *doctor)
{
    CLEANUP(buf_cleanup) struct buf text;
    buf_init(&text, BEACON_TEXT_MAX_BYTES);
    if (file_read(AT_FDCWD, "/proc/sys/kernel/yama/ptrace_scope", &text, NULL) < 0)
        return; /* a kernel without that switch allows it */
    struct cursor cursor = cursor_of(text.data, text.length);
    uint64_t scope;
    if (cursor_u64(&cursor, &scope) && scope >= 2 && geteuid() != 0)
        doctor_say_fault(doctor, "the kernel allows no ptrace (kernel.yama.ptrace_scope)",
                         "tools like strace can't be used here; ours for MPI and functions don't need it");
    else
        doctor_say_fine(doctor, "ptrace is allowed for a program's own children");
}

static const char *doctor_why_not(const struct binary *binary)
{
    if (binary->is_static)
        return "it is linked statically: nothing can be preloaded into it";
    if (binary->is_privileged)
        return "it is set-uid or set-gid: the loader ignores what is preloaded";
    return binary->is_foreign ? "it is of another architecture" : NULL;
}

static void doctor_look_at_choice(struct doctor *doctor, const struct exporters *exporters, const char *path,
                                  const struct binary *binary)
{
    const struct exporters_program program = {.path = path, .binary = binary};
    struct exporters_choice choice = {0};
    struct error err = {0};
    buf_init(&choice.preload, DOCTOR_TEXT_MAX_BYTES);
    const char *wanted = getenv("PROXY_EXPORTERS");
    if (exporters_choose(exporters, wanted, &program, &choice, &err) < 0)
        doctor_say_fault(doctor, err.text, "PROXY_EXPORTERS names it");
    else if (choice.preload.length > 0)
        doctor_say_fine(doctor, "proxy_run would preload %s", buf_string(&choice.preload));
    else
        doctor_say_fine(doctor, "proxy_run would preload nothing: it is no MPI program and was not built with "
                                "-finstrument-functions; what it counts itself by libproxyclient is seen");
    buf_fini(&choice.preload);
}

static void doctor_look_at_program(struct doctor *doctor, const struct exporters *exporters, const char *name)
{
    static const char *const mpis[] = {
        [BINARY_MPI_NONE] = NULL, [BINARY_MPI_OPENMPI] = "Open MPI", [BINARY_MPI_MPICH] = "MPICH, or one like it"};
    CLEANUP(buf_cleanup) struct buf path;
    buf_init(&path, DOCTOR_PATH_MAX_BYTES);
    buf_text(&doctor->text, "The program\n");
    struct binary binary;
    struct error err = {0};
    if (search_program(name, &path, &err) < 0) {
        doctor_say_fault(doctor, err.text, "name a program, by its path or as PATH has it");
        return;
    }
    if (binary_look(buf_string(&path), &binary, &err) < 0) {
        doctor_say_fault(doctor, err.text, "it can be run but not read: what it is can't be told");
        return;
    }
    const char *why_not = doctor_why_not(&binary);
    if (why_not != NULL) {
        doctor_say_fault(doctor, why_not, "build it with the shared libraries, or count in it by libproxyclient");
        return;
    }
    if (!binary.is_elf)
        doctor_say_fine(doctor, "%s is a script: what it starts decides; mpirun's variables tell proxy_run which MPI",
                        buf_string(&path));
    if (mpis[binary.mpi] != NULL)
        doctor_say_fine(doctor, "%s is a program of %s", buf_string(&path), mpis[binary.mpi]);
    doctor_look_at_choice(doctor, exporters, buf_string(&path), &binary);
}

int proxy_commands_doctor(int argc, char **argv)
{
    struct proxy_command_common values = {0};
    const char *program;
    int status;
    if (!proxy_command_begin(&doctor_command, argc, argv, &values, &program, &status))
        return status;
    struct doctor doctor = {0};
    buf_init(&doctor.text, DOCTOR_TEXT_MAX_BYTES);
    doctor_look_at_proxy(&doctor, values.proxy);
    doctor_look_at_shared_memory(&doctor);
    CLEANUP(exporters_cleanup) struct exporters exporters;
    struct error err = {0};
    if (exporters_find(&exporters, &err) < 0) {
        doctor_say_fault(&doctor, err.text, "install Cicada as a whole: programs and libraries");
    } else {
        doctor_look_at_exporters(&doctor, &exporters);
        doctor_look_at_ptrace(&doctor);
        if (program != NULL)
            doctor_look_at_program(&doctor, &exporters, program);
    }
    if (doctor.faults == 0)
        buf_text(&doctor.text, "All is well.\n");
    int rc = proxy_command_print(&doctor.text, &err);
    buf_fini(&doctor.text);
    if (rc < 0)
        return proxy_command_fail(&doctor_command, rc, &err);
    return doctor.faults == 0 ? PROXY_COMMAND_FINE : PROXY_COMMAND_FAULT;
}
