# SPDX-License-Identifier: BSD-3-Clause
"""Metrics of GPUs that omnistat has written into a CSV file."""
import time

import pytest

HEADER = "timestamp,hostname,device_id,rocm_gpu_utilization,rocm_memory_usage,note\n"


def omnistat(tmp_path, **keys):
    settings = {"enable": "true", "input": tmp_path / "metrics.csv", "format": "csv", "timestamp_column": "timestamp",
                "counters": "[rocm_gpu_utilization, rocm_memory_usage]", "attach_to_trace": "true", **keys}
    path = tmp_path / "conf.yaml"
    path.write_text("features:\n  omnistat:\n" + "".join(f"    {key}: {value}\n" for key, value in settings.items()))
    return {"DFTRACER_CONFIGURATION": path}


def append(tmp_path, text):
    with open(tmp_path / "metrics.csv", "a", encoding="ascii") as file:
        file.write(text)


def test_rows_are_events_beside_the_nodes_own(service, tmp_path):
    append(tmp_path, HEADER + "1710000000,node001,0,85.5,1024,x\n1710000000,node001,1,12,2048,y\n")
    one = service(**omnistat(tmp_path))
    started = one.start()
    assert "conf.yaml" not in started.stderr, "no warning about keys"
    one.wait_for("rocm_gpu_utilization", 2)
    now = time.time()
    append(tmp_path, f"{now:.6f},node001,0,90,1025,z\n")
    one.wait_for("rocm_gpu_utilization", 3)
    append(tmp_path, f"{now + 1:.6f},node001,0,91,1026,z\n")
    one.stop()
    trace = one.so_far()
    assert [args["value"] for args in trace.args("rocm_gpu_utilization")] == [85.5, 12, 90, 91], "the last row, too"
    first = trace.named("rocm_gpu_utilization")[0]
    assert (first["cat"], first["type"], first["ph"], first["ts"]) == ("omnistat", 12, 2, 1710000000000000)
    assert {"source": "omnistat", "metric": "rocm_gpu_utilization", "hostname": "node001", "device_id": "0",
            "original_timestamp": "1710000000"}.items() <= first["args"].items()
    assert [args["value"] for args in trace.args("rocm_memory_usage")] == [1024, 2048, 1025, 1026]
    assert not trace.named("note") and trace.named("memory")
    assert trace.args("end")[0]["num_events"] == len(trace.events)


@pytest.mark.parametrize("make, words", [
    (lambda path: None, "No such file or directory"),
    (lambda path: path.mkdir(), "no regular file"),
    (lambda path: path.write_text("time,x\n1,2\n"), "no column 'timestamp'"),
])
def test_a_file_that_can_not_be_used_is_said_once_and_the_rest_goes_on(service, tmp_path, make, words):
    make(tmp_path / "metrics.csv")
    one = service(**omnistat(tmp_path))
    one.start()
    one.wait_for("memory", 5)
    one.stop()
    assert one.load().is_ended
    assert one.errors().count(words) == 1 and len(one.errors().splitlines()) == 1


def test_another_format_is_refused(service, tmp_path):
    done = service(**omnistat(tmp_path, format="parquet")).call("start")
    assert done.returncode == 1 and "features.omnistat.format: 'parquet'" in done.stderr
