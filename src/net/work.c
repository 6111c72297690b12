/* SPDX-License-Identifier: BSD-3-Clause */
#include "net/work.h"

#include <errno.h>
#include <stdlib.h>

struct work {
    uv_work_t request;
    struct work_task task;
    bool is_wanted;
};

static void work_run(uv_work_t *request)
{
    struct work *work = request->data;
    work->task.run(work->task.data);
}

static void work_done(uv_work_t *request, int status)
{
    struct work *work = request->data;
    work->task.done(work->task.data, work->is_wanted && status == 0);
    free(work);
}

int work_start(uv_loop_t *loop, const struct work_task *task, struct work **out_work, struct error *err)
{
    struct work *work = malloc(sizeof *work);
    if (work == NULL)
        return error_set(err, -ENOMEM, "work for another thread");
    *work = (struct work){.task = *task, .is_wanted = true};
    work->request.data = work;
    int rc = uv_queue_work(loop, &work->request, work_run, work_done);
    if (rc < 0) {
        free(work);
        return error_set(err, rc, "work for another thread: %s", uv_strerror(rc));
    }
    *out_work = work;
    return 0;
}

void work_abandon(struct work *work)
{
    if (work == NULL)
        return;
    work->is_wanted = false;
    (void)uv_cancel((uv_req_t *)&work->request); /* if it hasn't begun; then `done` comes as well */
}
