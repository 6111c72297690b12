# SPDX-License-Identifier: BSD-3-Clause
"""Every rule of script/lint is seen to be red for the fault that it is there for, and green without."""

import subprocess

import pytest
from conftest import ROOT

SPDX = "/* SPDX-License-Identifier: BSD-3-Clause */\n"
SPDX_HASH = "# SPDX-License-Identifier: BSD-3-Clause\n"
CMAKE = SPDX_HASH + "cmake_minimum_required(VERSION 3.22)\nproject(small C)\nadd_library(small src/util/a.c)\n" \
    "target_include_directories(small PRIVATE src)\ntarget_compile_options(small PRIVATE -Wall -Werror)\n"

LONG_FUNCTION = SPDX + "void a_long(void);\n\nvoid a_long(void)\n{{\n{}}}\n"
NESTED = SPDX + """void a_deep(int n)
{
    if (n > 0) {
        while (n > 1) {
            for (;;) {
                if (n > 3) {
%s
                }
            }
        }
    }
}
"""

# rule, file, text that is wrong, line of the fault, text that is right
CASES = [
    ("license", "src/util/a.c", "int a_x;\n", 1, SPDX + "int a_x;\n"),
    ("license", "script/x", "#!/bin/sh\necho\n", 2, "#!/bin/sh\n" + SPDX_HASH),
    ("left-over", "src/util/a.c", SPDX + "/* TO" + "DO: later */\n", 2, SPDX + "/* A todo list is fine. */\n"),
    ("left-over", "tests/house/x.py", SPDX_HASH + "# FIX" + "ME\n", 2, SPDX_HASH),
    ("file-length", "src/util/a.c", SPDX + "\n" * 1000, 1001, SPDX + "\n" * 999),
    ("artefacts", "src/util/a.bin", b"\x7fELF\x02\x01", 1, b"ELF"),
    ("artefacts", "src/util/a.pyc", b"x", 1, None),
    ("artefacts", "tests/x", b"\x7fELF\x02", 1, None),
    ("artefacts", "tests/recorded/huge", b"x" * ((1 << 20) + 1), 1, b"x" * (1 << 20)),
    ("machine-paths", "docs/a.md", "see /ho" + "me/somebody/x\n", 1, "see /home, or $HOME/x, or ${root}/home/x\n"),
    ("machine-paths", "docs/a.md", "a\nsee .." + "/shared/x\n", 2, "a\nsee docs/.." + "/shared/x\n"),
    ("links", "docs/a.md", "[b](b.md)\n", 1, "[a](a.md), [b](https://example.org/b.md), `[c](c.md)`\n"),
    ("links", "docs/a.md", "# One two\n\n[x](#one-three)\n", 3, "# One `two`!\n\n[x](#one-two)\n"),
    ("shell", "script/x", "#!/bin/sh\n" + SPDX_HASH + "echo $1\n", 3, "#!/bin/sh\n" + SPDX_HASH + 'echo "$1"\n'),
    ("python", "tests/x.py", SPDX_HASH + "def f(:\n", 2, SPDX_HASH + "def f():\n    pass\n"),
    ("python", "tests/x.py", SPDX_HASH + "\nimport os\n", 3, SPDX_HASH + "\nimport os\nos.sync()\n"),
    ("license", "src/exporters/a.f90", "end\n", 1, "! SPDX-License-Identifier: BSD-3-Clause\nend\n"),
    ("layers", "src/run/a.c", SPDX + '#include "proxy/node.h"\n', 2, SPDX + '#include "util/buf.h"\n'),
    ("banned", "src/client/a.c", SPDX + "int a = printf(b);\n", 2, SPDX + "int a = snprintf(b, 1, c);\n"),
    ("banned", "src/exporters/mpi/a.c", SPDX + "\nint a = pthread_create(b);\n", 3, SPDX + "int a = pthread_self();\n"),
    ("layers", "src/util/a.c", SPDX + '#include "pfw/file.h"\n', 2, SPDX + '#include "util/buf.h"\n'),
    ("layers", "src/pfw/a.c", SPDX + '#include "service/x.h"\n', 2, SPDX + '#include "util/buf.h"\n'),
    ("layers", "src/client/a.c", SPDX + '#include "util/buf.h"\n', 2, SPDX + '#include "segment/segment.h"\n'),
    ("layers", "src/nowhere/a.c", SPDX, 1, None),
    ("banned", "src/util/a.c", SPDX + "int a = atoi(b);\n", 2, SPDX + "/* atoi(b) */ const char *a = \"atoi(\";\nint my_atoi(int);\n"),
    ("banned", "tests/unit/a.c", SPDX + "int a = sprintf (b, c);\n", 2, SPDX + "int a = snprintf(b, 1, c);\n"),
    ("banned", "src/util/a.c", SPDX + "double a = strtod(b, 0);\n", 2, SPDX + "/* lint: allow strtod: its text is ours */\ndouble a = strtod(b, 0);\n"),
    ("function-length", "src/util/a.c", LONG_FUNCTION.format("    a_long();\n" * 58), 4, LONG_FUNCTION.format("    a_long();\n" * 57)),
    ("nesting", "src/util/a.c", NESTED % "                    do {\n                    } while (n);", 8,
     NESTED % "                    int list[2][2] = {{n, n}, {n, n}};"),
    ("documented", "src/util/a.h", SPDX + "void a_x(int b);\n\nvoid a_y(int b,\n         int c);\n", 4,
     SPDX + "/* Does x and y. */\nvoid a_x(int b);\nvoid a_y(int b,\n         int c);\n\nint a_z(void); /* z */\nvoid a_fini(int *a);\n"),
    ("names", "src/util/a.h", SPDX + "void b_x(void);\n", 2, SPDX + "void a_x(void);\nvoid util_x(void);\n"),
    ("format", "src/util/a.c", SPDX + "int   a;\n", 2, SPDX + "int a;\n"),
    ("clang", "src/util/a.c", SPDX + "static int a;\n", 2, SPDX + "int a;\n"),
    ("headers", "src/util/a.h", SPDX + "size_t a_x(void);\n", 1, SPDX + "#include <stddef.h>\nsize_t a_x(void);\n"),
    ("headers", "include/a.h", SPDX + "typeof(int) a_x(int a);\n", 1, SPDX + "int a_x(int a);\n"),
    ("headers", "include/a.h", SPDX + "int a_x(int new);\n", 1, SPDX + "int a_x(int b);\n"),
    ("headers", "tests/unit/support/a.h", SPDX + "size_t a_x(void);\n", 1, SPDX + "#include <stddef.h>\nsize_t a_x(void);\n"),
    ("tidy", "src/util/a.c", SPDX + "int a(int b);\nint a(int b)\n{\n    return b == b;\n}\n", 5, SPDX + "int a(int b);\nint a(int b)\n{\n    return b;\n}\n"),
]


def lint(checkout, *arguments):
    return checkout.run("/usr/bin/python3", "-B", ROOT / "script/lib/lint", "--root", checkout.root, *arguments)


@pytest.fixture
def project(checkout):
    """As little as clang needs."""
    checkout.copy(".clang-format", ".clang-tidy", "CMakePresets.json")
    checkout.write(".gitignore", "/build/\n")
    checkout.write("CMakeLists.txt", CMAKE)
    checkout.write("src/util/a.c", SPDX + "int a;\n")
    return checkout


@pytest.mark.parametrize("rule,path,wrong,line,right", CASES, ids=[f"{case[0]}-{index}" for index, case in enumerate(CASES)])
def test_rule_is_red_for_its_fault_and_green_without(project, rule, path, wrong, line, right):
    project.write(path, wrong)
    red = lint(project, "--only", rule)
    assert red.returncode == 1, red.stdout + red.stderr
    faults = [text for text in red.stdout.splitlines() if not text.startswith("lint: ")]
    assert all(fault.startswith(f"{rule}: {path}:{line}: ") for fault in faults) and faults, red.stdout + red.stderr

    if right is None:
        (project.root / path).unlink()
    else:
        project.write(path, right)
    green = lint(project, "--only", rule)
    assert green.returncode == 0, green.stdout + green.stderr


def test_every_rule_has_a_case():
    listed = {line.split()[0] for line in lint_list().splitlines()}
    assert listed == {case[0] for case in CASES}


def lint_list():
    return subprocess.run(["/usr/bin/python3", "-B", str(ROOT / "script/lib/lint"), "--list"], check=True,
                          capture_output=True, text=True).stdout


def test_verdict_of_clang_tidy_is_not_kept_for_changed_text(project):
    project.write("src/util/a.c", SPDX + "int a;\n")
    assert lint(project, "--only", "tidy").returncode == 0
    project.write("src/util/a.c", SPDX + "int a(int b);\nint a(int b)\n{\n    return b == b;\n}\n")
    assert lint(project, "--only", "tidy").returncode == 1


def test_chosen_files_are_checked_alone(project):
    project.write("src/util/b.c", "int b;\n")
    assert lint(project, "--only", "license", "src/util/a.c").returncode == 0
    assert lint(project, "--only", "license", "src/util/b.c").returncode == 1


def test_unknown_rule_and_unknown_file_are_refused(project):
    unknown_rule = lint(project, "--only", "banned,nonsense")
    assert unknown_rule.returncode == 2 and "nonsense" in unknown_rule.stderr
    unknown_file = lint(project, "src/util/nowhere.c")
    assert unknown_file.returncode != 0 and "src/util/nowhere.c" in unknown_file.stderr


def test_built_file_may_be_the_input_of_a_fuzz_target(project):
    project.write("tests/fuzz/corpus/binary/static", b"\x7fELF\x02\x01")
    assert lint(project, "--only", "artefacts").returncode == 0
