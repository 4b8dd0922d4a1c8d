"""Reads the kernels' signatures and writes src/gpu/launch.rs: for each kernel a Rust type with its arguments, and
beside them the records and constants that host and device share. build.py calls it; by itself, python3 kernels/launch.py
writes the file and compares it with the committed PTX.

Lines like these stand above a kernel:
    // family: Step
        the name of the Rust type, if it is not that of the kernel; kernels of the file that have the same parameters and
        no lines of their own belong to the family of the nearest one above
    // lengths: src[samples], ranges[2 * CHANNELS]
        how many elements each pointer must have; `[..]` where the host cannot know, as in lists that kernels make
    // requires: samples % CHANNELS == 0, grid.blocks == ceil(samples, 4096)
        what else the launch checks
    // in place: src = dst
        the shared argument may be the other's memory
    // trusts: parts and report, as inflate_order leaves them
        memory whose content leads the kernel to addresses: launching it is unsafe
    // in sets
        one launch can do the work of several pages: the compiled file has a second entry, named name_set, beside the kernel
    // in sets: __launch_bounds__(BLOCK, 4)
        the same, where the second entry has launch bounds of its own: it keeps its arguments in registers, which the kernel does
        not, and the compiler may otherwise give it so many that few blocks run at once
A TensorMap, passed by value as `const IN_PLACE TensorMap`, is a matrix whose borders the copy engine keeps to: it has no length.
Expressions know the parameters, the macros of the form, the constants of the file, sizeof(T), ceil(a, b), min, max, a ? b : c,
grid.blocks, grid.threads (of all blocks), grid.block (threads of a block), and N, the number that ends a kernel's name. They
are computed in 64 bits and stop at the largest number.

The parameter of a kernel of sets is a Set of common.cuh: the arguments of as many pages as fit into PARAMETER_BYTES, and which
blocks of the grid each page has. with_sets makes this kernel: its body is that of the plain kernel, in which blockIdx.x is the index
of the block in its page, and gridDim.x the number of blocks of the page. Functions that the body calls get these two as a Turn, and
use neither blockIdx nor gridDim.

Constants and enums that the host needs, also those inside a kernel, end with `// host`. Structs that kernels have pointers to become records.
"""

import gzip
import itertools
import pathlib
import re
import sys

HERE = pathlib.Path(__file__).resolve().parent
OUTPUT = HERE.parent / "src" / "gpu" / "launch.rs"

SIZES = {"u8": 1, "u16": 2, "u32": 4, "u64": 8, "float": 4, "double": 8, "int": 4, "uint4": 16}
RUST = {"u8": "u8", "u16": "u16", "u32": "u32", "u64": "u64", "float": "f32", "double": "f64", "int": "i32", "TensorMap": "TensorMap<'a>"}
PTX = {"u32": ".u32", "u64": ".u64", "float": ".f32", "int": ".u32", "TensorMap": ".align 64 .b8[128]"}
PARAMETER_BYTES = 4096  # of all parameters of a kernel, which PTX allows for every GPU
MACROS = ("SAMPLE", "CHANNELS", "PIXEL")
KEYWORDS = {"in": "input", "from": "from", "move": "moved", "type": "kind"}


def fail(where, what):
    sys.exit(f"kernels/launch.py: {where}: {what}")


def forms_of(text):
    """The forms of a source: name and macros, or one form without a name."""
    found = []
    for macros, name in re.findall(r"^// forms: (.*) named (\S+)$", text, re.M):
        keys, values = zip(*(m.split("=") for m in macros.split()))
        for combination in itertools.product(*(v.split(",") for v in values)):
            chosen = dict(zip(keys, combination))
            found.append((name.format(**chosen), chosen))
    return found or [("", {})]


def expanded(text, where):
    """The text with the kernels that macros make, in the place of the macros' uses."""
    joined = re.sub(r"\s*\\\n\s*", " ", text)
    for name, parameters, body in re.findall(r"^#define (\w+)\((.*?)\) *(.*)$", joined, re.M):
        if '__global__' not in body:
            continue

        def use(match, parameters=parameters, body=body):
            values = [value.strip() for value in match[1].split(",")]
            names = [parameter.strip() for parameter in parameters.split(",")]
            if len(names) != len(values):
                fail(where, f"{match[0]} has other arguments than its macro")
            made = body
            for parameter, value in zip(names, values):
                made = re.sub(rf"(##)?\b{parameter}\b(##)?", value, made)
                made = re.sub(rf"(\w)##{value}", rf"\g<1>{value}", made)
            return made.replace("##", "")

        joined = re.sub(rf"^#define {name}\(.*$", "", joined, flags=re.M)
        joined = re.sub(rf"^{name}\((.*)\)$", use, joined, flags=re.M)
    return joined


class Source:
    """A .cu or .cuh file: its own constants, enums and records, and those of the files that it includes."""

    known = {}

    def __init__(self, path):
        self.path = path
        self.name = path.relative_to(HERE).as_posix()
        self.text = path.read_text(encoding="utf-8")
        self.includes = []
        for name in re.findall(r'^#include "(.*)"', self.text, re.M):
            self.includes.append(Source.of(HERE / name))
        self.constants = {}  # name: value, or None where it depends on the form
        self.structs = {}  # name: fields as (type, name, count or None)
        self.host = []  # names of constants and enums for the host, in order
        for source in self.includes:
            self.constants.update(source.constants)
        self.read()

    @staticmethod
    def of(path):
        if path not in Source.known:
            Source.known[path] = Source(path)
        return Source.known[path]

    def struct(self, name):
        """A record and the source that defines it."""
        if name in self.structs:
            return self.structs[name], self
        for source in self.includes:
            found = source.struct(name)
            if found:
                return found
        return None

    def read(self):
        # In the order of the text, since constants build on earlier ones.
        pattern = re.compile(
            r"^constexpr (?:u32|u64) (?P<constants>[^;]*);(?P<note>[^\n]*)$"
            r"|^ +constexpr (?:int|u32|u64) (?P<inner>\w+ = [^;]*); // host"
            r"|^enum : u32 \{(?P<enum>[^}]*)\};(?P<enum_note>[^\n]*)$"
            r"|^struct (?:alignas\(\d+\) )?(?P<struct>\w+) \{\n(?P<fields>.*?)^\};",
            re.M | re.S,
        )
        for match in pattern.finditer(self.text):
            if match["constants"] is not None:
                note = match["note"]
                self.define(re.split(r",\s*(?![^(]*\))", match["constants"]), "// host" in note)
            elif match["inner"] is not None:
                self.define([match["inner"]], True)
            elif match["enum"] is not None:
                value, values = -1, []
                for item in match["enum"].replace("\n", " ").split(","):
                    name, _, given = (part.strip() for part in item.partition("="))
                    value = self.constant(given) if given else value + 1
                    values.append(f"{name} = {value}")
                self.define(values, "// host" in match["enum_note"])
            else:
                self.structs[match["struct"]] = self.fields(match["struct"], match["fields"])

    def define(self, items, for_host):
        for item in items:
            name, _, expression = (part.strip() for part in item.partition("="))
            self.constants[name] = self.constant(expression)
            if for_host:
                if self.constants[name] is None:
                    fail(self.name, f"the host cannot have {name}, which depends on the form")
                self.host.append(name)

    def constant(self, expression):
        """The value of a constant expression; None where it is none."""
        try:
            return Parser(expression, self.name).parse().value(self.constants)
        except (KeyError, TypeError, Refused):
            return None

    def fields(self, struct, text):
        """The fields of a record; None where it is no plain record, which kernels keep to themselves."""
        found = []
        for statement in re.sub(r"//.*", "", text).split(";"):
            words = statement.split(None, 1)
            if not words:
                continue
            if words[0] not in RUST or len(words) < 2:
                return None
            for declared in re.split(r",", words[1]):
                match = re.fullmatch(r"\s*(\w+)(?:\[(.*)\])?\s*", declared, re.S)
                if not match:
                    return None
                count = self.constant(match[2]) if match[2] else None
                if match[2] and count is None:
                    return None
                found.append((words[0], match[1], count))
        return found


class Refused(Exception):
    """An expression that cannot be read."""


class Node:
    """An expression: an operator with its operands, a number or a name."""

    def __init__(self, kind, *operands):
        self.kind, self.operands = kind, operands

    def value(self, constants):
        """The number that a constant expression is."""
        if self.kind == "number":
            return self.operands[0]
        if self.kind == "name":
            value = constants[self.operands[0]]
            if value is None:
                raise KeyError(self.operands[0])
            return value
        a, *rest = (operand.value(constants) for operand in self.operands)
        b = rest[0] if rest else None
        made = {
            "+": lambda: a + b,
            "-": lambda: a - b,
            "*": lambda: a * b,
            "/": lambda: a // b,
            "%": lambda: a % b,
            "<<": lambda: a << b,
            ">>": lambda: a >> b,
            "|": lambda: a | b,
            "==": lambda: int(a == b),
            "<=": lambda: int(a <= b),
            ">=": lambda: int(a >= b),
            "<": lambda: int(a < b),
            ">": lambda: int(a > b),
            "?:": lambda: b if a else rest[1],
        }.get(self.kind)
        if made is None:
            raise Refused(self.kind)
        return made()

    def rust(self, names):
        """The expression in Rust, as a u64, or as a bool if it compares."""
        if self.kind == "number":
            return str(self.operands[0])
        if self.kind == "name":
            return names(self.operands[0])
        texts = [operand.rust(names) for operand in self.operands]
        a, *rest = texts
        b = rest[0] if rest else None
        if self.kind == "==" and self.operands[0].kind == "%" and b == "0":
            dividend, divisor = (operand.rust(names) for operand in self.operands[0].operands)
            receiver = f"{dividend}_u64" if re.fullmatch(r"[\d_]+", dividend) else dividend
            return f"{receiver}.is_multiple_of({plain(divisor)})"
        if self.kind in ("==", "<=", ">=", "<", ">"):
            return f"{plain(a)} {self.kind} {plain(b)}"
        if self.kind == "?:":
            return f"(if {a} {{ {plain(b)} }} else {{ {plain(rest[1])} }})"
        method = {
            "+": "saturating_add",
            "-": "saturating_sub",
            "*": "saturating_mul",
            "ceil": "div_ceil",
            "min": "min",
            "max": "max",
        }.get(self.kind)
        if self.kind in ("/", "%", "ceil"):
            if not re.fullmatch(r"[\d_]+", b):
                b = f"{b}.max(1)"
            if self.kind != "ceil":
                return f"({a} {self.kind} {plain(b)})"
        if method is None:
            raise Refused(self.kind)
        receiver = f"{a}_u64" if re.fullmatch(r"\d+", a) else a
        return f"{receiver}.{method}({plain(b)})"


def plain(text):
    """Without the outer parentheses, where they are one pair."""
    if text.startswith("(") and text.endswith(")"):
        depth = 0
        for place, letter in enumerate(text):
            depth += (letter == "(") - (letter == ")")
            if depth == 0 and place + 1 < len(text):
                return text
        return text[1:-1]
    return text


class Parser:
    """C expressions of numbers and names."""

    LEVELS = [("==", "!="), ("<=", ">=", "<", ">"), ("|",), ("<<", ">>"), ("+", "-"), ("*", "/", "%")]

    def __init__(self, text, where):
        self.where, self.text = where, text
        self.tokens = re.findall(r"0x[0-9a-fA-F]+[uUlL]*|\d+[uUlL]*|[A-Za-z_][\w.]*|<<|>>|==|!=|<=|>=|[-+*/%()<>?:,|]|\S", text)
        self.tokens = [re.sub(r"^(\d+|0x[0-9a-fA-F]+)[uUlL]+$", r"\1", token) for token in self.tokens]

    def parse(self):
        node = self.choice()
        if self.tokens:
            raise Refused(f"'{self.text}'")
        return node

    def taken(self, *tokens):
        if self.tokens and self.tokens[0] in tokens:
            return self.tokens.pop(0)
        return None

    def expect(self, token):
        if not self.taken(token):
            raise Refused(f"'{self.text}': no '{token}'")

    def choice(self):
        condition = self.level(0)
        if not self.taken("?"):
            return condition
        yes = self.choice()
        self.expect(":")
        return Node("?:", condition, yes, self.choice())

    def level(self, depth):
        if depth == len(self.LEVELS):
            return self.atom()
        left = self.level(depth + 1)
        while operator := self.taken(*self.LEVELS[depth]):
            left = Node(operator, left, self.level(depth + 1))
        return left

    def atom(self):
        if self.taken("("):
            node = self.choice()
            self.expect(")")
            return node
        if not self.tokens:
            raise Refused(f"'{self.text}' ends early")
        token = self.tokens.pop(0)
        if re.match(r"\d", token):
            return Node("number", int(token, 0))
        if not re.match(r"[A-Za-z_]", token):
            raise Refused(f"'{self.text}': '{token}'")
        if token == "sizeof":
            self.expect("(")
            name = self.tokens.pop(0)
            self.expect(")")
            return Node("name", f"sizeof({name})")
        if token in ("ceil", "min", "max") and self.taken("("):
            first = self.choice()
            self.expect(",")
            second = self.choice()
            self.expect(")")
            return Node(token, first, second)
        return Node("name", token)


class Kernel:
    """A kernel: its name without the form, its parameters, and what stands above it."""

    def __init__(self, source, name, parameters, notes, in_sets, set_bounds):
        self.source, self.name, self.where = source, name, f"{source.name}: {name}"
        self.in_sets, self.set_bounds = in_sets, set_bounds  # set_bounds: the launch bounds of the kernel of sets
        self.declared = [parameter.strip() for parameter in parameters.split(",")]
        self.parameters = []  # (type, name, pointer, mutable)
        for text in self.declared:
            if not text or text == "void":
                continue
            match = re.fullmatch(r"(const )?(?:IN_PLACE )?(volatile )?(\w+) (\*)?(?:__restrict__ )?(\w+)", text)
            if not match:
                fail(self.where, f"the parameter '{text}' cannot be expressed")
            constant, _, kind, pointer, parameter = match.groups()
            if not pointer and kind not in PTX:
                fail(self.where, f"'{text}' is passed by value, and is no number")
            self.parameters.append((kind, parameter, bool(pointer), bool(pointer) and not constant))
        self.notes = notes
        if in_sets and any(kind == "TensorMap" for kind, *_ in self.parameters):
            fail(self.where, "a TensorMap cannot be in a set")

    def set_layout(self):
        """How many pages a set has at most, 0 where the kernel is not in sets, and the bytes of the arguments of a page and of the set."""
        if not self.in_sets:
            return 0, 0, 0
        up = lambda bytes_, to: (bytes_ + to - 1) // to * to
        each = 0
        for kind, _, pointer, _ in self.parameters:
            size = 8 if pointer else SIZES[kind]
            each = up(each, size) + size
        each = up(each, 8)
        bytes_ = lambda pages: up(4 * (pages + 2), 8) + pages * each
        pages = max(pages for pages in range(PARAMETER_BYTES) if bytes_(pages) <= PARAMETER_BYTES)
        if pages == 0:
            fail(self.where, "the arguments of one page are too large for a set")
        return pages, each, bytes_(pages)

    def size(self, kind):
        """Bytes of an element that a pointer points to, in Rust."""
        if kind in ("T", "Sample"):
            return "launch.form.sample"
        if kind in SIZES:
            return str(SIZES[kind])
        record = self.source.struct(kind)
        if not record or record[0] is None:
            fail(self.where, f"elements of type {kind} have no size that the host knows")
        return str(size_of(record[0]))


def size_of(fields):
    """Bytes of a record as C lays it out; ends the program where it would have gaps."""
    offset, largest = 0, 1
    for kind, name, count in fields:
        if offset % SIZES[kind]:
            sys.exit(f"kernels/launch.py: there is a gap before the field {name}")
        offset += SIZES[kind] * (count or 1)
        largest = max(largest, SIZES[kind])
    if offset % largest:
        sys.exit("kernels/launch.py: there is a gap at the end of a record")
    return offset


KERNEL = re.compile(
    r'(?P<comment>(?:^//.*\n|^\n)*)^ *extern "C" __global__ void\s+'
    r"(?P<bounds>__launch_bounds__\([^()]*(?:\([^()]*\)[^()]*)*\)\s*)?"
    r"(?:ENTRY\((?P<formed>\w+)\)|(?P<plain>\w+))\((?P<parameters>[^)]*)\)",
    re.M,
)


def with_kernels(source):
    """The kernels of a file, in order: each with its match of KERNEL in the text, whose macros are expanded."""
    text = expanded(source.text, source.name)
    found = []
    for match in KERNEL.finditer(text):
        comment = match["comment"]
        # The lines above, up to an empty line.
        comment = re.split(r"\n\n", "\n" + comment)[-1]
        notes = {}
        for key, value in re.findall(r"^// (family|lengths|requires|in place|trusts): (.*(?:\n//     .*)*)$", comment, re.M):
            if key in notes:
                fail(source.name, f"two lines '{key}' above a kernel")
            notes[key] = re.sub(r"\s*\n//\s*", " ", value).strip()
        in_sets = re.search(r"^// in sets(?:: (__launch_bounds__\(.*\)))?$", comment, re.M)
        bounds = in_sets and in_sets[1] or (match["bounds"] or "").strip()
        name, parameters = match["formed"] or match["plain"], re.sub(r"\s+", " ", match["parameters"])
        found.append((Kernel(source, name, parameters, notes, in_sets is not None, bounds), match))
    if len(found) != text.count("__global__"):
        fail(source.name, f"{text.count('__global__')} kernels, of which {len(found)} can be read")
    if sum(kernel.in_sets for kernel, _ in found) != len(re.findall(r"^// in sets", text, re.M)):
        fail(source.name, "a line 'in sets' is not above a kernel, or cannot be read")
    return found


def kernels_of(source):
    """The kernels of a file, in order."""
    return [kernel for kernel, _ in with_kernels(source)]


def body_at(text, where):
    """The block in braces that `text` begins with."""
    depth = 0
    for match in re.finditer(r'//[^\n]*|/\*.*?\*/|"(?:\\.|[^"\\])*"|[{}]', text, re.S):
        depth += {"{": 1, "}": -1}.get(match[0], 0)
        if depth == 0:
            return text[: match.end()].strip()
    fail(where, "the kernel has no end")


def with_sets(source):
    """The text of a .cu file, followed by its kernels of sets."""
    made = [source.text]
    for kernel, match in with_kernels(source):
        if not kernel.in_sets:
            continue
        body = body_at(match.string[match.end() :], kernel.where)
        body = re.sub(r"\bblockIdx\.x\b", "its_turn.block", body)
        body = re.sub(r"\bgridDim\.x\b", "its_turn.blocks", body)
        if re.search(r"\b(blockIdx|gridDim)\b", body):
            fail(kernel.where, "the grid of a kernel of sets has one dimension")
        pages, each, size = kernel.set_layout()
        arguments = camel(kernel.name) + "Arguments"
        set_type = f"Set<{arguments}, {pages}>"
        entry = f"ENTRY({kernel.name}_set)" if match["formed"] else f"{kernel.name}_set"
        fields = [re.sub(r" ?__restrict__ ?", "", declared) for declared in kernel.declared]
        made += [
            "",
            f"struct alignas(8) {arguments} {{ {' '.join(f'{field};' for field in fields)} }};",
            f'static_assert(sizeof({arguments}) == {each} && sizeof({set_type}) == {size}, "the host knows");',
            f'extern "C" __global__ void {kernel.set_bounds} {entry}(const IN_PLACE {set_type} its_set) {{',
            "    const u32 its_page = page_of(its_set, blockIdx.x), its_first = its_set.first[its_page];",
            "    [[maybe_unused]] const Turn its_turn{blockIdx.x - its_first, its_set.first[its_page + 1] - its_first};",
            *(
                f"    [[maybe_unused]] {declared} = its_set.arguments[its_page].{parameter};"
                for declared, (_, parameter, _, _) in zip(kernel.declared, kernel.parameters)
            ),
            body,
            "}",
        ]
    return "\n".join([*made, ""]) if len(made) > 1 else source.text


def families_of(source):
    """The kernels of a file as lists of those that one Rust type launches."""
    families = []
    for kernel in kernels_of(source):
        if not kernel.notes:
            same = [family for family in families if family[0].parameters == kernel.parameters]
            if same and any("family" in family[0].notes for family in same[-1:]):
                if kernel.in_sets != same[-1][0].in_sets:
                    fail(kernel.where, "some kernels of the family are in sets, and others are not")
                same[-1].append(kernel)
                continue
            if any(pointer for _, _, pointer, _ in kernel.parameters):
                fail(kernel.where, "no line above it gives the lengths of its pointers")
        families.append([kernel])
    return families


def camel(name):
    return "".join(part.capitalize() for part in name.split("_"))


def split_list(text):
    """Items between commas that are in no parentheses."""
    return [item.strip() for item in re.split(r",(?![^(\[]*[)\]])", text) if item.strip()]


def arguments(family):
    """The Rust type of a family."""
    kernel = family[0]
    notes, where = kernel.notes, kernel.where
    name = notes.get("family") or camel(kernel.name)
    fields = {parameter: KEYWORDS.get(parameter, parameter) for _, parameter, _, _ in kernel.parameters}
    scalars = {parameter: kind for kind, parameter, pointer, _ in kernel.parameters if not pointer}
    pointers = {parameter: (kind, mutable) for kind, parameter, pointer, mutable in kernel.parameters if pointer}

    def names(word):
        if word in scalars and scalars[word] in ("u32", "u64"):
            return f"it.{fields[word]}" if scalars[word] == "u64" else f"u64::from(it.{fields[word]})"
        if word in ("grid.blocks", "grid.threads", "grid.block"):
            return {"grid.blocks": "launch.blocks()", "grid.threads": "launch.threads()", "grid.block": "launch.block()"}[word]
        if word == "N":
            return "launch.number()"
        if word in MACROS or word == "sizeof(T)":
            return {"SAMPLE": "launch.form.sample", "sizeof(T)": "launch.form.sample", "CHANNELS": "launch.form.channels", "PIXEL": "launch.form.pixel"}[word]
        value = kernel.source.constants.get(word)
        if value is None:
            fail(where, f"'{word}' is no parameter, macro or constant")
        return f"{value:_}"

    def read(text):
        try:
            return Parser(text, where).parse().rust(names)
        except Refused as refused:
            fail(where, f"cannot read {refused}")

    lengths = {}
    for item in split_list(notes.get("lengths", "")):
        match = re.fullmatch(r"(\w+)\[(.*)\]", item)
        if not match or match[1] not in pointers:
            fail(where, f"the length '{item}' is of no pointer")
        lengths[match[1]] = match[2]
    if lengths.keys() != pointers.keys():
        fail(where, f"no length of {', '.join(pointers.keys() - lengths.keys())}")
    shared, _, written = (part.strip() for part in notes.get("in place", "").partition("="))
    if shared and (pointers.get(shared, (0, True))[1] or not pointers.get(written, (0, False))[1]):
        fail(where, f"'{shared} = {written}' are not a const pointer and another")
    checks = []
    for parameter, text in lengths.items():
        if text == "..":
            if "trusts" not in notes:
                fail(where, f"{parameter} has no length, and nothing is trusted")
            continue
        size = kernel.size(pointers[parameter][0])
        count = read(text)
        bytes_ = count if size == "1" else f"{count}_u64.saturating_mul({size})" if re.fullmatch(r"[\d_]+", count) else f"{count}.saturating_mul({size})"
        if re.fullmatch(r"[\d_]+", count) and re.fullmatch(r"\d+", size):
            bytes_ = f"{int(count.replace('_', '')) * int(size):_}"
        optional = f"it.{fields[parameter]}.as_ref().map_or(u64::MAX, View::len)" if parameter == shared else f"it.{fields[parameter]}.len()"
        checks.append(f'launch.has("{parameter}", {optional}, {plain(bytes_)})?;')
    for text in split_list(notes.get("requires", "")):
        checks.append(f'launch.requires({plain(read(text))}, "{text}")?;')
    entries = [other.name for other in family]
    has_forms = forms_of(kernel.source.text) != [("", {})]
    lines = [f"    /// {', '.join(f'`{entry}`' for entry in entries)} of kernels/{kernel.source.name}."]
    for key in ("lengths", "requires", "in place", "trusts"):
        if key in notes:
            lines.append("    ///")
            lines.append(f"    /// {key.capitalize()} {code(notes[key]) if key != 'trusts' else notes[key]}.")
    pages, _, _ = kernel.set_layout()
    if pages:
        lines += ["    ///", f"    /// In sets of at most {pages} pages."]
    lifetime = "<'a>" if pointers else ""
    file = kernel.source.path.relative_to(HERE).with_suffix("").as_posix()
    listed = ", ".join(f'"{entry}"' for entry in entries)
    lines.insert(0, "    arguments! {")
    lines[1:] = ["    " + line for line in lines[1:]]
    forms = "FORMS" if has_forms else "&[Form::ONLY]"
    kind = "trusting" if "trusts" in notes else "checked"
    lines.append(f'        {kind} {name}{lifetime} = "{file}" [{listed}] {forms}, {pages};')
    types = []
    pushes = []
    for scalar, parameter, pointer, mutable in kernel.parameters:
        field = fields[parameter]
        view = "ViewMut<'a>" if mutable else "View<'a>"
        types.append(f"{field}: {f'Option<{view}>' if parameter == shared else view if pointer else RUST[scalar]}")
        push = f"list.push_or(it.{field}.as_ref(), &it.{fields[written]});" if parameter == shared else f"list.push(&it.{field});"
        pushes.append(push)
    lines.append(f"        {{ {', '.join(types)} }}" if types else "        {}")
    lines.append(f"        |it, launch, list| {{")
    lines.extend(f"            {check}" for check in checks)
    lines.append(f"        }} {{ {' '.join(pushes)} }}" if pushes else "        } {}")
    lines.append("    }")
    return lines


def code(text):
    """Every item as code."""
    return ", ".join(f"`{item}`" for item in split_list(text))


def uses_of(kernel):
    """Everything of a parameter list by the size of its numbers, as PTX tells it."""
    return [".u64" if pointer else PTX[kind] for kind, _, pointer, _ in kernel.parameters]


def record(name, fields, source):
    """The Rust type of a record."""
    size = size_of(fields)
    types = ", ".join(f"{field}: {f'[{RUST[kind]}; {count}]' if count else RUST[kind]}" for kind, field, count in fields)
    lines = [
        "    record! {",
        f"        /// `{name}` of kernels/{source.name}.",
        f"        {name} = {size} {{ {types} }}",
        "    }",
    ]
    return lines


def checked(source, kernels, ptx_of):
    """Compares what was read of a file's kernels with the entries of its compiled PTX."""
    for form, _ in forms_of(source.text):
        ptx = ptx_of(source.path.relative_to(HERE).with_suffix(f".{form}" if form else "").as_posix())
        entries = {
            name: [kind + bytes_ for kind, bytes_ in re.findall(r"^\s*\.param (.+?) \w+(\[\d+\])?,?$", parameters, re.M)]
            for name, parameters in re.findall(r"^\.visible \.entry (\w+)\((.*?)\)", ptx, re.M | re.S)
        }
        ending = f"_{form}" if form else ""
        expected = {kernel.name + ending: uses_of(kernel) for kernel in kernels}
        sets = [kernel for kernel in kernels if kernel.in_sets]
        expected |= {f"{kernel.name}_set{ending}": [f".align 8 .b8[{kernel.set_layout()[2]}]"] for kernel in sets}
        if entries != expected:
            different = [name for name in entries.keys() | expected.keys() if entries.get(name) != expected.get(name)]
            fail(source.name, f"the compiled kernels differ from what was read: {', '.join(sorted(different))}")


def generated(ptx_of):
    """The text of launch.rs. `ptx_of(name)` is the PTX of a file in a form."""
    sources = sorted(HERE.glob("*.cuh")) + sorted(HERE.glob("*.cu"))
    papers = sorted(HERE.glob("papers/*.cuh")) + sorted(HERE.glob("papers/*.cu"))
    modules = {}
    records = {}
    for path in sources + papers:
        source = Source.of(path)
        for kernel in kernels_of(source) if path.suffix == ".cu" else []:
            for kind, _, pointer, _ in kernel.parameters:
                if pointer and kind not in SIZES and kind not in ("T", "Sample"):
                    fields, home = source.struct(kind)
                    records.setdefault((home.path, kind), fields)
    for path in sources + papers:
        source = Source.of(path)
        lines = []
        if source.host:
            for name in source.host:
                lines.append(f"    /// `{name}` of kernels/{source.name}.")
                lines.append(f"    pub const {name}: u32 = {source.constants[name]:_};")
        for (home, name), fields in records.items():
            if home == path:
                lines += ["", *record(name, fields, source)]
        if path.suffix == ".cu":
            forms = forms_of(source.text)
            if forms != [("", {})]:
                lines += ["", "    const FORMS: &[Form] = &["]
                for name, macros in forms:
                    number = lambda macro: SIZES.get(macros.get(macro, "1")) or macros.get(macro, "1")
                    lines.append(
                        f'        Form {{ name: "{name}", sample: {number("SAMPLE")}, channels: {number("CHANNELS")}, pixel: {number("PIXEL")} }},'
                    )
                lines.append("    ];")
            families = families_of(source)
            for family in families:
                lines += ["", *arguments(family)]
            checked(source, [kernel for family in families for kernel in family], ptx_of)
        if lines:
            if lines[0] == "":
                lines = lines[1:]
            modules[path] = lines
    text = [
        "// Written by kernels/launch.py from the kernels' sources: change those, and run kernels/build.sh.",
        "",
        "//! The kernels' arguments, records and constants. `driver::launch` says what a launch checks.",
        "",
        "#![allow(missing_docs, reason = \"the fields are the parameters, which the kernels' headers explain\")]",
        "#![allow(dead_code, reason = \"some records are only measured\")]",
    ]

    def module(path, lines, depth):
        name = path.stem
        indented = [("    " * depth + line) if line else "" for line in lines]
        head = "    " * depth + f"pub mod {name} {{"
        body = "\n".join(lines)
        uses = []
        names = [macro for macro in ("arguments", "record") if f"{macro}!" in body]
        if names:
            names += ["Form"] if "Form" in body else []
            names += ["View"] if re.search(r"\bView\b", body) else []
            names += ["ViewMut"] if "ViewMut" in body else []
            names += ["TensorMap"] if "TensorMap" in body else []
            uses.append("    " * (depth + 1) + f"use crate::gpu::driver::launch::{', '.join(names) if len(names) == 1 else '{' + ', '.join(names) + '}'};")
            uses.append("")
        document = "    " * depth + f"/// kernels/{path.relative_to(HERE).as_posix()}"
        return [document, head, *uses, *indented, "    " * depth + "}"]

    for path in sources:
        if path in modules:
            text += ["", *module(path, modules[path], 0)]
    text += ["", "/// kernels/papers", "pub mod papers {"]
    first = True
    for path in papers:
        if path in modules:
            text += ([] if first else [""]) + module(path, modules[path], 1)
            first = False
    text += ["}", ""]
    return "\n".join(text)


def committed_ptx(name):
    """The PTX of a file in a form that is committed."""
    return gzip.decompress((HERE / "compiled" / f"{name}.compute_90.ptx.gz").read_bytes()).decode()


if __name__ == "__main__":
    OUTPUT.write_text(generated(committed_ptx), encoding="utf-8")
