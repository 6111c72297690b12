# SPDX-License-Identifier: BSD-3-Clause
"""Host names of all kinds, and scripts of launchers that name log directories after them."""
import os
import subprocess
from pathlib import Path

import pytest

from support import tracereader
from support.service import PROGRAM, clean_environment

SCRIPTS = Path(__file__).resolve().parents[1] / "cluster" / "scripts"


def on_host(name):
    """A command that runs what follows in a UTS name space of its own, under that host name."""
    set_name = "import socket, sys, os; socket.sethostname(os.fsencode(sys.argv[1])); os.execv(sys.argv[2], sys.argv[2:])"
    return ["unshare", "-u", "/usr/bin/python3", "-c", set_name, name]


@pytest.fixture(autouse=True)
def needs_root():
    if os.geteuid() != 0:
        pytest.skip("needs root: sets host names in name spaces of their own")


@pytest.mark.parametrize("name, short, in_files", [
    ("n1.cluster.example", "n1", "n1"),
    ("a" * 64, "a" * 64, "a" * 64),
    ("b" * 60 + ".xyz", "b" * 60, "b" * 60),
    ("", "localhost", "localhost"),
    (".hidden", "localhost", "localhost"),
    ("UPPER-lower_9", "UPPER-lower_9", "UPPER-lower_9"),
    ("../../etc", "localhost", "localhost"),
    ("a/b", "a/b", "a%2Fb"),
    ('q"\\\n', 'q"\\\n', "q%22%5C%0A"),
])
def test_files_and_trace_use_the_short_name_and_nothing_else(service, name, short, in_files):
    one = service(host=in_files, command=on_host(name))
    started = one.start()
    one.wait_for_ticks(2)
    assert one.pid_file.exists()
    one.stop()
    trace = one.load()
    assert trace.host() == short
    assert trace.named("HH")[0]["args"]["hhash"] == tracereader.host_hash(short)
    assert str(one.path()) in started.stderr
    assert sorted(path.name for path in one.log_dir.iterdir()) == [
        f"dftracer_server_{in_files}.err", f"dftracer_server_{in_files}.out"]


def test_hosts_that_share_a_log_dir_and_a_prefix_do_not_touch_each_other(service):
    many = [service(host=f"n{i}", command=on_host(f"n{i}.cluster")) for i in range(3)]
    for one in many:
        one.start()
    for one in many:
        one.wait_for_ticks(2)
    many[1].stop()
    assert [one.call("status").returncode for one in many] == [0, 3, 0]
    many[0].stop()
    many[2].stop()
    for i, one in enumerate(many):
        assert one.load().is_ended and one.load().host() == f"n{i}"


def test_ticks_of_different_hosts_are_spread(service):
    """Nodes that start at the same instant must not all work at the same instant from then on."""
    interval_ms = 1000
    many = [service(host=f"n{i}", command=on_host(f"n{i}"), DFTRACER_TRACE_INTERVAL_MS=interval_ms,
                    DFTRACER_COLLECTORS="cpu") for i in range(8)]
    for one in many:
        one.start()
    phases = []
    for one in many:
        one.wait_for("cpu", 2)
        phases.append(one.so_far().named("cpu")[0]["ts"] // 1000 % interval_ms)
    apart = sorted(phases)
    widest_ms = max(b - a for a, b in zip(apart, apart[1:] + [apart[0] + interval_ms]))
    assert widest_ms < interval_ms * 0.6, f"{apart}: all in one part of the interval"
    assert len({phase // 20 for phase in phases}) >= 6, apart


def test_a_host_keeps_its_phase_when_the_service_is_started_again(service):
    one = service(DFTRACER_TRACE_INTERVAL_MS=500, DFTRACER_COLLECTORS="cpu")
    phases = []
    for _ in range(2):
        one.start()
        one.wait_for("cpu", 2)
        phases.append(one.so_far().named("cpu")[0]["ts"] % 500000)
        one.stop()
    distance = abs(phases[0] - phases[1])
    assert min(distance, 500000 - distance) < 100000, phases


LAUNCHERS = {
    "Open MPI": ("mpirun", {"OMPI_COMM_WORLD_RANK": 3}, 3),
    "MPICH's Hydra (PMI)": ("mpirun", {"PMI_RANK": 2}, 2),
    "both, Open MPI's counts": ("mpirun", {"OMPI_COMM_WORLD_RANK": 1, "PMI_RANK": 7}, 1),
    "Flux": ("flux", {"FLUX_TASK_RANK": 4}, 4),
    "Slurm": ("srun", {"SLURM_PROCID": 5, "SLURMD_NODENAME": "n17"}, 5),
    "none": ("mpirun", {}, 0),
}


@pytest.mark.parametrize("launcher", LAUNCHERS)
def test_the_users_scripts_work_word_for_word(tmp_path, launcher):
    """The bodies of the scripts, as the launchers run them: under 'bash -lc', with their variables."""
    family, variables, tag = LAUNCHERS[launcher]
    name = variables.get("SLURMD_NODENAME", "n17")
    env = clean_environment(DFTRACER_ENABLE=1, DFTRACER_LOG_FILE=tmp_path / "trace", DFTRACER_TRACE_INTERVAL_MS=50,
                            SERVICE_BIN=PROGRAM, **variables)
    for rank in ("OMPI_COMM_WORLD_RANK", "PMI_RANK", "FLUX_TASK_RANK"):
        if rank not in variables:
            env.pop(rank, None)
    log_dir = Path(f"/tmp/dftracer_service_{name}_{tag}")
    for command in ("start", "stop"):
        body = script_body(SCRIPTS / f"{family}_{command}.sh")
        done = subprocess.run([*on_host("n17.cluster"), "/bin/bash", "-lc", body], env=env, check=False, capture_output=True, text=True, timeout=60)
        assert done.returncode == 0, done
        if command == "start":
            assert (log_dir / "dftracer_server_n17.pid").exists()
    assert tracereader.Trace(tmp_path / "trace_n17.pfw.gz", tracereader.events_so_far(tmp_path / "trace_n17.pfw.gz")).is_ended
    for suffix in ("out", "err"):
        (log_dir / f"dftracer_server_n17.{suffix}").unlink()
    log_dir.rmdir()


def script_body(path):
    """What stands between the quotes after 'bash -lc'."""
    text = path.read_text()
    return text[text.index("bash -lc '") + len("bash -lc '"):text.rindex("'")]
