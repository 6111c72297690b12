#!/bin/bash
# SPDX-License-Identifier: BSD-3-Clause
# Stops the dftracer_service that srun_start.sh has started in each task.
# shellcheck disable=SC2016 # the quoted program is for the shell of each task
srun -N 4 -n 4 bash -lc '
    node_tag="${SLURM_PROCID:-0}"
    node_name="${SLURMD_NODENAME:-$(hostname -s)}"
    log_dir="/tmp/dftracer_service_${node_name}_${node_tag}"
    "${SERVICE_BIN}" stop "${log_dir}"
'
