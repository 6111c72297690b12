# SPDX-License-Identifier: BSD-3-Clause
"""Rules that compilers and their tools check. They build with clang in build/clang."""

import hashlib
import json
import os
import re
import subprocess
from concurrent.futures import ThreadPoolExecutor

JOBS = os.cpu_count() or 2
DIAGNOSTIC = re.compile(r"^(?P<path>[^:\s][^:]*):(?P<line>\d+):\d+: (?:fatal )?(?:error|warning): (?P<what>.*)$")


def run(tree, command):
    return subprocess.run(command, cwd=tree.root, capture_output=True, text=True, stdin=subprocess.DEVNULL)


def diagnostics(tree, output):
    """Faults of compilers' output, for files of the project."""
    for line in output.splitlines():
        if match := DIAGNOSTIC.match(line):
            yield shown_path(tree, match["path"]), int(match["line"]), match["what"]


def shown_path(tree, path):
    """As in the repository, also when the compiler saw the file through a link or from its build folder."""
    if path in tree.all_files:
        return path
    return os.path.relpath(os.path.realpath(tree.root / "build" / "clang" / path), tree.root)


PACKAGES = ("libuv", "yaml-0.1", "zlib", "libdeflate", "libmd", "jansson", "libmicrohttpd", "libcurl", "libcrypto", "cmocka", "ompi-c")
OWN_LANGUAGE = ("gcc", "-x", "c", "-std=gnu17", "-D_GNU_SOURCE")
# What users include is read by their compilers, with their options.
USERS_LANGUAGES = (("gcc", "-x", "c", "-std=c99", "-pedantic"), ("gcc", "-x", "c", "-std=c17", "-pedantic"),
                   ("clang", "-x", "c++", "-std=c++11", "-pedantic", "-Wno-pragma-once-outside-header"))


def headers_alone(tree):
    """every header compiles alone; installed ones as strict C99, C17 and C++11, too"""
    flags = run(tree, ["pkg-config", "--cflags", *PACKAGES]).stdout.split()
    generated = tree.root / "build" / "clang" / "layers" / "generated"
    includes = ["-Isrc", "-Iinclude", "-Itests", "-Itests/unit", f"-I{generated}", *flags]

    def check(path):
        languages = (OWN_LANGUAGE, *USERS_LANGUAGES) if path.startswith("include/") else (OWN_LANGUAGE,)
        for language in languages:
            done = run(tree, [*language, "-fsyntax-only", "-Wall", "-Wextra", "-Werror", *includes, path])
            if done.returncode != 0:
                yield path, 1, f"does not compile alone ({' '.join(language[2:4])}): {done.stderr.strip().splitlines()[0]}"

    with ThreadPoolExecutor(JOBS) as pool:
        for faults in pool.map(lambda path: list(check(path)), (*tree.headers(), *tree.under("tests", "bench", suffixes=(".h",)))):
            yield from faults


def formatting(tree):
    """clang-format would change nothing"""
    files = tree.c_files()
    if not files:
        return
    done = run(tree, ["clang-format", "--dry-run", "-Werror", *files])
    seen = set()
    for path, line, _ in diagnostics(tree, done.stderr):
        if path not in seen:
            seen.add(path)
            yield path, line, f"not formatted: clang-format -i {path}"
    if done.returncode != 0 and not seen:
        yield ".clang-format", 1, done.stderr.strip()


def clang_build(tree):
    """everything compiles with clang, too, without a warning"""
    done = configure(tree)
    if done.returncode != 0:
        yield "CMakeLists.txt", 1, f"cmake --preset clang: {last_line(done.stderr)}"
        return
    done = run(tree, ["cmake", "--build", "build/clang", "--", "-k", "0"])
    found = list(diagnostics(tree, done.stdout))
    yield from found
    if done.returncode != 0 and not found:
        yield "CMakeLists.txt", 1, f"the build with clang failed: {last_line(done.stdout)}"


def configure(tree):
    return run(tree, ["cmake", "--preset", "clang"])


def last_line(text):
    return (text.strip().splitlines() or [""])[-1]


def tidy(tree):
    """clang-tidy has nothing to say; .clang-tidy lists its checks"""
    done = configure(tree)
    if done.returncode != 0:
        yield "CMakeLists.txt", 1, f"cmake --preset clang: {last_line(done.stderr)}"
        return
    # A file that several programs share has several commands, and clang-tidy would check it once for each.
    entries = {shown_path(tree, entry["file"]): entry
               for entry in json.loads((tree.root / "build/clang/compile_commands.json").read_text())}
    commands = {path: entry["command"] for path, entry in entries.items()}
    database = tree.root / "build" / "lint-commands"
    database.mkdir(parents=True, exist_ok=True)
    (database / "compile_commands.json").write_text(json.dumps(list(entries.values())))
    # A file's verdict holds until it, a header, the checks or its command change.
    common = hashlib.sha256()
    for path in tree.all_files:
        if path.endswith((".h", ".h.in", ".clang-tidy")):
            common.update(tree.bytes(path))
    verdicts = tree.root / "build" / "lint-verdicts"
    verdicts.mkdir(parents=True, exist_ok=True)

    def check(path):
        key = hashlib.sha256(common.digest() + commands[path].encode() + tree.bytes(path)).hexdigest()
        if (verdicts / key).exists():
            return []
        checked = run(tree, ["clang-tidy", "--quiet", "-p", "build/lint-commands", path])
        found = list(diagnostics(tree, checked.stdout))
        if checked.returncode != 0 and not found:
            found = [(path, 1, f"clang-tidy failed: {last_line(checked.stderr)}")]
        if not found:
            (verdicts / key).touch()
        return found

    with ThreadPoolExecutor(JOBS) as pool:
        for faults in pool.map(check, [path for path in tree.files if path in commands]):
            yield from faults


RULES = {
    "format": formatting,
    "clang": clang_build,
    "headers": headers_alone,
    "tidy": tidy,
}
