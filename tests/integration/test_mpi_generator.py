# SPDX-License-Identifier: BSD-3-Clause
"""The MPI exporter's generator: no function of an MPI is miscounted in silence; sites build for their own MPI."""
import os
import re
import shutil
import subprocess
import sys
from pathlib import Path

import pytest

from support.mpi import BUILD_DIR, Mpi
from support.proxy_core import Place

ROOT = Path(__file__).resolve().parents[2]
GENERATE = ROOT / "src" / "exporters" / "mpi" / "generate.py"
HEADER = """
typedef int MPI_Comm; typedef int MPI_Datatype; typedef int MPI_Op; typedef struct { int MPI_ERROR; } MPI_Status;
#define MPI_BYTE ((MPI_Datatype)1)
#define MPI_NO_OP ((MPI_Op)2)
int MPI_Send(const void *buf, int count, MPI_Datatype datatype, int dest, int tag, MPI_Comm comm);
int PMPI_Send(const void *buf, int count, MPI_Datatype datatype, int dest, int tag, MPI_Comm comm);
#define MPI_Address(location, address) MPI_Get_address(location, address)
"""


def generate(tmp_path, declarations, *options):
    """Runs the generator for an MPI whose header has these declarations besides MPI_Send."""
    (tmp_path / "mpi.h").write_text(HEADER + declarations)
    return subprocess.run([GENERATE, "--mpicc", f"gcc -I{tmp_path}", "--output", tmp_path / "made", *options],
                          capture_output=True, text=True, check=False)


def both(prototype):
    return prototype + prototype.replace("MPI_Nobody", "PMPI_Nobody")


UNKNOWN = both("int MPI_Nobody_knows(int *argument);\n")


def wrapped(tmp_path):
    return set(re.findall(r'\.name = "(\w+)"', (tmp_path / "made" / "wrappers.c").read_text()))


def test_a_function_that_no_rule_covers_is_an_error_that_names_it(tmp_path):
    done = generate(tmp_path, UNKNOWN)
    assert done.returncode != 0
    assert "MPI_Nobody_knows" in done.stderr
    assert not (tmp_path / "made").exists()


def test_for_a_site_it_counts_calls_and_time_and_is_named(tmp_path):
    done = generate(tmp_path, UNKNOWN, "--allow-unknown")
    assert (done.returncode, done.stderr) == (0, "")
    assert done.stdout == "MPI_Nobody_knows: not in sizes.table; its calls and their time are counted, not its bytes\n"
    assert wrapped(tmp_path) == {"MPI_Send", "MPI_Nobody_knows"}


@pytest.mark.parametrize("declarations", [
    "int MPI_Recv(void *buf);\n",  # no PMPI_Recv behind it
    "int MPI_Address(void *location, int *address); int PMPI_Address(void *location, int *address);\n",  # a macro as well
    "int MPI_Pcontrol(const int level, ...); int PMPI_Pcontrol(const int level, ...);\n",
    "typedef int (MPI_Handler)(MPI_Comm *, int *, ...); static inline int MPI_Helper(int a) { return a; }\n",
], ids=["no PMPI", "macro", "variable arguments", "types and inline functions"])
def test_what_can_not_be_wrapped_is_left_alone(tmp_path, declarations):
    done = generate(tmp_path, declarations)
    assert (done.returncode, done.stderr) == (0, "")
    assert wrapped(tmp_path) == {"MPI_Send"}


@pytest.mark.parametrize("prototype", [
    "int {}Comm_rank(MPI_Comm, int *);",
    "extern int {}Comm_rank(MPI_Comm comm, int *rank) __attribute__((visibility(\"default\"), deprecated(\"use (that)\")));",
    "int\n{}Comm_rank (\n    MPI_Comm comm,\n    int rank[1]\n);",
    "__attribute__((nothrow)) int {}Comm_rank(MPI_Comm comm, int * rank) ;",
], ids=["without names", "attributes", "over lines", "attributes before"])
def test_prototypes_are_read_as_headers_write_them(tmp_path, prototype):
    done = generate(tmp_path, prototype.format("MPI_") + "\n" + prototype.format("PMPI_") + "\n")
    assert (done.returncode, done.stderr) == (0, "")
    assert wrapped(tmp_path) == {"MPI_Send", "MPI_Comm_rank"}


def test_an_mpi_whose_function_has_other_parameters_is_an_error(tmp_path):
    declarations = "int MPI_Recv(void *buf, int count); int PMPI_Recv(void *buf, int count);\n"
    done = generate(tmp_path, declarations)
    assert done.returncode != 0
    assert "MPI_Recv" in done.stderr and "MPI_Status" in done.stderr


@pytest.mark.plain_build  # libraries of a sanitizer's build can't be preloaded
@pytest.mark.parametrize("name", ["openmpi", "mpich"])
def test_a_site_builds_one_for_its_own_mpi(tmp_path, name):
    if os.geteuid() != 0:
        pytest.skip("needs root: gives the test a /dev/shm of its own")
    if reason := Mpi.missing(name):
        pytest.skip(reason)
    installed = tmp_path / "installed"
    shutil.copytree(ROOT / "include", installed / "include")
    (installed / "lib").mkdir()
    for library in (BUILD_DIR / "lib").glob("libproxyclient.so*"):
        shutil.copy2(library, installed / "lib", follow_symlinks=False)
    done = subprocess.run([ROOT / "script" / "build-mpi-exporter", "--mpicc", f"mpicc.{name}", "--prefix", installed],
                          capture_output=True, text=True, check=False)
    assert (done.returncode, done.stderr) == (0, "")
    made = installed / "lib" / "cicada" / name / "libmetricproxy-exporter-mpi.so"
    assert done.stdout == f"{made}\n"  # nothing unknown in these two

    place = Place(tmp_path)
    try:
        place.start()
        mpi = Mpi(name, place, tmp_path)
        expected = mpi.run_expecting(mpi.compile("messages.c"), preload=[made])
        assert mpi.counted() == expected
    finally:
        place.close()


@pytest.mark.parametrize("words, says", [
    (["--prefix", "/nonexistent"], "no libproxyclient.so under /nonexistent/lib"),
    (["--mpicc"], "--mpicc needs a value"),
    (["--fast"], "unknown argument '--fast'"),
], ids=["nothing installed", "no value", "unknown option"])
def test_the_script_says_what_it_lacks(words, says):
    done = subprocess.run([ROOT / "script" / "build-mpi-exporter", *words], capture_output=True, text=True, check=False)
    assert done.returncode == 2
    assert says in done.stderr


def test_the_table_has_each_function_once():
    sys.path.insert(0, str(GENERATE.parent))
    try:
        import generate as generator
    finally:
        sys.path.pop(0)
    with pytest.raises(SystemExit, match="Send has two rows"):
        generator.read_table("Send : nothing\nBsend Send : nothing\n")
    with pytest.raises(SystemExit, match="no ':' in"):
        generator.read_table("Send nothing\n")
    table = generator.read_table("# words\n\nA B\n    C : moves f($1, $2), received\n")
    assert table == {name: [["moves", "f", "$1, $2"], ["received"]] for name in "ABC"}
