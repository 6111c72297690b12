# SPDX-License-Identifier: BSD-3-Clause
"""The files that belong to the project, and their text. Rules get one Tree and yield (path, line, what)."""

import functools
import re
import subprocess
from pathlib import Path

C_SUFFIXES = (".c", ".h")


class Tree:
    """All paths are relative to `root`, as text with '/'."""

    def __init__(self, root, only=()):
        self.root = root
        listed = subprocess.run(["git", "ls-files", "-z", "--cached", "--others", "--exclude-standard"],
                                cwd=root, check=True, capture_output=True, text=True).stdout
        paths = sorted(set(path for path in listed.split("\0") if path))
        self.all_files = [path for path in paths if (root / path).is_file() and not (root / path).is_symlink()]
        self.folders = {parent.as_posix() for path in self.all_files for parent in Path(path).parents}
        chosen = {self.relative(path) for path in only}
        unknown = chosen - set(self.all_files)
        if unknown:
            raise SystemExit(f"lint: not a file of the project: {', '.join(sorted(unknown))}")
        self.is_partial = bool(chosen)
        self.files = [path for path in self.all_files if not chosen or path in chosen]

    def relative(self, path):
        path = Path(path)
        return path.resolve().relative_to(self.root).as_posix() if path.is_absolute() else path.as_posix()

    @functools.cache
    def bytes(self, path):
        return (self.root / path).read_bytes()

    @functools.cache
    def text(self, path):
        return self.bytes(path).decode("utf-8", "replace")

    @functools.cache
    def is_text(self, path):
        return b"\0" not in self.bytes(path)[:65536]

    @functools.cache
    def code(self, path):
        """C source without its comments and the insides of its strings; lines stay where they are."""
        return strip_c(self.text(path))

    def under(self, *folders, suffixes=C_SUFFIXES):
        return [path for path in self.files if path.startswith(tuple(f"{folder}/" for folder in folders))
                and path.endswith(suffixes)]

    def c_files(self):
        return self.under("src", "include", "tests", "bench")

    def headers(self):
        return self.under("src", "include", suffixes=(".h",))

    def interpreter(self, path):
        """'bash', 'sh', 'python3', … of a script, else ''."""
        first = self.text(path).split("\n", 1)[0] if self.bytes(path)[:2] == b"#!" else ""
        words = first[2:].split()
        if not words:
            return ""
        name = words[1] if words[0].endswith("/env") and len(words) > 1 else words[0]
        return name.rpartition("/")[2]

    def shell_scripts(self):
        return [path for path in self.files if self.interpreter(path) in ("bash", "sh", "dash") or path.endswith(".sh")]

    def python_files(self):
        return [path for path in self.files if path.endswith(".py") or self.interpreter(path).startswith("python")]

    def is_allowed(self, path, word):
        """True when the file says /* lint: allow WORD: why */ (or the same in a '#' comment)."""
        return re.search(rf"lint: allow {re.escape(word)}: \S", self.text(path)) is not None


def numbered(text):
    return enumerate(text.split("\n"), 1)


_C_TOKEN = re.compile(r'//[^\n]*|/\*.*?\*/|"(?:\\.|[^"\\\n])*"|\'(?:\\.|[^\'\\\n])*\'', re.DOTALL)


def strip_c(text):
    def blank(match):
        token = match.group(0)
        if token[0] in "\"'":
            return token[0] * 2
        return " " + "\n" * token.count("\n")

    return _C_TOKEN.sub(blank, text)
