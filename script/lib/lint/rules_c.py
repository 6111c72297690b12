# SPDX-License-Identifier: BSD-3-Clause
"""Rules about C that need no compiler: layers, banned calls, lengths, names and contracts of functions."""

import json
import re
import subprocess

from tree import numbered

FUNCTION_LINES_MAX = 60
NESTING_MAX = 4

# Lower folders first. A folder may include those before it, unless MAY_INCLUDE says which.
LAYERS = ("util", "segment", "metric", "sample", "pfw", "store", "ftio", "tree", "net", "proxy", "service", "client",
          "exporters", "run", "cli")
MAY_INCLUDE = {
    "util": (),
    "segment": (),
    "tree": ("util", "metric"),
    "service": ("util", "sample", "pfw", "net"),
    "client": ("segment",),
    "exporters": ("segment",),
    "run": ("util", "segment", "metric", "net"),
}

# What may not be called, where, and what to do instead. "product" is src/ and include/; "inside" is what runs in
# other people's programs.
EVERYWHERE, PRODUCT, INSIDE = "everywhere", "product", "inside"
INSIDE_FOLDERS = ("src/client/", "src/exporters/", "src/segment/")
BANNED = {
    "strcpy": (EVERYWHERE, "no bound: use buf_text() or memcpy() with a checked length"),
    "stpcpy": (EVERYWHERE, "no bound: use buf_text()"),
    "strcat": (EVERYWHERE, "no bound: use buf_text()"),
    "strncpy": (EVERYWHERE, "may leave no NUL: use memcpy() with a checked length"),
    "strncat": (EVERYWHERE, "easily off by one: use buf_bytes()"),
    "sprintf": (EVERYWHERE, "no bound: use snprintf() or buf_printf()"),
    "vsprintf": (EVERYWHERE, "no bound: use vsnprintf()"),
    "gets": (EVERYWHERE, "no bound: use fgets()"),
    "strtok": (EVERYWHERE, "hidden state: use a cursor"),
    "strtok_r": (EVERYWHERE, "changes its input: use a cursor"),
    "sscanf": (EVERYWHERE, "overflows silently: use a cursor"),
    "scanf": (EVERYWHERE, "overflows silently: use a cursor"),
    "fscanf": (EVERYWHERE, "overflows silently: use a cursor"),
    "atoi": (EVERYWHERE, "tells no error: use cursor_i64()"),
    "atol": (EVERYWHERE, "tells no error: use cursor_i64()"),
    "atoll": (EVERYWHERE, "tells no error: use cursor_i64()"),
    "atof": (EVERYWHERE, "tells no error, depends on the locale: use cursor_double()"),
    "strtol": (PRODUCT, "accepts blanks and rubbish: use cursor_i64()"),
    "strtoll": (PRODUCT, "accepts blanks and rubbish: use cursor_i64()"),
    "strtoul": (PRODUCT, "takes -1 for a large number: use cursor_u64()"),
    "strtoull": (PRODUCT, "takes -1 for a large number: use cursor_u64()"),
    "strtod": (PRODUCT, "depends on the locale: use cursor_double()"),
    "strtof": (PRODUCT, "depends on the locale: use cursor_double()"),
    "alloca": (EVERYWHERE, "an overflow that no check finds: use a bounded array or malloc()"),
    "mktemp": (EVERYWHERE, "a race: use mkstemp() or file_…"),
    "tmpnam": (EVERYWHERE, "a race: use mkstemp() or file_…"),
    "tempnam": (EVERYWHERE, "a race: use mkstemp() or file_…"),
    "strerror": (PRODUCT, "not safe with threads: use error_errno() or strerror_r()"),
    "localtime": (PRODUCT, "not safe with threads: use localtime_r()"),
    "gmtime": (PRODUCT, "not safe with threads: use gmtime_r()"),
    "ctime": (PRODUCT, "not safe with threads, no bound: use strftime()"),
    "asctime": (PRODUCT, "not safe with threads, no bound: use strftime()"),
    "setlocale": (PRODUCT, "numbers and texts don't depend on the locale"),
    "system": (PRODUCT, "a shell between us and the program: use posix_spawn()"),
    "popen": (PRODUCT, "a shell between us and the program: use posix_spawn()"),
    "signal": (PRODUCT, "differs between systems: use sigaction()"),
    "exit": (INSIDE, "the program's life is its own: give up counting"),
    "_exit": (INSIDE, "the program's life is its own: give up counting"),
    "abort": (INSIDE, "the program's life is its own: give up counting"),
    "assert": (INSIDE, "the program's life is its own: give up counting"),
    "pthread_create": (INSIDE, "no thread of ours in a program: do it in its calls, or in the proxy"),
    "sigaction": (INSIDE, "signals belong to the program"),
    "setenv": (INSIDE, "not safe in a program with threads"),
    "printf": (INSIDE, "a program's output is its own"),
    "fprintf": (INSIDE, "a program's output is its own"),
    "puts": (INSIDE, "a program's output is its own"),
    "fputs": (INSIDE, "a program's output is its own"),
    "perror": (INSIDE, "a program's output is its own"),
    "rand": (EVERYWHERE, "hidden state: use getrandom(), or a generator with a printed seed"),
}

_INCLUDE = re.compile(r'^\s*#\s*include\s+"([^"/]+)/[^"]+"')
_CALL = re.compile(r"(?<![\w.>])(" + "|".join(map(re.escape, BANNED)) + r")\s*\(")


def layers(tree):
    """includes point from higher folders to lower ones only"""
    for path in tree.under("src"):
        parts = path.split("/")
        folder = parts[1] if len(parts) > 2 else ""
        if folder not in LAYERS:
            yield path, 1, f"folder '{folder}' has no place in the table of layers ({__name__}.py)"
            continue
        may = MAY_INCLUDE.get(folder, LAYERS[: LAYERS.index(folder)])
        for number, line in numbered(tree.text(path)):
            match = _INCLUDE.match(line)
            if match and match.group(1) in LAYERS and match.group(1) != folder and match.group(1) not in may:
                yield path, number, f"{folder} may not include {match.group(1)}; it may include: {', '.join(may) or 'nobody'}"


def banned(tree):
    """no calls that are easily wrong; script/lib/lint/rules_c.py lists them with reasons"""
    for path in tree.c_files():
        places = {EVERYWHERE}
        if path.startswith(("src/", "include/")):
            places.add(PRODUCT)
        if path.startswith(INSIDE_FOLDERS):
            places.add(INSIDE)
        for number, line in numbered(tree.code(path)):
            for match in _CALL.finditer(line):
                name = match.group(1)
                where, why = BANNED[name]
                if where in places and not tree.is_allowed(path, name):
                    yield path, number, f"{name}(): {why}"


def tags(tree, paths, kinds):
    """What ctags finds: dictionaries with path, name, line, end, kind."""
    if not paths:
        return []
    done = subprocess.run(
        ["ctags", "--options=NONE", "--output-format=json", "--language-force=C", f"--kinds-C={kinds}", "--fields=NFneK",
         "-D", "MUST_CHECK=", "-D", "PRINTF_LIKE(a,b)=", "-D", "CLEANUP(a)=", "-D", "DEFINE_CLEANUP(a,b)=struct a",
         "-D", "_Static_assert(a,b)=", "-D", "static_assert(a,b)=", "-f", "-", "-L", "-"],
        cwd=tree.root, input="\n".join(paths), check=True, capture_output=True, text=True)
    return [json.loads(line) for line in done.stdout.splitlines()]


def function_length(tree):
    """no function has more than 60 lines"""
    for tag in tags(tree, tree.c_files(), "f"):
        lines = tag.get("end", tag["line"]) - tag["line"] + 1
        if lines > FUNCTION_LINES_MAX:
            yield tag["path"], tag["line"], f"{tag['name']}() has {lines} lines; at most {FUNCTION_LINES_MAX}"


def is_block(text, brace):
    """True when the brace at this place opens a block, false for a list of values."""
    before = text[:brace].rstrip()
    return before == "" or before[-1] in ");{}:" or re.search(r"\b(else|do)$", before) is not None


def nesting(tree):
    """no block stands more than 4 blocks deep in its function"""
    for tag in tags(tree, tree.c_files(), "f"):
        lines = tree.code(tag["path"]).split("\n")[tag["line"] - 1 : tag.get("end", tag["line"])]
        text = "\n".join(lines)
        blocks = []  # of the open braces: True for a block, False for a list of values
        for match in re.finditer(r"[{}]", text):
            if match.group(0) == "}":
                blocks = blocks[:-1]
                continue
            is_in_list = blocks and not blocks[-1]
            blocks.append(is_block(text, match.start()) and not is_in_list)
            depth = sum(blocks) - 1
            if depth > NESTING_MAX:
                line = tag["line"] + text.count("\n", 0, match.start())
                yield tag["path"], line, f"{tag['name']}() is nested {depth} deep; at most {NESTING_MAX}"
                break


def is_cleanup(name):
    """x_cleanup() only wraps a destructor for CLEANUP(); cleanup.h says what they are."""
    return name.endswith("_cleanup")


def is_destructor(name):
    """What destructors do is the same everywhere: docs/style.md says it."""
    return name.endswith(("_free", "_fini")) or is_cleanup(name)


def documented(tree):
    """every function of a header has a comment: above it, behind it, or above the block of lines that it stands in"""
    for path in tree.headers():
        lines = tree.text(path).split("\n")
        comments = comment_lines(lines)
        for tag in tags(tree, [path], "pf"):
            if is_destructor(tag["name"]):
                continue
            first, last = tag["line"] - 1, tag.get("end", tag["line"]) - 1
            while first > 0 and lines[first].strip() != "" and first not in comments:
                first -= 1
            is_behind = any("/*" in line for line in lines[tag["line"] - 1 : last + 1])
            if first not in comments and not is_behind:
                yield path, tag["line"], f"{tag['name']}() has no contract: say what it does, who owns what, how it fails"


def comment_lines(lines):
    """Indices of the lines that are whole lines of comment."""
    found, is_inside = set(), False
    for index, line in enumerate(lines):
        text = line.strip()
        if is_inside or text.startswith("/*"):
            found.add(index)
            is_inside = "*/" not in text
    return found


def names(tree):
    """functions of src/x/y.h start with y_ or x_"""
    for path in tree.under("src", suffixes=(".h",)):
        parts = path[: -len(".h")].split("/")
        module, folder = parts[-1], parts[1]
        for tag in tags(tree, [path], "pf"):
            if not tag["name"].startswith((f"{module}_", f"{folder}_")) and not is_cleanup(tag["name"]):
                yield path, tag["line"], f"{tag['name']}() must start with '{module}_' or '{folder}_'"


RULES = {
    "layers": layers,
    "banned": banned,
    "function-length": function_length,
    "nesting": nesting,
    "documented": documented,
    "names": names,
}
