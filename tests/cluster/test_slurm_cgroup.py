# SPDX-License-Identifier: BSD-3-Clause
"""The service on nodes where Slurm tracks processes by cgroup, as production sites do: a step's processes end with it."""
import pytest
import service
from support.waiting import wait_until


@pytest.fixture
def variables(slurm_cgroup, prefix):
    return service.variables(slurm_cgroup, prefix)


def test_service_started_in_a_step_warns_and_ends_with_the_step(slurm_cgroup, prefix, variables):
    job = {"SLURM_JOB_ID": slurm_cgroup.allocate()}
    body = 'mkdir -p /tmp/logs && "$SERVICE_BIN" start /tmp/logs && sleep 3'
    started = slurm_cgroup.run("srun", "-N4", "-n4", "sh", "-c", body, **variables, **job).ok()

    warnings = [line for line in started.text.splitlines() if "warning: started inside Slurm step" in line]
    assert len(warnings) == 4, started.text
    wait_until(lambda: not any(slurm_cgroup.pids(host, "dftracer_service") for host in slurm_cgroup.hosts),
               "the services end with their step")
    service.load_one_per_host(prefix, slurm_cgroup.hosts, is_ended=False)

    for host in slurm_cgroup.hosts:  # and it is said that it no longer runs
        assert slurm_cgroup.exec(host, variables["SERVICE_BIN"], "stop", "/tmp/logs", **variables).status == 1


def test_background_step_lives_until_it_is_stopped(slurm_cgroup, prefix, variables):
    job = slurm_cgroup.allocate()
    srun = slurm_cgroup.begin("srun", f"--jobid={job}", "--overlap", "-N4", "-n4", variables["SERVICE_BIN"], "run",
                              **variables)
    service.wait_for_ticks(service.one_per_host(prefix, slurm_cgroup.hosts))
    began_us = service.now_us()
    slurm_cgroup.run("srun", f"--jobid={job}", "--overlap", "-N4", "-n4", "sh", "-c", service.APP).ok()
    ended_us = service.now_us()
    slurm_cgroup.cancel("-s", "TERM", f"{job}.0")
    srun.communicate(timeout=30)

    for trace in service.load_one_per_host(prefix, slurm_cgroup.hosts).values():
        assert trace.covers(began_us, ended_us, slack_us=1_000_000)


def test_batch_job_of_the_documentation_leaves_ended_traces(slurm_cgroup, prefix, variables):
    """packaging/slurm/job.sh as it stands."""
    work = prefix.parent
    del variables["SERVICE_BIN"], variables["DFTRACER_ENABLE"]
    job = slurm_cgroup.batch(f"--chdir={work}", f"--output={work}/out", slurm_cgroup.shared / "packaging" / "job.sh",
                             "sh", "-c", service.APP + "exit 7", **variables,
                             PATH=f"{slurm_cgroup.bin}:{slurm_cgroup.env['PATH']}")
    status, said = slurm_cgroup.exit_status(job), (work / "out").read_text()
    assert status == 7, f"the status of the application is the job's: {said}"
    assert "Unable to create step" not in said, said
    for trace in service.load_one_per_host(prefix, slurm_cgroup.hosts).values():
        assert len(trace.stamps) > 10


def test_prolog_and_epilog_give_each_job_a_trace_a_node(slurm_cgroup, prefix):
    install_hooks(slurm_cgroup, prefix.parent / "telemetry")
    for user, group in ("root", "root"), ("nobody", "nogroup"):
        slurm_cgroup.run("setpriv", "--reuid", user, "--regid", group, "--init-groups",
                         "srun", "-N4", "-n4", "sleep", 2).ok()
    jobs = sorted((prefix.parent / "telemetry").iterdir())
    assert [job.owner() for job in jobs] == ["root", "nobody"]
    for job in jobs:
        service.wait_for_ends(service.one_per_host(job / "trace", slurm_cgroup.hosts))
        service.load_one_per_host(job / "trace", slurm_cgroup.hosts)
    wait_until(lambda: not any(slurm_cgroup.pids(host, "dftracer_service") for host in slurm_cgroup.hosts),
               "the services end with their jobs")


def test_prolog_that_cannot_start_the_service_lets_the_job_run(slurm_cgroup, prefix):
    not_a_directory = prefix.parent / "file"
    not_a_directory.write_text("")
    install_hooks(slurm_cgroup, not_a_directory)
    said = slurm_cgroup.run("srun", "-N4", "-n4", "hostname").ok().text
    assert sorted(said.split()) == slurm_cgroup.hosts
    states = slurm_cgroup.run("sinfo", "-h", "-o", "%T").ok().text
    assert "drain" not in states, "a prolog that fails takes the node out of service"


def install_hooks(slurm, telemetry_dir):
    """The site's prolog and epilog: those of packaging/slurm, with the site's settings before them."""
    for hook in "prolog", "epilog":
        script = slurm.shared / "slurm" / hook
        script.write_text(f"""#!/bin/sh
export SERVICE_BIN={slurm.bin}/dftracer_service TELEMETRY_DIR={telemetry_dir} DFTRACER_TRACE_INTERVAL_MS=100
exec {slurm.shared}/packaging/{hook}
""")
        script.chmod(0o755)


@pytest.fixture(autouse=True)
def hooks_of_old(slurm_cgroup):
    yield
    for hook in "prolog", "epilog":
        (slurm_cgroup.shared / "slurm" / hook).write_text("#!/bin/sh\n")
