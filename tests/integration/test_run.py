# SPDX-License-Identifier: BSD-3-Clause
"""proxy_run: starts programs with exporters in them, and gets out of the way."""
import os
import re
import shlex
import shutil
import signal
import subprocess
from pathlib import Path

import pytest

from support.proxy import CICADA, RUN, Proxy, clean_environment
from support.proxy_core import value_of
from support.waiting import wait_until

RING = """
#include <mpi.h>
int main(int argc, char **argv)
{
    int rank, size, got;
    MPI_Init(&argc, &argv);
    MPI_Comm_rank(MPI_COMM_WORLD, &rank);
    MPI_Comm_size(MPI_COMM_WORLD, &size);
    if (rank % 2 == 0)
        MPI_Send(&rank, 1, MPI_INT, (rank + 1) % size, 0, MPI_COMM_WORLD);
    else
        MPI_Recv(&got, 1, MPI_INT, rank - 1, 0, MPI_COMM_WORLD, MPI_STATUS_IGNORE);
    MPI_Finalize();
    return 0;
}
"""


def run(*words, **variables):
    """proxy_run where there is no proxy."""
    env = clean_environment(**({"PROXY_PATH": "/nonexistent/socket"} | variables))
    env.pop("LD_PRELOAD", None) if "LD_PRELOAD" not in variables else None
    return subprocess.run([RUN, *map(str, words)], env=env, capture_output=True, text=True, timeout=60, check=False,
                          stdin=subprocess.DEVNULL)


@pytest.fixture
def proxy(tmp_path):
    one = Proxy(tmp_path)
    yield one
    one.close()


@pytest.fixture(scope="module")
def ring(tmp_path_factory):
    """An MPI program: each second rank sends a number to the next."""
    directory = tmp_path_factory.mktemp("ring")
    (directory / "ring.c").write_text(RING)
    subprocess.run(["mpicc.openmpi", "-o", directory / "ring", directory / "ring.c"], check=True)
    return directory / "ring"


def plan(*words, **variables):
    """What --dry-run prints: variables and the command."""
    done = run("--dry-run", *words, **variables)
    assert done.returncode == 0, done.stderr
    parts = shlex.split(done.stdout)
    count = next(i for i, part in enumerate(parts) if "=" not in part)
    return dict(part.split("=", 1) for part in parts[:count]), parts[count:]


@pytest.mark.plain_build  # libraries of a sanitizer's build can't be preloaded
@pytest.mark.parametrize("script, status", [("exit 0", 0), ("exit 7", 7), ("exit 255", 255)])
def test_status_is_the_programs(script, status):
    assert run("--", "sh", "-c", script).returncode == status


@pytest.mark.plain_build  # libraries of a sanitizer's build can't be preloaded
def test_signals_reach_the_program_and_kill_as_they_would():
    done = run("--", "sh", "-c", "kill -TERM $$")
    assert done.returncode == -signal.SIGTERM
    process = subprocess.Popen([RUN, "--", "sh", "-c", "trap 'exit 9' USR1; echo up; while :; do sleep 0.01; done"],
                               stdout=subprocess.PIPE, stderr=subprocess.DEVNULL, env=clean_environment(PROXY_PATH="/nonexistent/s"))
    assert process.stdout.readline() == b"up\n"
    process.send_signal(signal.SIGUSR1)
    assert process.wait(timeout=30) == 9
    process.stdout.close()


@pytest.mark.plain_build  # libraries of a sanitizer's build can't be preloaded
def test_what_can_not_be_run_is_told_as_shells_do(tmp_path):
    (tmp_path / "text").write_text("no program\n")
    (tmp_path / "no-hash-bang").write_text("exit 5\n")
    (tmp_path / "no-hash-bang").chmod(0o755)
    assert (run("--", "no-such-command").returncode, run("--", tmp_path / "missing").returncode) == (127, 127)
    assert "'no-such-command' not found" in run("--", "no-such-command").stderr
    done = run("--", tmp_path / "text")
    assert done.returncode == 126 and "can't be executed" in done.stderr
    assert run("--", tmp_path).returncode == 126
    assert run("--", tmp_path / "no-hash-bang").returncode == 5


@pytest.mark.parametrize("words, said", [
    ([], "no command is given"), (["--nonsense", "ls"], "--nonsense"), (["-e"], "a value is missing"),
    (["-e", "nix", "--", "ls"], "no exporter 'nix'; installed are: finstrument"), (["-S", "1", "--", "ls"], "--period '1'"),
    (["-S", "abc", "--", "ls"], "--period 'abc'"),
])
def test_bad_usage_is_125_and_says_what_is_wrong(words, said):
    done = run(*words)
    assert done.returncode == 125 and said in done.stderr


def test_options_of_the_program_are_its_own():
    assert run("echo", "-e", "--help", "-j").stdout == "--help -j\n"
    assert plan("-j", "5", "ls", "-j", "6")[1] == ["ls", "-j", "6"]


def test_variables_of_the_job():
    variables, command = plan("-j", "a b'c", "-u", "/tmp/other socket", "-S", "200", "--", "ls", "x y")
    assert command == ["ls", "x y"]
    assert variables["PROXY_JOB_ID"] == "a b'c" and variables["PROXY_PATH"] == "/tmp/other socket"
    assert variables["PROXY_PERIOD"] == "200" and variables["METRIC_PROXY_LAUNCHER_PPID"] == str(os.getpid())


def test_nothing_is_preloaded_into_a_program_that_has_no_use_for_it():
    assert "LD_PRELOAD" not in plan("--", "ls")[0]
    assert "LD_PRELOAD" not in plan("--", "ls", LD_PRELOAD="/lib/libm.so.6")[0], "what is there stays"


def test_mpi_is_known_by_the_programs_libraries(ring):
    variables, _ = plan("--", ring, LD_PRELOAD="/lib/mine.so")
    first, second = variables["LD_PRELOAD"].split(":")
    assert first.endswith("/cicada/openmpi/libmetricproxy-exporter-mpi.so") and os.path.exists(first)
    assert second == "/lib/mine.so"
    assert "LD_PRELOAD" not in plan("-e", "", "--", ring)[0]


def test_script_under_mpirun_gets_what_mpirun_is_of():
    assert "/openmpi/" in plan("--", "sh", OMPI_COMM_WORLD_SIZE="2")[0]["LD_PRELOAD"]
    assert "/mpich/" in plan("--", "sh", PMI_SIZE="2")[0]["LD_PRELOAD"]


def test_launchers_and_scripts_hand_the_exporter_on(tmp_path):
    (tmp_path / "job.sh").write_text("#!/bin/sh\ntrue\n")
    (tmp_path / "job.sh").chmod(0o755)
    for words in (["mpirun.openmpi", "-np", "2", "./app"], ["mpiexec.hydra", "./app"], [tmp_path / "job.sh"], ["bash", "-c", "true"]):
        preload = plan("--", *words)[0]["LD_PRELOAD"]
        assert preload.endswith("/lib/libmetricproxy-exporter-mpi.so") and os.path.exists(preload), words


def test_exporters_that_are_asked_for(tmp_path):
    assert plan("-e", "finstrument", "--", "ls")[0]["LD_PRELOAD"].endswith("/libproxyclient.so")
    assert "libmetricproxy-exporter-mpi.so" in plan("-e", "all", "--", "ls")[0]["LD_PRELOAD"]
    assert plan("--", "ls", PROXY_EXPORTERS="finstrument")[0]["LD_PRELOAD"].endswith("/libproxyclient.so")
    listed = run("-l").stdout.splitlines()
    assert [line.split()[0] for line in listed] == ["finstrument", "mpi"] and all(os.path.exists(line.split()[1]) for line in listed)


def test_static_program_is_warned_of(tmp_path):
    (tmp_path / "one.c").write_text("int main(void) { return 3; }\n")
    subprocess.run(["cc", "-static", "-o", tmp_path / "one", tmp_path / "one.c"], check=True)
    done = run("--", tmp_path / "one")
    assert done.returncode == 3 and "is linked statically" in done.stderr


@pytest.mark.skipif(os.geteuid() != 0, reason="needs root: makes a set-uid program of another user")
def test_set_uid_program_is_warned_of(tmp_path):
    shutil.copy("/bin/true", tmp_path / "one")
    os.chown(tmp_path / "one", 54321, 54321)
    (tmp_path / "one").chmod(0o4755)
    assert "is set-uid" in run("--", tmp_path / "one").stderr


def test_without_a_proxy_the_program_runs_and_is_warned_of():
    done = run("--", "echo", "runs")
    assert done.returncode == 0 and done.stdout == "runs\n"
    assert "WARNING: no proxy of this user answers" in done.stderr and "/nonexistent/socket" in done.stderr
    done = run("--require", "--", "echo", "runs")
    assert done.returncode == 125 and done.stdout == "" and "--require" in done.stderr


def test_with_a_proxy_nothing_is_said(proxy):
    proxy.start()
    done = run("--require", "-u", proxy.socket_path, "--", "echo", "runs")
    assert done.returncode == 0 and done.stdout == "runs\n" and done.stderr == ""


@pytest.mark.parametrize("is_inside", [True, False], ids=["each rank", "the launcher"])
@pytest.mark.plain_build  # libraries of a sanitizer's build can't be preloaded
def test_mpi_program_is_a_job_with_its_ranks(proxy, ring, is_inside):
    """From mpirun to `cicada jobs`, with nothing changed in the program."""
    proxy.start()
    env = clean_environment(PROXY_PATH=proxy.socket_path, OMPI_ALLOW_RUN_AS_ROOT="1", OMPI_ALLOW_RUN_AS_ROOT_CONFIRM="1")
    launch = ["mpirun.openmpi", "--oversubscribe", "-np", 4]
    under = [RUN, "-j", "ring", "--"]
    words = [*launch, *under, ring] if is_inside else [*under, *launch, ring]
    done = subprocess.run(proxy.command(*words), env=env, capture_output=True, text=True, timeout=120, check=False,
                          stdin=subprocess.DEVNULL)
    assert done.returncode == 0, done.stdout + done.stderr
    proxy.wait_for_profile("ring")
    profile = proxy.get("/profiles/get?jobid=ring")
    counters = {one["name"]: value_of(one) for one in profile["counters"]}
    assert counters["mpi___hits___mpi_init"] == 4 and counters["total___mpi___hits___total"] >= 4 * 5
    assert counters["mpi___size_out___mpi_send"] == counters["mpi___size_in___mpi_recv"] == 2 * 4
    assert profile["cicada"]["ranks_seen"] == 4 and profile["desc"]["size"] == 4
    listed = proxy.cicada("profiles")
    assert listed.returncode == 0 and "ring" in listed.stdout
    one = proxy.cicada("profiles", "ring")
    assert "mpi___size_out___mpi_send" in one.stdout


def test_cicada_shows_what_counts_now(proxy):
    proxy.start()
    program = proxy.count(1000, "now", wait=True)
    proxy.wait_for_value("now", "work", 1000)
    jobs = proxy.cicada("jobs")
    assert jobs.returncode == 0 and [line.split()[0] for line in jobs.stdout.splitlines()] == ["JOB", "now"]
    metrics = proxy.cicada("metrics", "now")
    assert any(line.split() == ["work", "counter", "1000"] for line in metrics.stdout.splitlines())
    assert "work 1000\n" in proxy.cicada("metrics", "now", "--prom").stdout
    top = proxy.cicada("top", "now", "-d", "0.2")
    assert top.returncode == 0 and "work" in top.stdout
    assert "now" in proxy.cicada("top", "-d", "0.2", "-n", "2").stdout
    program.stdin.close()
    program.wait(timeout=30)
    program.stdout.close()
    wait_until(lambda: "no job counts here" in proxy.cicada("jobs").stdout, "the job to end")


def test_cicada_says_what_is_wrong(proxy):
    nobody = proxy.cicada("jobs")
    assert nobody.returncode == 2 and "no proxy of this user is on this node" in nobody.stderr and "proxy_v2" in nobody.stderr
    proxy.start()
    missing = proxy.cicada("metrics", "nix")
    assert missing.returncode == 1 and "'nix'" in missing.stderr
    for words in (["nonsense"], ["jobs", "more"], ["top", "-d", "0"], ["metrics", "--json", "--prom"], ["jobs", "-p", "a b"]):
        done = proxy.cicada(*words)
        assert done.returncode == 2 and done.stderr, words
    assert proxy.cicada("jobs", "-p", "127.0.0.1:1").returncode == 2


def test_doctor_tells_what_is_wrong_and_what_to_do(proxy, ring):
    def doctor(*words):
        return proxy.cicada("doctor", *words)

    nobody = doctor()
    assert nobody.returncode == 1 and "FAULT" in nobody.stdout and "start proxy_v2" in nobody.stdout
    proxy.start()
    well = doctor(ring)
    assert well.returncode == 0 and well.stdout.endswith("All is well.\n"), well.stdout
    for words in ("a proxy of this user answers", "it is ready at http://127.0.0.1:", "its own root", "root.token",
                  "is a program of Open MPI", "would preload"):
        assert words in well.stdout, well.stdout
    missing = doctor("no-such-command")
    assert missing.returncode == 1 and "'no-such-command' not found" in missing.stdout
    proxy.kill()
    assert "Connection refused" in doctor().stdout


@pytest.mark.parametrize("program", ["proxy_run", "cicada"])
def test_manual_page_has_every_option(program):
    page = (Path(__file__).resolve().parents[2] / "docs" / "man" / f"{program}.1").read_text()
    helps = [[RUN, "--help"]] if program == "proxy_run" else [
        [CICADA, command, "--help"] for command in ("jobs", "top", "metrics", "profiles", "topo", "doctor")]
    for words in helps:
        text = subprocess.run(words, capture_output=True, text=True, check=True).stdout
        options = re.findall(r"^  (-\w), --|^      --([\w-]+)", text, re.MULTILINE)
        assert options
        for letter, name in options:
            wanted = rf"Fl {letter[1:]}\b" if letter else rf"(Fl|,|\|) -{name}\b"
            assert re.search(wanted, page) or letter == "-h", f"{letter or name} of {words}"
