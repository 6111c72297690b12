# SPDX-License-Identifier: BSD-3-Clause
"""What the tests of the scripts share: small checkouts made for one test."""

import os
import shutil
import stat
import subprocess
from pathlib import Path

import pytest

ROOT = Path(__file__).resolve().parents[2]


class Checkout:
    """A folder that looks like the project to its scripts and holds only what a test puts there."""

    def __init__(self, root):
        self.root = root
        subprocess.run(["git", "init", "-q", root], check=True)

    def write(self, path, text, executable=False):
        file = self.root / path
        file.parent.mkdir(parents=True, exist_ok=True)
        if isinstance(text, bytes):
            file.write_bytes(text)
        else:
            file.write_text(text)
        if executable:
            file.chmod(file.stat().st_mode | stat.S_IXUSR | stat.S_IXGRP | stat.S_IXOTH)
        return file

    def copy(self, *paths):
        """Copies files or folders of the real project."""
        for path in paths:
            source, goal = ROOT / path, self.root / path
            goal.parent.mkdir(parents=True, exist_ok=True)
            if source.is_dir():
                shutil.copytree(source, goal, ignore=shutil.ignore_patterns("__pycache__"))
            else:
                shutil.copy2(source, goal)

    def run(self, *command, env=None, timeout=120):
        return subprocess.run([str(word) for word in command], cwd=self.root, capture_output=True, text=True,
                              stdin=subprocess.DEVNULL, env={**os.environ, **(env or {})}, timeout=timeout)


@pytest.fixture
def checkout(tmp_path):
    return Checkout(tmp_path / "checkout")
