# SPDX-License-Identifier: BSD-3-Clause
"""Clusters for the tests. Each is built once a session and taken down however the session ends."""
import os
import shutil
import signal
import subprocess
import sys
from pathlib import Path

import pytest

sys.path.insert(0, str(Path(__file__).resolve().parents[1]))

from cluster import BUILD_DIR, STATE_PREFIX, TOOLS, Cluster, Slurm  # noqa: E402

PROGRAMS = {"nsenter": "util-linux", "ip": "iproute2", "munged": "munge", "slurmctld": "slurm-wlm", "srun": "slurm-wlm",
            "mpirun.openmpi": "openmpi-bin", "mpirun.mpich": "mpich", "sshd": "openssh-server", "pgrep": "procps"}
CONTROLLERS = "freezer", "cpuset", "memory", "devices"


def why_not():
    """The reason why no test of this folder can run here, or None."""
    if os.geteuid() != 0:
        return "needs root: hosts are made of name spaces, and Slurm starts processes as other users"
    path = "/usr/local/sbin:/usr/sbin:/sbin:" + os.environ.get("PATH", "")
    missing = sorted({package for program, package in PROGRAMS.items() if not shutil.which(program, path=path)})
    if missing:
        return "needs " + " ".join(missing) + " (script/bootstrap installs them)"
    if subprocess.run(["unshare", "-mnpfu", "true"], check=False, capture_output=True).returncode != 0:
        return "needs the right to make mount, network and pid name spaces"
    return None


def why_no_cgroups():
    """The reason why Slurm cannot track processes by cgroup here, or None."""
    for controller in CONTROLLERS:
        groups = Path("/sys/fs/cgroup") / controller
        if not groups.is_dir() or not os.path.ismount(groups):
            return f"needs the cgroup v1 hierarchy {groups}"
        try:
            probe = groups / f"{STATE_PREFIX}{os.getpid()}"
            probe.mkdir()
            probe.rmdir()
        except OSError as e:
            return f"may not make a cgroup: {e}"
    return None


def pytest_collection_modifyitems(items):
    reason = why_not()
    if reason:
        for item in items:
            item.add_marker(pytest.mark.skip(reason=reason))


def end_by_signal(number, _frame):
    raise KeyboardInterrupt(f"signal {number}")


def remove_left_clusters():
    """Takes down clusters of sessions that were killed."""
    for state in Path("/run").glob(STATE_PREFIX + "*"):
        pid = state.name[len(STATE_PREFIX):].split("-")[0]
        if not Path("/proc", pid).exists():
            subprocess.run([TOOLS / "minicluster", "down"], check=False, env={**os.environ, "MINICLUSTER_STATE": str(state)})


def pytest_sessionstart():
    signal.signal(signal.SIGTERM, end_by_signal)  # as for SIGINT, fixtures are then taken down
    signal.signal(signal.SIGHUP, end_by_signal)
    if os.geteuid() == 0:
        remove_left_clusters()


def running(cluster):
    try:
        cluster.up()
        cluster.install()
        yield cluster
    finally:
        cluster.down()


@pytest.fixture(scope="session")
def hosts_session():
    yield from running(Cluster("hosts", 4))


@pytest.fixture(scope="session")
def slurm_session():
    yield from running(Slurm("slurm", 4, "linuxproc"))


@pytest.fixture(scope="session")
def slurm_cgroup_session():
    if reason := why_no_cgroups():
        pytest.skip(reason)
    yield from running(Slurm("cgroup", 4, "cgroup"))


@pytest.fixture
def hosts(hosts_session):
    """Four hosts without a resource manager, newly switched on."""
    yield hosts_session
    for host in hosts_session.hosts:
        hosts_session.tool("minicluster", "kill", host)
    hosts_session.up()


@pytest.fixture
def slurm(slurm_session):
    """Four idle hosts under Slurm, processes tracked by their parents."""
    yield slurm_session
    end_services(slurm_session)


@pytest.fixture
def slurm_cgroup(slurm_cgroup_session):
    """Four idle hosts under Slurm, processes tracked by cgroup."""
    yield slurm_cgroup_session
    end_services(slurm_cgroup_session)


def end_services(cluster):
    cluster.recover()
    for host in cluster.hosts:
        cluster.exec(host, "sh", "-c", "pkill -9 -x dftracer_servic; rm -rf /tmp/dftracer_service_*")


@pytest.fixture
def prefix(request, tmp_path):
    """Where traces go: a directory of this test that all hosts of its cluster share."""
    names = {"hosts", "slurm", "slurm_cgroup"} & set(request.fixturenames)
    cluster = request.getfixturevalue(names.pop()) if names else None
    where = (cluster.shared if cluster else tmp_path) / request.node.name
    where.mkdir()
    return where / "trace"


@pytest.fixture(scope="session", autouse=True)
def programs():
    for program in BUILD_DIR / "bin" / "dftracer_service", BUILD_DIR / "bin" / "pfw":
        assert os.access(program, os.X_OK), f"{program} is not built: CICADA_BUILD_DIR names the build folder"
