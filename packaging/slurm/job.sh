#!/bin/bash
# SPDX-License-Identifier: BSD-3-Clause
#
# Batch job with telemetry of its nodes: sbatch -N 4 -n 64 job.sh ./application arguments...
#
# Works however the site tracks processes: the service is a step of its own beside the application. When the script
# ends, Slurm sends that step SIGTERM, and each service closes its trace. It takes no CPU (--overlap) and no memory
# (--mem=0) away from the application, whichever of the two steps Slurm starts first.
export DFTRACER_ENABLE=1
export DFTRACER_LOG_FILE=${DFTRACER_LOG_FILE:-$PWD/trace_$SLURM_JOB_ID}

srun --overlap --mem=0 --cpu-bind=none --cpus-per-task=1 --ntasks-per-node=1 \
    --nodes="$SLURM_JOB_NUM_NODES" --ntasks="$SLURM_JOB_NUM_NODES" dftracer_service run &

srun "$@"
