# SPDX-License-Identifier: BSD-3-Clause
"""mpi: programs of an MPI under the exporter, and what it has counted of them."""
import os
import re
import shutil
import subprocess
from contextlib import contextmanager
from pathlib import Path

BUILD_DIR = Path(os.environ.get("CICADA_BUILD_DIR", Path(__file__).resolve().parents[2] / "build" / "release")).resolve()
SOURCES = Path(__file__).resolve().parent / "mpi"
LAUNCH = {
    "openmpi": ["mpirun.openmpi", "--allow-run-as-root", "--oversubscribe"],
    "mpich": ["mpiexec.hydra"],
}
COMPILERS = {"c": "mpicc", "f90": "mpif90"}
LIBRARY = "libmetricproxy-exporter-mpi.so"


class Mpi:
    """One MPI and the exporter for it. Programs run in the mount name space of `place`, which has the proxy."""

    def __init__(self, name, place, directory):
        self.name, self.place, self.directory = name, place, directory
        self.exporter = BUILD_DIR / "lib" / "cicada" / name / LIBRARY

    @staticmethod
    def missing(name):
        """Why tests of this MPI can't run, or None."""
        if not (BUILD_DIR / "lib" / "cicada" / name / LIBRARY).exists():
            return f"the build has no exporter for {name}"
        programs = (LAUNCH[name][0], *(f"{compiler}.{name}" for compiler in COMPILERS.values()))
        return next((f"needs {program}" for program in programs if shutil.which(program) is None), None)

    def compile(self, source, *options):
        """Builds tests/support/mpi/<source> with this MPI's compiler."""
        program = self.directory / source.replace(".", "_")
        compiler = f"{COMPILERS[source.rpartition('.')[2]]}.{self.name}"
        done = subprocess.run([compiler, "-O1", "-o", program, SOURCES / source, *options], capture_output=True, text=True,
                              cwd=self.directory, check=False)
        assert done.returncode == 0, done.stderr
        return program

    def run(self, *words, ranks=4, preload=None, job="mpi", expect_status=0, without=(), **variables):
        """Runs a program under the exporter, on `ranks` ranks, to its end. Returns its output. Ranks don't have the
        launcher's variables `without`."""
        done = subprocess.run(**self.command(words, ranks, preload, job, variables, without), capture_output=True, text=True,
                              timeout=240, check=False)
        assert done.returncode == expect_status, f"{done.returncode}\n{done.stdout}\n{done.stderr}"
        return done.stdout + done.stderr

    @contextmanager
    def started(self, *words, ranks=4, job="mpi", **variables):
        """The same while it runs; it is ended at the end of the block."""
        running = subprocess.Popen(**self.command(words, ranks, None, job, variables), stdout=subprocess.DEVNULL,
                                   stderr=subprocess.DEVNULL)
        try:
            yield running
        finally:
            running.kill()
            running.wait()

    def command(self, words, ranks, preload, job, variables, without=()):
        """What subprocess takes to run a program on ranks under the exporter."""
        env = {name: value for name, value in os.environ.items() if not name.startswith(("SLURM", "PMI", "PROXY", "OMPI"))}
        env |= {"PROXY_PATH": str(self.place.socket_path), "PROXY_JOB_ID": job, **variables}
        preload = ":".join(map(str, preload if preload is not None else [self.exporter]))
        launch = [*LAUNCH[self.name], "-np", str(ranks), "env", *(f"--unset={name}" for name in without), f"LD_PRELOAD={preload}"]
        return {"args": self.place.command(*launch, *words), "env": env, "stdin": subprocess.DEVNULL, "cwd": self.directory}

    def run_expecting(self, *command, words=(), **options):
        """The same for a program that writes what it expects into the folder of its first argument; `words` are the next.
        Returns {function: (hits, in, out)} summed over ranks."""
        expected_dir = self.directory / "expected"
        shutil.rmtree(expected_dir, ignore_errors=True)
        expected_dir.mkdir()
        self.run(*command, expected_dir, *words, **options)
        sums = {}
        files = [path for path in expected_dir.iterdir() if path.name.isdigit()]
        assert files, "no rank has written what it expects"
        for path in files:
            for line in path.read_text().splitlines():
                key, *numbers = line.split()
                sums[key] = tuple(a + int(b) for a, b in zip(sums.get(key, (0, 0, 0)), numbers))
        return sums

    def counted(self):
        """What the exporter has counted so far, in the same form; functions that count nothing are left out."""
        dump = self.place.dump()
        found = {}
        for name, value in counters(dump, "main").items():
            metric = re.fullmatch(r"mpi___(hits|size_in|size_out)___(\w+)", name)
            if metric:
                found.setdefault(metric[2], {})[metric[1]] = value
        return {key: tuple(int(row.get(kind, 0)) for kind in ("hits", "size_in", "size_out")) for key, row in found.items()}


def counters(dump, job):
    return {counter["name"]: counter["ctype"]["Counter"]["value"] for counter in dump.jobs[job]["job"]["counters"]
            if "Counter" in counter["ctype"]}
