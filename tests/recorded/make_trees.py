#!/usr/bin/env python3
# SPDX-License-Identifier: BSD-3-Clause
"""Writes the recorded trees that are too big for git: make_trees.py DIRECTORY.

Each tree is a folder with `proc/` and `sys/` as a collector's configuration names them. The numbers are made up, always
the same, and different in each line, so that a test can tell from a value which line it came from.
"""
import sys
from pathlib import Path

# The columns of a cpu line: user nice system idle iowait irq softirq steal guest guest_nice.
CPU_COLUMNS = 10
INTERRUPTS = 60_000


def cpu_line(name, number):
    """A line of /proc/stat whose column c is number * 10 + c."""
    return " ".join([name] + [str(number * CPU_COLUMNS + column) for column in range(CPU_COLUMNS)])


def proc_stat(cpus, interrupts):
    """The text of /proc/stat with these CPUs; the line of all of them has the number of CPUs as its number."""
    lines = [cpu_line("cpu ", len(cpus))]
    lines += [cpu_line(f"cpu{cpu}", cpu) for cpu in cpus]
    lines.append("intr " + " ".join(["12345678901"] + [str(interrupt * 7) for interrupt in range(interrupts)]))
    lines += ["ctxt 987654321", "btime 1700000000", "processes 4242", "procs_running 3", "procs_blocked 1"]
    lines.append("softirq 100 1 2 3 4 5 6 7 8 9 10")
    return "\n".join(lines) + "\n"


def write(path, text):
    path.parent.mkdir(parents=True, exist_ok=True)
    path.write_text(text)


def make_cpus(tree, cpus, interrupts):
    write(tree / "proc/stat", proc_stat(cpus, interrupts))


def disk_line(major, minor, name, number):
    """A line of /proc/diskstats of Linux 5.5 or newer whose field f (0 to 16) is number * 100 + f."""
    fields = " ".join(str(number * 100 + field) for field in range(17))
    return f"{major:4} {minor:7} {name} {fields}\n"


def disk_names(count):
    """sda to sdz, sdaa, …"""
    for index in range(count):
        letters = ""
        while index >= 0:
            letters = chr(ord("a") + index % 26) + letters
            index = index // 26 - 1
        yield "sd" + letters


def make_disks(tree, disks, partitions):
    """Disks with partitions each, and one device of the device mapper for each tenth disk."""
    text = ""
    sys_class = tree / "sys/class/block"
    for number, name in enumerate(disk_names(disks)):
        text += disk_line(8, number * 16, name, number)
        (sys_class / name).mkdir(parents=True, exist_ok=True)
        for partition in range(1, partitions + 1):
            text += disk_line(8, number * 16 + partition, f"{name}{partition}", number)
            write(sys_class / f"{name}{partition}" / "partition", f"{partition}\n")
    for number in range(disks // 10):
        text += disk_line(253, number, f"dm-{number}", 1000 + number)
        write(tree / f"sys/block/dm-{number}/dm/name", f"vg-volume{number}\n")
    write(tree / "proc/diskstats", text)


def main():
    trees = Path(sys.argv[1])
    make_cpus(trees / "cpus-1024", range(1024), 3000)
    make_cpus(trees / "cpus-4096", range(4096), INTERRUPTS)
    # 64 CPUs of which 16 to 31 and 40 are offline: the kernel leaves their lines out.
    make_cpus(trees / "cpus-offline", [cpu for cpu in range(64) if not 16 <= cpu < 32 and cpu != 40], 100)
    make_disks(trees / "disks-300", 300, 4)
    (trees / "empty/proc").mkdir(parents=True, exist_ok=True)
    (trees / "empty/sys").mkdir(parents=True, exist_ok=True)


if __name__ == "__main__":
    main()
