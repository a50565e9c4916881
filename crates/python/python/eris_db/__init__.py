"""Eris, an in-memory analytical database, in this process.

>>> import eris_db
>>> connection = eris_db.connect()
>>> connection.execute("SELECT 6 * 7 AS answer").fetchone()
(42,)
"""

from __future__ import annotations

import atexit as _atexit
import os as _os
import threading as _threading
from typing import Any as _Any

from . import _native
from ._errors import (
    DatabaseError,
    DataError,
    Error,
    IntegrityError,
    InterfaceError,
    InternalError,
    NotSupportedError,
    OperationalError,
    ProgrammingError,
    Warning,
)
from ._native import Connection, Database, KeyIndex, Result, Rows
from ._types import (
    BINARY,
    DATETIME,
    NUMBER,
    ROWID,
    STRING,
    Binary,
    Date,
    DateFromTicks,
    Time,
    TimeFromTicks,
    Timestamp,
    TimestampFromTicks,
)

__version__: str = _native.__version__

apilevel = "2.0"
threadsafety = 2
paramstyle = "qmark"

# PEP 249 wants them there, too.
for _error in (
    DatabaseError,
    DataError,
    Error,
    IntegrityError,
    InterfaceError,
    InternalError,
    NotSupportedError,
    OperationalError,
    ProgrammingError,
    Warning,
):
    setattr(Connection, _error.__name__, _error)

_atexit.register(_native.close_all)

connect = Connection

_default: Connection | None = None
_default_lock = _threading.Lock()


def _forked() -> None:
    """A child of os.fork has none of the parent's threads: it opens a default database of its own."""
    global _default, _default_lock
    _native.forked()
    # Another thread may have held the lock.
    _default, _default_lock = None, _threading.Lock()


_os.register_at_fork(after_in_child=_forked)


def default_connection() -> Connection:
    """The connection of `eris_db.sql`, to a database in memory that is opened when it is first asked for."""
    global _default
    with _default_lock:
        if _default is None or _default.closed:
            _default = Connection()
        return _default


def sql(statement: str, parameters: _Any = None) -> Result:
    """Executes statements on the default database.

    >>> eris_db.sql("SELECT 1 + 1").fetchone()
    (2,)
    """
    import sys

    return default_connection()._execute_for(sys._getframe(1), statement, parameters)


__all__ = [
    "BINARY",
    "DATETIME",
    "NUMBER",
    "ROWID",
    "STRING",
    "Binary",
    "Connection",
    "DataError",
    "Database",
    "DatabaseError",
    "Date",
    "DateFromTicks",
    "Error",
    "IntegrityError",
    "InterfaceError",
    "InternalError",
    "KeyIndex",
    "NotSupportedError",
    "OperationalError",
    "ProgrammingError",
    "Result",
    "Rows",
    "Time",
    "TimeFromTicks",
    "Timestamp",
    "TimestampFromTicks",
    "Warning",
    "__version__",
    "apilevel",
    "connect",
    "default_connection",
    "paramstyle",
    "sql",
    "threadsafety",
]
