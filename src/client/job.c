/* SPDX-License-Identifier: BSD-3-Clause */
#include "client/job.h"

#include <stdlib.h>
#include <string.h>
#include <sys/random.h>
#include <time.h>

#include "client/start.h"
#include "client/sys.h"
#include "client/text.h"

enum { JOB_COMMAND_MAX_BYTES = 4096, JOB_PATH_MAX_BYTES = 4096, JOB_VALUE_MAX_BYTES = 1024 };

/* The pid of the launcher's parent, which all ranks of one mpirun share. */
static const char job_launcher_variable[] = "METRIC_PROXY_LAUNCHER_PPID";

/* The first that is set names the job. */
static const char *const job_id_variables[] = {
    "PROXY_JOB_ID", "SLURM_JOBID", "PMIX_ID", "FLUX_JOB_ID", "PBS_JOBID", "LSB_JOBID", job_launcher_variable,
};

static const char *const job_size_variables[] = {"SLURM_NTASKS", "OMPI_COMM_WORLD_SIZE", "PMI_SIZE"};

/* The variable's value, or NULL when it is unset, empty, or this program runs with more rights than its user. */
static const char *job_variable(const char *name)
{
    const char *value = secure_getenv(name);
    return value != NULL && value[0] != '\0' ? value : NULL;
}

/* A JSON string. What isn't ASCII text is escaped byte by byte as U+FFFD: the proxy gets valid JSON whatever stands
 * here. */
static void job_add_string(struct text *text, const char *bytes, size_t length)
{
    static const char hex[] = "0123456789abcdef";
    text_add(text, "\"");
    for (size_t i = 0; i < length; i++) {
        unsigned char byte = (unsigned char)bytes[i];
        if (byte == '"' || byte == '\\') {
            text_add_bytes(text, "\\", 1);
            text_add_bytes(text, bytes + i, 1);
        } else if (byte < 0x20) {
            char escape[6] = {'\\', 'u', '0', '0', hex[byte >> 4], hex[byte & 15]};
            text_add_bytes(text, escape, sizeof escape);
        } else {
            text_add_bytes(text, bytes + i, 1);
        }
    }
    text_add(text, "\"");
}

static void job_add_field(struct text *text, const char *name, const char *value, size_t length)
{
    text_add(text, ",\"");
    text_add(text, name);
    text_add(text, "\":");
    job_add_string(text, value, length);
}

static void job_add_variable(struct text *text, const char *name, const char *variable)
{
    const char *value = job_variable(variable);
    if (value == NULL)
        value = "";
    size_t length = strnlen(value, JOB_VALUE_MAX_BYTES);
    job_add_field(text, name, value, length);
}

/* "42", "42-1" in step 1; a PMIx id ends in ".rank", which is cut. Returns the variable that named it, or NULL. */
static const char *job_add_id(struct text *text)
{
    const char *variable = NULL;
    char id_bytes[2 * JOB_VALUE_MAX_BYTES];
    struct text id = text_in(id_bytes, sizeof id_bytes);
    for (size_t i = 0; i < sizeof job_id_variables / sizeof job_id_variables[0]; i++) {
        const char *value = job_variable(job_id_variables[i]);
        if (value == NULL)
            continue;
        variable = job_id_variables[i];
        text_add_bytes(&id, value, strnlen(value, JOB_VALUE_MAX_BYTES));
        const char *step = job_variable("SLURM_STEP_ID");
        if (step != NULL) {
            text_add(&id, "-");
            text_add_bytes(&id, step, strnlen(step, JOB_VALUE_MAX_BYTES / 2));
        }
        break;
    }
    const char *dot = memchr(id.bytes, '.', id.length);
    job_add_string(text, id.bytes, dot != NULL ? (size_t)(dot - id.bytes) : id.length);
    return variable;
}

/* An id that is a pid is unique only with the start of its process: says that it is one, and when that was. */
static void job_add_launcher(struct text *text)
{
    const char *pid = job_variable(job_launcher_variable);
    if (pid == NULL)
        return;
    text_add(text, ",\"launcher_start\":");
    text_add_u64(text, start_ticks(pid, strspn(pid, "0123456789")));
}

static void job_add_command(struct text *text)
{
    static char line[JOB_COMMAND_MAX_BYTES]; /* written once, under the start lock */
    size_t length = 0;
    int fd = sys_open(AT_FDCWD, "/proc/self/cmdline", O_RDONLY, 0);
    long got = fd < 0 ? 0 : sys_read(fd, line, sizeof line);
    sys_close(fd);
    if (got > 0)
        length = (size_t)got;
    while (length > 0 && line[length - 1] == '\0')
        length--;
    for (size_t i = 0; i < length; i++) {
        if (line[i] == '\0')
            line[i] = ' ';
    }
    job_add_field(text, "command", line, length);
}

static void job_add_directory(struct text *text)
{
    static char path[JOB_PATH_MAX_BYTES];
    long got = sys_result(syscall(SYS_getcwd, path, sizeof path));
    job_add_field(text, "run_dir", path, got > 0 ? (size_t)got - 1 : 0);
}

/* Atomic; one for the process, as the description is. */
static uint64_t job_given_size;
static uint32_t job_is_described;

bool job_set_size(uint64_t size)
{
    __atomic_store_n(&job_given_size, size, __ATOMIC_RELAXED);
    return __atomic_load_n(&job_is_described, __ATOMIC_RELAXED) == 0;
}

static uint64_t job_size(void)
{
    for (size_t i = 0; i < sizeof job_size_variables / sizeof job_size_variables[0]; i++) {
        const char *value = job_variable(job_size_variables[i]);
        uint64_t size = 0;
        for (; value != NULL && *value >= '0' && *value <= '9' && size < UINT32_MAX; value++)
            size = size * 10 + (uint64_t)(*value - '0');
        if (size > 0)
            return size;
    }
    uint64_t given = __atomic_load_n(&job_given_size, __ATOMIC_RELAXED);
    return given > 0 ? given : 1;
}

size_t job_describe(char *text_bytes, size_t max)
{
    struct text text = text_in(text_bytes, max);
    struct timespec now = {0};
    (void)clock_gettime(CLOCK_REALTIME, &now);
    __atomic_store_n(&job_is_described, 1, __ATOMIC_RELAXED);
    text_add(&text, "{\"jobid\":");
    const char *variable = job_add_id(&text);
    job_add_command(&text);
    text_add(&text, ",\"size\":");
    text_add_u64(&text, job_size());
    job_add_variable(&text, "nodelist", "SLURM_JOB_NODELIST");
    job_add_variable(&text, "partition", "SLURM_JOB_PARTITION");
    job_add_variable(&text, "cluster", "SLURM_CLUSTER_NAME");
    job_add_directory(&text);
    text_add(&text, ",\"start_time\":");
    text_add_u64(&text, (uint64_t)now.tv_sec * 1000 + (uint64_t)now.tv_nsec / 1000000);
    if (variable == job_launcher_variable)
        job_add_launcher(&text);
    text_add(&text, ",\"end_time\":0}");
    return text.is_cut ? 0 : text.length;
}
