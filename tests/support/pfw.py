# SPDX-License-Identifier: BSD-3-Clause
"""pfw: the command as a user runs it."""
import subprocess

from support.service import BUILD_DIR

PFW = BUILD_DIR / "bin" / "pfw"
TIMEOUT_S = 120


def pfw(*args, status=0, **kwargs):
    """Runs `pfw` to its end, checks its exit status, and returns what it printed; outputs are bytes."""
    done = subprocess.run([PFW, *map(str, args)], capture_output=True, timeout=TIMEOUT_S, check=False, **kwargs)
    assert done.returncode == status, f"pfw {args}: {done}"
    return done


def text(*args, **kwargs):
    """The same, and only standard output, as text."""
    return pfw(*args, **kwargs).stdout.decode()
