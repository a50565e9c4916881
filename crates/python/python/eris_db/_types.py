"""What PEP 249 says of types: the objects that `description` is compared with, and the constructors of values."""

from __future__ import annotations

import datetime
import time


class DBAPIType(str):
    """A type of Arrow, equal to the object of PEP 249 that stands for its kind."""

    __slots__ = ("_kind",)
    _kind: str

    def __new__(cls, name: str, kind: str) -> DBAPIType:
        made = super().__new__(cls, name)
        made._kind = kind
        return made

    def __reduce__(self) -> tuple[type[DBAPIType], tuple[str, str]]:
        return DBAPIType, (str(self), self._kind)

    def __eq__(self, other: object) -> bool:
        if isinstance(other, DBAPIType):
            kinds = str(self) in _KINDS or str(other) in _KINDS
            return self._kind == other._kind if kinds else str(self) == str(other)
        return str(self) == other

    def __ne__(self, other: object) -> bool:
        return not self == other

    def __hash__(self) -> int:
        return hash(self._kind)


_KINDS = frozenset(["STRING", "BINARY", "NUMBER", "DATETIME", "ROWID"])

STRING = DBAPIType("STRING", "STRING")
BINARY = DBAPIType("BINARY", "BINARY")
NUMBER = DBAPIType("NUMBER", "NUMBER")
DATETIME = DBAPIType("DATETIME", "DATETIME")
ROWID = DBAPIType("ROWID", "ROWID")

_known: dict[str, DBAPIType] = {}


def of_arrow(name: str) -> DBAPIType:
    """The type with this name of Arrow."""
    known = _known.get(name)
    if known is None:
        known = _known[name] = DBAPIType(name, _kind(name))
    return known


def _kind(name: str) -> str:
    if name.startswith(("Int", "UInt", "Float", "Decimal")) and not name.startswith("Interval"):
        return "NUMBER"
    if name.startswith(("Date", "Time", "Interval", "Duration")):
        return "DATETIME"
    if "Utf8" in name and "(" not in name:
        return "STRING"
    if "Binary" in name:
        return "BINARY"
    return name


Date = datetime.date
Time = datetime.time
Timestamp = datetime.datetime
Binary = bytes


def DateFromTicks(ticks: float) -> datetime.date:
    """The local date of a number of seconds since 1970."""
    return Date(*time.localtime(ticks)[:3])


def TimeFromTicks(ticks: float) -> datetime.time:
    """The local time of day of a number of seconds since 1970."""
    return Time(*time.localtime(ticks)[3:6])


def TimestampFromTicks(ticks: float) -> datetime.datetime:
    """The local date and time of a number of seconds since 1970."""
    return Timestamp(*time.localtime(ticks)[:6])
