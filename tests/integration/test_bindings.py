# SPDX-License-Identifier: BSD-3-Clause
"""Programs in Python and Fortran count as those in C do."""
import subprocess
import sys
from pathlib import Path

import pytest

from support.proxy import BUILD_DIR, Proxy, clean_environment
from support.proxy_core import value_of

pytestmark = pytest.mark.plain_build  # neither interpreter nor compiler has our sanitizers
BINDINGS = Path(__file__).resolve().parents[2] / "bindings"

PYTHON = """
import os, sys
import metric_proxy
assert metric_proxy.is_available()
steps = metric_proxy.counter("steps_total", "steps")
for _ in range(5):
    steps.inc()
steps.inc(2.5)
steps.inc(2**53 + 1)
metric_proxy.gauge("heat_celsius", "heat", reactor='the "2nd"').set(36.6)
histogram = metric_proxy.histogram("sizes", "sizes", bounds=(1, 10))
for size in (0.5, 5, 50):
    histogram.observe(size)
with metric_proxy.timer("solver_seconds_total", "solver"):
    with metric_proxy.timer("inner_seconds_total", "inner"):
        sum(range(100000))
if os.fork() == 0:
    steps.inc(1)
    os._exit(0)
os.wait()
"""

FORTRAN = """
program count
  use metric_proxy
  use, intrinsic :: iso_c_binding
  implicit none
  type(metric_proxy_value) :: steps, heat, timer
  integer(c_int64_t) :: start
  integer :: i
  steps = metric_proxy_counter("steps_total  ", "steps")
  heat = metric_proxy_gauge("heat_celsius", "heat")
  timer = metric_proxy_timer("solver_seconds_total", "solver")
  start = metric_proxy_start()
  do i = 1, 1000
    call metric_proxy_inc(steps, 0.5d0)
    call metric_proxy_add(steps, 2_c_int64_t)
  end do
  call metric_proxy_set(heat, 36.6d0)
  call metric_proxy_stop(timer, start)
  call metric_proxy_end()
end program
"""


@pytest.fixture
def proxy(tmp_path):
    one = Proxy(tmp_path)
    yield one
    one.close()


def counted(proxy, words, **variables):
    env = clean_environment(PROXY_PATH=proxy.socket_path, PROXY_JOB_ID="bound", **variables)
    done = subprocess.run(proxy.command(*words), env=env, capture_output=True, text=True, timeout=60, check=False)
    assert done.returncode == 0, done.stderr
    proxy.wait_for_profile("bound")
    return {one["name"]: value_of(one) for one in proxy.get("/profiles/get?jobid=bound")["counters"]}


def test_python(proxy):
    proxy.start()
    found = counted(proxy, [sys.executable, "-c", PYTHON], PYTHONPATH=BINDINGS / "python",
                    METRIC_PROXY_CLIENT=BUILD_DIR / "lib" / "libproxyclient.so")
    assert found["steps_total"] == pytest.approx(5 + 2.5 + 2**53 + 1 + 1)
    assert found["sizes_count"] == 3 and found['sizes_bucket{le="1"}'] == 1
    assert 0 < found["inner_seconds_total"] <= found["solver_seconds_total"] < 60
    assert found["has_started"] == 1 and found["has_finished"] == 1


def test_python_without_the_library_does_nothing(tmp_path):
    (tmp_path / "metric_proxy.py").write_text((BINDINGS / "python" / "metric_proxy.py").read_text())
    program = ("import metric_proxy as m; assert not m.is_available(); m.counter('a').inc(); m.gauge('b').set(1)\n"
               "m.histogram('c').observe(1)\nwith m.timer('d'): pass\n")
    subprocess.run([sys.executable, "-c", program], env=clean_environment(PYTHONPATH=tmp_path, METRIC_PROXY_CLIENT="/nonexistent.so"),
                   check=True)


def test_fortran(proxy, tmp_path):
    proxy.start()
    (tmp_path / "count.f90").write_text(FORTRAN)
    library = BUILD_DIR / "lib"
    subprocess.run(["gfortran", "-Wall", "-Werror", "-J", tmp_path, "-o", tmp_path / "count", BINDINGS / "fortran" / "metric_proxy.f90",
                    tmp_path / "count.f90", "-L", library, "-lproxyclient", f"-Wl,-rpath,{library}"], check=True)
    found = counted(proxy, [tmp_path / "count"])
    assert found["steps_total"] == 2500 and found["has_finished"] == 1 and found["solver_seconds_total"] > 0
