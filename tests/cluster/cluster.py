# SPDX-License-Identifier: BSD-3-Clause
"""cluster: hosts, and a Slurm on them, as objects for the tests.

Wraps tools/minicluster, minislurm and minissh. Whatever a test starts on a host ends with the host.
"""
import os
import re
import shlex
import shutil
import subprocess
from pathlib import Path

from support.waiting import wait_until

HERE = Path(__file__).resolve().parent
TOOLS = HERE / "tools"
PROJECT = HERE.parents[1]
BUILD_DIR = Path(os.environ.get("CICADA_BUILD_DIR", PROJECT / "build" / "release"))
STATE_PREFIX = "cicada-cluster-"


class Result:
    """What a command said; `text` is both streams in the order in which they came."""

    def __init__(self, command, status, text):
        self.command, self.status, self.text = command, status, text

    def ok(self):
        assert self.status == 0, f"{shlex.join(self.command)}\nexit status {self.status}\n{self.text}"
        return self


def run(command, env=None, timeout_s=60, cwd="/"):
    command = [str(word) for word in command]
    try:
        done = subprocess.run(command, env=env, cwd=cwd, timeout=timeout_s, check=False, text=True, errors="replace",
                              stdin=subprocess.DEVNULL, stdout=subprocess.PIPE, stderr=subprocess.STDOUT)
    except subprocess.TimeoutExpired as e:
        said = (e.stdout or b"").decode(errors="replace")
        raise AssertionError(f"{shlex.join(command)}\nhad not ended after {timeout_s} s\n{said}") from e
    return Result(command, done.returncode, done.stdout)


class Cluster:
    """Hosts n1..nN. `shared` is a directory with one path on all of them, on head and outside."""

    def __init__(self, name, hosts):
        self.state = Path("/run") / f"{STATE_PREFIX}{os.getpid()}-{name}"
        self.hosts = [f"n{k}" for k in range(1, hosts + 1)]
        self.shared = self.state / "shared"
        self.bin = self.shared / "bin"
        self.scripts = self.shared / "scripts"
        self.env = {"PATH": "/usr/local/sbin:/usr/local/bin:/usr/sbin:/usr/bin:/sbin:/bin", "LANG": "C.UTF-8",
                    "HOME": "/root", "MINICLUSTER_STATE": str(self.state)}

    def tool(self, name, *args, timeout_s=60):
        return run([TOOLS / name, *args], self.env, timeout_s)

    def up(self):
        self.tool("minicluster", "up", len(self.hosts)).ok()

    def install(self):
        """Copies what hosts run to where they see it: the checkout may lie under /tmp, and each host has its own."""
        shutil.copytree(BUILD_DIR / "bin", self.bin)
        shutil.copytree(HERE / "scripts", self.scripts)
        shutil.copytree(PROJECT / "packaging" / "slurm", self.shared / "packaging")

    def down(self):
        self.tool("minicluster", "down").ok()

    def command(self, host, *words):
        return [str(word) for word in (TOOLS / "minicluster", *(["head"] if host == "head" else ["exec", host]), "--",
                                       *words)]

    def exec(self, host, *words, timeout_s=60, **variables):
        return run(self.command(host, *words), self.env | variables, timeout_s)

    def start(self, host, *words, **variables):
        """A process on a host that ends with it; the caller waits for it."""
        return subprocess.Popen(self.command(host, *words), env=self.env | variables, cwd="/", text=True,
                                stdin=subprocess.DEVNULL, stdout=subprocess.PIPE, stderr=subprocess.STDOUT)

    def kill(self, host):
        self.tool("minicluster", "kill", host).ok()

    def pids(self, host, program):
        """Pids, as the host counts them, of live processes of that name."""
        return [int(pid) for pid in self.exec(host, "pgrep", "-x", program[:15]).text.split()]


class Slurm(Cluster):
    """A cluster with Slurm. Commands are run on n1."""

    def __init__(self, name, hosts, tracking):
        super().__init__(name, hosts)
        self.tracking = tracking
        self.slurm_conf = self.shared / "slurm" / "slurm.conf"

    def up(self):
        started = self.tool("minislurm", "up", len(self.hosts), self.tracking)
        if started.status != 0:
            logs = [self.exec(host, "sh", "-c", "tail -n 20 /var/local/slurm*.log").text for host in self.hosts]
            raise AssertionError("\n".join([started.text, *logs]))

    def run(self, *words, timeout_s=60, **variables):
        return self.exec("n1", *words, timeout_s=timeout_s, SLURM_CONF=str(self.slurm_conf), **variables)

    def begin(self, *words, **variables):
        return self.start("n1", *words, SLURM_CONF=str(self.slurm_conf), **variables)

    def allocate(self):
        """A job on all hosts that runs nothing by itself. Returns its number as text."""
        n = len(self.hosts)
        said = self.run("salloc", "--no-shell", "-N", n, "-n", n).ok().text
        return said.split("Granted job allocation ")[1].split()[0]

    def batch(self, *words, **variables):
        """Submits a batch job for one task a node. Returns its number."""
        n = len(self.hosts)
        return self.run("sbatch", "--parsable", "-N", n, "-n", n, *words, **variables).ok().text.strip()

    def exit_status(self, job, timeout_s=60):
        """Waits for the end of a batch job and returns the exit status of its script. (sbatch -W asks every 10 s only.)"""
        wait_until(lambda: self.is_over(job), f"the end of job {job}", timeout_s)
        return int(re.search(r"ExitCode=(\d+):", self.run("scontrol", "show", "job", job).ok().text)[1])

    def cancel(self, *words):
        self.run("scancel", *words).ok()

    def steps(self, job):
        """Numbers of the job's running steps."""
        lines = self.run("squeue", "-h", "-s", "-j", job, "-o", "%i").ok().text.split()
        return [line for line in lines if not line.endswith(("extern", "batch"))]

    def is_over(self, job):
        return job not in self.run("squeue", "-h", "-o", "%i").ok().text.split()

    def recover(self):
        """Ends all jobs, gives dead hosts power again, waits until every node is idle: for the next test."""
        self.run("scancel", "--signal=KILL", "--full", "--user=root")
        self.run("scancel", "--user=root")
        for host in self.hosts:
            if self.exec(host, "true").status != 0:
                self.tool("minicluster", "boot", host).ok()
        self.up()
