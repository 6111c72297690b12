# SPDX-License-Identifier: BSD-3-Clause
"""A program that writes a trace is killed at random moments: what is on disk is valid, and all that was flushed."""
import gzip
import json
import os
import random
import signal
import subprocess
import tempfile
import time
from pathlib import Path

import pytest

WRITER = Path(os.environ["CICADA_BUILD_DIR"]) / "tests" / "trace_until_killed"
ROUNDS = 1000 if os.environ.get("CICADA_LONG") == "1" else 100
LIFE_MAX_SECONDS = 0.02
WRITES_MAX = 5
SHARED_MEMORY = Path("/dev/shm")  # there a write() can end behind each page; on a disk the kernel may take many at once


class Dying:
    """A writer, and how many events it has said are in its file."""

    def __init__(self, path, *numbers):
        self.path = path
        self.flushed = 0
        self.process = subprocess.Popen([WRITER, path, *map(str, numbers)], stdout=subprocess.PIPE,
                                        stderr=subprocess.PIPE)

    def wait_first_flush(self):
        self.flushed = int(self.process.stdout.readline())

    def wait_dead(self):
        said, complaint = self.process.communicate()
        assert self.process.returncode == -signal.SIGKILL, complaint.decode()
        whole = said[:said.rfind(b"\n") + 1].split()
        self.flushed = int(whole[-1]) if whole else self.flushed

    def check(self):
        lines = read_lines(self.path)
        events = json.loads(b"[" + b",".join(lines) + b"]")
        assert len(events) == len(lines)
        assert [event["i"] for event in events] == list(range(len(events)))
        assert len(events) >= self.flushed, f"{self.flushed} events were flushed, {len(events)} are there"
        self.path.unlink()


def read_lines(path):
    """The lines of a trace, which must be whole. Before its first write has begun a file is empty, and no gzip file."""
    if path.stat().st_size == 0:
        return []
    if path.suffix == ".gz":
        subprocess.run(["gzip", "-t", path], check=True, capture_output=True)
        text = gzip.decompress(path.read_bytes())
    else:
        text = path.read_bytes()
    assert text == b"" or text.endswith(b"\n"), f"the last line is cut: {text[-80:]!r}"
    return text.split(b"\n")[:-1]


def kill_at_a_random_moment(path, dice):
    writer = Dying(path, dice.randrange(2**32))
    try:
        writer.wait_first_flush()
        time.sleep(dice.uniform(0, LIFE_MAX_SECONDS))
    finally:
        writer.process.kill()
    return writer


def kill_in_the_middle_of_a_write(path, dice):
    return Dying(path, dice.randrange(2**32), dice.randint(1, WRITES_MAX))


@pytest.fixture
def directories(tmp_path):
    """On two kinds of file systems."""
    if not os.access(SHARED_MEMORY, os.W_OK):
        yield [tmp_path]
        return
    with tempfile.TemporaryDirectory(prefix="cicada-test-", dir=SHARED_MEMORY) as directory:
        yield [tmp_path, Path(directory)]


@pytest.mark.timeout(3600)
@pytest.mark.parametrize("suffix", [".pfw.gz", ".pfw"])
@pytest.mark.parametrize("kill", [kill_at_a_random_moment, kill_in_the_middle_of_a_write])
def test_trace_survives_sigkill(directories, kill, suffix):
    seed = int(os.environ.get("CICADA_TEST_SEED", time.time_ns() % 2**32))
    print(f"CICADA_TEST_SEED={seed}")
    dice = random.Random(seed)
    for number in range(ROUNDS):
        writer = kill(directories[number % len(directories)] / f"{number}{suffix}", dice)
        writer.wait_dead()
        writer.check()
