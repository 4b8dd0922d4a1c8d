#!/usr/bin/env python3
"""Writes package/gpuimg/_verbs.py: a function for each verb of the command line, with the help of its options.

    python/generate.py [--check]      with a Python that has the module
"""

import pathlib
import re
import sys
import textwrap

from gpuimg import _gpuimg

HEAD = '''"""The operations on an image. Written by generate.py from the options of the command line."""

from __future__ import annotations

from ._words import apply

TYPE_CHECKING = False
if TYPE_CHECKING:
    from typing import Any, Sequence

    from ._gpuimg import Image

    Pair = tuple[float, float] | str
    Values = Sequence[float] | float | str
'''

# The options of every verb, in the words of `gpuimg convert --help`.
SHARED = [
    ("depth", "int | None", "None", "8 or 16 bits for the result; 16 converts 8-bit images before the operation."),
    ("fit", "int | None", "None", "Make the result smaller, so that its longer side has at most this many pixels."),
    ("auto_orient", "bool", "False", "Bring the image upright first, as its orientation says."),
    ("dtype", "Any", "None", 'Convert the result to a type that holds every value: "float32", or "int32" for "uint16".'),
    (
        "device",
        "str",
        '"auto"',
        '"cpu", "gpu", "gpu:N", or "auto", the faster one, with the result in host memory; "cuda" or "cuda:N" with the result in '
        "the memory of that GPU, where the result of an image on a GPU always is.",
    ),
    (
        "stream",
        "Any",
        "None",
        "For arrays in the memory of a GPU: wait for the work that is queued on this CUDA stream (its address, or a stream of PyTorch or "
        "CuPy), before the image is read and out is written. The result is complete when the function returns.",
    ),
    ("out", "Any", "None", "A writable array of the result's shape and dtype, which receives the result and is returned."),
]

# Sentences of the help that are about files.
ABOUT = {"convert": "Change the depth, size or dtype; keep values and metadata."}


def is_text(argument):
    """Whether a value begins with a word of its own, as `gamma:2.2`."""
    return argument["value"] is not None and argument["value"][0].islower()


def separators(argument):
    """What stands between the parts of a value: ":" for LOW:HIGH, ",,x" for X,Y,WxH; "*," for any number of parts."""
    if argument["value"] is None:
        return None
    if argument["delimiter"]:
        return "*" + argument["delimiter"]
    if argument["choices"] or is_text(argument):
        return ""
    return "".join(re.split("[A-Z]+", argument["value"].split("|")[0]))


def quoted(argument):
    parts = separators(argument)
    return "None" if parts is None else f'"{parts}"'


def annotation(argument):
    parts = separators(argument)
    if parts is None:
        return "bool"
    if parts.startswith("*"):
        return "Values"
    if len(parts) > 1:
        return f"tuple[{', '.join(['int'] * (len(parts) + 1))}] | str"
    if parts:
        return "Pair"
    if argument["choices"]:
        return "int | str" if argument["choices"][0].isdigit() else "str"
    if is_text(argument):
        return "str"
    return "int" if argument["value"] == "N" else "float"


def described(name, text):
    return textwrap.fill(f"{name}: {text}", 120, initial_indent=" " * 8, subsequent_indent=" " * 12)


def function(verb):
    own = [dict(argument, keyword=argument["name"].replace("-", "_")) for argument in verb["arguments"]]
    positional = [argument for argument in own if argument["is_positional"]]
    options = [argument for argument in own if not argument["is_positional"]]
    lines = [f"def {verb['name']}(", "    image: Any,"]
    lines += [f"    {it['keyword']}: {annotation(it)}," for it in positional]
    lines.append("    *,")
    for it in options:
        flag = separators(it) is None
        kind = annotation(it) + ("" if flag else " | None")
        lines.append(f"    {it['keyword']}: {kind} = {False if flag else None},")
    defaults = {name.replace("-", "_"): value for name, value in verb["defaults"]}
    lines += [f"    {name}: {kind} = {defaults.get(name, default)}," for name, kind, default, _ in SHARED]
    lines.append(") -> Image:")
    about = ABOUT.get(verb["name"], verb["about"].rstrip(".") + ".")
    lines += [f'    """{about}', "", "    Args:"]
    lines.append(described("image", "an Image, or an array of height × width or height × width × 1 to 4 channels; a list for a stack."))
    for it in own:
        choices = f" ({', '.join(it['choices'])})" if it["choices"] else ""
        lines.append(described(it["keyword"], it["help"].replace("--", "").rstrip(".") + choices + "."))
    lines += [described(name, text) for name, _, _, text in SHARED]
    lines += ["", "    Returns the result as a new Image, or `out`; a list for a stack.", '    """']
    values = "".join(f"({it['keyword']}, {quoted(it)}), " for it in positional).rstrip()
    lines += ["    return apply(", f'        "{verb["name"]}",', "        image,", f"        ({values}),"]
    pairs = [f'            ("{it["name"]}", {it["keyword"]}, {quoted(it)}),' for it in options]
    lines += ["        (", *pairs, "        )," ] if pairs else ["        (),"]
    lines += [f"        {name}," for name, *_ in SHARED]
    lines.append("    )")
    return "\n".join(lines) + "\n"


def main():
    verbs = _gpuimg.verbs()
    names = ", ".join(f'"{verb["name"]}"' for verb in verbs)
    text = "\n\n".join([HEAD + f"\n__all__ = [{names}]\n", *map(function, verbs)])
    path = pathlib.Path(__file__).parent / "package" / "gpuimg" / "_verbs.py"
    if "--check" in sys.argv:
        if path.read_text() != text:
            sys.exit(f"WRONG: {path} is not what generate.py writes")
    else:
        path.write_text(text)


if __name__ == "__main__":
    main()
