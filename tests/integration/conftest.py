# SPDX-License-Identifier: BSD-3-Clause
"""The real programs, as users run them. CICADA_BUILD_DIR names the build; script/test sets it."""
import os
import shutil
import subprocess
import sys
import tempfile
from pathlib import Path

import pytest

sys.path.insert(0, str(Path(__file__).resolve().parents[1]))

from support.node import Node  # noqa: E402
from support.service import PROGRAM, Service  # noqa: E402


@pytest.fixture(autouse=True, scope="session")
def programs():
    assert PROGRAM.exists(), f"{PROGRAM} is not built: set CICADA_BUILD_DIR to a build directory"


@pytest.fixture
def service(tmp_path):
    """Makes services; they end with the test."""
    made = []

    def make(**kwargs):
        made.append(Service(kwargs.pop("directory", tmp_path), **kwargs))
        return made[-1]

    yield make
    for one in made:
        one.close()


@pytest.fixture
def node(tmp_path):
    return Node(tmp_path / "node")


@pytest.fixture
def small_tmpfs():
    """Mounts a file system of so many bytes; gone at the end of the test."""
    mounted = []

    def make(size_bytes):
        directory = Path(tempfile.mkdtemp(prefix="cicada-tmpfs-"))
        subprocess.run(["mount", "-t", "tmpfs", "-o", f"size={size_bytes}", "cicada-test", directory], check=True)
        mounted.append(directory)
        return directory

    if os.geteuid() != 0:
        pytest.skip("needs root: mounts a small file system")
    yield make
    for directory in mounted:
        subprocess.run(["umount", "-l", directory], check=True)
        shutil.rmtree(directory)
