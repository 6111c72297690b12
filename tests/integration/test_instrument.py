# SPDX-License-Identifier: BSD-3-Clause
"""Functions that were compiled with -finstrument-functions are counted, each by its name and object."""
import re
import subprocess

import pytest

from support.proxy import BUILD_DIR, RUN, Proxy, clean_environment
from support.proxy_core import value_of

pytestmark = pytest.mark.plain_build  # a sanitizer's library can't be preloaded into a program without it

PROGRAM = """
#include <pthread.h>
#include <sys/wait.h>
#include <unistd.h>
void exported_work(int depth);
static int hidden(int depth) { return depth == 0 ? 0 : hidden(depth - 1) + 1; }
static void *run(void *context) { for (int i = 0; i < 1000; i++) exported_work(0); return context; }
int main(void)
{
    pthread_t threads[4];
    for (int i = 0; i < 4; i++) pthread_create(&threads[i], 0, run, 0);
    for (int i = 0; i < 4; i++) pthread_join(threads[i], 0);
    hidden(9);
    if (fork() == 0) { hidden(4); _exit(0); }
    wait(0);
    return 0;
}
"""
LIBRARY = "static void inner(void) { } void exported_work(int depth) { if (depth == 0) inner(); }\n"


@pytest.fixture
def proxy(tmp_path):
    one = Proxy(tmp_path)
    yield one
    one.close()


def build(directory, *options):
    (directory / "program.c").write_text(PROGRAM)
    (directory / "library.c").write_text(LIBRARY)
    # -O1 -fno-optimize-sibling-calls and no inlining: as many calls as the source has.
    flags = ["-O1", "-finstrument-functions", "-fno-inline", "-fno-optimize-sibling-calls", "-fno-ipa-cp", *options]
    subprocess.run(["cc", *flags, "-fPIC", "-shared", "-o", directory / "libpart.so", directory / "library.c"], check=True)
    subprocess.run(["cc", *flags, "-o", directory / "program", directory / "program.c", "-L", directory, "-lpart", "-pthread",
                    f"-Wl,-rpath,{directory}"], check=True)
    return directory / "program"


def counted(proxy, program, job):
    """{metric: calls} of a run under proxy_run, which finds by itself what the program needs."""
    env = clean_environment(PROXY_PATH=proxy.socket_path)
    subprocess.run(proxy.command(RUN, "-j", job, "--", program), env=env, check=True, timeout=60, stdin=subprocess.DEVNULL)
    proxy.wait_for_profile(job)
    return {one["name"]: value_of(one) for one in proxy.get(f"/profiles/get?jobid={job}")["counters"] if one["name"].startswith("func__")}


EXPECTED = {
    "func__main_program": 1, "func__run_program": 4, "func__hidden_program": 10 + 5,
    "func__exported_work_libpart_so": 4000, "func__inner_libpart_so": 4000,
}


@pytest.mark.parametrize("options", [[], ["-no-pie", "-fno-pie"]], ids=["position-independent", "fixed"])
def test_calls_are_exact_with_threads_recursion_forks_and_libraries(proxy, tmp_path, options):
    proxy.start()
    if options:
        program = build(tmp_path)  # the library must be position-independent in any case
        subprocess.run(["cc", "-O1", "-finstrument-functions", "-fno-inline", "-fno-optimize-sibling-calls", "-fno-ipa-cp", *options,
                        "-o", program, tmp_path / "program.c", "-L", tmp_path, "-lpart", "-pthread", f"-Wl,-rpath,{tmp_path}"], check=True)
    else:
        program = build(tmp_path)
    assert counted(proxy, program, "calls") == EXPECTED


def test_stripped_functions_are_known_by_their_place(proxy, tmp_path):
    proxy.start()
    program = build(tmp_path)
    subprocess.run(["strip", program, tmp_path / "libpart.so"], check=True)
    found = counted(proxy, program, "stripped")
    assert found["func__exported_work_libpart_so"] == 4000, "what a library exports, the loader knows"
    others = sorted(value for name, value in found.items() if re.fullmatch(r"func__0x[0-9a-f]+_(program|libpart_so)", name))
    assert others == sorted([1, 4, 15, 4000])


def test_client_shows_nothing_but_its_interface():
    symbols = subprocess.run(["nm", "-D", "--defined-only", BUILD_DIR / "lib" / "libproxyclient.so"], capture_output=True, text=True,
                             check=True).stdout.split("\n")
    names = {line.split()[2] for line in symbols if line}
    assert {name for name in names if not name.startswith("metric_proxy_")} == {"__cyg_profile_func_enter", "__cyg_profile_func_exit"}
    needed = subprocess.run(["readelf", "-d", BUILD_DIR / "lib" / "libproxyclient.so"], capture_output=True, text=True, check=True).stdout
    libraries = set(re.findall(r"Shared library: \[(.*?)\]", needed))
    assert libraries <= {"libc.so.6", "libasan.so.8", "libtsan.so.2", "libubsan.so.1", "libm.so.6"}
    if "asan" not in needed and "tsan" not in needed:
        assert libraries == {"libc.so.6"}
