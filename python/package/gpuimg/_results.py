"""What functions return, other than images."""

from __future__ import annotations

TYPE_CHECKING = False
if TYPE_CHECKING:
    from typing import Any, Iterable

    from ._errors import Error


class _Fields:
    """Shows its fields, and compares them."""

    def __repr__(self) -> str:
        fields = ", ".join(f"{name}={value!r}" for name, value in self.__dict__.items())
        return f"{type(self).__name__}({fields})"

    def __eq__(self, other: object) -> bool:
        return type(self) is type(other) and self.__dict__ == other.__dict__


class ChannelSum(_Fields):
    """The sum of a channel, or of all colours: exact for integers, the nearest float for floating point."""

    def __init__(self, name: str, sum: int | float, min: float, max: float, mean: float) -> None:
        self.name = name
        self.sum = sum
        self.min = min
        self.max = max
        self.mean = mean


class Sums(ChannelSum):
    """The sum of all colours without alpha, with the sum of each channel in ``channels``; alpha is the last."""

    def __init__(self, total: tuple[Any, ...], channels: Iterable[tuple[Any, ...]]) -> None:
        super().__init__(*total)
        self.channels = [ChannelSum(*channel) for channel in channels]


class Histogram:
    """How often each value occurs.

    Attributes:
        first_value: the value of the first count of each channel: 0, or −128 or −32768 for signed samples.
        counts: a view of channels × 256 or 65536 counts (uint64), in the order of the values; ``numpy.asarray`` copies nothing.
    """

    def __init__(self, first_value: int, counts: memoryview) -> None:
        self.first_value = first_value
        self.counts = counts


class FileResult(_Fields):
    """What became of a file of a batch.

    Attributes:
        input: the file that was read.
        output: the file that was written; None if the input could not be read when the files were listed.
        status: "done", "skipped" (an earlier run has done it) or "failed".
        error: why it failed.
        warnings, notes, damage, ranges: those of the Image.
        finished, files: how many files are finished, with this one, and how many the batch has.
    """

    def __init__(self, fields: dict[str, Any]) -> None:
        self.input: str = str(fields["input"])
        output = fields["output"]
        self.output: str | None = None if output is None else str(output)
        self.status: str = fields["status"]
        self.error: Error | None = fields.get("error")
        self.warnings: list[str] = fields.get("warnings", [])
        self.notes: list[str] = fields.get("notes", [])
        self.damage: str | None = fields.get("damage")
        self.ranges: list[list[tuple[float, float]]] = fields.get("ranges", [])
        self.finished: int = fields["finished"]
        self.files: int = fields["files"]
