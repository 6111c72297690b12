# SPDX-License-Identifier: BSD-3-Clause
"""Rules about files of any kind: license line, left-overs, paths of one machine, links, scripts."""

import re
import subprocess
from pathlib import PurePosixPath

from tree import numbered

LICENSE_LINE = "SPDX-License-Identifier: BSD-3-Clause"
SOURCE_SUFFIXES = (".c", ".h", ".h.in", ".cpp", ".hpp", ".f", ".f90", ".inc", ".table", ".js", ".ts", ".sql", ".py", ".sh", ".cmake", ".ini",
                   ".yml", ".yaml", ".service", ".service.in", ".supp", ".tcl")
FILE_LINES_MAX = 1000
FILE_BYTES_MAX = 1 << 20
LEFT_OVER = re.compile(r"\b(" + "|".join(("TO" + "DO", "FIX" + "ME", "XX" + "X", "HA" + "CK")) + r")\b")
# Recorded and made-up input may look like anything.
DATA_FOLDERS = ("tests/recorded/", "tests/fuzz/corpus/")


def is_data(path):
    return path.startswith(DATA_FOLDERS) and not path.endswith(".py")


def source_files(tree):
    for path in tree.files:
        name = path.rpartition("/")[2]
        if is_data(path) or not tree.is_text(path):
            continue
        if path.endswith(SOURCE_SUFFIXES) or name == "CMakeLists.txt" or tree.interpreter(path):
            yield path


def license_line(tree):
    """every source file starts with its SPDX line"""
    for path in source_files(tree):
        lines = tree.text(path).split("\n", 2)
        first = 1 if lines[0].startswith("#!") else 0
        if first >= len(lines) or LICENSE_LINE not in lines[first]:
            yield path, first + 1, f"this line must hold '{LICENSE_LINE}'"


def left_over(tree):
    """no work left for later in the source: a known limit is documented, work to do is an issue"""
    for path in source_files(tree):
        for number, line in numbered(tree.text(path)):
            if found := LEFT_OVER.search(line):
                yield path, number, f"'{found.group(0)}': document the limit, or do it"


def file_length(tree):
    """no source file has more than 1,000 lines"""
    for path in source_files(tree):
        lines = tree.text(path).count("\n")
        if lines > FILE_LINES_MAX and not tree.is_allowed(path, "file-length"):
            yield path, lines, f"{lines} lines; at most {FILE_LINES_MAX}: split it by responsibility"


def artefacts(tree):
    """nothing that was built, and nothing huge, is in the repository"""
    for path in tree.files:
        data = tree.bytes(path)
        is_built = data.startswith((b"\x7fELF", b"!<arch>")) or path.endswith((".o", ".so", ".a", ".pyc", ".gcda", ".gcno"))
        if is_built and not is_data(path):
            yield path, 1, "a built file"
        elif len(data) > FILE_BYTES_MAX:
            yield path, 1, f"{len(data)} bytes; at most {FILE_BYTES_MAX}"


def machine_paths(tree):
    """no paths that exist on one machine only"""
    homes = re.compile(r"(?<![\w./*{}$])/(root/(?!\.\.)[\w.]|home/[\w]+)|(?<![\w/])\.\./shared\b")
    checkout = str(tree.root) + "/"
    for path in tree.files:
        if is_data(path) or not tree.is_text(path) or tree.is_allowed(path, "machine-paths"):
            continue
        for number, line in numbered(tree.text(path)):
            found = homes.search(line)
            if found or checkout in line:
                yield path, number, f"'{found.group(0) if found else checkout}' is not on a user's machine"


_LINK = re.compile(r"(?<!!)\[[^\]]*\]\(([^)\s]+)(?:\s+\"[^\"]*\")?\)|!\[[^\]]*\]\(([^)\s]+)\)")
_HEADING = re.compile(r"^#+\s+(.*?)\s*#*$")


def without_code(text):
    """Markdown without fenced blocks and code spans; lines stay where they are."""
    lines, is_fenced = [], False
    for line in text.split("\n"):
        if line.lstrip().startswith("```"):
            is_fenced = not is_fenced
            lines.append("")
        else:
            lines.append("" if is_fenced else re.sub(r"`[^`]*`", "code", line))
    return "\n".join(lines)


def anchors(text):
    """The anchors that a page's headings get on the usual hosts."""
    found = {}
    for line in text.split("\n"):
        if match := _HEADING.match(line):
            words = re.sub(r"\[([^\]]*)\]\([^)]*\)", r"\1", match.group(1)).replace("`", "")
            slug = re.sub(r"[^\w\- ]", "", words.lower()).replace(" ", "-")
            count = found.get(slug, 0)
            found[slug] = count + 1
            yield slug if count == 0 else f"{slug}-{count}"


def links(tree):
    """links in the documentation lead somewhere"""
    exists = set(tree.all_files) | tree.folders
    for path in tree.files:
        if not path.endswith(".md"):
            continue
        for number, line in numbered(without_code(tree.text(path))):
            for match in _LINK.finditer(line):
                target = match.group(1) or match.group(2)
                if re.match(r"[a-z]+:", target):
                    continue
                name, _, anchor = target.partition("#")
                goal = resolve(path, name) if name else path
                if goal not in exists:
                    yield path, number, f"'{target}' leads nowhere"
                elif anchor and goal.endswith(".md") and anchor not in set(anchors(tree.text(goal))):
                    yield path, number, f"'{target}': {goal} has no such heading"


def resolve(page, target):
    parts = []
    for part in (*PurePosixPath(page).parent.parts, *PurePosixPath(target).parts):
        if part == ".." and parts:
            parts.pop()
        elif part not in (".", ""):
            parts.append(part)
    return "/".join(parts) or "."


def shell(tree):
    """shellcheck has nothing to say about the shell scripts"""
    scripts = tree.shell_scripts()
    if not scripts:
        return
    done = subprocess.run(["shellcheck", "-x", "-f", "gcc", *scripts], cwd=tree.root, capture_output=True, text=True)
    for line in done.stdout.splitlines():
        path, number, rest = line.split(":", 2)
        yield path, int(number), rest.partition(": ")[2] or rest
    if done.returncode > 1:
        yield "script", 1, f"shellcheck failed: {done.stderr.strip()}"


def python(tree):
    """pyflakes has nothing to say about the Python files"""
    files = tree.python_files()
    if not files:
        return
    done = subprocess.run(["/usr/bin/python3", "-B", "-m", "pyflakes", *files], cwd=tree.root, capture_output=True, text=True)
    found = [match for line in (done.stdout + done.stderr).splitlines() if (match := re.match(r"(\S+?):(\d+):(?:\d+:)? (.*)", line))]
    for match in found:
        yield match.group(1), int(match.group(2)), match.group(3)
    if done.returncode != 0 and not found:
        yield "script", 1, f"pyflakes failed: {done.stderr.strip()}"


RULES = {
    "license": license_line,
    "left-over": left_over,
    "file-length": file_length,
    "artefacts": artefacts,
    "machine-paths": machine_paths,
    "links": links,
    "shell": shell,
    "python": python,
}
