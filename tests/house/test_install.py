# SPDX-License-Identifier: BSD-3-Clause
"""Installing to a prefix, using what is there, and removing it."""

import os
import re
import shlex
import subprocess
from pathlib import Path

import pytest
from conftest import ROOT

BUILD = ROOT / "build/house"


def run(*command, env=None, status=0):
    done = subprocess.run([str(word) for word in command], cwd=ROOT, capture_output=True, text=True, stdin=subprocess.DEVNULL,
                          env={**os.environ, **(env or {})})
    assert done.returncode == status, done.stdout + done.stderr
    return done


@pytest.fixture(scope="module")
def build():
    run("cmake", "--preset", "release", "-B", BUILD, "-DCICADA_TESTS=OFF", "-DCICADA_BENCH=OFF")
    run("cmake", "--build", BUILD)
    return BUILD


@pytest.fixture(scope="module")
def version():
    return re.search(r"project\(cicada VERSION (\S+)", (ROOT / "CMakeLists.txt").read_text()).group(1)


@pytest.fixture
def installed(build, tmp_path):
    """A prefix with a blank in it and everything, and what the installation said."""
    prefix = tmp_path / "o p t" / "cicada"
    done = run("cmake", "--install", build, "--prefix", prefix)
    yield prefix, done.stdout + done.stderr


def files_under(folder):
    return sorted(str(path.relative_to(folder)) for path in folder.rglob("*") if not path.is_dir())


def test_exports_that_are_printed_make_programs_and_pages_found(installed, version):
    prefix, told = installed
    lines = [line.strip() for line in told.splitlines() if line.strip().startswith("export ")]
    assert [line.partition("=")[0] for line in lines] == [f"export {name}" for name in ("PATH", "MANPATH", "PKG_CONFIG_PATH", "LD_LIBRARY_PATH")]
    exports = "\n".join(lines)
    programs = [path.name for path in (prefix / "bin").iterdir()]
    assert {"cicada", "dftracer_service", "pfw", "proxy_run", "proxy_v2"} <= set(programs)
    for program in programs:
        done = run("bash", "-c", f"{exports}\ncommand -v {program}; {program} --version; man -w {program}", env={"MANPATH": ""})
        where, told_version, page = done.stdout.splitlines()
        assert where == f"{prefix}/bin/{program}"
        assert version in told_version.split()
        assert page.startswith(f"{prefix}/share/man/")


def test_modulefile_that_is_printed_loads_and_unloads(installed, version):
    prefix, told = installed
    commands = [line.strip() for line in told.splitlines() if line.strip().startswith("module ")]
    assert commands == [f'module use "{prefix}/share/modulefiles"', f"module load cicada/{version}"]
    script = "source /usr/share/modules/init/bash\n" + "\n".join(commands) + "\n" + """
command -v pfw; echo "$MANPATH"; pkg-config --variable=bindir cicada; man -w pfw
module unload cicada; command -v pfw || echo gone"""
    for manpath in ("", "/somewhere"):
        lines = run("bash", "-c", script, env={"MANPATH": manpath} if manpath else {}).stdout.splitlines()
        assert lines[0] == f"{prefix}/bin/pfw" and lines[2] == f"{prefix}/bin" and lines[4] == "gone"
        if manpath:
            assert lines[1].startswith(f"{prefix}/share/man:") and lines[1].endswith(":/somewhere")
        assert lines[3].startswith(f"{prefix}/share/man/")


@pytest.mark.parametrize("way", ["pkg-config of the exports", "module", "static"])
def test_program_is_built_with_the_client_library_and_runs(installed, tmp_path, way):
    prefix, told = installed
    program = tmp_path / "program.c"
    program.write_text("""#include <metric_proxy_client.h>
int main(void) { return metric_proxy_counter_inc(0, 1.0) == 0 ? 3 : 0; } /* no metric: leaves no segment behind */
""")
    lines = [line.strip() for line in told.splitlines()]
    exports = "\n".join(line for line in lines if line.startswith("export "))
    module = "source /usr/share/modules/init/bash\n" + "\n".join(line for line in lines if line.startswith("module "))
    library = next(path.parent for path in prefix.rglob("libproxyclient.a"))
    setup, flags = {
        "pkg-config of the exports": (exports, "$(pkg-config --cflags --libs proxyclient)"),
        "module": (module, "-lproxyclient"),
        "static": ("", f"-I{shlex.quote(str(prefix / 'include'))} {shlex.quote(str(library / 'libproxyclient.a'))}"),
    }[way]
    run("bash", "-c", f'{setup}\ncd "{tmp_path}" && eval cc -std=c11 -pedantic -Wall -Werror program.c "{flags}" -o program && ./program')


def test_version_has_one_place(installed, version):
    prefix, _ = installed
    pc = run("pkg-config", "--modversion", "cicada", env={"PKG_CONFIG_PATH": f"{prefix}/lib/pkgconfig:{prefix}/lib64/pkgconfig"})
    assert pc.stdout.strip() == version
    assert [path.name for path in prefix.rglob(f"libproxyclient.so.{version}")] != []
    for page in (prefix / "share/man").rglob("*.[1-8]"):
        titles = [line for line in page.read_text().splitlines() if line.startswith((".TH", ".Os"))]
        assert titles and version in titles[0], page


def test_no_placeholder_and_no_path_of_the_build_is_installed(installed):
    prefix, _ = installed
    for path in prefix.rglob("*"):
        if path.is_dir() or path.parent.name == "bin" or path.name.startswith("lib"):
            continue
        text = path.read_text()
        assert str(ROOT) not in text and not re.search(r"@[a-z]+@", text), path


def test_units_start_the_installed_program(installed):
    prefix, _ = installed
    units = [path for owner in ("system", "user") for path in (prefix / "lib/systemd" / owner).glob("*.service")]
    assert units
    for unit in units:
        starts = [shlex.split(line)[0] for line in re.findall(r"^ExecStart=[-+!@:]*(.*)", unit.read_text(), re.MULTILINE)]
        assert starts and all(start == f"{prefix}/bin/{Path(start).name}" and Path(start).exists() for start in starts), unit


def test_pages_read_without_complaint(installed):
    prefix, _ = installed
    for page in (prefix / "share/man").rglob("*.[1-8]"):
        done = run("man", "--warnings", "-E", "UTF-8", "-l", "-Tutf8", page, env={"LC_ALL": "C.UTF-8", "MANROFFSEQ": "", "MANWIDTH": "80"})
        assert done.stderr == "", f"{page}: {done.stderr}"


def test_uninstall_leaves_nothing(build, installed):
    prefix, _ = installed
    assert files_under(prefix)
    run("cmake", "--build", build, "--target", "uninstall")
    assert not prefix.exists() and prefix.parent.exists()


def test_uninstall_keeps_what_others_put_there(build, installed):
    prefix, _ = installed
    (prefix / "share/modulefiles/other").mkdir()
    (prefix / "share/modulefiles/other/1.0").write_text("#%Module\n")
    (prefix / "bin/other").write_text("")
    run("cmake", "--build", build, "--target", "uninstall")
    assert files_under(prefix) == ["bin/other", "share/modulefiles/other/1.0"]


def test_uninstall_without_installation_says_so(build):
    (build / "install_manifest.txt").unlink(missing_ok=True)
    done = subprocess.run(["cmake", "--build", build, "--target", "uninstall"], capture_output=True, text=True)
    assert done.returncode != 0 and "Nothing has been installed" in done.stdout + done.stderr


def test_destdir_stages_files_that_name_the_real_prefix(build, tmp_path):
    stage = tmp_path / "stage"
    env = {"DESTDIR": str(stage)}
    run("cmake", "--install", build, "--prefix", "/opt/cicada", env=env)
    assert "opt/cicada/bin/pfw" in files_under(stage)
    modulefile = next((stage / "opt/cicada/share/modulefiles/cicada").iterdir()).read_text()
    assert '"/opt/cicada/bin"' in modulefile and str(stage) not in modulefile
    run("cmake", "--build", build, "--target", "uninstall", env=env)
    assert files_under(stage) == []


def test_source_folder_is_no_build_folder(tmp_path):
    subprocess.run(f"git -C '{ROOT}' ls-files -z | tar -C '{ROOT}' --null -T - -c | tar -x -C '{tmp_path}'", shell=True, check=True)
    done = subprocess.run(["cmake", "."], cwd=tmp_path, capture_output=True, text=True)
    assert done.returncode != 0 and "Build in a folder of its own" in done.stderr


def test_build_without_preset_is_optimised(tmp_path):
    run("cmake", "-S", ROOT, "-B", tmp_path / "build", "-DCICADA_TESTS=OFF", "-DCICADA_BENCH=OFF")
    assert "CMAKE_BUILD_TYPE:STRING=RelWithDebInfo" in (tmp_path / "build/CMakeCache.txt").read_text()


def test_build_without_an_optional_package_says_what_it_lacks(tmp_path):
    done = run("cmake", "--preset", "release", "-B", tmp_path / "build", "-DCICADA_WITH_CMOCKA=OFF")
    assert "Without cmocka this build lacks the unit tests (switched off by CICADA_WITH_CMOCKA=OFF)." in done.stdout


def test_include_of_a_higher_layer_does_not_build(tmp_path):
    for folder in ("util", "pfw"):
        (tmp_path / "src" / folder).mkdir(parents=True)
        (tmp_path / "src" / folder / "a.h").write_text("")
    (tmp_path / "src/util/a.c").write_text('#include "pfw/a.h"\nint a;\n')
    (tmp_path / "src/util/CMakeLists.txt").write_text("cicada_library(util SOURCES a.c)\n")
    (tmp_path / "CMakeLists.txt").write_text(f'cmake_minimum_required(VERSION 3.22)\nproject(small C)\nset(CICADA_SANITIZE "")\ninclude("{ROOT}/cmake/CicadaBuild.cmake")\n'
                                             "add_subdirectory(src/util)\n")
    run("cmake", "-G", "Ninja", "-B", tmp_path / "build", "-S", tmp_path)
    done = subprocess.run(["cmake", "--build", tmp_path / "build"], capture_output=True, text=True)
    assert done.returncode != 0 and "pfw/a.h: No such file" in done.stdout
