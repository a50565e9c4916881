from collections.abc import Coroutine, Iterable, Mapping, Sequence
from os import PathLike
from types import FrameType
from typing import Any, Final, Literal, Protocol, Self, TypeAlias, TypedDict, final

import numpy
import pandas
import polars
import pyarrow
from numpy.typing import NDArray

from . import _errors, _native
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
from ._types import (
    BINARY,
    DATETIME,
    NUMBER,
    ROWID,
    STRING,
    Binary,
    Date,
    DateFromTicks,
    DBAPIType as _DBAPIType,
    Time,
    TimeFromTicks,
    Timestamp,
    TimestampFromTicks,
)

__version__: Final[str]
apilevel: Final = "2.0"
threadsafety: Final = 2
paramstyle: Final = "qmark"

class _ArrowStream(Protocol):
    def __arrow_c_stream__(self, requested_schema: Any = None) -> object: ...

class _ArrowArray(Protocol):
    def __arrow_c_array__(self, requested_schema: Any = None) -> tuple[object, object]: ...

# polars.LazyFrame, by what is needed of it: the stubs lead to no library that may not be there.
class _LazyFrame(Protocol):
    def collect_schema(self) -> Any: ...
    def filter(self, *predicates: Any) -> Any: ...

# pyarrow.dataset.Dataset.
class _Dataset(Protocol):
    @property
    def schema(self) -> Any: ...
    def scanner(self, **options: Any) -> Any: ...

# Values of one column.
_Column: TypeAlias = NDArray[Any] | Iterable[object] | _ArrowArray | _ArrowStream
# A relation of the calling program: also pandas.DataFrame, pyarrow.Table, pyarrow.RecordBatchReader.
_Frame: TypeAlias = _ArrowStream | _ArrowArray | _LazyFrame | _Dataset | Mapping[str, _Column]
# Keys of one column, or a tuple of the columns of a key.
_Keys: TypeAlias = _Column | tuple[_Column, ...]
_Parameters: TypeAlias = Sequence[object] | Mapping[str, object]
_Row: TypeAlias = tuple[Any, ...]
_Description: TypeAlias = list[tuple[str, _DBAPIType, None, None, None, None, bool]]
_Strings: TypeAlias = Literal["view", "string", "large_string"]
_HugePages: TypeAlias = Literal["auto", "always", "never"]

class _Progress(TypedDict):
    rows: tuple[int, int]
    bytes: tuple[int, int]
    written: int

@final
class Database:
    """An Eris database, in this process: in memory, or in a directory that outlives it.

    >>> database = eris_db.Database(memory="512MB", aeus=1)
    >>> connection = database.connect()
    >>> connection.execute("SELECT 6 * 7").fetchone()
    (42,)
    """

    def __new__(
        cls,
        directory: str | PathLike[str] | None = None,
        *,
        memory: int | str | None = None,
        aeus: int | None = None,
        topology: str | None = None,
        read_only: bool = False,
        synchronous: str | None = None,
        huge_pages: _HugePages = "auto",
    ) -> Self: ...
    def connect(self) -> Connection:
        """A new connection, with settings of its own."""
    @property
    def memory(self) -> tuple[int, int]:
        """Bytes of memory that tables and queries use, and the limit."""
    @property
    def closed(self) -> bool:
        """Whether it was closed."""
    def close(self) -> None:
        """Closes it, with all connections and results. What was committed is on the disk when this returns."""
    def __enter__(self) -> Self: ...
    def __exit__(self, *_raised: object) -> None: ...

@final
class Connection:
    """A connection to a database, and a cursor: it executes statements, one after the other, and has the rows of the last
    one. It may be used by any thread.

    >>> connection = eris_db.connect()
    >>> connection.execute("CREATE TABLE t (k BIGINT PRIMARY KEY, v VARCHAR)")
    CREATE TABLE
    >>> connection.executemany("INSERT INTO t VALUES (?, ?)", [(1, "one"), (2, "two")])
    INSERT 2
    >>> connection.execute("SELECT v FROM t WHERE k = ?", [2]).fetchone()
    ('two',)
    """

    Warning: Final = _errors.Warning
    """Something that may be a mistake."""
    Error: Final = _errors.Error
    """What a statement failed with.

    sqlstate: five characters that tell which kind of failure it was, as PostgreSQL has them.
    position: line and column in the text, from 1. hint: what to do about it. Each is None where it is not known.
    """
    InterfaceError: Final = _errors.InterfaceError
    """The module is used in a way that it cannot be: a closed connection, a forked process."""
    DatabaseError: Final = _errors.DatabaseError
    """Any failure of the database."""
    DataError: Final = _errors.DataError
    """A value is out of range, or none of its type."""
    OperationalError: Final = _errors.OperationalError
    """The database cannot do it now: no memory, a full disk, a timeout, a cancelled statement."""
    IntegrityError: Final = _errors.IntegrityError
    """A row breaks a rule of its table."""
    InternalError: Final = _errors.InternalError
    """A bug in Eris. Only this statement is affected."""
    ProgrammingError: Final = _errors.ProgrammingError
    """The statement is wrong: its syntax, a name, a type, the number of its values."""
    NotSupportedError: Final = _errors.NotSupportedError
    """SQL that Eris does not do."""

    def __new__(
        cls,
        directory: str | PathLike[str] | None = None,
        *,
        memory: int | str | None = None,
        aeus: int | None = None,
        topology: str | None = None,
        read_only: bool = False,
        synchronous: str | None = None,
        huge_pages: _HugePages = "auto",
    ) -> Self: ...
    def execute(self, statement: str, parameters: _Parameters | None = None) -> Result:
        """Executes a statement, or several with ; between them: the result is that of the last one. Values for ?, $1 or
        $name are a list, a tuple or a dict.
        """
    def sql(self, statement: str, parameters: _Parameters | None = None) -> Result:
        """The same as execute."""
    def _execute_for(
        self, caller: FrameType, statement: str, parameters: _Parameters | None = None, job: _native.Job | None = None
    ) -> Result: ...
    def aexecute(self, statement: str, parameters: _Parameters | None = None) -> Coroutine[Any, Any, Result]:
        """Executes without blocking the event loop: await it. A task that is cancelled cancels its statement."""
    def executemany(self, statement: str, parameters: Iterable[_Parameters]) -> Result:
        """Executes a statement once for each of many values. An INSERT of VALUES is one statement: all rows or none.
        Others are executed one after the other.
        """
    def append(self, table: str, object: _Frame, *, by_name: bool = True) -> Result:
        """Appends all rows of an object to a table: of a DataFrame, an Arrow table or reader, or a dict of arrays. Columns
        go by their names, or with by_name=False by their order. All rows are written, or none.
        """
    def register(self, name: str, object: _Frame) -> Self:
        """Gives an object a name in FROM, for this connection. A table of this name goes first."""
    def unregister(self, name: str) -> Self:
        """Takes the name back."""
    def rows(self, table: str) -> Rows:
        """A way to the rows of a table by its PRIMARY KEY, without SQL."""
    def cursor(self) -> Connection:
        """A session of its own on the same database. It finds what is registered here at this moment."""
    @property
    def connection(self) -> Connection:
        """The connection whose cursor this is; itself if it is none."""
    def interrupt(self) -> bool:
        """Cancels the statement that runs, from another thread. False: it takes effect, or has, or there is none."""
    def progress(self) -> _Progress | None:
        """How far the last statement is: a dict of rows and bytes, each (done, total), and rows written."""
    @property
    def description(self) -> _Description | None:
        """The columns of the last result, as PEP 249 has them."""
    @property
    def rowcount(self) -> int:
        """How many rows the last statement has written; -1 if it has rows."""
    def fetchone(self) -> _Row | None:
        """Of the last result: the next row as a tuple; None behind the last one."""
    def fetchmany(self, size: int | None = None) -> list[_Row]:
        """Of the last result: at most so many of the next rows; arraysize by default."""
    def fetchall(self) -> list[_Row]:
        """Of the last result: all rows that are left."""
    def arrow(self, *, strings: _Strings = "view") -> pyarrow.Table:
        """Of the last result: all rows that are left, as a pyarrow.Table."""
    def reader(self, *, strings: _Strings = "view") -> pyarrow.RecordBatchReader:
        """Of the last result: a pyarrow.RecordBatchReader."""
    def pl(self) -> polars.DataFrame:
        """Of the last result: all rows that are left, as a polars.DataFrame."""
    def df(self) -> pandas.DataFrame:
        """Of the last result: all rows that are left, as a pandas.DataFrame."""
    def numpy(self) -> dict[str, NDArray[Any]]:
        """Of the last result: all rows that are left, as a dict of numpy arrays."""
    arraysize: int
    """How many rows fetchmany gives by default."""
    def setinputsizes(self, _sizes: object) -> None:
        """PEP 249; it does nothing."""
    def setoutputsize(self, _size: object, _column: object = None) -> None:
        """PEP 249; it does nothing."""
    timeout: float | None
    """Seconds after which a statement fails; None for no limit."""
    scan_variables: bool
    """Whether a name that the catalogue lacks is looked for among the caller's variables."""
    show_progress: bool
    """Whether long statements show a bar."""
    def commit(self) -> None:
        """Every statement commits by itself: this does nothing."""
    def rollback(self) -> None:
        """Every statement commits by itself: what was written since the last commit() cannot be undone, which raises
        NotSupportedError.
        """
    @property
    def closed(self) -> bool:
        """Whether it was closed."""
    def close(self) -> None:
        """Closes it, and the database if it was opened with it."""
    def __iter__(self) -> Self: ...
    def __next__(self) -> _Row: ...
    def __enter__(self) -> Self: ...
    def __exit__(self, *_raised: object) -> None: ...

@final
class Result:
    """What a statement led to. Rows are computed while they are read; what is not read is not computed.

    >>> result = eris_db.sql("SELECT * FROM range(3) AS r(i)")
    >>> result.fetchone()
    (0,)
    >>> [i for (i,) in result]
    [1, 2]
    """

    @property
    def description(self) -> _Description | None:
        """PEP 249: a tuple (name, type, None, None, None, None, null_ok) per column; None if there are no rows. Types are
        those of Arrow, as text.
        """
    @property
    def columns(self) -> list[str]:
        """The names of the columns."""
    @property
    def rowcount(self) -> int:
        """How many rows were written; -1 if the statement has rows, which nobody has counted yet."""
    @property
    def statement(self) -> str:
        """The kind of statement, such as INSERT or CREATE TABLE."""
    def fetchone(self) -> _Row | None:
        """The next row as a tuple; None behind the last one."""
    def fetchmany(self, size: int = 1) -> list[_Row]:
        """At most so many of the next rows, as a list of tuples."""
    def fetchall(self) -> list[_Row]:
        """All rows that are left, as a list of tuples."""
    def arrow(self, *, strings: _Strings = "view") -> pyarrow.Table:
        """All rows that are left, as a pyarrow.Table. strings: "view" as they are, or "string" or "large_string"."""
    def reader(self, *, strings: _Strings = "view") -> pyarrow.RecordBatchReader:
        """A pyarrow.RecordBatchReader, which pulls the rows that are left."""
    def pl(self) -> polars.DataFrame:
        """All rows that are left, as a polars.DataFrame."""
    def df(self) -> pandas.DataFrame:
        """All rows that are left, as a pandas.DataFrame. Integers with NULLs become floats, as pandas does it."""
    def numpy(self) -> dict[str, NDArray[Any]]:
        """All rows that are left, as a dict of numpy arrays; columns with NULLs are masked arrays."""
    def close(self) -> None:
        """Gives up the rows that are left."""
    def __iter__(self) -> Self: ...
    def __next__(self) -> _Row: ...
    def __arrow_c_stream__(self, requested_schema: Any = None) -> Any:
        """Arrow's PyCapsule interface: a stream of the rows that are left, which the consumer pulls."""
    def __arrow_c_schema__(self) -> Any:
        """Arrow's PyCapsule interface: the columns."""
    def _peek(self, size: int) -> tuple[list[_Row], bool]: ...
    def _repr_html_(self) -> str | None: ...

@final
class Rows:
    """A way to the rows of one table with a PRIMARY KEY.

    Keys are an array or a list; several columns are a tuple of them. What is read is of one snapshot; what is written
    is all visible at once or not at all.

    >>> connection = eris_db.connect()
    >>> connection.execute("CREATE TABLE t (k BIGINT PRIMARY KEY, v VARCHAR)")
    CREATE TABLE
    >>> rows = connection.rows("t")
    >>> rows.put({"k": [1, 2], "v": ["one", "two"]})
    0
    >>> found, of = rows.get([2, 3])
    >>> found.fetchall(), of.tolist()
    ([(2, 'two')], [0])
    """

    @property
    def key(self) -> list[str]:
        """The names of the key's columns."""
    def get(self, keys: _Keys, columns: Sequence[str] | None = None) -> tuple[Result, NDArray[numpy.uint32]]:
        """The rows that have these keys, in the order of the keys: (rows, of). of[i] is the position of the key of row i:
        an array of numpy, or a list where there is no numpy. columns: those that are wanted; all by default.
        """
    def put(self, batch: _Frame) -> int:
        """Puts rows in: anything with Arrow's interface, a DataFrame, or a dict of arrays. Columns go by their names; one
        that is missing gets its default. Each row replaces the one that has its key. Returns how many were replaced.
        """
    def remove(self, keys: _Keys) -> int:
        """Removes the rows that have these keys. Returns how many there were."""
    def ranges(
        self,
        bounds: Iterable[tuple[object, object]],
        limit: int,
        columns: Sequence[str] | None = None,
    ) -> list[Result]:
        """For each pair (low, high) the rows whose keys are from low on and below high, in the order of their keys, at
        most so many of each. None is no bound. A key of several columns is a tuple.
        """

@final
class KeyIndex:
    """An index of 64-bit keys to 64-bit values, without rows, types or snapshots. Keys and values are arrays of uint64.

    A batch is executed by the workers that own its keys; threads that share an index wait for each other. Ctrl-C ends a
    large batch between two parts of it: those before are done.

    >>> import numpy
    >>> database = eris_db.Database(memory="512MB", aeus=1)
    >>> index = eris_db.KeyIndex(database)
    >>> keys = numpy.array([1, 2, 3], dtype=numpy.uint64)
    >>> index.put(keys, keys * 2)
    0
    >>> index.get(keys)
    array([2, 4, 6], dtype=uint64)
    """

    def __new__(cls, database: Database, low: int = 0, high: int = ..., *, name: str = "index") -> Self: ...
    def get(
        self,
        keys: NDArray[numpy.uint64],
        *,
        default: int = 0,
        out: NDArray[numpy.uint64] | None = None,
    ) -> NDArray[numpy.uint64]:
        """The values of keys; `default` for those that the index does not have. out: where they go."""
    def contains(self, keys: NDArray[numpy.uint64]) -> NDArray[numpy.bool_]:
        """Which of the keys the index has: an array of bool."""
    def put(self, keys: NDArray[numpy.uint64], values: NDArray[numpy.uint64]) -> int:
        """Puts entries in; of keys that occur twice the last value stays. Returns how many keys were there before."""
    def remove(self, keys: NDArray[numpy.uint64]) -> int:
        """Removes keys. Returns how many there were."""

connect = Connection

def default_connection() -> Connection:
    """The connection of `eris_db.sql`, to a database in memory that is opened when it is first asked for."""

def sql(statement: str, parameters: _Parameters | None = None) -> Result:
    """Executes statements on the default database.

    >>> eris_db.sql("SELECT 1 + 1").fetchone()
    (2,)
    """

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
