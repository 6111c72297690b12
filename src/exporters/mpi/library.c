/* SPDX-License-Identifier: BSD-3-Clause */
#include "exporters/mpi/library.h"

#include <dlfcn.h>
#include <errno.h>
#include <limits.h>
#include <pthread.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "constants.h" /* generated: LIBRARY_BYTE_SYMBOL, … */
#include "exporters/mpi/caller.h"
#include "exporters/mpi/symbols.h"
#include "exporters/mpi/ticks.h"

enum { LIBRARY_NAME_MAX_BYTES = 128 };

struct library library;
bool library_is_foreign;

/* The exporter for the other kind of MPI, when there is one and it is needed. */
static void *library_other;

static pthread_once_t library_once = PTHREAD_ONCE_INIT;

/* `field` of the library is function PMPI_X. A void pointer becomes one to a function as dlsym(3) shows it. */
#define LIBRARY_FIND(field, name)                                                                                      \
    do {                                                                                                               \
        void *found = symbols_next(name);                                                                              \
        memcpy(&library.field, &found, sizeof found);                                                                  \
    } while (0)

/* Ranks of MPI_COMM_WORLD; 0 when there is none, as in a program of sessions alone. */
static uint64_t library_world_ranks(void)
{
    int is_initialized = 0;
    int is_finalized = 0;
    int ranks = 0;
    (void)library.initialized(&is_initialized);
    (void)library.finalized(&is_finalized);
    if (is_initialized && !is_finalized)
        (void)library.comm_size(library.world, &ranks);
    return (uint64_t)ranks;
}

static void library_find_functions(void)
{
    LIBRARY_FIND(type_size_x, "PMPI_Type_size_x");
    LIBRARY_FIND(get_elements_x, "PMPI_Get_elements_x");
    LIBRARY_FIND(test_cancelled, "PMPI_Test_cancelled");
    LIBRARY_FIND(comm_rank, "PMPI_Comm_rank");
    LIBRARY_FIND(comm_size, "PMPI_Comm_size");
    LIBRARY_FIND(comm_remote_size, "PMPI_Comm_remote_size");
    LIBRARY_FIND(comm_test_inter, "PMPI_Comm_test_inter");
    LIBRARY_FIND(topo_test, "PMPI_Topo_test");
    LIBRARY_FIND(cartdim_get, "PMPI_Cartdim_get");
    LIBRARY_FIND(cart_shift, "PMPI_Cart_shift");
    LIBRARY_FIND(graph_neighbors_count, "PMPI_Graph_neighbors_count");
    LIBRARY_FIND(dist_graph_neighbors_count, "PMPI_Dist_graph_neighbors_count");
    LIBRARY_FIND(initialized, "PMPI_Initialized");
    LIBRARY_FIND(finalized, "PMPI_Finalized");
    library.byte = LIBRARY_BYTE;
    library.no_op = LIBRARY_NO_OP;
    library.world = LIBRARY_COMM_WORLD;
    calls_set_job_ranks(library_world_ranks);
}

/*
 * Loads the exporter for the other kind of MPI: ours is <lib>/cicada/openmpi/…, that <lib>/cicada/mpich/…, or the other
 * way round. It looks behind us for what to call: it isn't in the order of libraries itself.
 */
static void library_load_other(void)
{
    Dl_info info = {0};
    char path[PATH_MAX];
    if (dladdr(&library, &info) == 0 || realpath(info.dli_fname, path) == NULL)
        return;
    char *file = strrchr(path, '/');
    if (file == NULL)
        return;
    *file++ = '\0';
    char *folder = strrchr(path, '/');
    char other[PATH_MAX];
    if (folder == NULL || snprintf(other, sizeof other, "%.*s/%s/%s", (int)(folder - path), path,
                                   LIBRARY_IS_OPEN_MPI ? "mpich" : "openmpi", file) >= (int)sizeof other)
        return;
    library_other = dlopen(other, RTLD_NOW | RTLD_LOCAL);
    void *adopt = library_other != NULL ? dlsym(library_other, "cicada_exporter_mpi_adopt") : NULL;
    if (adopt != NULL)
        ((void (*)(symbols_finder *))adopt)(symbols_next);
}

static void library_open(void)
{
    int kept_errno = errno;
    bool is_open_mpi = symbols_variable("ompi_mpi_byte") != NULL;
    caller_library = symbols_object(symbols_next("PMPI_Init"));
    library_is_foreign = is_open_mpi != (LIBRARY_IS_OPEN_MPI != 0);
    if (library_is_foreign) {
        library_load_other();
    } else {
        ticks_open();
        library_find_functions();
    }
    errno = kept_errno;
}

/* For the exporter of another MPI that was preloaded in our place: `find` finds what comes behind it. */
__attribute__((visibility("default"))) void cicada_exporter_mpi_adopt(symbols_finder *find);

void cicada_exporter_mpi_adopt(symbols_finder *find)
{
    symbols_adopt(find);
}

void *library_look_up(struct calls_function *function, enum calls_entry entry)
{
    (void)pthread_once(&library_once, library_open);
    char name[LIBRARY_NAME_MAX_BYTES];
    (void)snprintf(name, sizeof name, "P%s", function->name);
    void *next = NULL;
    if (entry == CALLS_OTHER && library_other != NULL)
        next = dlsym(library_other, name + 1);
    if (next == NULL)
        next = symbols_next(entry == CALLS_PMPI ? name : name + 1);
    __atomic_store_n(&function->next[entry], next, __ATOMIC_RELEASE);
    return next;
}
