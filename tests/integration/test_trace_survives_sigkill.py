# SPDX-License-Identifier: BSD-3-Clause
"""A program that writes a trace is killed at random moments: what is on disk is valid, and all that was flushed."""
import gzip
import json
import os
import random
import signal
import subprocess
import time
from pathlib import Path

import pytest

WRITER = Path(os.environ["CICADA_BUILD_DIR"]) / "tests" / "trace_until_killed"
ROUNDS = 1000 if os.environ.get("CICADA_LONG") == "1" else 100
WRITERS = 4  # at once: when one runs, others have been stopped anywhere, in the middle of a write() too
LIFE_MAX_SECONDS = 0.04


def start(path, seed):
    return subprocess.Popen([WRITER, path, str(seed)], stdout=subprocess.PIPE, stderr=subprocess.PIPE)


def kill_at_random(writers, dice):
    """Kills all writers, each at its own moment. Returns for each how many events it had said are in the file."""
    first = [int(writer.stdout.readline()) for writer in writers]
    for writer in dice.sample(writers, len(writers)):
        time.sleep(dice.uniform(0, LIFE_MAX_SECONDS / len(writers)))
        writer.kill()
    flushed = []
    for writer, count in zip(writers, first):
        said, complaint = writer.communicate()
        assert writer.returncode == -signal.SIGKILL, complaint.decode()
        whole = said[:said.rfind(b"\n") + 1].split()
        flushed.append(int(whole[-1]) if whole else count)
    return flushed


def read_lines(path):
    """The lines of a trace, which must be whole."""
    if path.suffix == ".gz":
        subprocess.run(["gzip", "-t", path], check=True, capture_output=True)
        text = gzip.decompress(path.read_bytes())
    else:
        text = path.read_bytes()
    assert text.endswith(b"\n"), f"the last line is cut: {text[-80:]!r}"
    return text[:-1].split(b"\n")


def check(path, flushed):
    lines = read_lines(path)
    events = json.loads(b"[" + b",".join(lines) + b"]")
    assert len(events) == len(lines)
    assert [event["i"] for event in events] == list(range(len(events)))
    assert len(events) >= flushed, f"{flushed} events were flushed, {len(events)} are there"


def survives(tmp_path, suffix):
    seed = int(os.environ.get("CICADA_TEST_SEED", time.time_ns() % 2**32))
    print(f"CICADA_TEST_SEED={seed}")
    dice = random.Random(seed)
    for round_number in range(ROUNDS):
        paths = [tmp_path / f"{round_number}-{i}{suffix}" for i in range(WRITERS)]
        writers = [start(path, dice.randrange(2**32)) for path in paths]
        try:
            flushed = kill_at_random(writers, dice)
        finally:
            for writer in writers:
                writer.kill()
        for path, count in zip(paths, flushed):
            check(path, count)
            path.unlink()


@pytest.mark.timeout(3600)
def test_gzip_trace_survives_sigkill(tmp_path):
    survives(tmp_path, ".pfw.gz")


@pytest.mark.timeout(3600)
def test_plain_trace_survives_sigkill(tmp_path):
    survives(tmp_path, ".pfw")
