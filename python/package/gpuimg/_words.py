"""Options of the command line from arguments of Python."""

from __future__ import annotations

from ._errors import make
from ._gpuimg import apply as _apply

TYPE_CHECKING = False
if TYPE_CHECKING:
    from typing import Any, Sequence

    from ._gpuimg import Image


def apply(
    verb: str,
    image: Any,
    values: Sequence[tuple[Any, str]],
    options: Sequence[tuple[str, Any, str | None]],
    depth: int | None,
    fit: int | None,
    auto_orient: bool,
    dtype: Any,
    device: str,
    stream: Any,
    out: Any,
) -> Image:
    """Run a verb. ``values`` and ``options`` have their separators; those of an option without a value are None."""
    text = verb
    for value, parts in values:
        text += " " + _quoted(_written(verb, value, parts))
    for name, value, separators in options:
        if separators is None:
            if value:
                text += " --" + name
        elif value is not None:
            text += f" --{name}=" + _quoted(_written(name, value, separators))
    result: Image = _apply(text, image, depth, fit, auto_orient, dtype_name(dtype), device, stream, out)
    return result


def dtype_name(dtype: Any) -> str | None:
    """The name of a dtype: of "uint16", numpy.uint16 or numpy.dtype("uint16")."""
    if dtype is None or type(dtype) is str:
        return dtype
    return getattr(dtype, "name", None) or getattr(dtype, "__name__", None) or str(dtype)


def _written(name: str, value: Any, separators: str) -> str:
    if isinstance(value, str) or not hasattr(value, "__len__"):
        return str(value)
    if separators.startswith("*"):
        return separators[1].join(map(str, value))
    if len(value) != len(separators) + 1:
        parts = len(separators) + 1
        why = f"{name} expects {parts} value{'s' if parts > 1 else ''}, not {len(value)}: {value!r}"
        raise make("argument", why, None, None, why)
    written = str(value[0])
    for separator, part in zip(separators, value[1:]):
        written += separator + str(part)
    return written


def _quoted(word: str) -> str:
    if not word or any(letter in word for letter in " \t\n'\"\\#"):
        return "'" + word.replace("'", "'\\''") + "'"
    return word
