# SPDX-License-Identifier: BSD-3-Clause
"""The scripts that users run under Flux, with a stand-in for `flux run`: Debian has no Flux.

What is tested is the body of the scripts with the variables that Flux sets for each task, on four hosts.
"""
import service
from cluster import TOOLS

FLUX = """#!/bin/sh
# flux run -N 4 -n 4 COMMAND: one task on each of n1 to n4, started from head
shift 5
tasks=
for rank in 0 1 2 3; do
    FLUX_TASK_RANK=$rank FLUX_TASK_LOCAL_ID=0 FLUX_JOB_SIZE=4 FLUX_JOB_NNODES=4 \\
        {minicluster} exec n$((rank + 1)) -- "$@" &
    tasks="$tasks $!"
done
status=0
for task in $tasks; do
    wait "$task" || status=$?
done
exit $status
"""


def test_scripts_leave_a_trace_a_node(hosts, prefix):
    bin_dir = hosts.shared / "bin-flux"
    bin_dir.mkdir()
    flux = bin_dir / "flux"
    flux.write_text(FLUX.format(minicluster=TOOLS / "minicluster"))
    flux.chmod(0o755)
    variables = service.variables(hosts, prefix) | {"PATH": f"{bin_dir}:{hosts.env['PATH']}"}

    hosts.exec("head", hosts.scripts / "flux_start.sh", **variables).ok()
    for rank, host in enumerate(hosts.hosts):
        hosts.exec(host, "test", "-s", f"/tmp/dftracer_service_{host}_{rank}/dftracer_server_{host}.pid").ok()
    service.wait_for_ticks(service.traces(prefix))
    hosts.exec("head", hosts.scripts / "flux_stop.sh", **variables).ok()
    service.load_one_per_host(prefix, hosts.hosts)
