# SPDX-License-Identifier: BSD-3-Clause
"""start, stop, status, restart: who is the service of a host and a log directory, and what becomes of its trace."""
import os
import re
import signal
import subprocess
import time
from pathlib import Path

import pytest

from support.service import BUILD_DIR, HOST, PROGRAM, clean_environment, is_alive, preloaded, services_of
from support.waiting import rounds, wait_until

BOOT_ID = Path("/proc/sys/kernel/random/boot_id").read_text().strip()


def has_trace(pid):
    """Commands and starters are of the same name as services for a moment, but write no trace."""
    try:
        return any(os.readlink(link).endswith(".pfw.gz") for link in Path(f"/proc/{pid}/fd").iterdir())
    except (FileNotFoundError, ProcessLookupError):
        return False


def start_ticks(pid):
    return int(Path(f"/proc/{pid}/stat").read_text().rsplit(")", 1)[1].split()[19])


def test_start_returns_when_the_first_sample_is_taken(service):
    one = service()
    started = one.start()
    assert is_alive(one.pid())
    assert one.so_far().named("start") and one.so_far().named("HH")
    assert f"pid {one.pid()}" in started.stderr and str(one.path()) in started.stderr


def test_stop_returns_when_the_trace_is_complete_and_says_where_it_is(service):
    one = service()
    one.start()
    pid = one.pid()
    one.wait_for_ticks(3)
    stopped = one.stop()
    trace = one.load()
    assert trace.is_ended
    assert f"'{one.path()}' holds {len(trace.events)} events" in stopped.stdout
    assert not one.pid_file.exists()
    one.wait_for_end(pid)


def test_pid_file_holds_the_pid_alone_then_birth_and_boot(service):
    one = service()
    one.start()
    lines = one.pid_file.read_text().splitlines()
    assert lines == [str(one.pid()), f"start_ticks={start_ticks(one.pid())}", f"boot_id={BOOT_ID}"]


def test_a_second_start_is_refused_and_names_the_first(service):
    one = service()
    one.start()
    again = one.call("start")
    assert again.returncode == 1
    assert f"already running on '{HOST}'" in again.stderr and f"pid {one.pid()}" in again.stderr
    assert services_of(one.log_dir) == [one.pid()]


def test_stop_without_start_says_which_pid_file_was_looked_for(service, tmp_path):
    one = service()
    for log_dir in (one.log_dir, tmp_path):
        one.log_dir = log_dir
        stopped = one.call("stop")
        assert stopped.returncode == 1
        assert f"no service is running on '{HOST}'" in stopped.stderr and str(one.pid_file) in stopped.stderr


def test_the_second_stop_finds_nobody(service):
    one = service()
    one.start()
    one.stop()
    assert one.call("stop").returncode == 1


def test_stop_with_another_log_dir_leaves_the_service_alone(service, tmp_path):
    one = service()
    one.start()
    other = service(log_dir=tmp_path / "other")
    assert other.call("stop").returncode == 1
    assert is_alive(one.pid())


def test_stop_needs_no_settings_and_survives_wrong_ones(service):
    one = service()
    one.start()
    one.env = clean_environment(DFTRACER_TRACE_INTERVAL_MS="abc", DFTRACER_CONFIGURATION="/nowhere.yaml")
    one.stop()


def test_status_tells_running_stale_and_none_apart(service):
    one = service()
    none = one.call("status")
    assert none.returncode == 3 and "not running" in none.stdout

    one.start()
    running = one.call("status")
    assert running.returncode == 0
    assert f"pid {one.pid()}" in running.stdout and str(one.path()) in running.stdout

    pid = one.pid()
    os.kill(pid, signal.SIGKILL)
    one.wait_for_end(pid)
    # Its threads hold the lock until the last of them is gone: until then it is a service that does not answer (4).
    stale = wait_until(lambda: (done := one.call("status")).returncode != 4 and done, "the lock to be free")
    assert stale.returncode == 1
    assert "not running" in stale.stdout and "stale PID file" in stale.stdout and str(one.path()) in stale.stdout
    assert one.call("stop").returncode == 1


def test_start_after_a_kill_replaces_the_stale_pid_file_and_keeps_the_trace(service):
    one = service()
    one.start()
    one.wait_for_ticks(1)
    pid = one.pid()
    os.kill(pid, signal.SIGKILL)
    one.wait_for_end(pid)
    killed = one.path().read_bytes()
    started = one.start()
    assert "renamed to" in started.stderr
    assert one.path(1).read_bytes() == killed
    assert one.pid() != pid


@pytest.mark.parametrize("text", ["", "rubbish\n", "-5\n", "12 34\n", "99999999999999999999\n", "\0\0\0\0", "4711"])
def test_a_pid_file_that_names_nobody_is_replaced(service, text):
    one = service()
    one.log_dir.mkdir()
    one.pid_file.write_text(text)
    assert one.call("status").returncode == 1
    assert one.call("stop").returncode == 1
    one.start()
    assert is_alive(one.pid())
    one.stop()


def test_a_pid_file_with_the_pid_of_another_program_never_harms_it(service):
    one = service()
    one.log_dir.mkdir()
    with subprocess.Popen(["sleep", "1000"]) as stranger:
        for birth in (1, start_ticks(stranger.pid) + 1):
            one.pid_file.write_text(f"{stranger.pid}\nstart_ticks={birth}\nboot_id={BOOT_ID}\n")
            assert one.call("stop").returncode == 1
            assert one.call("status").returncode == 1
        one.pid_file.write_text(f"{stranger.pid}\nstart_ticks={start_ticks(stranger.pid)}\nboot_id={'0' * 36}\n")
        assert one.call("stop").returncode == 1, "the number of another boot"
        one.start()
        one.stop()
        assert stranger.poll() is None, "the stranger was sent a signal"
        stranger.kill()


def test_a_pid_file_with_a_number_alone_is_not_enough_to_signal_a_service(service, tmp_path):
    """As another implementation writes it: a dftracer_service of that number may be another directory's."""
    other = service(log_dir=tmp_path / "other", prefix=tmp_path / "other-trace")
    other.start()
    one = service()
    one.log_dir.mkdir()
    one.pid_file.write_text(str(other.pid()))
    for command in ("start", "stop", "status"):
        done = one.call(command)
        assert done.returncode == (4 if command == "status" else 1)
        assert "can't be told" in done.stdout + done.stderr
    assert is_alive(other.pid())


def test_a_service_that_lost_its_pid_file_is_found_by_its_lock(service):
    one = service()
    one.start()
    pid = one.pid()
    one.pid_file.unlink()
    again = one.call("start")
    assert again.returncode == 1 and f"pid {pid}" in again.stderr
    assert f"pid {pid}" in one.must("status").stdout
    one.stop()
    one.wait_for_end(pid)


def test_a_service_that_lost_its_lock_file_is_found_and_takes_it_back(service):
    """logind removes a user's files in /dev/shm when he logs out (RemoveIPC=yes)."""
    one = service()
    one.start()
    pid = one.pid()
    locks = [path for path in Path(f"/dev/shm/cicada-{os.geteuid()}").glob("service-*")
             if str(one.log_dir).replace("/", "%2F") in path.name]
    assert len(locks) == 1
    locks[0].unlink()
    assert one.call("start").returncode == 1
    wait_until(locks[0].exists, "the lock file")
    one.pid_file.unlink()
    again = one.call("start")
    assert again.returncode == 1 and f"pid {pid}" in again.stderr
    one.stop()
    assert one.load().is_ended


def test_another_users_service_is_named_and_not_stopped(service, tmp_path):
    if os.geteuid() != 0:
        pytest.skip("needs root: starts a service as another user")
    for directory in [tmp_path, *tmp_path.parents][:-2]:
        directory.chmod(0o755)
    shared = tmp_path / "shared"
    shared.mkdir()
    shared.chmod(0o1777)
    nobody = ["setpriv", "--reuid=65534", "--regid=65534", "--clear-groups"]
    theirs = service(log_dir=shared, prefix=shared / "theirs", command=nobody)
    theirs.start()
    pid = theirs.pid()
    ours = service(log_dir=shared, prefix=shared / "ours")
    assert f"pid {pid}" in ours.must("status").stdout
    refused = ours.call("start")
    assert refused.returncode == 1 and f"pid {pid}" in refused.stderr

    third = service(log_dir=shared, prefix=shared / "third", command=["setpriv", "--reuid=65533", "--regid=65533", "--clear-groups"])
    stopped = third.call("stop")
    assert stopped.returncode == 1 and "Operation not permitted" in stopped.stderr
    assert is_alive(pid)

    os.kill(pid, signal.SIGKILL)
    theirs.wait_for_end(pid)
    started = third.call("start")
    assert started.returncode == 1
    assert "choose another log directory): Permission denied" in started.stderr
    assert not services_of(shared)


def test_of_two_starts_at_once_one_wins_every_time(service):
    turns = rounds(20, 200)
    one = service(DFTRACER_KEEP=turns)
    for turn in range(turns):
        both = [subprocess.Popen([PROGRAM, "start", one.log_dir], env=one.env, stderr=subprocess.PIPE, text=True) for _ in range(2)]
        words = [starter.communicate()[1] for starter in both]
        statuses = sorted(starter.returncode for starter in both)
        assert statuses == [0, 1], f"turn {turn}: {words}"
        pid = one.pid()
        loser = words[0] if both[0].returncode == 1 else words[1]
        assert f"pid {pid}" in loser, f"turn {turn}: {loser}"
        wait_until(lambda: services_of(one.log_dir) == [pid], f"turn {turn}: the loser to be gone")
        assert one.pid() == pid and len(one.traces()) == turn + 1
        one.stop()


def test_a_pipe_in_place_of_the_log_is_named_and_holds_no_start_up(service):
    one = service()
    one.log_dir.mkdir(exist_ok=True)
    os.mkfifo(one.file("out"))
    started = one.call("start")
    assert started.returncode == 1 and "is a pipe that nobody reads" in started.stderr
    one.file("out").unlink()
    one.start()


def test_fifty_restarts_are_never_two_services(service):
    one = service(DFTRACER_KEEP=100)
    most = 0
    for _ in range(50):
        with subprocess.Popen([PROGRAM, "restart", one.log_dir], env=one.env, stdout=subprocess.PIPE, stderr=subprocess.PIPE,
                              text=True) as restarting:
            while restarting.poll() is None:
                most = max(most, sum(has_trace(pid) for pid in services_of(one.log_dir)))
                time.sleep(0.001)
            assert restarting.returncode == 0, restarting.communicate()
    assert most == 1
    one.stop()
    assert len(one.traces()) == 50
    for path in one.traces():
        subprocess.run(["gzip", "-t", path], check=True)


def test_restart_with_a_mistake_leaves_the_service_running(service):
    one = service()
    one.start()
    pid = one.pid()
    one.env["DFTRACER_TRACE_INTERVAL_MS"] = "abc"
    assert one.call("restart").returncode == 1
    assert one.pid() == pid and is_alive(pid)


def test_nothing_of_the_starter_stays_open_in_the_daemon(service):
    """mpirun and srun wait until nobody holds their pipes."""
    one = service()
    read_end, write_end = os.pipe()
    os.set_inheritable(write_end, True)
    subprocess.run([PROGRAM, "start", one.log_dir], env=one.env, check=True, close_fds=False, stdout=write_end, stderr=write_end)
    os.close(write_end)
    while os.read(read_end, 4096):
        pass
    os.close(read_end)
    links = {os.readlink(link) for link in Path(f"/proc/{one.pid()}/fd").glob("*")}
    assert not [link for link in links if link.startswith("/dev/pts")]
    assert os.readlink(f"/proc/{one.pid()}/cwd") == "/"


def test_log_dir_is_created_and_defaults_to_tmp(service, tmp_path):
    one = service(log_dir=tmp_path / "a" / "b")
    one.start()
    assert sorted(path.name for path in one.log_dir.iterdir()) == [f"dftracer_server_{HOST}.{s}" for s in ("err", "out", "pid")]
    described = subprocess.run([PROGRAM, "status"], env=one.env, capture_output=True, text=True, check=False)
    assert f"/tmp/dftracer_server_{HOST}.pid" in described.stdout


@pytest.mark.parametrize("words", [[], ["begin"], ["start", "/tmp/a", "/tmp/b"], ["--start"]])
def test_a_wrong_command_line_gets_the_usage_and_status_2(words):
    done = subprocess.run([PROGRAM, *words], env=clean_environment(), capture_output=True, text=True, check=False)
    assert done.returncode == 2 and done.stderr.startswith("Usage: dftracer_service <start|stop|status|restart|run> [log_dir]")


def test_help_and_version():
    version = subprocess.run([PROGRAM, "--version"], capture_output=True, text=True, check=True).stdout
    assert re.fullmatch(r"dftracer_service \(Cicada\) \d+\.\d+\.\d+\n", version)
    text = subprocess.run([PROGRAM, "--help"], capture_output=True, text=True, check=True).stdout
    assert "DFTRACER_TRACE_INTERVAL_MS" in text and "features.interval" in text


def test_program_lies_where_scripts_look_for_it():
    assert (BUILD_DIR / "bin" / "dftracer_service").is_file()


def test_a_service_that_does_not_react_is_named_and_ends_when_it_can(service):
    one = service(DFTRACER_STOP_TIMEOUT_MS=300)
    one.start()
    pid = one.pid()
    one.wait_for_ticks(2)
    one.signal(signal.SIGSTOP)
    stopped = one.call("stop")
    assert stopped.returncode == 1
    assert f"pid {pid} has not ended within 0.3 s" in stopped.stderr and "SIGSTOP" in stopped.stderr
    os.kill(pid, signal.SIGCONT)
    one.wait_for_end(pid)
    assert one.load().is_ended


def test_a_full_dev_shm_is_no_reason_not_to_run(service):
    """Applications fill it with their shared memory."""
    if os.geteuid() != 0:
        pytest.skip("needs root: mounts a small file system over /dev/shm")
    mount = "mount -t tmpfs -o size=4096 cicada-test /dev/shm && head -c 4096 /dev/zero >/dev/shm/full && echo ready && exec sleep 1000"
    with subprocess.Popen(["unshare", "-m", "sh", "-c", mount], stdout=subprocess.PIPE, text=True) as holder:
        assert holder.stdout.readline() == "ready\n"
        one = service(command=["nsenter", "-m", "-t", str(holder.pid)])
        one.start()
        pid = one.pid()
        assert f"pid {pid}" in one.must("status").stdout
        refused = one.call("start")
        assert refused.returncode == 1 and f"pid {pid}" in refused.stderr
        one.wait_for_ticks(2)
        one.stop()
        one.wait_for_end(pid)
        assert one.load().is_ended
        holder.kill()


@pytest.mark.plain_build  # the thread that hangs keeps the sanitizer from ending the process
def test_a_collector_that_never_comes_back_does_not_keep_the_service(service, tmp_path):
    one = service(DFTRACER_STOP_TIMEOUT_MS=3000, STUCKREAD_FILE=tmp_path / "stuck", **preloaded("stuckread"))
    one.start()
    pid = one.pid()
    one.wait_for_ticks(3)
    (tmp_path / "stuck").touch()
    wait_until(lambda: one.so_far().stamps[-1] < time.time() * 1e6 - 1e6, "samples that fail to come")
    one.env = clean_environment()
    assert one.must("status").returncode == 0
    stopped = one.stop()
    assert "holds" in stopped.stdout, "the trace is complete up to then"
    one.wait_for_end(pid)
    trace = one.load()
    assert trace.is_ended and trace.args("end")[0]["used"]["ticks_overrun"] > 3
    assert "did not come back: the trace ends without its last sample" in one.errors()
