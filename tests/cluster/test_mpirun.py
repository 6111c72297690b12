# SPDX-License-Identifier: BSD-3-Clause
"""The scripts that users run under mpirun, word for word, with Open MPI and MPICH, on one host and over four."""
import pytest
import service

FORWARDED = "PATH;DFTRACER_ENABLE;DFTRACER_LOG_FILE;DFTRACER_TRACE_INTERVAL_MS;SERVICE_BIN"


def use_mpirun(cluster, kind):
    """Puts the `mpirun` of that MPI first in PATH. Returns the variables under which the scripts are called."""
    bin_dir = cluster.shared / f"bin-{kind}"
    bin_dir.mkdir(exist_ok=True)
    mpirun = bin_dir / "mpirun"
    mpirun.write_text(f'#!/bin/sh\nexec mpirun.{kind} "$@"\n')
    mpirun.chmod(0o755)
    return {"PATH": f"{bin_dir}:{cluster.env['PATH']}", "OMPI_ALLOW_RUN_AS_ROOT": "1",
            "OMPI_ALLOW_RUN_AS_ROOT_CONFIRM": "1", "OMPI_MCA_rmaps_base_oversubscribe": "1", "OMPI_MCA_plm": "rsh"}


@pytest.mark.parametrize("kind", ["openmpi", "mpich"])
def test_four_tasks_on_one_host_leave_four_traces(hosts, prefix, kind):
    variables = use_mpirun(hosts, kind) | service.variables(hosts, prefix)

    hosts.exec("n1", hosts.scripts / "mpirun_start.sh", **variables).ok()
    pids = hosts.pids("n1", "dftracer_service")
    assert len(pids) == 4
    assert len(service.traces(prefix)) == 4
    service.wait_for_ticks(service.traces(prefix))
    stopped = hosts.exec("n1", hosts.scripts / "mpirun_stop.sh", **variables).ok()

    assert hosts.pids("n1", "dftracer_service") == []
    paths = service.traces(prefix)
    assert [p.name for p in paths] == ["trace_n1.pfw.gz"] + [f"trace_n1.{n}.pfw.gz" for n in (1, 2, 3)]
    loaded = [service.load_valid(path) for path in paths]
    assert all(trace.is_ended for trace in loaded)
    assert len({trace.events[0]["pid"] for trace in loaded}) == 4, "two daemons wrote into one trace"
    for path in paths:
        assert str(path) in stopped.text  # stop tells where each one's trace is


def use_all_hosts(hosts):
    """One task a host, over ssh. Returns the variables that tell Open MPI."""
    hostfile = hosts.shared / "hostfile"
    hostfile.write_text("".join(f"{host} slots=1\n" for host in hosts.hosts))
    hosts.tool("minissh", "up").ok()
    return {"OMPI_MCA_orte_default_hostfile": str(hostfile), "OMPI_MCA_mca_base_env_list": FORWARDED}


def test_one_task_a_host_over_ssh_leaves_a_trace_a_host(hosts, prefix):
    variables = use_mpirun(hosts, "openmpi") | service.variables(hosts, prefix) | use_all_hosts(hosts)

    hosts.exec("n1", hosts.scripts / "mpirun_start.sh", **variables).ok()
    began_us = service.now_us()
    hosts.exec("n1", "mpirun", "-np", 4, "sh", "-c", service.APP, **variables).ok()
    ended_us = service.now_us()
    hosts.exec("n1", hosts.scripts / "mpirun_stop.sh", **variables).ok()

    for trace in service.load_one_per_host(prefix, hosts.hosts).values():
        assert trace.covers(began_us, ended_us, slack_us=1_000_000)


def test_scripts_with_one_log_dir_for_all_hosts_leave_a_trace_a_host(hosts, prefix):
    variables = use_mpirun(hosts, "openmpi") | service.variables(hosts, prefix) | use_all_hosts(hosts)
    log_dir = hosts.shared / "logs"
    hosts.exec("n1", service.sharing(hosts, "mpirun_start.sh", log_dir), **variables).ok()
    service.wait_for_ticks(service.one_per_host(prefix, hosts.hosts))
    assert sorted(p.name for p in log_dir.glob("*.pid")) == [f"dftracer_server_{host}.pid" for host in hosts.hosts]
    hosts.exec("n1", service.sharing(hosts, "mpirun_stop.sh", log_dir), **variables).ok()
    service.load_one_per_host(prefix, hosts.hosts)
    assert list(log_dir.glob("*.pid")) == []


def test_without_a_launcher_the_task_is_number_0(hosts, prefix):
    """The body of the script as a person runs it on one node by hand."""
    fake = hosts.shared / "bin-none"
    fake.mkdir(exist_ok=True)
    (fake / "mpirun").write_text('#!/bin/sh\nshift 2\nexec "$@"\n')
    (fake / "mpirun").chmod(0o755)
    variables = service.variables(hosts, prefix) | {"PATH": f"{fake}:{hosts.env['PATH']}"}

    hosts.exec("n2", hosts.scripts / "mpirun_start.sh", **variables).ok()
    hosts.exec("n2", "test", "-s", "/tmp/dftracer_service_n2_0/dftracer_server_n2.pid").ok()
    hosts.exec("n2", hosts.scripts / "mpirun_stop.sh", **variables).ok()
    service.load_one_per_host(prefix, ["n2"])
