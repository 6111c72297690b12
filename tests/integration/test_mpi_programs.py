# SPDX-License-Identifier: BSD-3-Clause
"""The MPI exporter in programs as people have them: other tools, threads, real programs, shells, and sudden ends."""
import os
import shutil
import signal
import subprocess
import sys

import pytest

from support.mpi import BUILD_DIR, LAUNCH, SOURCES, Mpi, counters
from support.proxy_core import Place
from support.waiting import wait_until

# Libraries of a sanitizer's build can't be preloaded: its runtime must come first in a process.
pytestmark = pytest.mark.plain_build


@pytest.fixture
def place(tmp_path):
    if os.geteuid() != 0:
        pytest.skip("needs root: gives the test a /dev/shm of its own")
    made = Place(tmp_path)
    made.start()
    yield made
    made.close()


def mpi_of(name, place, directory):
    if reason := Mpi.missing(name):
        pytest.skip(reason)
    return Mpi(name, place, directory)


@pytest.fixture(params=LAUNCH)
def mpi(request, place, tmp_path):
    return mpi_of(request.param, place, tmp_path)


@pytest.fixture
def openmpi(place, tmp_path):
    return mpi_of("openmpi", place, tmp_path)


@pytest.fixture
def mpich(place, tmp_path):
    return mpi_of("mpich", place, tmp_path)


def test_a_stencil_moves_its_borders_and_nothing_else(mpi):
    expected = mpi.run_expecting(mpi.compile("stencil.c"), words=(64, 50))
    assert mpi.counted() == expected


def test_calls_of_many_threads_are_all_counted(mpi):
    expected = mpi.run_expecting(mpi.compile("threads.c", "-pthread"), ranks=2)
    assert mpi.counted() == expected


@pytest.mark.parametrize("words", [[], ["session"]], ids=["world", "session"])
def test_mpi_4_is_counted_too(mpich, words):
    expected = mpich.run_expecting(mpich.compile("mpi4.c"), words=words)
    assert mpich.counted() == expected
    assert counters(mpich.place.dump(), "main")["has_finished"] == 4


def test_calls_that_a_component_of_open_mpi_makes_are_not_the_programs(openmpi):
    expected = openmpi.run_expecting(openmpi.compile("files.c"), OMPI_MCA_io="romio321")
    assert openmpi.counted() == expected


@pytest.mark.parametrize("goes_on", ["by_pmpi", "by_next"])
@pytest.mark.parametrize("order", ["before", "after"])
def test_another_tool_and_ours_both_count_every_call(mpi, tmp_path, goes_on, order):
    tool = mpi.compile("tool.c", "-shared", "-fPIC", "-ldl", *(["-DTOOL_NEXT"] if goes_on == "by_next" else []))
    preload = [tool, mpi.exporter] if order == "before" else [mpi.exporter, tool]
    expected = mpi.run_expecting(mpi.compile("messages.c"), preload=preload, TOOL_FILE=str(tmp_path / "tool"))
    assert mpi.counted() == expected
    by_tool = [sum(column) for column in zip(*(map(int, path.read_text().split()) for path in tmp_path.glob("tool.*")
                                               if path.suffix[1:].isdigit()))]
    assert by_tool == [expected[key][0] for key in ("mpi_init", "mpi_send", "mpi_recv")]


def test_a_program_that_never_calls_mpi_is_no_rank(mpi):
    mpi.run(mpi.compile("edges.c"), "never", ranks=1, expect_status=7)
    assert not [name for name in counters(mpi.place.dump(), "main") if name.startswith("mpi___")]


def test_calls_outside_of_init_and_finalize_are_counted(mpi):
    mpi.run(mpi.compile("edges.c"), "outside")
    counted = mpi.counted()
    assert counted["mpi_initialized"] == counted["mpi_get_version"] == counted["mpi_finalized"] == (4, 0, 0)
    found = counters(mpi.place.dump(), "main")
    assert found["has_started"] == found["has_finished"] == 4


@pytest.mark.parametrize("without", [(), ("OMPI_COMM_WORLD_SIZE",)], ids=["said", "not said"])
def test_the_job_has_its_size_whether_the_launcher_says_it_or_not(openmpi, without):
    openmpi.run(openmpi.compile("stencil.c"), openmpi.directory, 4, 1, ranks=3, job="sized", without=without)
    profile = wait_until(lambda: "sized.profile" in openmpi.place.profiles() and openmpi.place.profile("sized.profile"),
                         "the job's profile")
    assert profile["desc"]["size"] == 3


def test_an_abort_keeps_its_status_and_what_was_counted(mpi):
    mpi.run(mpi.compile("edges.c"), "abort", ranks=1, expect_status=3)
    assert mpi.counted() == {"mpi_init": (1, 0, 0), "mpi_comm_rank": (1, 0, 0), "mpi_abort": (1, 0, 0)}
    assert counters(mpi.place.dump(), "main").get("has_finished", 0) == 0


def test_calls_that_fail_move_nothing(mpi):
    mpi.run(mpi.compile("edges.c"), "errors", ranks=2)
    counted = mpi.counted()
    assert counted["mpi_send"] == (3, 0, 40)
    assert counted["mpi_irecv"] == (3, 0, 0)


def test_time_is_that_of_waiting(mpi):
    mpi.run(mpi.compile("edges.c"), "wait", ranks=2)
    found = counters(mpi.place.dump(), "main")
    assert 0.15 < found["mpi___time___mpi_recv"] < 60
    assert found["mpi___time___mpi_comm_rank"] < found["mpi___time___mpi_recv"]


def test_counts_are_there_while_a_program_hangs_and_after_it_is_killed(mpi, tmp_path):
    ready = tmp_path / "ready"
    program = mpi.compile("edges.c")
    with mpi.started(program, "hang", ready, ranks=1) as running:
        wait_until(ready.exists, "the program's allreduce")
        dump = mpi.place.wait_for(lambda now: now.value("mpi", "mpi___hits___mpi_allreduce") == 1, "its count")
        assert dump.value("mpi", "job_mpi_ranks") == 1
        for pid in subprocess.run(["pgrep", "-f", f"^{program} hang"], capture_output=True, text=True,
                                  check=True).stdout.split():
            os.kill(int(pid), signal.SIGKILL)
        running.wait(timeout=60)
    assert mpi.counted()["mpi_allreduce"] == (1, 40, 40)


def test_shells_load_no_mpi_and_do_as_ever(mpi):
    script = 'ls / >/dev/null; (true); x=$(echo a); grep -c libmpi /proc/self/maps; grep -c exporter-mpi /proc/self/maps; exit 5'
    for bind_now in ({}, {"LD_BIND_NOW": "1"}):
        done = subprocess.run(["bash", "-c", script], env=os.environ | {"LD_PRELOAD": str(mpi.exporter), **bind_now},
                              capture_output=True, text=True, check=False)
        no_mpi, exporter = done.stdout.split()
        assert (done.returncode, done.stderr, no_mpi) == (5, "", "0")
        assert int(exporter) > 0
    assert not [name for name in counters(mpi.place.dump(), "main") if name.startswith("mpi___")]


def test_the_launcher_gives_a_program_the_exporter_of_its_mpi(mpi):
    launcher = BUILD_DIR / "bin" / "proxy_run"
    expected = mpi.run_expecting(launcher, "-j", "launched", "--", mpi.compile("messages.c"), preload=[])
    assert mpi.counted() == expected


@pytest.mark.parametrize("program, exporter", [("openmpi", "mpich"), ("mpich", "openmpi")])
@pytest.mark.parametrize("source", ["messages.c", "completions.c", "collectives.c", "windows.c", "files.c",
                                    "fortran_mpif_h.f90", "fortran_mpi_f08.f90"])
def test_the_exporter_of_another_mpi_lets_the_right_one_count(place, tmp_path, program, exporter, source):
    mpi = mpi_of(program, place, tmp_path)
    wrong = mpi_of(exporter, place, tmp_path).exporter
    options = [f"-I{SOURCES}", "-fallow-argument-mismatch"] if source.endswith(".f90") else []
    expected = mpi.run_expecting(mpi.compile(source, *options), preload=[wrong])
    assert mpi.counted() == expected


@pytest.mark.parametrize("program, exporter", [("openmpi", "mpich"), ("mpich", "openmpi")])
def test_without_the_right_exporter_a_program_runs_as_if_nobody_were_there(place, tmp_path, program, exporter):
    mpi = mpi_of(program, place, tmp_path)
    alone = tmp_path / "alone" / "lib.so"
    alone.parent.mkdir()
    shutil.copy(mpi_of(exporter, place, tmp_path).exporter, alone)
    for source in "messages.c", "completions.c", "fortran_mpi_f08.f90":
        options = [f"-I{SOURCES}", "-fallow-argument-mismatch"] if source.endswith(".f90") else []
        assert mpi.run_expecting(mpi.compile(source, *options), preload=[alone])
    assert mpi.counted() == {}


PYTHON = """
from mpi4py import MPI
import sys
world = MPI.COMM_WORLD
if world.rank == 0:
    world.Send([bytearray(1234), MPI.BYTE], 1)
elif world.rank == 1:
    world.Recv([bytearray(5000), MPI.BYTE], 0)
world.Barrier()
"""


def test_an_mpi_that_python_loads_late_is_counted(openmpi):
    if subprocess.run([sys.executable, "-c", "import mpi4py"], check=False).returncode != 0:
        pytest.skip("needs python3-mpi4py")
    openmpi.run(sys.executable, "-c", PYTHON)
    counted = openmpi.counted()
    assert counted["mpi_send"] == (1, 0, 1234)
    assert counted["mpi_recv"] == (1, 1234, 0)
    assert counted["mpi_barrier"] == (4, 0, 0)


def test_netpipe_receives_what_it_sends(mpi, tmp_path):
    netpipe = {"openmpi": "NPopenmpi", "mpich": "NPmpich2"}[mpi.name]
    if shutil.which(netpipe) is None:
        pytest.skip(f"needs {netpipe}, of Debian's netpipe packages")
    mpi.run(netpipe, "-l", 1, "-u", 4096, "-n", 20, "-o", tmp_path / "np.out", ranks=2)
    counted = mpi.counted()
    assert counted["mpi_send"][0] > 100
    assert counted["mpi_send"][2] == counted["mpi_recv"][1] > 10000
