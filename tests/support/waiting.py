# SPDX-License-Identifier: BSD-3-Clause
"""waiting: for events, with a deadline, and never for time alone."""
import os
import time

DEADLINE_S = 30


def wait_until(condition, what, timeout_s=DEADLINE_S):
    """Asks again and again; returns the first true answer, fails with `what` when the time is over."""
    deadline = time.monotonic() + timeout_s
    while True:
        answer = condition()
        if answer:
            return answer
        assert time.monotonic() < deadline, f"waited {timeout_s} s in vain for {what}"
        time.sleep(0.005)


def rounds(quick, long):
    """How often a test repeats: `long` times with script/test --long."""
    return long if os.environ.get("CICADA_LONG") == "1" else quick
