# SPDX-License-Identifier: BSD-3-Clause
"""service: dftracer_service as a user handles it: variables, commands, files."""
import os
import signal
import socket
import subprocess
import time
from pathlib import Path

from support import tracereader
from support.waiting import DEADLINE_S, wait_until

BUILD_DIR = Path(os.environ.get("CICADA_BUILD_DIR", Path(__file__).resolve().parents[2] / "build" / "release")).resolve()
PROGRAM = BUILD_DIR / "bin" / "dftracer_service"
HOST = socket.gethostname().split(".")[0]
COMMAND_TIMEOUT_S = 60
THREADS_END_S = 2
IS_SANITIZED = os.environ.get("CICADA_SANITIZED") == "1"


def clean_environment(**variables):
    """The tests' environment without what would configure the service, and `variables`; None takes one away."""
    env = {name: value for name, value in os.environ.items()
           if not name.startswith(("DFTRACER_", "SLURM_", "NOTIFY_"))}
    env.update({name: str(value) for name, value in variables.items() if value is not None})
    return env


def preloaded(name):
    """Variables that load one of the tests' libraries before the program."""
    library = BUILD_DIR / "tests" / f"{name}.so"
    assert library.exists(), f"{library} is not built"
    sanitizer = ":".join(filter(None, [os.environ.get("ASAN_OPTIONS"), "verify_asan_link_order=0"]))
    return {"LD_PRELOAD": library, "ASAN_OPTIONS": sanitizer}


def is_alive(pid):
    """Does the process run? One that is dead but not yet waited for doesn't."""
    try:
        return Path(f"/proc/{pid}/stat").read_text().rsplit(")", 1)[1].split()[0] not in "ZX"
    except (FileNotFoundError, ProcessLookupError):
        return False


def threads_of(pid):
    """How many threads the process still has, itself counted; 0 when there is none."""
    try:
        return len(list(Path(f"/proc/{pid}/task").iterdir()))
    except FileNotFoundError:
        return 0


def services_of(log_dir):
    """The processes whose command line names this log directory."""
    found = []
    for words in Path("/proc").glob("[0-9]*/cmdline"):
        try:
            if str(log_dir).encode() in words.read_bytes().split(b"\0") and is_alive(int(words.parent.name)):
                found.append(int(words.parent.name))
        except (FileNotFoundError, ProcessLookupError):
            pass
    return found


class Service:
    """One log directory and one prefix; ended at the end of the test, whatever happened."""

    def __init__(self, directory, log_dir=None, prefix=None, host=HOST, command=(), **variables):
        self.log_dir = Path(log_dir or directory / "log")
        self.prefix = Path(prefix or directory / "trace")
        self.host = host
        self.command = [*command, PROGRAM]
        self.env = clean_environment(**{"DFTRACER_ENABLE": 1, "DFTRACER_LOG_FILE": self.prefix,
                                        "DFTRACER_TRACE_INTERVAL_MS": 100, "DFTRACER_FLUSH_INTERVAL_MS": 100,
                                        **variables})
        self.foreground = None

    # Commands

    def call(self, command, **kwargs):
        """Runs one command to its end; both outputs as text."""
        return subprocess.run([*self.command, command, self.log_dir], env=self.env, capture_output=True, text=True,
                              timeout=COMMAND_TIMEOUT_S, check=False, stdin=subprocess.DEVNULL, **kwargs)

    def must(self, command, **kwargs):
        done = self.call(command, **kwargs)
        assert done.returncode == 0, f"{command}: {done}\n{self.errors()}"
        return done

    def start(self):
        return self.must("start")

    def stop(self):
        return self.must("stop")

    def run(self, **kwargs):
        """Starts it in the foreground; returns the process."""
        self.foreground = subprocess.Popen([*self.command, "run", self.log_dir], env=self.env, text=True,
                                           stdin=subprocess.DEVNULL, stdout=subprocess.PIPE, stderr=subprocess.PIPE, **kwargs)
        return self.foreground

    # Files

    def file(self, suffix):
        return self.log_dir / f"dftracer_server_{self.host}.{suffix}"

    @property
    def pid_file(self):
        return self.file("pid")

    def pid(self):
        return int(self.pid_file.read_text().split("\n", maxsplit=1)[0])

    def errors(self):
        """What is in the .err file."""
        path = self.file("err")
        return path.read_text(errors="replace") if path.exists() else ""

    def path(self, number=0, suffix=".pfw.gz"):
        return self.prefix.with_name(f"{self.prefix.name}_{self.host}{f'.{number}' if number else ''}{suffix}")

    def traces(self):
        return sorted(self.prefix.parent.glob(f"{self.prefix.name}_{self.host}*"))

    def so_far(self):
        path = self.path(suffix=".pfw.gz" if self.env.get("DFTRACER_TRACE_COMPRESSION") != "0" else ".pfw")
        return tracereader.Trace(path, tracereader.events_so_far(path))

    def load(self, **kwargs):
        return tracereader.load(self.path(**kwargs))

    # Waiting

    def wait_for(self, name, count=1, timeout_s=DEADLINE_S):
        """Until the trace holds so many events of that name."""
        return wait_until(lambda: len(self.so_far().named(name)) >= count, f"{count} events '{name}' in {self.path()}", timeout_s)

    def wait_for_ticks(self, count):
        return wait_until(lambda: len(self.so_far().stamps) >= count, f"{count} ticks in {self.path()}")

    def wait_for_end(self, pid):
        """Until the process is dead, and its other threads, too: they hold its lock. Those that hang in the kernel stay."""
        wait_until(lambda: not is_alive(pid), f"the end of process {pid}")
        deadline = time.monotonic() + THREADS_END_S
        while threads_of(pid) > 1 and time.monotonic() < deadline:
            time.sleep(0.001)

    def signal(self, number):
        os.kill(self.pid(), number)

    # Cleaning up

    def close(self):
        if self.foreground is not None:
            if self.foreground.poll() is None:
                self.foreground.kill()
            self.foreground.communicate()
        try:
            pid = self.pid()
        except (OSError, ValueError):
            return
        words = Path(f"/proc/{pid}/cmdline")
        if is_alive(pid) and str(PROGRAM).encode() in words.read_bytes():
            os.kill(pid, signal.SIGKILL)
            self.wait_for_end(pid)
