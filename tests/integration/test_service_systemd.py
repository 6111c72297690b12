# SPDX-License-Identifier: BSD-3-Clause
"""run: in the foreground, as systemd and containers want it; and the units that we ship."""
import os
import re
import shutil
import signal
import socket
import subprocess
from pathlib import Path

import pytest

from support.service import BUILD_DIR
from support.waiting import DEADLINE_S, wait_until

UNITS = Path(__file__).resolve().parents[2] / "packaging" / "systemd"


class NotifySocket:
    """The manager's side of sd_notify(3)."""

    def __init__(self, address):
        self.socket = socket.socket(socket.AF_UNIX, socket.SOCK_DGRAM)
        self.socket.bind(address)
        self.socket.settimeout(DEADLINE_S)
        self.variable = address.replace("\0", "@")

    def hear(self):
        return dict(line.split("=", 1) for line in self.socket.recv(4096).decode().splitlines())


@pytest.fixture(params=["path", "abstract"])
def manager(request, tmp_path):
    made = NotifySocket(str(tmp_path / "notify") if request.param == "path" else f"\0cicada-test-{os.getpid()}")
    yield made
    made.socket.close()


def test_readiness_and_the_end_are_told_to_the_manager(service, manager):
    one = service(NOTIFY_SOCKET=manager.variable)
    process = one.run()
    ready = manager.hear()
    assert ready["READY"] == "1" and "100 ms" in ready["STATUS"]
    assert one.pid() == process.pid
    assert one.so_far().named("start")
    process.send_signal(signal.SIGTERM)
    assert manager.hear()["STOPPING"] == "1"
    assert process.wait(DEADLINE_S) == 0
    assert one.load().is_ended


def test_a_bad_setting_ends_it_before_it_is_ready_with_the_reason(service, manager):
    one = service(NOTIFY_SOCKET=manager.variable, prefix="/proc/nope/x")
    process = one.run()
    _, words = process.communicate(timeout=DEADLINE_S)
    assert process.returncode == 1
    assert "/proc/nope" in words and "No such file or directory" in words
    manager.socket.setblocking(False)
    with pytest.raises(BlockingIOError):
        manager.hear()


@pytest.mark.parametrize("address", ["relative", "/nope/socket", "@", "/" + "x" * 200])
def test_a_notify_socket_that_can_not_be_used_is_said_and_no_reason_to_end(service, address):
    one = service(NOTIFY_SOCKET=address)
    process = one.run()
    one.wait_for_ticks(2)
    process.send_signal(signal.SIGTERM)
    _, words = process.communicate(timeout=DEADLINE_S)
    assert process.returncode == 0 and "NOTIFY_SOCKET" in words


def test_in_the_foreground_it_is_the_service_of_its_log_dir(service):
    one = service()
    process = one.run()
    wait_until(one.pid_file.exists, "the PID file")
    refused = one.call("start")
    assert refused.returncode == 1 and f"pid {process.pid}" in refused.stderr
    assert f"pid {process.pid}" in one.must("status").stdout
    one.stop()
    assert process.wait(DEADLINE_S) == 0


def test_its_log_lines_go_to_stderr(service):
    one = service(DFTRACER_LOG_LEVEL="INFO", DFTRACER_PROC_PATH="/nope")
    process = one.run()
    wait_until(one.pid_file.exists, "the PID file")
    process.send_signal(signal.SIGINT)
    _, words = process.communicate(timeout=DEADLINE_S)
    assert re.search(r"^\d{4}-\d\d-\d\dT\S+Z INFO not measured: cpu: ", words, re.MULTILINE)
    assert "running on" in words
    assert not one.file("err").exists()


def test_a_reader_of_stderr_that_has_gone_is_no_reason_to_end(service):
    one = service(DFTRACER_LOG_LEVEL="DEBUG")
    process = one.run()
    wait_until(one.pid_file.exists, "the PID file")
    process.stderr.close()
    one.wait_for_ticks(3)
    process.send_signal(signal.SIGTERM)
    assert process.wait(DEADLINE_S) == 0
    process.stderr = None
    assert one.load().is_ended


def unit_files():
    return sorted(path for path in UNITS.rglob("*.in"))


def installed(template, directory):
    """The unit as installation writes it."""
    unit = directory / template.name[:-len(".in")].replace("@.", "@instance.")
    unit.write_text(template.read_text().replace("@bindir@", str(BUILD_DIR / "bin")).replace("@version@", "0"))
    assert not re.search(r"@[a-z]+@", unit.read_text())
    return unit


def test_there_are_units_for_the_machine_and_for_users():
    assert [str(path.relative_to(UNITS)) for path in unit_files()] == [
        "system/dftracer_service.service.in", "system/dftracer_service@.service.in", "system/proxy_v2@.service.in",
        "user/dftracer_service@.service.in", "user/proxy_v2.service.in"]


@pytest.mark.parametrize("template", unit_files(), ids=lambda path: str(path.relative_to(UNITS)))
def test_units_are_valid(tmp_path, template):
    if not shutil.which("systemd-analyze"):
        pytest.skip("needs systemd: checks the units")
    unit = installed(template, tmp_path)
    owner = "--user" if template.parent.name == "user" else "--system"
    env = {**os.environ, "XDG_RUNTIME_DIR": str(tmp_path)}
    done = subprocess.run(["systemd-analyze", owner, "--man=no", "--recursive-errors=no", "verify", unit], capture_output=True,
                          text=True, check=False, env=env)
    assert done.returncode == 0 and not done.stderr, done.stderr


@pytest.mark.parametrize("template", [path for path in unit_files() if path.parent.name == "system"], ids=lambda path: path.name)
def test_units_are_hardened_and_leave_proc_alone(tmp_path, template):
    if not shutil.which("systemd-analyze"):
        pytest.skip("needs systemd: checks the units")
    unit = installed(template, tmp_path)
    for option in ("ProtectControlGroups=", "ProtectKernelTunables=", "ProtectProc=", "ProcSubset="):
        assert f"\n{option}" not in unit.read_text(), "with it systemd mounts a /proc of its own, and hides that of lxcfs"
    done = subprocess.run(["systemd-analyze", "security", "--offline=yes", "--threshold=45", "--no-pager", unit], capture_output=True,
                          text=True, check=False)
    assert done.returncode == 0, done.stdout[-500:] + done.stderr


def test_units_wait_longer_than_the_program_itself():
    for template in unit_files():
        default_ms = 30000 if template.name.startswith("dftracer") else 10000
        seconds = int(re.search(r"^TimeoutStopSec=(\d+)$", template.read_text(), re.MULTILINE).group(1))
        assert seconds * 1000 > default_ms
        assert "Type=notify" in template.read_text()
