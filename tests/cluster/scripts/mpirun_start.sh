#!/bin/bash
# SPDX-License-Identifier: BSD-3-Clause
# Starts a dftracer_service in each task of an mpirun job.
# The caller exports DFTRACER_ENABLE, DFTRACER_LOG_FILE and SERVICE_BIN.
# shellcheck disable=SC2016 # the quoted program is for the shell of each task
mpirun -np 4 bash -lc '
    node_tag="${OMPI_COMM_WORLD_RANK:-${PMI_RANK:-0}}"
    node_name="$(hostname -s)"
    log_dir="/tmp/dftracer_service_${node_name}_${node_tag}"
    mkdir -p "${log_dir}"
    "${SERVICE_BIN}" start "${log_dir}"
'
