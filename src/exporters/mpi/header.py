# SPDX-License-Identifier: BSD-3-Clause
"""header: which functions an MPI's mpi.h declares, read from what its compiler makes of it."""
import re
import subprocess

# Values that are addresses in some MPIs. The exporter is not linked with an MPI, so it must look such symbols up.
CONSTANTS = {"MPI_BYTE": "MPI_Datatype", "MPI_NO_OP": "MPI_Op", "MPI_COMM_WORLD": "MPI_Comm"}
PROTOTYPE = re.compile(r"\s*(?:extern\s+)?([A-Za-z_][\w\s]*[\s*]+)(P?MPI_[A-Z]\w*)\s*\((.*)\)\s*", re.S)
SOURCE = "#include <mpi.h>\n" + "".join(f"cicada_constant_{name} {name};\n" for name in CONSTANTS)


class Parameter:
    def __init__(self, text, position):
        text = " ".join(text.split())
        array = re.search(r"(\s*\[[^\]]*\])+$", text)
        before = text[:array.start()] if array else text
        words = re.findall(r"[A-Za-z_]\w*", before)
        # A lone type, or one that ends in '*', has no name: `int MPI_F(MPI_Comm, int *)`.
        is_named = len([word for word in words if word not in ("const", "struct")]) > 1 \
            and not before.endswith("*") and words[-1] not in ("int", "long", "char", "unsigned", "double")
        self.name = words[-1] if is_named else f"argument_{position}"
        self.declaration = text if is_named else f"{before} {self.name}{array.group(0) if array else ''}"
        self.is_array = array is not None
        self.type = (before[:before.rindex(words[-1])] if is_named else before).strip()
        inner = re.sub(r"^\s*\[[^\]]*\]", "", array.group(0)) if array else ""
        # What the parameter is inside of the function: an array is a pointer to what it holds, a function one to it.
        self.full_type = self.type
        if array:
            self.full_type += f" (*){inner.strip()}" if inner.strip() else " *"
        elif self.type.endswith("_function"):
            self.full_type += " *"

    def is_pointer_to(self, type_name):
        return re.sub(r"\s", "", self.type) == type_name + ("" if self.is_array else "*")


class Function:
    """`name` is MPI_Send; `key` is what metrics call it, mpi_send."""

    def __init__(self, result, name, parameters):
        self.result, self.name, self.key = result, name, name.lower()
        texts = split(parameters)
        self.is_variadic = "..." in texts
        self.parameters = [] if texts in ([], ["void"]) else [
            Parameter(text, position) for position, text in enumerate(texts, 1) if text != "..."]

    def declarations(self):
        return ", ".join(parameter.declaration for parameter in self.parameters) or "void"

    def arguments(self):
        return [parameter.name for parameter in self.parameters]

    def only(self, type_name):
        """The one parameter that is a pointer to this type, or None."""
        found = [parameter for parameter in self.parameters if parameter.is_pointer_to(type_name)]
        return found[0] if len(found) == 1 else None


class Header:
    def __init__(self, text):
        macros = set(re.findall(r"^#define\s+(MPI_\w+)\(", text, re.M))
        code = remove_attributes("\n".join(line for line in text.splitlines() if not line.startswith("#")))
        found = {}
        for statement in re.split(r"[;{}]", code):
            prototype = re.fullmatch(PROTOTYPE, statement)
            if prototype:
                result, name, parameters = prototype.groups()
                found[name] = Function(" ".join(result.split()), name, parameters)
        # A macro of that name: the header refuses the function, or does its work itself.
        self.functions = [found[name] for name in sorted(found)
                          if not name.startswith("P") and name not in macros and "P" + name in found]
        self.symbols = {name: symbol_of(code, name) for name in CONSTANTS}


def symbol_of(code, constant):
    """The variable whose address a constant is, or None when it is a number."""
    value = re.search(rf"\bcicada_constant_{constant}\s+(.*?);", code, re.S)[1]
    address = re.search(r"&\s*\(?\s*(\w+)", value)
    return address[1] if address else None


def remove_attributes(code):
    """__attribute__((…)), __asm__(…): whatever the nesting of their parentheses."""
    parts = []
    at = 0
    for match in re.finditer(r"\b(?:__attribute__|__asm__|_Static_assert)\s*\(", code):
        if match.start() < at:
            continue
        parts.append(code[at:match.start()])
        depth, at = 1, match.end()
        while depth > 0:
            depth += {"(": 1, ")": -1}.get(code[at], 0)
            at += 1
    return "".join(parts) + code[at:]


def split(parameters):
    """Parameters by commas, but not by those in a function pointer's own parentheses."""
    texts, depth = [""], 0
    for character in parameters:
        depth += {"(": 1, ")": -1}.get(character, 0)
        if character == "," and depth == 0:
            texts.append("")
        else:
            texts[-1] += character
    return [text.strip() for text in texts if text.strip()]


def read(compiler):
    """What `compiler`, a list of words as ["mpicc"], finds as <mpi.h>."""
    done = subprocess.run([*compiler, "-E", "-dD", "-x", "c", "-"], input=SOURCE, capture_output=True, text=True, check=False)
    if done.returncode != 0:
        raise SystemExit(f"{' '.join(compiler)} can't read mpi.h:\n{done.stderr}")
    return Header(done.stdout)
