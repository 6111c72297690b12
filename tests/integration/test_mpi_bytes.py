# SPDX-License-Identifier: BSD-3-Clause
"""The MPI exporter counts what programs move, exactly: each program says itself what that is."""
import os

import pytest

from support.mpi import LAUNCH, SOURCES, Mpi, counters
from support.proxy_core import Place

# Libraries of a sanitizer's build can't be preloaded: its runtime must come first in a process.
pytestmark = pytest.mark.plain_build


@pytest.fixture(params=LAUNCH)
def mpi(request, tmp_path):
    if os.geteuid() != 0:
        pytest.skip("needs root: gives the test a /dev/shm of its own")
    if reason := Mpi.missing(request.param):
        pytest.skip(reason)
    place = Place(tmp_path)
    place.start()
    yield Mpi(request.param, place, tmp_path)
    place.close()


@pytest.mark.parametrize("source", ["messages.c", "completions.c", "collectives.c", "windows.c", "files.c"])
def test_every_byte_of_a_known_program_is_counted(mpi, source):
    expected = mpi.run_expecting(mpi.compile(source))
    assert mpi.counted() == expected


@pytest.mark.long  # and five gigabytes of memory
def test_a_message_of_more_than_two_gigabytes_is_counted_whole(mpi):
    expected = mpi.run_expecting(mpi.compile("large.c"), ranks=2)
    assert mpi.counted() == expected


@pytest.mark.parametrize("interface", ["mpif_h", "mpi", "mpi_f08"])
def test_a_call_from_fortran_is_counted_once_whichever_interface(mpi, interface):
    options = ["-fallow-argument-mismatch"]  # one routine for buffers of any type, as mpif.h has always been used
    expected = mpi.run_expecting(mpi.compile(f"fortran_{interface}.f90", f"-I{SOURCES}", *options))
    assert mpi.counted() == expected


def test_totals_are_the_sums_of_the_functions(mpi):
    expected = mpi.run_expecting(mpi.compile("messages.c"))
    found = counters(mpi.place.dump(), "main")
    hits, in_bytes, out_bytes = (sum(column) for column in zip(*expected.values()))
    assert found["total___mpi___hits___total"] == hits
    assert found["total___mpi___size___total_in"] == in_bytes
    assert found["total___mpi___size___total_out"] == out_bytes
    assert found["total___mpi___size_total"] == in_bytes + out_bytes
    times = sum(value for name, value in found.items() if name.startswith("mpi___time___"))
    assert found["total___mpi___time___total"] == pytest.approx(times)
