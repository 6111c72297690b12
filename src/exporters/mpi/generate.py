#!/usr/bin/python3
# SPDX-License-Identifier: BSD-3-Clause
"""Writes the wrappers of an MPI's functions, from its mpi.h and sizes.table.

  generate.py --mpicc WORDS --output DIR [--allow-unknown]

Makes wrappers.c and constants.h in DIR. A function that sizes.table doesn't name is an error, so that no MPI is
miscounted in silence; with --allow-unknown its calls and their time are counted, and its name is printed.
"""
import argparse
import re
import shlex
import sys
from pathlib import Path

sys.dont_write_bytecode = True
sys.path.insert(0, str(Path(__file__).resolve().parent))

import header  # noqa: E402

TABLE = Path(__file__).resolve().parent / "sizes.table"
SPDX = "/* SPDX-License-Identifier: BSD-3-Clause */\n"
MODULES = ("caller", "calls", "completion", "library", "sizes", "ticks")
MADE = "/* Made by generate.py from mpi.h and sizes.table: change those. */\n"


# The table

def read_table(text):
    """{function: [action, …]}; each action is a list of words, arguments of a rule as one text."""
    rows = []
    for line in text.splitlines():
        if not line.strip() or line.startswith("#"):
            continue
        if line.startswith(" "):
            rows[-1] += line
        else:
            rows.append(line)
    table = {}
    for row in rows:
        names, separator, actions = row.partition(":")
        if not separator:
            raise SystemExit(f"sizes.table: no ':' in '{row}'")
        for name in names.split():
            if name in table:
                raise SystemExit(f"sizes.table: {name} has two rows")
            table[name] = [parse_action(action) for action in re.split(r",(?![^(]*\))", actions)]
    return table


def parse_action(text):
    rule = re.fullmatch(r"\s*(moves)\s+(\w+)\((.*)\)\s*", text)
    return list(rule.groups()) if rule else text.split()


def actions_of(table, function):
    """The actions for MPI_Send, or for MPI_Send_c by the row of Send; None when there is no row."""
    name = function.name.removeprefix("MPI_")
    if name in table:
        return table[name]
    return table.get(name.removesuffix("_c"))


# The wrappers

class Wrapper:
    """The text of one function's wrappers. Their own variables begin with own, lest they be the header's parameters."""

    def __init__(self, function, number, actions):
        self.function, self.number = function, number
        self.actions = {action[0]: action[1:] for action in actions}
        self.rules = [action[1:] for action in actions if action[0] == "moves"]
        self.arguments = function.arguments()
        self.name = function.name
        self.own = f"    struct calls_function *own = &wrappers_functions[{number}];"

    def text(self):
        entries = [self.entry("MPI", "caller_is_library(own_site) ||\n"
                                     "        (calls_running != NULL && caller_is_component(own_site))")]
        # Bindings convert handles by these all the time; nobody means a call of MPI by them.
        if not re.search(r"_([cf]2f|f2c|[cf]2f08|f082[cf])$", self.name):
            entries.append(self.entry("PMPI", "caller_is_library(own_site) || calls_running == own ||\n"
                                              "        !caller_is_binding(own_site, own->key)"))
        return "\n".join([self.next_type(), self.measured(), *entries])

    def next_type(self):
        return f"typedef {self.function.result} next_{self.name}({self.function.declarations()});\n"

    def measured(self):
        """Calls, times and counts."""
        head = [f"static {self.function.result} measured_{self.name}({self.parameters_with_next()})", "{"]
        if "aborts" in self.actions:
            return "\n".join([*head, self.own, "    calls_count(own, 0, 0, 0); /* now, for it doesn't return */",
                              f"    return {self.call()};", "}", ""])
        lines = [*head,
                 self.own,
                 "    struct sizes own_moved = {0};",
                 *self.before(),
                 "    const struct calls_function *own_outer = calls_running;",
                 "    calls_running = own;",
                 "    uint64_t own_start = ticks_now();",
                 f"    {self.function.result} own_result = {self.call()};",
                 "    uint64_t own_end = ticks_now();",
                 "    calls_running = own_outer;",
                 *self.after(),
                 "    calls_count(own, ticks_to_ns(own_start, own_end), own_moved.in, own_moved.out);",
                 *(["    calls_end_use();"] if "ends" in self.actions else []),
                 "    return own_result;",
                 "}",
                 ""]
        return "\n".join(lines)

    def entry(self, prefix, is_not_counted):
        """What the program calls. When its MPI is another one than ours, the call must pass through as it came: so its
        parameters are machine words here, whether an MPI's handles are numbers or addresses."""
        name = self.name if prefix == "MPI" else "P" + self.name
        result, declarations, measured = self.function.result, "void", ["own_next"]
        next_type, symbol, cast = f"next_{self.name}", "", ""
        if not self.has_real_number():
            result, next_type, cast = "uintptr_t", f"words_{len(self.arguments)}", "(uintptr_t)"
            declarations = ", ".join(f"uintptr_t {argument}" for argument in self.arguments) or "void"
            measured = [f"(next_{self.name} *)own_next", *(f"({parameter.full_type}){parameter.name}"
                                                           for parameter in self.function.parameters)]
            symbol = f" __asm__(\"{name}\")"
            name = f"words_{name}"
        arguments = ", ".join(self.arguments)
        return "\n".join([
            *([f"WRAPPER {result} {name}({declarations}){symbol};"] if symbol else []),
            f"WRAPPER {result} {name}({declarations})",
            "{",
            self.own,
            "    const void *own_site = __builtin_return_address(0);",
            f"    void *own_next = library_next(own, CALLS_{prefix});",
            f"    if ({is_not_counted})",
            f"        return (({next_type} *)own_next)({arguments});",
            "    if (library_is_foreign) {",
            "        const struct calls_function *own_outer = calls_running;",
            "        calls_running = own;",
            f"        {result} own_result = (({next_type} *)library_next(own, CALLS_OTHER))({arguments});",
            "        calls_running = own_outer;",
            "        return own_result;",
            "    }",
            f"    return {cast}measured_{self.name}({', '.join(measured)});",
            "}",
            ""])

    def has_real_number(self):
        """Floating point is passed in other registers. Only MPI's clocks return it, and they take nothing."""
        types = [self.function.result, *(parameter.full_type for parameter in self.function.parameters)]
        return any(re.search(r"\b(double|float)$", type_text) for type_text in types)

    def parameters_with_next(self):
        own = self.function.declarations()
        return f"next_{self.name} *own_next" + ("" if own == "void" else f", {own}")

    def call(self):
        if "through" in self.actions:
            return f"{self.actions['through'][0]}({', '.join(['own_next', *self.arguments])})"
        return f"own_next({', '.join('own_status_used' if self.is_status(name) else name for name in self.arguments)})"

    def is_status(self, name):
        status = self.status()
        return status is not None and status.name == name

    def status(self):
        """The parameter by which we learn what has moved, if there is one."""
        needs_status = self.actions.keys() & {"received", "read", "written"}
        return self.must("MPI_Status") if needs_status else None

    def must(self, type_name):
        parameter = self.function.only(type_name)
        if parameter is None:
            raise SystemExit(f"{self.name}: sizes.table needs its one parameter of type {type_name} *, but the header has "
                             f"({self.function.declarations()})")
        return parameter

    def before(self):
        lines = []
        status = self.status()
        if status is not None:
            lines += ["    MPI_Status own_status;",
                      f"    MPI_Status *own_status_used = {status.name} != MPI_STATUS_IGNORE ? {status.name} : &own_status;"]
        if "begins" in self.actions:
            lines += ["    calls_begin_use();"]
        return lines

    def after(self):
        inner = [*self.after_rule(), *self.after_status(), *self.after_request()]
        if not inner:
            return []
        return ["    if (own_result == MPI_SUCCESS) {", *(f"        {line}" for line in inner), "    }"]

    def after_rule(self):
        return [f"sizes_{rule}({', '.join(['&own_moved', *map(self.argument, arguments.split(','))])});"
                for rule, arguments in self.rules]

    def argument(self, text):
        """$3: the third parameter; an array of counts goes with its width."""
        parameter = self.function.parameters[int(text.strip().removeprefix("$")) - 1]
        is_counts = re.fullmatch(r"(const )?(int|MPI_Count) ?\*?", parameter.type) and \
            (parameter.is_array or parameter.type.endswith("*"))
        return f"SIZES_COUNTS({parameter.name})" if is_counts else parameter.name

    def after_status(self):
        lines = []
        if self.actions.keys() & {"received", "read"}:
            lines.append("own_moved.in += sizes_of_status(own_status_used);")
        if "written" in self.actions:
            lines.append("own_moved.out += sizes_of_status(own_status_used);")
        return lines

    def after_request(self):
        kinds = {"receives": "REQUESTS_RECEIVE", "reads": "REQUESTS_READ", "writes": "REQUESTS_WRITE"}
        found = [action for action in kinds if action in self.actions]
        is_persistent = re.search(r"_init(_c)?$", self.name) is not None
        if is_persistent and (found or self.rules):
            kind = kinds[found[0]] if found else "REQUESTS_NOTHING"
            return [f"completion_follow_persistent(own, *{self.must('MPI_Request').name}, {kind}, own_moved);",
                    "own_moved = (struct sizes){0}; /* until it is started */"]
        if not found:
            return []
        condition = "".join(f"if ({self.argument(word)} != MPI_PROC_NULL)\n            " for word in self.actions[found[0]])
        return [f"{condition}completion_follow(own, *{self.must('MPI_Request').name}, {kinds[found[0]]});"]


def wrappers_text(wrappers):
    rows = [f'    {{.name = "{wrapper.name}", .key = "{wrapper.function.key}"}},' for wrapper in wrappers]
    return "\n".join([
        SPDX + MADE,
        '#include <mpi.h>', '#include <stdint.h>\n',
        *(f'#include "exporters/mpi/{module}.h"' for module in MODULES), "",
        '#define WRAPPER __attribute__((visibility("default")))\n',
        '_Static_assert(sizeof(uintptr_t) == sizeof(MPI_Count), "an integer or a pointer takes one machine word");\n',
        *(f"typedef uintptr_t words_{count}({', '.join(['uintptr_t'] * count) or 'void'});"
          for count in sorted({len(wrapper.arguments) for wrapper in wrappers})), "",
        f"static struct calls_function wrappers_functions[{len(wrappers)}] = {{", *rows, "};\n",
        *(wrapper.text() for wrapper in wrappers),
        FORTRAN_CLOCKS])


# Functions whose bindings jump to PMPI instead of calling it, so that the place of the call is the program's.
FORTRAN_CLOCKS = "\n".join(
    f"WRAPPER double {symbol}(void);\nWRAPPER double {symbol}(void)\n{{\n    return {function}();\n}}\n"
    for function in ("MPI_Wtime", "MPI_Wtick")
    for symbol in (function.lower(), function.lower() + "_", function.lower() + "__", function.upper(),
                   function.lower() + "_f08_"))


def constants_text(symbols):
    is_open_mpi = any((symbol or "").startswith("ompi_") for symbol in symbols.values())
    lines = [SPDX + MADE, "#ifndef CONSTANTS_H", "#define CONSTANTS_H", "",
             f"#define LIBRARY_IS_OPEN_MPI {int(is_open_mpi)}"]
    for name, type_name in header.CONSTANTS.items():
        symbol = symbols[name]
        value = f'(({type_name})symbols_variable("{symbol}"))' if symbol else name
        lines.append(f"#define LIBRARY_{name.removeprefix('MPI_')} {value}")
    return "\n".join([*lines, "", "#endif", ""])


def main(argv):
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("--mpicc", required=True, help="the MPI's compiler, with options if it needs some")
    parser.add_argument("--output", type=Path, required=True, metavar="DIR")
    parser.add_argument("--allow-unknown", action="store_true", help="count hits and time of functions without a row")
    options = parser.parse_args(argv)

    table = read_table(TABLE.read_text())
    found = header.read(shlex.split(options.mpicc))
    unknown = [function.name for function in found.functions if actions_of(table, function) is None]
    if unknown and not options.allow_unknown:
        raise SystemExit(f"sizes.table has no row for what {options.mpicc} declares: {' '.join(unknown)}")
    for name in unknown:
        print(f"{name}: not in sizes.table; its calls and their time are counted, not its bytes")

    wrappers = []
    for function in found.functions:
        actions = actions_of(table, function) or [["nothing"]]
        if actions != [["untouched"]]:
            wrappers.append(Wrapper(function, len(wrappers), actions))
    options.output.mkdir(parents=True, exist_ok=True)
    (options.output / "wrappers.c").write_text(wrappers_text(wrappers))
    (options.output / "constants.h").write_text(constants_text(found.symbols))
    return 0


if __name__ == "__main__":
    sys.exit(main(sys.argv[1:]))
