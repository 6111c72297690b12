# SPDX-License-Identifier: BSD-3-Clause
"""measure: what a running process costs."""
import re
import time
from pathlib import Path


def cpu_ns(pid):
    """CPU time of all threads of a process, also of those that have ended, to the nanosecond (clock_getcpuclockid(3))."""
    cpuclock_sched = 2
    return time.clock_gettime_ns((~pid << 3) | cpuclock_sched)


def memory_kib(pid):
    """Resident memory now, its peak, and the share of it that is the process' own (PSS)."""
    status = Path(f"/proc/{pid}/status").read_text()
    rollup = Path(f"/proc/{pid}/smaps_rollup").read_text()
    values = {key: int(re.search(rf"^{key}:\s+(\d+) kB", text, re.M)[1])
              for key, text in (("VmRSS", status), ("VmHWM", status), ("Pss", rollup))}
    return values["VmRSS"], values["VmHWM"], values["Pss"]


def percentile(values, share):
    """The smallest value that at least `share` of all values do not exceed."""
    ordered = sorted(values)
    return ordered[max(0, -int(-share * len(ordered) // 1) - 1)]
