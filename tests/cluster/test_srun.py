# SPDX-License-Identifier: BSD-3-Clause
"""The service on four nodes of a real Slurm that tracks processes by their parents (proctrack/linuxproc)."""
import pytest
import service
from support.waiting import wait_until


@pytest.fixture
def variables(slurm, prefix):
    return service.variables(slurm, prefix)


def running_service(slurm, job, variables, *srun_options):
    """A step that runs the service on each node, as a background step of a job. Returns srun."""
    return slurm.begin("srun", f"--jobid={job}", "--overlap", "-N4", "-n4", *srun_options, variables["SERVICE_BIN"], "run",
                       **variables)


def wait_for_traces(slurm, prefix, ticks=5):
    service.wait_for_ticks(service.one_per_host(prefix, slurm.hosts), ticks)


def test_scripts_inside_an_allocation_leave_a_trace_a_node(slurm, prefix, variables):
    job = {"SLURM_JOB_ID": slurm.allocate()}

    slurm.run(slurm.scripts / "srun_start.sh", **variables, **job).ok()
    began_us = service.now_us()
    slurm.run("srun", "-N4", "-n4", "sh", "-c", service.APP, **job).ok()
    ended_us = service.now_us()
    stopped = slurm.run(slurm.scripts / "srun_stop.sh", **variables, **job).ok()

    for host, trace in service.load_one_per_host(prefix, slurm.hosts).items():
        assert trace.covers(began_us, ended_us, slack_us=1_000_000)
        assert str(trace.path) in stopped.text
        assert slurm.pids(host, "dftracer_service") == []


def test_scripts_of_jobs_of_their_own_leave_a_trace_a_node(slurm, prefix, variables):
    """Each srun outside an allocation is a job that ends before the next: the service outlives it here."""
    slurm.run(slurm.scripts / "srun_start.sh", **variables).ok()
    wait_for_traces(slurm, prefix)
    slurm.run(slurm.scripts / "srun_stop.sh", **variables).ok()
    service.load_one_per_host(prefix, slurm.hosts)


def test_nodes_that_share_a_log_dir_keep_to_their_own_files(slurm, prefix, variables):
    log_dir = prefix.parent / "logs"
    srun = ["srun", "-N4", "-n4", variables["SERVICE_BIN"]]

    slurm.run(*srun, "start", log_dir, **variables).ok()
    wait_for_traces(slurm, prefix)
    assert sorted(p.name for p in log_dir.glob("*.pid")) == [f"dftracer_server_{host}.pid" for host in slurm.hosts]
    slurm.run("srun", "-N1", "-n1", "-w", "n3", variables["SERVICE_BIN"], "stop", log_dir, **variables).ok()
    assert {host: len(slurm.pids(host, "dftracer_service")) for host in slurm.hosts} == {"n1": 1, "n2": 1, "n3": 0, "n4": 1}
    slurm.run("srun", "-N3", "-n3", "-w", "n1,n2,n4", variables["SERVICE_BIN"], "stop", log_dir, **variables).ok()

    service.load_one_per_host(prefix, slurm.hosts)
    assert list(log_dir.glob("*.pid")) == []


def test_scripts_with_one_log_dir_for_all_nodes_leave_a_trace_a_node(slurm, prefix, variables):
    log_dir = prefix.parent / "logs"
    slurm.run(service.sharing(slurm, "srun_start.sh", log_dir), **variables).ok()
    wait_for_traces(slurm, prefix)
    assert sorted(p.name for p in log_dir.glob("*.pid")) == [f"dftracer_server_{host}.pid" for host in slurm.hosts]
    slurm.run(service.sharing(slurm, "srun_stop.sh", log_dir), **variables).ok()
    service.load_one_per_host(prefix, slurm.hosts)
    assert list(log_dir.glob("*.pid")) == []


def test_term_to_the_step_leaves_ended_traces(slurm, prefix, variables):
    """scancel -s TERM JOB.STEP: the clean way to stop a daemon step."""
    job = slurm.allocate()
    srun = running_service(slurm, job, variables)
    wait_for_traces(slurm, prefix)
    slurm.cancel("-s", "TERM", slurm.steps(job)[0])
    srun.communicate(timeout=30)
    service.load_one_per_host(prefix, slurm.hosts)


def test_cancelled_allocation_leaves_ended_traces(slurm, prefix, variables):
    job = slurm.allocate()
    srun = running_service(slurm, job, variables)
    wait_for_traces(slurm, prefix)
    slurm.cancel(job)
    srun.communicate(timeout=30)
    wait_until(lambda: slurm.is_over(job), f"the end of job {job}")
    service.load_one_per_host(prefix, slurm.hosts)


def test_end_of_a_batch_script_ends_its_background_step_in_order(slurm, prefix, variables):
    """Slurm sends the step SIGTERM and waits."""
    script = prefix.parent / "job.sh"
    script.write_text(f"""#!/bin/sh
srun --overlap -N4 -n4 {variables['SERVICE_BIN']} run &
srun --overlap -N4 -n4 sh -c '{service.APP}'
""")
    slurm.exit_status(slurm.batch(f"--output={prefix.parent}/out", script, **variables))
    traces = service.load_one_per_host(prefix, slurm.hosts)
    assert all(trace.longest_gap_ms() < 1000 for trace in traces.values())


def test_killed_srun_leaves_valid_traces(slurm, prefix, variables):
    """Slurm kills the tasks without a TERM then: what is on disk is still valid, the end event is missing."""
    job = slurm.allocate()
    srun = running_service(slurm, job, variables)
    wait_for_traces(slurm, prefix, ticks=15)
    srun.terminate()
    srun.communicate(timeout=30)
    wait_until(lambda: not any(slurm.pids(host, "dftracer_service") for host in slurm.hosts), "the end of the daemons")
    service.load_one_per_host(prefix, slurm.hosts, is_ended=False)


def test_dead_node_leaves_a_valid_trace_and_the_others_go_on(slurm, prefix, variables):
    job = slurm.allocate()
    srun = running_service(slurm, job, variables, "--no-kill")
    wait_for_traces(slurm, prefix, ticks=15)
    killed_us = service.now_us()
    slurm.kill("n3")
    wait_for_traces_after(slurm, prefix, ["n1", "n2", "n4"])
    for host in "n1", "n2", "n4":
        slurm.exec(host, "pkill", "-TERM", "-x", "dftracer_servic").ok()
    wait_until(lambda: not any(slurm.pids(host, "dftracer_service") for host in ("n1", "n2", "n4")), "their end")
    srun.kill()
    srun.communicate(timeout=30)

    traces = service.load_one_per_host(prefix, slurm.hosts, is_ended=False)
    assert {host: trace.is_ended for host, trace in traces.items()} == {"n1": True, "n2": True, "n3": False, "n4": True}
    assert killed_us - 2_500_000 < traces["n3"].stamps[-1] < killed_us + 500_000  # at most the last flush is missing


def wait_for_traces_after(slurm, prefix, hosts):
    """The services of those hosts go on writing."""
    paths = service.one_per_host(prefix, hosts)
    sizes = {path: path.stat().st_size for path in paths}
    for path in paths:
        wait_until(lambda path=path: path.stat().st_size > sizes[path], f"{path} grows")
