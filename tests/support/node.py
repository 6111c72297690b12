# SPDX-License-Identifier: BSD-3-Clause
"""node: a machine made of files: roots of /proc and /sys that a test writes as it likes."""
from pathlib import Path

CPU_COLUMNS = ("user", "nice", "system", "idle", "iowait", "irq", "softirq", "steal", "guest", "guest_nice")

MEMINFO = {"MemTotal": 16000000, "MemFree": 4000000, "MemAvailable": 12000000, "Buffers": 1000, "Cached": 2000000}

DEV_HEADER = """Inter-|   Receive                                                |  Transmit
 face |bytes    packets errs drop fifo frame compressed multicast|bytes    packets errs drop fifo colls carrier compressed
"""


class Node:
    """Writes in place, as the kernel does it: a service that keeps a file open sees what it says now."""

    def __init__(self, directory):
        self.proc = Path(directory) / "proc"
        self.sys = Path(directory) / "sys"
        self.cpus = {}
        for path in (self.proc / "net", self.proc / "self", self.sys / "class"):
            path.mkdir(parents=True)
        self.set_cpus(2)
        self.set_memory()
        self.set_disks("   8       0 sda 1 0 8 1 1 0 8 1 0 1 2\n")
        self.set_interfaces({"eth0": (1000, 2000)})
        self.set_mounts("")

    def write(self, path, text):
        """Changes a file of /proc or /sys (relative) without ever showing it empty."""
        path = self.proc.parent / path
        path.parent.mkdir(parents=True, exist_ok=True)
        data = text if isinstance(text, bytes) else text.encode()
        with open(path, "r+b" if path.exists() else "wb", buffering=0) as file:
            file.write(data)
            file.truncate(len(data))

    def set_cpus(self, count, extra="intr 0\n", **ticks):
        """Each CPU has `ticks` by column."""
        values = [ticks.get(column, 100) for column in CPU_COLUMNS]
        one = " ".join(map(str, values))
        all_of_them = " ".join(str(value * count) for value in values)
        lines = "".join(f"cpu{i} {one}\n" for i in range(count))
        self.write("proc/stat", f"cpu  {all_of_them}\n{lines}{extra}ctxt 1\nbtime 1\nprocesses 1\n")

    def set_memory(self, **values):
        self.write("proc/meminfo", "".join(f"{name + ':':16}{value:8} kB\n" for name, value in {**MEMINFO, **values}.items()))

    def set_disks(self, text):
        self.write("proc/diskstats", text)

    def set_interfaces(self, received_and_sent):
        lines = "".join(f"{name:>6}: {received} 1 0 0 0 0 0 0 {sent} 1 0 0 0 0 0 0\n"
                        for name, (received, sent) in received_and_sent.items())
        self.write("proc/net/dev", DEV_HEADER + lines)

    def set_mounts(self, text):
        self.write("proc/mounts", text)
        self.write("proc/self/mounts", text)
        self.write("proc/1/mounts", text)

    def variables(self):
        return {"DFTRACER_PROC_PATH": self.proc, "DFTRACER_SYS_PATH": self.sys}
