# SPDX-License-Identifier: BSD-3-Clause
"""Settings: where they come from, and what a wrong one is answered with. Nothing starts, and nothing is left behind."""
import json
import subprocess

import pytest

from support.service import PROGRAM, clean_environment, services_of


def refused(service, **variables):
    """Starts with wrong settings, which must leave no process, no PID file and no trace; returns the words."""
    one = service(**variables)
    done = one.call("start")
    assert done.returncode == 1, done
    assert not one.pid_file.exists() and not one.traces() and not services_of(one.log_dir)
    assert one.call("status").returncode == 3
    assert len(done.stderr.splitlines()) == 1, done.stderr
    return done.stderr


def test_without_enable_nothing_starts_and_that_is_no_failure(service):
    for value in (None, "", "0"):
        one = service(DFTRACER_ENABLE=value)
        for command in ("start", "run", "restart"):
            done = one.call(command)
            assert done.returncode == 0
            assert done.stderr == "dftracer_service: DFTRACER_ENABLE is not 1: nothing is started\n"
        assert not one.log_dir.exists()


def test_without_log_file_the_variable_is_named(service):
    assert "DFTRACER_LOG_FILE is not set" in refused(service, DFTRACER_LOG_FILE=None)


def test_a_prefix_that_is_a_directory_is_refused(service, tmp_path):
    assert "names a directory" in refused(service, DFTRACER_LOG_FILE=f"{tmp_path}/")


def test_a_prefix_in_a_missing_directory_is_refused(service, tmp_path):
    words = refused(service, prefix=tmp_path / "nope" / "x")
    assert f"'{tmp_path}/nope'" in words and "No such file or directory" in words and "DFTRACER_LOG_FILE" in words


def test_a_prefix_below_proc_is_refused(service):
    words = refused(service, prefix="/proc/nope/x")
    assert "'/proc/nope'" in words and "No such file or directory" in words


def test_a_prefix_in_a_read_only_directory_is_refused(service, tmp_path):
    directory = tmp_path / "read-only"
    directory.mkdir()
    mounted = subprocess.run(["mount", "-t", "tmpfs", "-o", "ro", "cicada-test", directory], capture_output=True, check=False)
    if mounted.returncode != 0:
        pytest.skip("needs root: mounts a read-only file system")
    try:
        words = refused(service, prefix=directory / "x")
        assert f"'{directory}/x_" in words and "Read-only file system" in words
    finally:
        subprocess.run(["umount", directory], check=True)


def test_a_log_dir_that_is_a_file_is_refused(service, tmp_path):
    (tmp_path / "file").touch()
    one = service(log_dir=tmp_path / "file")
    done = one.call("start")
    assert done.returncode == 1 and f"log directory '{tmp_path}/file'" in done.stderr


@pytest.mark.parametrize("name, values", [
    ("DFTRACER_TRACE_INTERVAL_MS", ["0", "-1", "abc", "1e9", "1000000000", "10.5", "0x10", "99999999999999999999", " "]),
    ("DFTRACER_LIBUV_THREADS", ["0", "10000", "-1", "many"]),
    ("DFTRACER_TRACE_COMPRESSION", ["2", "gzip"]),
    ("DFTRACER_ENABLE", ["2", "maybe"]),
    ("DFTRACER_LOG_LEVEL", ["LOUD", "1"]),
    ("DFTRACER_TIME_METRIC", ["HOURS"]),
    ("DFTRACER_WRITE_BUFFER_SIZE", ["-1", "16M"]),
    ("DFTRACER_KEEP", ["-1", "all"]),
    ("DFTRACER_STOP_TIMEOUT_MS", ["0", "soon"]),
    ("DFTRACER_FLUSH_INTERVAL_MS", ["0", "1"]),
])
def test_a_wrong_value_is_named_with_what_would_be_right(service, name, values):
    for value in values:
        words = refused(service, **{name: value})
        assert f"{name}='{value}': must be " in words


def test_an_unknown_collector_is_named_with_the_known_ones(service):
    words = refused(service, DFTRACER_COLLECTORS="cpu,gpus")
    assert "DFTRACER_COLLECTORS" in words and "'gpus'" in words and "memory" in words


def yaml(tmp_path, text):
    path = tmp_path / "conf.yaml"
    path.write_text(text)
    return path


def test_yaml_gives_what_the_environment_does_not(service, tmp_path):
    one = service(DFTRACER_ENABLE=None, DFTRACER_LOG_FILE=None, DFTRACER_TRACE_INTERVAL_MS=None,
                  DFTRACER_CONFIGURATION=yaml(tmp_path, f"""
enable: true
tracer:
  log_file: {tmp_path}/trace
  libuv_threads: 2
  compression: true
features:
  interval: 50
internal:
  write_buffer_size: 1048576
profiler:
  libuv_threads: 3
"""))
    one.start()
    cfg = one.so_far().args("start")[0]["cfg"]
    assert (cfg["trace_interval_ms"], cfg["libuv_thread_count"], cfg["write_buffer_size"]) == (50, 3, 1048576)


def test_the_environment_wins_over_yaml(service, tmp_path):
    one = service(DFTRACER_TRACE_INTERVAL_MS=70, DFTRACER_CONFIGURATION=yaml(tmp_path, "features: {interval: 50}\n"))
    one.start()
    assert one.so_far().args("start")[0]["cfg"]["trace_interval_ms"] == 70


def test_keys_of_the_other_members_of_the_family_are_no_matter(service, tmp_path):
    """The example of DFTracer's own documentation."""
    one = service(DFTRACER_CONFIGURATION=yaml(tmp_path, """
enable: True
profiler:
  init: FUNCTION
  data_dirs: ./data
  log_level: DEBUG
  compression: True
  time_metric: US
gotcha:
  priority: 1
features:
  metadata: True
  core_affinity: True
  io:
    enable: True
    posix: True
  tid: True
"""))
    started = one.start()
    assert "conf.yaml" not in started.stderr


def test_an_unknown_key_is_a_warning_with_its_line(service, tmp_path):
    path = yaml(tmp_path, "features:\n  interval: 50\n  intervall: 60\n")
    started = service(DFTRACER_CONFIGURATION=path).start()
    assert f"{path}:3: features.intervall: " in started.stderr


@pytest.mark.parametrize("text, line, key", [
    ("features:\n  interval: fast\n", 2, "features.interval"),
    ("features:\n  interval: [1, 2]\n", 2, "features.interval"),
    ("features: 7\n", 1, "features"),
    ("tracer:\n  compression: 7\n", 2, "tracer.compression"),
])
def test_a_wrong_type_names_file_line_and_key(service, tmp_path, text, line, key):
    path = yaml(tmp_path, text)
    assert f"{path}:{line}: {key}: " in refused(service, DFTRACER_CONFIGURATION=path)


def test_a_syntax_error_names_file_and_line(service, tmp_path):
    path = yaml(tmp_path, "features:\n  interval: 50\n :::\n\t- x: [\n")
    words = refused(service, DFTRACER_CONFIGURATION=path)
    assert f"{path}:" in words


def test_a_missing_yaml_file_is_named(service):
    words = refused(service, DFTRACER_CONFIGURATION="/nope/conf.yaml")
    assert "/nope/conf.yaml" in words and "No such file or directory" in words


def test_relative_paths_mean_what_they_meant_to_the_starter(service, tmp_path):
    one = service(log_dir="relative-log", DFTRACER_LOG_FILE="relative-trace")
    done = subprocess.run([PROGRAM, "start", "relative-log"], env=one.env, cwd=tmp_path, check=True, capture_output=True, text=True)
    assert f"'{tmp_path}/relative-trace_" in done.stderr
    one.log_dir = tmp_path / "relative-log"
    one.prefix = tmp_path / "relative-trace"
    one.wait_for_ticks(1)
    one.stop()


def test_a_small_write_buffer_is_fine(service):
    one = service(DFTRACER_WRITE_BUFFER_SIZE=0)
    one.start()
    one.wait_for_ticks(2)
    one.stop()
    one.load()


def test_power_can_be_switched_off_by_variable_and_by_file(service, tmp_path):
    for variables in ({"DFTRACER_DISABLE_VARIORUM_POWER": 1},
                      {"DFTRACER_CONFIGURATION": yaml(tmp_path, "features:\n  variorum:\n    enable: false\n")}):
        one = service(**variables)
        one.start()
        one.stop()
        assert "power" not in json.dumps(one.load().args("end")[0]["used"]["collectors"])


def test_a_warning_is_given_inside_a_slurm_step(service):
    one = service(SLURM_STEP_ID="0")
    assert "warning: started inside Slurm step 0" in one.start().stderr
    one.stop()
    one.env = clean_environment(**{**one.env, "SLURM_STEP_ID": "4294967292", "SLURM_STEP_NAME": "extern"})
    assert "Slurm" not in one.start().stderr
