# SPDX-License-Identifier: BSD-3-Clause
"""service: what the tests of this folder do with dftracer_service, and how they look at what it leaves."""
import re
import time

from cluster import BUILD_DIR, run
from support import tracereader
from support.waiting import wait_until

INTERVAL_MS = 100


def variables(cluster, prefix, interval_ms=INTERVAL_MS):
    """What a user exports before the scripts."""
    return {"DFTRACER_ENABLE": "1", "DFTRACER_LOG_FILE": str(prefix), "DFTRACER_TRACE_INTERVAL_MS": str(interval_ms),
            "SERVICE_BIN": str(cluster.bin / "dftracer_service")}


def traces(prefix, host="*"):
    """Traces of a host; those that had to take another name (trace_n1.1.pfw.gz) come last."""
    paths = prefix.parent.glob(f"{prefix.name}_{host}.pfw.gz")
    return sorted(paths, key=lambda path: (path.name.count("."), path.name))


def one_per_host(prefix, hosts):
    return [prefix.with_name(f"{prefix.name}_{host}.pfw.gz") for host in hosts]


def wait_for_ticks(paths, ticks=5):
    """Each of the traces exists and holds so many instants."""
    for path in paths:
        wait_until(lambda path=path: len(tracereader.Trace(path, tracereader.events_so_far(path)).stamps) >= ticks,
                   f"{ticks} ticks in {path}")


def wait_for_ends(paths):
    """The services of the traces have said their last word."""
    for path in paths:
        wait_until(lambda path=path: tracereader.Trace(path, tracereader.events_so_far(path)).is_ended, f"the end of {path}")


def load_valid(path):
    """A trace that both our own reader and an independent one find valid. A busy machine may miss a sample, though."""
    trace = tracereader.load(path)
    checked = run([BUILD_DIR / "bin" / "pfw", "check", "--all", path])
    problems = [line for line in checked.text.splitlines() if ": problem: " in line and ": no sample for " not in line]
    assert checked.status in (0, 1) and not problems, checked.text
    return trace


def load_one_per_host(prefix, hosts, is_ended=True):
    """One valid trace for each host, named and stamped with it. Returns them by host."""
    paths = one_per_host(prefix, hosts)
    assert traces(prefix) == paths, [path.name for path in traces(prefix)]
    loaded = {path.name[len(prefix.name) + 1:].split(".")[0]: load_valid(path) for path in paths}
    assert {host: t.host() for host, t in loaded.items()} == {host: host for host in hosts}
    if is_ended:
        assert all(t.is_ended for t in loaded.values()), [t.path for t in loaded.values() if not t.is_ended]
    return loaded


def now_us():
    return time.time_ns() // 1000


APP = """
i=0
while [ $i -lt 20 ]; do
  dd if=/dev/zero of=/tmp/app.data bs=64k count=64 conv=fsync 2>/dev/null
  cksum /tmp/app.data >/dev/null
  sleep 0.1
  i=$((i + 1))
done
rm /tmp/app.data
"""


def sharing(cluster, script, log_dir):
    """One of the scripts, with one log_dir for all nodes in place of one each. Returns its path."""
    text, count = re.subn(r'log_dir="[^"]*"', f'log_dir="{log_dir}"', (cluster.scripts / script).read_text())
    assert count == 1
    path = cluster.shared / f"sharing_{script}"
    path.write_text(text)
    path.chmod(0o755)
    return path
