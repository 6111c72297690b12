# SPDX-License-Identifier: BSD-3-Clause
"""libproxyclient inside programs that do what programs do: nothing is lost, counted twice, or in their way."""
import re
import subprocess
from pathlib import Path

import pytest

from support.proxy import BUILD_DIR, Proxy, clean_environment
from support.proxy_core import value_of
from support.waiting import rounds, wait_until

CASES = BUILD_DIR / "tests" / "client_cases"
LIBRARY = BUILD_DIR / "lib" / "libproxyclient.so"
ROOT = Path(__file__).resolve().parents[2]
HEADER, SOURCES = ROOT / "include", ROOT / "tests" / "support"


@pytest.fixture
def proxy(tmp_path):
    one = Proxy(tmp_path)
    yield one
    one.close()


def run(proxy, words, job="case", before=(), status=0):
    """Runs a case to its end. Returns what it said that it counted, and its stderr."""
    env = clean_environment(PROXY_PATH=proxy.socket_path, PROXY_JOB_ID=job)
    done = subprocess.run(proxy.command(*before, *words), env=env, capture_output=True, text=True, timeout=120, check=False)
    assert done.returncode == status, (done.returncode, done.stderr)
    return int(done.stdout.split()[-1]), done.stderr


def counters(proxy, job="case"):
    proxy.wait_for_profile(job)
    return {one["name"]: value_of(one) for one in proxy.get(f"/profiles/get?jobid={job}")["counters"]}


@pytest.mark.parametrize("words, status", [
    (["threads"], 0), (["forks"], 0), (["daemon"], 0), (["closed"], 0), (["signal"], 0), (["exit"], 0), (["killed"], -9),
    (["vfork", CASES], 0), (["dlopen", LIBRARY], 0),
], ids=lambda value: str(value[0]) if isinstance(value, list) else "")
@pytest.mark.parametrize("is_proxy_first", [True, False], ids=["proxy first", "program first"])
def test_all_that_was_counted_is_there(proxy, words, status, is_proxy_first):
    if is_proxy_first:
        proxy.start()
    expected, _ = run(proxy, [CASES, *words], status=status)
    if not is_proxy_first:
        proxy.start()
    found = counters(proxy)
    # The program that vfork() executes counts for itself, also in this job.
    assert found["work_total"] == expected
    assert found["has_started"] == (2 if words[0] in ("closed", "vfork") else 1)
    if words[0] == "closed":
        assert found["late_total"] == 4, "a metric that was declared when all descriptors had been closed"


@pytest.mark.timeout(1800)
def test_threads_that_come_and_go_leave_nothing_behind(proxy):
    proxy.start()
    count = rounds(5000, 100000)
    program = subprocess.Popen(proxy.command(CASES, "threads", count), stdout=subprocess.PIPE, text=True,
                               env=clean_environment(PROXY_PATH=proxy.socket_path, PROXY_JOB_ID="churn"))
    sizes = set()

    def look():
        listing = proxy.command("find", "/dev/shm", "-name", "*.segment", "-printf", "%s\\n")
        sizes.update(subprocess.run(listing, capture_output=True, text=True, check=False).stdout.split())  # one may just go
        return program.poll() is not None
    wait_until(look, "the program to end", timeout_s=1500)
    assert int(program.stdout.read()) == 3 * count + 1
    program.stdout.close()
    assert counters(proxy, "churn")["work_total"] == 3 * count + 1
    assert max(map(int, sizes), default=0) <= 1 << 20, "a thread's shard is used again by the next"


@pytest.mark.plain_build  # sanitizers need more address space
@pytest.mark.parametrize("limit", ["--fsize=0", "--fsize=4194304", "--nofile=5", "--memlock=0", "--as=300000000"])
def test_limits_of_the_program_are_survived(proxy, limit):
    proxy.start()
    expected, _ = run(proxy, [CASES, "forks"], before=["prlimit", limit])
    assert expected == 141
    if limit != "--fsize=0":  # no file may grow, so nothing can be shared; the program runs all the same
        proxy.wait_for_value("main", "work_total", 141)


def test_metrics_that_find_no_room_are_counted_and_the_rest_counts(proxy):
    proxy.start()
    expected, said = run(proxy, [CASES, "metrics"], before=["prlimit", "--fsize=200000"])
    refused = int(re.search(r"refused (\d+)", said).group(1))
    assert 0 < refused < 5000
    assert counters(proxy)["work_total"] == expected
    assert f"cicada_proxy_client_metrics_refused_total {refused}\n" in proxy.metrics()


def test_increments_of_threads_that_find_no_room_are_counted(proxy):
    proxy.start()
    expected, said = run(proxy, [CASES, "crowd"], before=["prlimit", "--fsize=200000"])
    lost = int(re.search(r"lost (\d+)", said).group(1))
    assert lost > 0
    assert counters(proxy)["work_total"] == expected
    assert f"cicada_proxy_client_metrics_refused_total {lost}\n" in proxy.metrics()


@pytest.mark.parametrize("is_proxy_first", [True, False], ids=["proxy first", "program first"])
def test_server_that_forks_for_each_request_is_counted_for_ever(proxy, is_proxy_first):
    """Its first segment has room for some thousands of children."""
    children = 9000
    if is_proxy_first:
        proxy.start()
    expected, _ = run(proxy, [CASES, "children", str(children)])
    if not is_proxy_first:
        proxy.start()
    found = counters(proxy)
    assert (found["work_total"], found["served_seconds_total"], found["late_total"]) == (expected, children, children)
    assert "cicada_proxy_client_metrics_refused_total 0\n" in proxy.metrics()


@pytest.mark.plain_build  # a static program has no sanitizer
def test_static_program(proxy, tmp_path):
    archive = next(BUILD_DIR.rglob("libproxyclient.a"))
    program = tmp_path / "static"
    subprocess.run(["cc", "-static", "-O1", "-w", "-I", HEADER, "-o", program, f"{SOURCES}/client_cases.c", archive, "-pthread"],
                   check=True, capture_output=True)
    proxy.start()
    expected, _ = run(proxy, [program, "forks"])
    assert counters(proxy)["work_total"] == expected


@pytest.mark.parametrize("compiler", ["g++", "clang++"])
@pytest.mark.parametrize("standard", ["c++98", "c++11", "c++20"])
def test_header_is_clean_in_cpp(tmp_path, compiler, standard):
    (tmp_path / "one.cpp").write_text('#include <metric_proxy_client.h>\n'
                                      'void work(MetricProxyValue *timer) { MetricProxyScope scope(timer); }\n')
    done = subprocess.run([compiler, f"-std={standard}", "-pedantic-errors", "-Wall", "-Wextra", "-Werror", "-fsyntax-only", "-I", HEADER,
                           tmp_path / "one.cpp"], capture_output=True, text=True, check=False)
    assert done.returncode == 0, done.stderr


@pytest.mark.parametrize("standard", ["c99", "c11", "gnu17"])
def test_header_is_clean_in_c(tmp_path, standard):
    (tmp_path / "one.c").write_text("#include <metric_proxy_client.h>\nvoid work(MetricProxyValue *timer);\n"
                                    "void work(MetricProxyValue *timer) { METRIC_PROXY_TIME(timer); }\n")
    done = subprocess.run(["cc", f"-std={standard}", "-pedantic-errors", "-Wall", "-Wextra", "-Werror", "-fsyntax-only", "-I", HEADER,
                           tmp_path / "one.c"], capture_output=True, text=True, check=False)
    assert done.returncode == 0, done.stderr
