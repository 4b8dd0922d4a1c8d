"""The exceptions of this module."""

from __future__ import annotations

import errno

TYPE_CHECKING = False
if TYPE_CHECKING:
    from typing import Any


class Error(Exception):
    """What failed, with which file, and why. ``str(error)`` is the sentence that the program prints.

    Attributes:
        path: the file that was read, processed or written; None for an array.
        operation: "read", "write", or an operation such as "normalize"; None for an argument that cannot be used.
        reason: the cause alone, without the operation and the file.
    """

    path: str | None = None
    operation: str | None = None
    reason: str = ""

    def __str__(self) -> str:
        # `OSError` would print its number instead.
        return str(self.args[0]) if self.args else ""

    def __reduce__(self) -> Any:
        return _again, (type(self), str(self), self.__dict__)


class ArgumentError(Error, ValueError):
    """An argument, or an array, that cannot be used."""


class NotFoundError(Error, FileNotFoundError):
    """A file that does not exist."""


class ExistsError(Error, FileExistsError):
    """An output that already exists; overwrite=True replaces it."""


class AccessError(Error, PermissionError):
    """A file that may not be read or written."""


class OutOfMemoryError(Error, MemoryError):
    """Too little memory for the samples."""


class DeviceError(Error, RuntimeError):
    """A GPU that failed, or cannot be used although it was asked for."""


class ImageWarning(UserWarning):
    """What changes the meaning of a file that was written, such as metadata that its format cannot store."""


_KINDS = {
    "argument": (ArgumentError, 0),
    "not found": (NotFoundError, errno.ENOENT),
    "exists": (ExistsError, errno.EEXIST),
    "permission": (AccessError, errno.EACCES),
    "memory": (OutOfMemoryError, 0),
    "device": (DeviceError, 0),
    "other": (Error, 0),
}


def make(kind: str, message: str, path: object, operation: str | None, reason: str) -> Error:
    """The exception for an error of the library."""
    kind_of_error, number = _KINDS[kind]
    error = kind_of_error(message)
    error.path = None if path is None else str(path)
    error.operation = operation
    error.reason = reason
    if isinstance(error, OSError):
        error.errno, error.filename = number, error.path
    return error


def _again(kind: type[Error], message: str, fields: dict[str, Any]) -> Error:
    """An exception after pickling."""
    error = kind(message)
    error.__dict__.update(fields)
    if isinstance(error, OSError):
        error.filename = error.path
        error.errno = next((number for known, number in _KINDS.values() if known is kind), None)
    return error
