# SPDX-License-Identifier: BSD-3-Clause
"""script/test counts right, fails when it must, and leaves nothing behind when it is interrupted."""

import os
import re
import signal
import subprocess
import sys
import time

import pytest
from conftest import ROOT

sys.path.insert(0, str(ROOT / "script/lib"))
import run_tests  # noqa: E402

PRESETS = """{"version": 3, "configurePresets": [%s]}""" % ", ".join(
    '{"name": "%s", "generator": "Ninja", "binaryDir": "${sourceDir}/build/${presetName}"}' % name
    for name in ("release", "asan", "tsan", "fuzz"))
CMAKE = """cmake_minimum_required(VERSION 3.22)
project(small NONE)
enable_testing()
add_custom_target(fuzz_targets)
add_test(NAME unit_a COMMAND sh "${CMAKE_SOURCE_DIR}/unit_a")
add_test(NAME fuzz_a COMMAND "${CMAKE_SOURCE_DIR}/fuzz_a" "${CMAKE_SOURCE_DIR}/corpus")
set_tests_properties(fuzz_a PROPERTIES LABELS fuzz)
"""
UNIT_GREEN = r"""printf '[==========] Running 2 test(s).\n[ RUN      ] one\n[       OK ] one\n'
printf '[ RUN      ] two\n no such device here\n[  SKIPPED ] two\n[==========] 2 test(s) run.\n[  PASSED  ] 1 test(s).\n'
"""
UNIT_RED = r"""printf '[==========] Running 3 test(s).\n[ RUN      ] one\n[       OK ] one\n[ RUN      ] two\n'
printf '[  ERROR   ] --- 1 != 2\n[  FAILED  ] two\n[ RUN      ] three\n'; kill -SEGV $$
"""
PYTEST = """import pytest
def test_green(): pass
@pytest.mark.skip(reason="no such host")
def test_skipped(): pass
@pytest.mark.long
def test_long(): pass
"""


@pytest.fixture
def project(checkout):
    """A checkout whose programs are shell scripts."""
    checkout.copy("script", "pytest.ini")
    checkout.write("CMakePresets.json", PRESETS)
    checkout.write("CMakeLists.txt", CMAKE)
    checkout.write("unit_a", UNIT_GREEN)
    checkout.write("fuzz_a", "#!/bin/sh\n", executable=True)
    checkout.write("corpus/one", "x")
    checkout.write("tests/integration/test_a.py", PYTEST)
    return checkout


def last_line(done):
    return done.stdout.splitlines()[-1]


def test_kinds_are_counted_and_summed(project):
    done = project.run("script/test", "--unit", "--integration")
    assert done.returncode == 0, done.stdout + done.stderr
    lines = done.stdout.splitlines()
    assert lines[-1] == "2 passed, 0 failed, 2 skipped"
    assert "unit         1 passed, 0 failed, 1 skipped" in lines
    assert "integration  1 passed, 0 failed, 1 skipped" in lines
    assert "skipped: unit: unit_a: two: no such device here" in lines
    assert "skipped: integration: test_a: test_skipped: no such host" in lines


def test_longest_tests_are_named_and_each_kind_has_its_time(project):
    project.write("unit_a", UNIT_GREEN + "sleep 1.2\n")
    project.write("tests/integration/test_a.py", "import time\ndef test_slow(): time.sleep(2.2)\ndef test_quick(): pass\n")
    output = project.run("script/test", "--unit", "--integration").stdout
    told = output.partition("\nThe longest:\n")[2].splitlines()
    assert told[0].endswith(" s  integration: test_a: test_slow") and told[1].endswith(" s  unit: unit_a") and told[2] == "", output
    assert re.search(r"^Time: unit \d+ s, integration \d+ s; \d+\.\d min in all$", output, re.MULTILINE), output


def test_long_tests_run_when_asked_for(project):
    assert last_line(project.run("script/test", "--integration", "--long")) == "2 passed, 0 failed, 1 skipped"


def test_failed_function_and_dead_program_are_two_failures(project):
    project.write("unit_a", UNIT_RED)
    done = project.run("script/test", "--unit")
    assert done.returncode == 1
    assert last_line(done) == "1 passed, 2 failed, 0 skipped"
    assert "failed: unit: unit_a: two: 1 != 2" in done.stdout
    assert "failed: unit: unit_a: three: the program ended in this test" in done.stdout


@pytest.mark.parametrize("text,what", [
    ("exit 3\n", "the program failed"),
    ("printf '[==========] Running 2 test(s).\\n[ RUN      ] one\\n[       OK ] one\\n'\n", "announced 2 tests and told of 1"),
])
def test_program_that_tells_too_little_is_a_failure(project, text, what):
    project.write("unit_a", text)
    done = project.run("script/test", "--unit")
    assert done.returncode == 1 and last_line(done).endswith(" 1 failed, 0 skipped") and what in done.stdout, done.stdout


def test_failed_build_is_a_failure_of_its_kind(project):
    project.write("CMakeLists.txt", CMAKE + 'add_custom_target(broken ALL COMMAND echo "this is why" COMMAND false)\n')
    done = project.run("script/test", "--unit", "--integration")
    assert done.returncode == 1 and last_line(done) == "0 passed, 2 failed, 0 skipped"
    assert "this is why" in done.stdout


def test_kind_without_tests_is_a_failure(project):
    project.write("CMakeLists.txt", "cmake_minimum_required(VERSION 3.22)\nproject(small NONE)\nadd_custom_target(fuzz_targets)\n")
    (project.root / "tests/integration/test_a.py").unlink()
    done = project.run("script/test", "--unit", "--integration", "--fuzz", "--cluster")
    assert done.returncode == 1 and last_line(done) == "0 passed, 4 failed, 0 skipped", done.stdout


@pytest.mark.parametrize("text", [
    "def test_a(): assert 1 == 2\n",
    "import nothing_that_exists\n",
    "import os\ndef test_a(): os._exit(0)\n",
    "import os, signal\ndef test_a(): os.kill(os.getpid(), signal.SIGKILL)\n",
    "import pytest\n@pytest.fixture\ndef a():\n    yield\n    assert False\ndef test_a(a): pass\n",
    "import pytest\n@pytest.mark.misspelt\ndef test_a(): pass\n",
], ids=["assertion", "import", "exit", "killed", "teardown", "marker"])
def test_every_way_to_fail_in_pytest_is_one_failure(project, text):
    project.write("tests/integration/test_a.py", text)
    done = project.run("script/test", "--integration")
    assert done.returncode == 1 and last_line(done) == "0 passed, 1 failed, 0 skipped", done.stdout


def test_kinds_to_come_count_nothing(project):
    done = project.run("script/test", "--sim", "--browser")
    assert done.returncode == 0 and last_line(done) == "0 passed, 0 failed, 0 skipped"
    assert done.stdout.count("no tests of this kind yet") == 2


def test_word_that_fits_nothing_is_a_failure(project):
    assert project.run("script/test", "--unit", "--integration", "-k", "green").returncode == 0
    done = project.run("script/test", "--unit", "--integration", "-k", "nonsense")
    assert done.returncode == 1 and last_line(done) == "0 passed, 1 failed, 0 skipped"


def test_fuzz_target_replays_its_corpus_and_gets_new_input(project):
    project.write("fuzz_a", '#!/bin/sh\ncase "$*" in *-runs=0*) exit 0;; esac\necho crashed; exit 77\n', executable=True)
    done = project.run("script/test", "--fuzz")
    assert done.returncode == 1 and last_line(done) == "1 passed, 1 failed, 0 skipped", done.stdout
    assert "crashed" in done.stdout and "seed" in done.stdout


def test_fuzz_target_without_corpus_is_a_failure(project):
    (project.root / "corpus/one").unlink()
    done = project.run("script/test", "--fuzz")
    assert done.returncode == 1 and "no corpus" in done.stdout


def test_report_of_a_sanitizer_is_a_failure_also_when_nobody_looked(project):
    project.write("unit_a", UNIT_GREEN + """report=${ASAN_OPTIONS#log_path=}
for pid in 1 2; do
    printf '==%s==ERROR: AddressSanitizer: x\nSUMMARY: AddressSanitizer: here\n' $pid >"${report%%:*}.$pid"
done
echo 'a.c:1:2: runtime error: there' >"${report%%:*}.3"
""")
    done = project.run("script/test", "--asan")
    assert done.returncode == 1
    assert "failed: asan: sanitizer report asan.1 and 1 like it: SUMMARY: AddressSanitizer: here" in done.stdout, done.stdout
    assert "failed: asan: sanitizer report asan.3: a.c:1:2: runtime error: there" in done.stdout


def test_tests_for_plain_builds_are_left_out_under_sanitizers(project):
    project.write("tests/integration/test_a.py",
                  "import pytest\n@pytest.mark.plain_build\ndef test_a(): pass\ndef test_b(): pass\n")
    project.write("unit_a", "exit 0\n")
    assert last_line(project.run("script/test", "--asan")) == "3 passed, 0 failed, 0 skipped"


def test_unknown_argument_is_refused(project):
    done = project.run("script/test", "--unti")
    assert done.returncode == 2 and "--unti" in done.stderr


def test_interruption_ends_the_tests_and_says_so(project):
    project.write("tests/integration/test_a.py", """import os, pathlib, subprocess, time, pytest
@pytest.fixture
def child():
    process = subprocess.Popen(["sleep", "1000"], start_new_session=True)
    yield process
    process.kill()
    process.wait()
def test_a(child):
    pathlib.Path("pids.new").write_text(f"{os.getpid()} {child.pid}")
    os.rename("pids.new", "pids")
    time.sleep(1000)
""")
    running = subprocess.Popen([project.root / "script/test", "--integration"], cwd=project.root, stdout=subprocess.PIPE,
                               stderr=subprocess.STDOUT, text=True, stdin=subprocess.DEVNULL,
                               preexec_fn=lambda: signal.signal(signal.SIGINT, signal.SIG_DFL))  # ignored in a job with &
    pids = project.root / "pids"
    wait_for(pids.exists)
    running.send_signal(signal.SIGINT)
    output, _ = running.communicate(timeout=60)
    assert running.returncode == 130
    assert output.splitlines()[-1] == "0 passed, 1 failed, 0 skipped" and "interrupted" in output
    for pid in pids.read_text().split():
        assert not os.path.exists(f"/proc/{pid}"), output


def test_interruption_ends_all_fuzz_targets(project):
    project.write("fuzz_a", '#!/bin/sh\necho $$ >"$PIDS/$$.new"\nmv "$PIDS/$$.new" "$PIDS/$$"\nexec sleep 1000\n', executable=True)
    project.write("CMakeLists.txt", CMAKE + CMAKE[CMAKE.index("add_test(NAME fuzz_a"):].replace("fuzz_a ", "fuzz_b ", 1)
                  .replace("set_tests_properties(fuzz_a", "set_tests_properties(fuzz_b"))
    pids = project.root / "pids"
    pids.mkdir()
    running = subprocess.Popen([project.root / "script/test", "--fuzz"], cwd=project.root, stdout=subprocess.PIPE, stderr=subprocess.STDOUT,
                               text=True, stdin=subprocess.DEVNULL, env={**os.environ, "PIDS": str(pids)},
                               preexec_fn=lambda: signal.signal(signal.SIGINT, signal.SIG_DFL))
    workers = min(os.cpu_count(), 2)
    wait_for(lambda: len([pid for pid in os.listdir(pids) if pid.isdecimal()]) == workers)
    running.send_signal(signal.SIGINT)
    output, _ = running.communicate(timeout=60)
    assert running.returncode == 130 and "interrupted" in output, output
    assert [pid for pid in os.listdir(pids) if os.path.exists(f"/proc/{pid}")] == []


def wait_for(condition, seconds=60):
    deadline = time.monotonic() + seconds
    while not condition():
        assert time.monotonic() < deadline
        time.sleep(0.02)


def test_output_of_cmocka_is_read_where_a_test_prints_without_newline():
    results, declared = run_tests.cmocka_results(
        "[==========] Running 1 test(s).\n[ RUN      ] a\nhalf a line[       OK ] a\n[==========] 1 test(s) run.\n")
    assert declared == 1 and results == [("passed", "a", "")]
