# SPDX-License-Identifier: BSD-3-Clause
"""Builds and runs the tests of the kinds that are named, and counts them. Called by script/test.

A kind that can't be built, or whose runner dies, counts as a failed test: nothing is green by not having run.
Results are also left in build/test-results/results.tsv (kind, status, name, reason), which .ci/run reads.
"""

import argparse
import json
import os
import re
import shutil
import signal
import subprocess
import sys
import time
import xml.etree.ElementTree as ElementTree
from concurrent.futures import ThreadPoolExecutor
from dataclasses import dataclass
from pathlib import Path

ROOT = Path(__file__).resolve().parents[2]
BUILD = ROOT / "build"
RESULTS = BUILD / "test-results"
REASON_MAX = 300
LONGEST_MAX = 15
JOBS = str(os.cpu_count() or 2)
# Whose files of tests run side by side, one worker a processor: they wait most of their time. Not "cluster", whose hosts
# fill the machine, nor "house", whose tests share build folders.
PARALLEL_FOLDERS = {"integration"}

PASSED, FAILED, SKIPPED = "passed", "failed", "skipped"


@dataclass
class Result:
    kind: str
    status: str
    name: str
    reason: str = ""


def say(text=""):
    print(text, flush=True)


def one_line(text):
    text = " ".join(text.split())
    return text if len(text) <= REASON_MAX else text[:REASON_MAX] + " …"


class Runner:
    """Runs child programs, each in a process group of its own so that an interruption can end all of it."""

    def __init__(self):
        self.child = None
        self.prefix = []

    def run(self, command, log=None, env=None, timeout_s=None):
        """Returns the exit status; -1 when the time was over. Output goes to the file `log`, or to ours."""
        out = open(log, "ab") if log else None
        try:
            self.child = subprocess.Popen([str(word) for word in (*self.prefix, *command)], cwd=ROOT, stdin=subprocess.DEVNULL, stdout=out,
                                          stderr=subprocess.STDOUT if out else None, start_new_session=True,
                                          env={**os.environ, **(env or {})})
            try:
                return self.child.wait(timeout_s)
            except subprocess.TimeoutExpired:
                self.stop()
                return -1
        except KeyboardInterrupt:
            self.stop()
            raise
        finally:
            self.child = None
            if out:
                out.close()

    def stop(self):
        """Asks the group to end as Ctrl-C does, so that tests clean up; then kills what is left."""
        child = self.child
        if child is None:
            return
        group = child.pid
        for number, patience_s in ((signal.SIGINT, 30), (signal.SIGKILL, 5)):
            try:
                os.killpg(group, number)
                child.wait(patience_s)
            except (ProcessLookupError, subprocess.TimeoutExpired):
                pass


class Tests:
    def __init__(self, options):
        self.options = options
        self.runner = Runner()
        self.results = []
        self.times = []  # (seconds, "kind: name") of all that tell how long they took
        self.kind = ""
        self.is_interrupted = False
        self.built = {}  # what build() has said of a preset's targets

    def add(self, status, name, reason=""):
        self.results.append(Result(self.kind, status, name, one_line(reason)))

    def add_time(self, name, case):
        """`case` is a test case of a JUnit report."""
        self.times.append((float(case.get("time") or 0), f"{self.kind}: {name}"))

    def build(self, preset, targets=()):
        """Configures and builds build/<preset>, once; a failure is a failed test of each kind that needs it."""
        key = (preset, tuple(targets))
        if key not in self.built:
            self.built[key] = self.build_now(preset, targets)
        if not self.built[key]:
            self.add(FAILED, f"build of {preset}", f"see {self.build_log(preset).relative_to(ROOT)}")
        return self.built[key]

    @staticmethod
    def build_log(preset):
        return RESULTS / f"build-{preset}.log"

    def build_now(self, preset, targets):
        log = self.build_log(preset)
        log.unlink(missing_ok=True)
        say(f"   building {preset}")
        started = time.monotonic()
        status = self.runner.run(["cmake", "--preset", preset, "-DCICADA_TESTS=ON"], log=log)
        if status == 0:
            status = self.runner.run(["cmake", "--build", BUILD / preset, "--", "-k", "0", *targets], log=log)
        if status == 0:
            say(f"   built in {time.monotonic() - started:.0f} s")
            return True
        say("".join(log.read_text(errors="replace").splitlines(keepends=True)[-60:]))
        return False

    def unit(self):
        if self.build("release"):
            self.ctest("release", "unit", ["-LE", "^fuzz$"])

    def asan(self):
        self.sanitized("asan")

    def tsan(self):
        self.sanitized("tsan")

    def sanitized(self, preset):
        if not self.build(preset):
            return
        reports = RESULTS / f"{preset}-reports"
        shutil.rmtree(reports, ignore_errors=True)
        reports.mkdir(parents=True)
        env = sanitizer_environment(reports)
        if preset == "tsan":
            self.runner.prefix = fixed_addresses()
        self.ctest(preset, preset, [], env)
        if (ROOT / "tests/integration").is_dir():
            self.pytest("integration", preset, env, "not plain_build")
        self.runner.prefix = []
        self.reports(reports)

    def reports(self, folder):
        """Daemons have no terminal, and a test may not look at why one died: what sanitizers report is a failure."""
        by_finding = {}
        for report in sorted(folder.iterdir()):
            text = report.read_text(errors="replace")
            found = re.search(r"^SUMMARY: .*|.*runtime error: .*", text, re.MULTILINE)
            by_finding.setdefault(found.group(0) if found else one_line(text), []).append((report, text))
        for finding, reports in by_finding.items():
            report, text = reports[0]
            say(text)
            self.add(FAILED, f"sanitizer report {report.name}" + (f" and {len(reports) - 1} like it" if reports[1:] else ""), finding)

    def integration(self):
        if self.build("release"):
            self.pytest("integration", "release")

    def cluster(self):
        if self.build("release"):
            self.pytest("cluster", "release")

    def house(self):
        self.pytest("house", "release")

    def sim(self):
        self.to_come("sim")

    def browser(self):
        self.to_come("browser")

    def to_come(self, folder):
        if (ROOT / "tests" / folder).exists():
            self.add(FAILED, f"tests/{folder}", "exists, but script/test doesn't know how to run it")
        else:
            say("   no tests of this kind yet")

    def fuzz(self):
        if not self.build("fuzz", ["fuzz_targets"]):
            return
        targets = self.fuzz_targets()
        if not targets and not self.options.word:
            self.add(FAILED, "fuzz targets", "none found")
        seconds = 120 if self.options.long else 5
        findings = RESULTS / "fuzz-findings"
        findings.mkdir(parents=True, exist_ok=True)
        runners = [Runner() for _ in targets]  # one each: they run side by side, one a processor
        with ThreadPoolExecutor(int(JOBS)) as pool:
            futures = [pool.submit(self.fuzz_one, runner, name, command, findings, seconds)
                       for runner, (name, command) in zip(runners, targets)]
            try:
                for future in futures:
                    self.results.extend(future.result())
            except KeyboardInterrupt:
                self.is_interrupted = True
                pool.shutdown(wait=False, cancel_futures=True)
                for runner in runners:
                    runner.stop()
                raise

    def fuzz_one(self, runner, name, command, findings, seconds):
        """The results of one target; its output goes to its log, and here when it fails."""
        results = []

        def add(status, title, reason=""):
            results.append(Result("fuzz", status, title, reason))

        program, corpus = command[0], command[-1]
        log = RESULTS / f"{name}.log"
        log.unlink(missing_ok=True)
        grown = RESULTS / "fuzz-corpus" / name
        shutil.rmtree(grown, ignore_errors=True)
        grown.mkdir(parents=True)
        seed = int.from_bytes(os.urandom(4), "little") or 1
        common = [f"-artifact_prefix={findings}/{name}-", "-rss_limit_mb=2048", "-timeout=10"]
        runs = (
            (f"{name} replays its corpus", [program, "-runs=0", *common, corpus], 120),
            (f"{name} survives {seconds} s of new input",
             [program, f"-max_total_time={seconds}", f"-seed={seed}", "-print_final_stats=0", *common, grown, corpus], seconds + 60),
        )
        if not any(path.is_file() for path in Path(corpus).glob("*")):
            add(FAILED, runs[0][0], f"no corpus in {corpus}")
            return results
        for title, words, timeout_s in runs:
            if self.is_interrupted:
                break
            status = runner.run(words, log=log, timeout_s=timeout_s)
            say(f"   {'ok    ' if status == 0 else 'FAILED'} {title}")
            if status == 0:
                add(PASSED, title)
            else:
                say("".join(log.read_text(errors="replace").splitlines(keepends=True)[-40:]))
                add(FAILED, title, f"exit status {status}, seed {seed}; see {log.relative_to(ROOT)}")

        return results

    def fuzz_targets(self):
        listing = subprocess.run(["ctest", "--test-dir", BUILD / "fuzz", "-L", "^fuzz$", "--show-only=json-v1"],
                                 check=True, capture_output=True, text=True, stdin=subprocess.DEVNULL)
        tests = json.loads(listing.stdout)["tests"]
        word = self.options.word or ""
        return [(test["name"], test["command"]) for test in tests if word in test["name"]]

    def ctest(self, preset, label, selection, env=None):
        """Runs the programs that CTest knows, and counts the functions of those that are cmocka's."""
        report = RESULTS / f"ctest-{label}.xml"
        log = RESULTS / f"ctest-{label}.log"
        for old in (report, log):
            old.unlink(missing_ok=True)
        unlimited = "100000000"
        command = ["ctest", "--test-dir", BUILD / preset, "--output-junit", report, "-j", JOBS, "--no-tests=ignore",
                   "--test-output-size-passed", unlimited, "--test-output-size-failed", unlimited, *selection]
        if self.options.word:
            command += ["-R", re.escape(self.options.word)]
        before = len(self.results)
        status = self.runner.run(command, log=log, env=env)
        if not report.exists():
            if status != 0 or not self.options.word:
                self.add(FAILED, f"ctest of {preset}", f"exit status {status}, no report; see {log.relative_to(ROOT)}")
            return
        for case in ElementTree.parse(report).getroot().iter("testcase"):
            self.count_program(case)
        counted = self.results[before:]
        if not counted and not self.options.word:
            self.add(FAILED, f"ctest of {preset}", "no tests found")
        if status != 0 and not any(result.status == FAILED for result in counted):
            self.add(FAILED, f"ctest of {preset}", f"exit status {status}; see {log.relative_to(ROOT)}")
        say(f"   {preset}: {totals(counted)}")

    def count_program(self, case):
        program = case.get("name")
        output = case.findtext("system-out") or ""
        has_failed = case.get("status") == "fail"
        self.add_time(program, case)
        found, declared = cmocka_results(output)
        for status, name, reason in found:
            self.add(status, f"{program}: {name}", reason)
        if case.get("status") == "notrun" or case.get("status") == "disabled":
            self.add(FAILED, program, "did not run")
        elif has_failed and not any(status == FAILED for status, _, _ in found):
            reason = case.find("failure")
            self.add(FAILED, program, f"the program failed: {reason.get('message', '') if reason is not None else ''}")
        elif not has_failed and declared != len(found):
            self.add(FAILED, program, f"announced {declared} tests and told of {len(found)}")
        elif not has_failed and declared == 0:
            self.add(PASSED, program)
        if has_failed:
            say(f"--- {program}\n{output}")

    def pytest(self, folder, preset, env=None, marks=""):
        if not (ROOT / "tests" / folder).is_dir():
            self.add(FAILED, f"tests/{folder}", "there is no such folder")
            return
        report = RESULTS / f"pytest-{self.kind}.xml"
        report.unlink(missing_ok=True)
        expression = " and ".join(mark for mark in (marks, "" if self.options.long else "not long") if mark)
        command = ["/usr/bin/python3", "-B", "-m", "pytest", "-q", "--tb=short", "-rN", f"--junit-xml={report}",
                   *(["-n", JOBS, "--dist", "loadfile", "--max-worker-restart", "0"] if folder in PARALLEL_FOLDERS else []),
                   *(["-m", expression] if expression else []), *(["-k", self.options.word] if self.options.word else []),
                   f"tests/{folder}"]
        before = len(self.results)
        status = self.runner.run(command, env={
            **(env or {}), "CICADA_BUILD_DIR": str(BUILD / preset), "CICADA_LONG": "1" if self.options.long else "0"})
        if report.exists():
            for case in ElementTree.parse(report).getroot().iter("testcase"):
                self.count_case(case)
        counted = self.results[before:]
        no_tests_collected = 5
        if status == no_tests_collected and self.options.word:
            return
        if status != 0 and not any(result.status == FAILED for result in counted):
            self.add(FAILED, f"pytest of tests/{folder}", f"exit status {status}")
        elif not counted:
            self.add(FAILED, f"pytest of tests/{folder}", "no tests found")

    def count_case(self, case):
        name = f"{case.get('classname', '').rpartition('.')[2]}: {case.get('name')}"
        self.add_time(name, case)
        for tag, status in (("error", FAILED), ("failure", FAILED), ("skipped", SKIPPED)):
            found = case.find(tag)
            if found is not None:
                # A test that kills its worker is tried again by the other one: it is one failure all the same.
                if not any((result.kind, result.status, result.name) == (self.kind, status, name) for result in self.results):
                    self.add(status, name, found.get("message") or "")
                return
        self.add(PASSED, name)


def cmocka_results(output):
    """What a program of cmocka tells: a list of (status, name, reason), and how many tests its groups announced.

    The reason of a skipped test is what it printed before; of a failed one, cmocka's error lines. A test whose
    program died has a start and no end: it is the one that failed.
    """
    results, declared, name, lines = [], 0, None, []
    for line in output.splitlines():
        if match := re.search(r"\[==========\] Running (\d+) test", line):
            declared += int(match.group(1))
        elif match := re.search(r"\[ RUN      \] (.+)$", line):
            name, lines = match.group(1), []
        elif name is not None and (match := re.search(r"\[ *(OK|FAILED|SKIPPED|ERROR) *\] " + re.escape(name) + "$", line)):
            status = {"OK": PASSED, "SKIPPED": SKIPPED}.get(match.group(1), FAILED)
            results.append((status, name, "" if status == PASSED else " ".join(lines[-6:])))
            name = None
        elif name is not None:
            lines.append(re.sub(r"\[  ERROR   \] --- ", "", line))
    if name is not None:
        results.append((FAILED, name, "the program ended in this test: " + " ".join(lines[-3:])))
    return results, declared


def sanitizer_environment(reports):
    """Reports go to files, and every one ends its program."""
    return {
        "ASAN_OPTIONS": f"log_path={reports}/asan:detect_leaks=1:detect_stack_use_after_return=1",
        "LSAN_OPTIONS": f"suppressions={ROOT}/script/lib/lsan.supp:print_suppressions=0",
        "UBSAN_OPTIONS": f"log_path={reports}/ubsan:print_stacktrace=1",
        "TSAN_OPTIONS": f"log_path={reports}/tsan:second_deadlock_stack=1",
        "CICADA_SANITIZED": "1",
    }


def fixed_addresses():
    """The thread sanitizer of gcc 12 can't live with as many random address bits as newer kernels use."""
    command = ["setarch", "-R"]
    works = subprocess.run([*command, "true"], capture_output=True, stdin=subprocess.DEVNULL).returncode == 0
    return command if works else []


def totals(results):
    counts = [sum(result.status == status for result in results) for status in (PASSED, FAILED, SKIPPED)]
    return "{} passed, {} failed, {} skipped".format(*counts)


def write_results(results):
    lines = ["\t".join((result.kind, result.status, result.name, result.reason)) for result in results]
    (RESULTS / "results.tsv").write_text("".join(line + "\n" for line in lines))


def summary(kinds, results):
    for status in (SKIPPED, FAILED):
        for result in results:
            if result.status == status:
                say(f"{status}: {result.kind}: {result.name}: {result.reason or 'no reason given'}")
    say()
    for kind in kinds:
        say(f"{kind:12} {totals([result for result in results if result.kind == kind])}")
    say(totals(results))


def tell_times(kinds, times):
    """Which tests to look at when script/test as a whole takes too long. `kinds` maps to seconds, builds included."""
    longest = [(seconds, name) for seconds, name in sorted(times, reverse=True)[:LONGEST_MAX] if seconds >= 1]
    if longest:
        say("\nThe longest:")
    for seconds, name in longest:
        say(f"{seconds:8.1f} s  {name}")
    say("\nTime: " + ", ".join(f"{kind} {seconds:.0f} s" for kind, seconds in kinds.items())
        + f"; {sum(kinds.values()) / 60:.1f} min in all")


def interrupt(_number, _frame):
    raise KeyboardInterrupt


def main():
    parser = argparse.ArgumentParser()
    parser.add_argument("--long", action="store_true")
    parser.add_argument("-k", dest="word")
    parser.add_argument("kinds", nargs="+")
    options = parser.parse_args()
    kinds = list(dict.fromkeys(options.kinds))

    signal.signal(signal.SIGTERM, interrupt)
    signal.signal(signal.SIGHUP, interrupt)
    RESULTS.mkdir(parents=True, exist_ok=True)
    tests = Tests(options)
    seconds_of = {}
    for kind in kinds:
        say(f"== {kind}")
        tests.kind = kind
        started = time.monotonic()
        try:
            getattr(tests, kind)()
        except KeyboardInterrupt:
            tests.add(FAILED, "all of it", "interrupted")
            tests.is_interrupted = True
            break
        finally:
            seconds_of[kind] = time.monotonic() - started
    if not tests.results and options.word:
        tests.add(FAILED, f"-k {options.word}", "no test has a name like this")
    write_results(tests.results)
    tell_times(seconds_of, tests.times)
    say()
    summary(kinds, tests.results)
    if tests.is_interrupted:
        return 130
    return 1 if any(result.status == FAILED for result in tests.results) else 0


if __name__ == "__main__":
    sys.exit(main())
