# SPDX-License-Identifier: BSD-3-Clause
"""proxy: proxy_v2 as users run it, and what asks it."""
import json
import os
import signal
import socket
import subprocess
import urllib.error
import urllib.parse
import urllib.request
from pathlib import Path

from support.proxy_core import PREPARE, JsonClient, value_of
from support.waiting import wait_until

BUILD_DIR = Path(os.environ.get("CICADA_BUILD_DIR", Path(__file__).resolve().parents[2] / "build" / "release")).resolve()
PROXY, RUN, CICADA = (BUILD_DIR / "bin" / name for name in ("proxy_v2", "proxy_run", "cicada"))
COUNT_CLIENT = BUILD_DIR / "tests" / "count_client"


def clean_environment(**variables):
    """Ours without what a user has exported for his own jobs."""
    env = {name: value for name, value in os.environ.items()
           if not name.startswith(("SLURM", "PMI", "OMPI", "PROXY", "METRIC_PROXY", "NOTIFY"))}
    return env | {name: str(value) for name, value in variables.items()}


class Proxy:
    """A proxy in a /dev/shm of its own; one at a time, but it may be started again."""

    def __init__(self, directory, period_ms=50, linger_ms=300):
        self.directory = directory
        self.prefix = directory / "prefix"
        self.socket_path = directory / "socket"
        self.log_path = directory / "proxy.log"
        self.options = ["-S", period_ms, "--linger", linger_ms, "--no-telemetry", "--listen", "127.0.0.1"]
        self.process = None
        self.holder = subprocess.Popen(["unshare", "-m", "sh", "-c", PREPARE], stdout=subprocess.PIPE)
        assert self.holder.stdout.readline() == b"ready\n"

    def command(self, *words):
        return ["nsenter", "-t", str(self.holder.pid), "-m", f"-w{os.getcwd()}", *map(str, words)]

    def spawn(self, *options, **variables):
        with self.log_path.open("ab") as log:
            words = [PROXY, "-p", 0, "-t", self.prefix, "-u", self.socket_path, *self.options, *options]
            return subprocess.Popen(self.command(*words), stdin=subprocess.DEVNULL, stderr=log, env=clean_environment(**variables))

    def start(self, *options, **variables):
        before = self.log().count("INFO ready:")
        self.process = self.spawn(*options, **variables)
        wait_until(lambda: self.log().count("INFO ready:") > before or self.process.poll() is not None, "a proxy that is ready")
        assert self.process.poll() is None, self.log()
        return self

    def refusal(self, *options, **variables):
        """Starts one that must not start; what it says."""
        before = len(self.log())
        process = self.spawn(*options, **variables)
        assert process.wait(timeout=30) in (1, 2)
        return self.log()[before:]

    def beacon(self):
        lines = Path(f"{self.socket_path}.beacon").read_text().splitlines()
        return dict(line.split("=", 1) for line in lines)

    def kill(self):
        self.process.kill()
        self.process.wait()

    def end(self, number=signal.SIGTERM):
        self.process.send_signal(number)
        assert self.process.wait(timeout=30) == 0, self.log()

    def close(self):
        if self.process is not None and self.process.poll() is None:
            self.kill()
        self.holder.kill()
        self.holder.wait()
        self.holder.stdout.close()

    def log(self):
        return self.log_path.read_text(errors="replace") if self.log_path.exists() else ""

    # Asking

    def url(self, path):
        return f"http://{self.beacon()['address']}{path}"

    def ask(self, path, body=None, headers=None, method=None):
        """Status, headers, text. Never an exception for a status."""
        data = json.dumps(body).encode() if body is not None else None
        request = urllib.request.Request(self.url(path), data=data, headers=headers or {}, method=method)
        try:
            with urllib.request.urlopen(request, timeout=30) as answer:
                return answer.status, dict(answer.headers), answer.read().decode()
        except urllib.error.HTTPError as error:
            return error.code, dict(error.headers), error.read().decode()

    def get(self, path):
        status, _, text = self.ask(path)
        assert status == 200, text
        return json.loads(text)

    def metrics(self, job=None, **headers):
        status, _, text = self.ask(f"/metrics/?job={urllib.parse.quote(job)}" if job else "/metrics", headers=headers)
        assert status == 200, text
        return text

    def value(self, job, name):
        """A metric as /job tells it: a number, or None."""
        status, _, text = self.ask(f"/job/?job={urllib.parse.quote(job)}")
        counters = json.loads(text)["counters"] if status == 200 else []
        return next((value_of(one) for one in counters if one["name"] == name), None)

    def wait_for_value(self, job, name, value):
        return wait_until(lambda: self.value(job, name) == value, f"{name} of {job} to be {value}, not {self.value(job, name)}")

    def wait_for_profile(self, job):
        return wait_until(lambda: any(desc["jobid"] == job for desc in self.get("/profiles")), f"the profile of {job}")

    # Counting

    def connect(self):
        return JsonClient(self.socket_path)

    def count(self, times, job, children=0, wait=False):
        """Starts a program that counts `work`; with `wait` it has counted and lives until its stdin ends."""
        words = [COUNT_CLIENT, times, children, *(["wait"] if wait else [])]
        program = subprocess.Popen(self.command(*words), stdin=subprocess.PIPE, stdout=subprocess.PIPE,
                                   env=clean_environment(PROXY_PATH=self.socket_path, PROXY_JOB_ID=job))
        if wait:
            assert program.stdout.readline() == b"counted\n"
        return program

    def cicada(self, *words):
        return subprocess.run([CICADA, *map(str, words)], env=clean_environment(PROXY_PATH=self.socket_path),
                              capture_output=True, text=True, timeout=60, check=False)


def http_over_unix(path, target, method="GET"):
    """The answer's first line and body."""
    with socket.socket(socket.AF_UNIX) as one:
        one.connect(str(path))
        one.sendall(f"{method} {target} HTTP/1.1\r\nHost: localhost\r\nConnection: close\r\n\r\n".encode())
        whole = b"".join(iter(lambda: one.recv(65536), b""))
    head, _, body = whole.partition(b"\r\n\r\n")
    return head.split(b"\r\n")[0].decode(), body.decode()
