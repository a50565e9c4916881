"""Objects of Python as relations.

    what                                  how it is read
    __arrow_c_stream__ (Polars, pyarrow)  its buffers, shared; any number of times
    pyarrow.RecordBatchReader             batch by batch; once
    pyarrow datasets, Polars LazyFrames   only wanted columns, conditions go with them
    pandas.DataFrame                      only wanted columns are converted; NaN, NaT and None are NULL
    dict of arrays                        a column for each

None of these libraries is imported here before an object of it is met.
"""

from __future__ import annotations

import sys
import weakref
from collections.abc import Iterator
from typing import Any

from . import _errors, _native


def find(name: str, caller: Any) -> _native.Frame | None:
    """The relation among the variables of a frame of execution, its locals before its globals.

    SQL has names in lower case unless they are quoted: a variable in another case is found too, if it is the only one.
    """
    for variables in (caller.f_locals, caller.f_globals):
        value = _variable(name, variables)
        if value is not None:
            return relation(value, name)
    return None


def _variable(name: str, variables: Any) -> Any:
    if name in variables:
        return variables[name]
    if not name.islower():
        return None
    alike = [known for known in list(variables) if isinstance(known, str) and known.lower() == name]
    return variables[alike[0]] if len(alike) == 1 else None


def relation(value: Any, name: str | None = None) -> _native.Frame:
    """An object as a relation."""
    if isinstance(value, _native.Frame):
        return value
    kind = f"{type(value).__module__.partition('.')[0]}.{type(value).__name__}"
    if _is_a(value, "pandas", "DataFrame"):
        return _of_pandas(value, kind)
    if _is_a(value, "polars", "LazyFrame"):
        return _of_lazy_frame(value, kind)
    if _is_a(value, "polars", "DataFrame"):
        return _of_arrow(_of_sql(value, value.schema), kind)
    if _is_a(value, "pyarrow.dataset", "Dataset"):
        return _of_dataset(value, kind)
    if _is_a(value, "pyarrow", "RecordBatchReader"):
        return _of_reader(value, kind)
    if isinstance(value, dict) and value:
        return _native.Frame(kind, batches=value)
    if hasattr(value, "__arrow_c_stream__") or hasattr(value, "__arrow_c_array__"):
        return _of_arrow(value, kind)
    called = f'table "{name}" does not exist, and the variable of this name is' if name else "this is"
    raise _mistake(
        f"{called} a {kind.removeprefix('builtins.')}, which is no relation:"
        " a DataFrame, an Arrow table or reader, or a dict of arrays is needed",
        "42P01" if name else "42809",
    )


def _mistake(text: str, sqlstate: str) -> _errors.ProgrammingError:
    error = _errors.ProgrammingError(text)
    error.sqlstate = sqlstate
    return error


def rows(value: Any) -> Any:
    """A dict of columns, or an object with Arrow's interface, that has the same rows."""
    if _is_a(value, "pandas", "DataFrame"):
        return {str(label): _series(value.iloc[:, at]) for at, label in enumerate(value.columns)}
    if _is_a(value, "polars", "LazyFrame"):
        value = value.collect()
    if _is_a(value, "polars", "DataFrame"):
        return _of_sql(value, value.schema)
    raise _mistake(
        f"a {type(value).__name__} is no relation:"
        " a DataFrame, an Arrow table or reader, or a dict of arrays is needed",
        "42809",
    )


def _is_a(value: Any, module: str, name: str) -> bool:
    """Whether it is of a class of a library, which is not imported for this."""
    # It may be that another thread is importing it: then it has no such class yet.
    known = getattr(sys.modules.get(module), name, None)
    return known is not None and isinstance(value, known)


# ---- Arrow -----------------------------------------------------------------------------------------------------------


def _of_arrow(value: Any, kind: str) -> _native.Frame:
    # What knows how many rows it has is a table, which can be read again. All others are streams.
    is_table = any(hasattr(value, of) for of in ("num_rows", "shape", "__len__"))
    if not _has_columns(value):
        raise _mistake(
            f"a {kind} has one column without a name:"
            " a DataFrame, an Arrow table or reader, or a dict of arrays is needed",
            "42809",
        )
    if is_table or not hasattr(value, "__arrow_c_stream__"):
        return _native.Frame(kind, batches=value)
    return _native.Frame(kind, stream=value)


def _has_columns(value: Any) -> bool:
    """Whether the values of an object are rows. Columns of Polars and pyarrow have Arrow's interface, too."""
    if _is_a(value, "polars", "Series"):
        return value.dtype == sys.modules["polars"].Struct
    if _is_a(value, "pyarrow", "Array") or _is_a(value, "pyarrow", "ChunkedArray"):
        return sys.modules["pyarrow"].types.is_struct(value.type)
    return True


_read_already: weakref.WeakSet[Any] = weakref.WeakSet()
"""Readers that have no rows any more, and would not say so."""


def _of_reader(value: Any, kind: str) -> _native.Frame:
    # By way of Python: what its generator raises comes through Arrow's C stream as a text only.
    def read(columns: list[int], conditions: list[Any]) -> Iterator[Any]:
        if value in _read_already:
            raise _mistake(f"a {kind} can be read only once, and was read already", "55000")
        _read_already.add(value)
        return (batch.select(columns) for batch in value)

    return _native.Frame(kind, schema=value.schema, read=read)


# ---- Polars and datasets ---------------------------------------------------------------------------------------------


def _of_lazy_frame(value: Any, kind: str) -> _native.Frame:
    polars = sys.modules["polars"]
    value = _of_sql(value, value.collect_schema())
    schema = value.collect_schema()
    names = schema.names()

    def read(columns: list[int], conditions: list[tuple[str, str, Any]]) -> Any:
        wanted = value
        for name, operator, constant in conditions:
            condition = _polars_condition(name, schema[name], operator, constant)
            if condition is not None:
                wanted = wanted.filter(condition)
        return wanted.select([names[at] for at in columns]).collect()

    return _native.Frame(kind, schema=polars.DataFrame(schema=schema), read=read, takes_conditions=True)


def _polars_condition(name: str, kind: Any, operator: str, constant: Any) -> Any:
    """A condition as Polars means it; None where it may mean something else. The rows are compared again anyway."""
    polars = sys.modules["polars"]
    column = polars.col(name)
    if operator in ("is null", "is not null"):
        return _compared(column, operator, constant)
    plain = (polars.Boolean, polars.String, polars.Binary, polars.Date)
    # Constants have microseconds. Of finer and coarser times, and of other time zones, Polars has rules of its own.
    is_micro = isinstance(kind, polars.Datetime) and kind.time_unit == "us" and kind.time_zone in (None, "UTC")
    if not (kind in plain or kind.is_integer() or kind in (polars.Float32, polars.Float64) or is_micro):
        return None
    # Dates that Python does not have are texts.
    if _has_texts(operator, constant) and kind != polars.String:
        return None
    if operator == "in":
        return column.is_in(polars.Series(constant, dtype=kind))
    return _compared(column, operator, polars.lit(constant, dtype=kind))


def _of_sql(value: Any, schema: Any) -> Any:
    """A frame of Polars, lazy or not, in types that SQL has."""
    polars = sys.modules["polars"]
    for name, kind in schema.items():
        if kind in (polars.Object, polars.Int128, polars.UInt128):
            error = _errors.NotSupportedError(
                f'column "{name}": there is no type of SQL for values of Polars\' type {kind}'
            )
            error.sqlstate = "0A000"
            raise error
    # Polars gives columns of NULLs a buffer, which in Arrow's interface they do not have.
    nulls = {name: polars.String for name, kind in schema.items() if kind == polars.Null}
    return value.cast(nulls) if nulls else value


def _of_dataset(value: Any, kind: str) -> _native.Frame:
    names = value.schema.names

    def read(columns: list[int], conditions: list[tuple[str, str, Any]]) -> Iterator[Any]:
        condition = None
        for name, operator, constant in conditions:
            compared = _arrow_condition(name, value.schema.field(name).type, operator, constant)
            if compared is not None:
                condition = compared if condition is None else condition & compared
        reader = value.scanner(columns=[names[at] for at in columns], filter=condition).to_reader()
        # By way of Python, as a reader.
        return (batch for batch in reader)

    return _native.Frame(kind, schema=value.schema, read=read, takes_conditions=True)


def _arrow_condition(name: str, kind: Any, operator: str, constant: Any) -> Any:
    """A condition as Arrow means it; None where it may mean something else. The rows are compared again anyway."""
    pyarrow, types = sys.modules["pyarrow"], sys.modules["pyarrow"].types
    column = sys.modules["pyarrow.dataset"].field(name)
    plain = (
        types.is_integer(kind)
        or types.is_boolean(kind)
        or types.is_string(kind)
        or types.is_large_string(kind)
        or types.is_binary(kind)
        or types.is_date32(kind)
        or types.is_decimal128(kind)
        # Constants have microseconds.
        or (types.is_timestamp(kind) and kind.unit == "us" and kind.tz in (None, "UTC"))
    )
    is_float = types.is_float32(kind) or types.is_float64(kind)
    if not plain and not is_float:
        return None
    if operator in ("is null", "is not null"):
        return _compared(column, operator, constant)
    constants = constant if operator == "in" else [constant]
    if _has_texts(operator, constant) and not (types.is_string(kind) or types.is_large_string(kind)):
        return None
    if is_float:
        if any(constant != constant for constant in constants):
            # Arrow finds NaN unlike itself.
            return None
        if operator == "in":
            # For Arrow's isin, and for nothing else, 0.0 and -0.0 differ.
            constants = [*constants, *(-constant for constant in constants if constant == 0)]
    typed = pyarrow.array(constants, type=kind)
    compared = _compared(column, operator, typed if operator == "in" else typed[0])
    # In SQL NaN is above all numbers.
    return compared | column.is_nan() if is_float else compared


def _has_texts(operator: str, constant: Any) -> bool:
    return any(isinstance(value, str) for value in (constant if operator == "in" else [constant]))


def _compared(column: Any, operator: str, constant: Any) -> Any:
    match operator:
        case "==":
            return column == constant
        case "!=":
            return column != constant
        case "<":
            return column < constant
        case "<=":
            return column <= constant
        case ">":
            return column > constant
        case ">=":
            return column >= constant
        case "in":
            return column.is_in(constant) if hasattr(column, "is_in") else column.isin(constant)
        case "is null":
            return column.is_null()
        case _:
            return column.is_not_null() if hasattr(column, "is_not_null") else column.is_valid()


# ---- pandas ----------------------------------------------------------------------------------------------------------


def _of_pandas(value: Any, kind: str) -> _native.Frame:
    """A frame for one statement: what is converted is kept for it, and for no other one, for the values may change."""
    labels = [str(label) for label in value.columns]
    converted: dict[int, Any] = {}

    def column(at: int) -> Any:
        if at not in converted:
            try:
                converted[at] = _series(value.iloc[:, at])
            except _errors.Error as error:
                error.args = (f'column "{labels[at]}": {error}',)
                raise
        return converted[at]

    def type_of(at: int) -> Any:
        # One that cannot be converted is an error for those who read it.
        try:
            known = _kind(value.iloc[:, at])
            return column(at) if known is None else known
        except _errors.Error:
            return [None]

    def read(columns: list[int], conditions: list[Any]) -> Iterator[Any]:
        return iter([{labels[at]: column(at) for at in columns}])

    schema = [(label, type_of(at)) for at, label in enumerate(labels)]
    return _native.Frame(kind, schema=schema, rows=len(value), read=read, renew=lambda: _of_pandas(value, kind))


def _kind(series: Any) -> Any:
    """The type of a column before it is converted: a name, or an array of this type. None: only its values tell it."""
    pandas, dtype = sys.modules["pandas"], series.dtype
    if str(dtype) in _NUMPY:
        return str(dtype)
    if hasattr(dtype, "categories"):
        # Those of whole numbers are of another type where values are missing.
        is_whole = dtype.categories.dtype.kind in "iub"
        return None if is_whole else _kind(dtype.categories.to_series())
    if dtype.kind != "O" or hasattr(dtype, "pyarrow_dtype"):
        # All values have it.
        return _series(series.iloc[:0])
    if isinstance(dtype, pandas.StringDtype):
        return _series(series.iloc[:0]) if _is_arrows(series) else "str"
    # To look at all values takes a small part of what their conversion does.
    names = {"string": "str", "bytes": "bytes"}
    return names.get(pandas.api.types.infer_dtype(series, skipna=True))


_NUMPY = frozenset(
    ["bool", "int8", "int16", "int32", "int64", "uint8", "uint16", "uint32", "uint64", "float32", "float64"]
    + [f"{kind}[{unit}]" for kind in ("datetime64", "timedelta64") for unit in ("s", "ms", "us", "ns")]
)


def _series(series: Any) -> Any:
    """A column of pandas as an Arrow array."""
    dtype = series.dtype
    if str(dtype) in _NUMPY:
        return _native.numpy_column(series.to_numpy(), nan_is_null=True)
    if hasattr(dtype, "categories"):
        # Of numpy's types, integers and truth values have no place for what is missing.
        is_whole = dtype.categories.dtype.kind in "iub"
        return _series(series.astype("object" if is_whole and series.hasnans else dtype.categories.dtype))
    if hasattr(dtype, "tz"):
        local = series.dt.tz_convert("UTC").dt.tz_localize(None)
        return _native.numpy_column(local.to_numpy(), utc=True)
    inner = series.array
    if _is_arrows(series):
        import pyarrow

        made = pyarrow.array(series, from_pandas=True)
        return made.combine_chunks() if isinstance(made, pyarrow.ChunkedArray) else made
    if hasattr(inner, "_mask"):
        import numpy

        return _native.numpy_column(numpy.ma.array(inner._data, mask=inner._mask))
    values = series.to_numpy()
    if values.dtype.kind == "O":
        missing = series.isna().to_numpy()
        values = [None if gone else value for value, gone in zip(values, missing, strict=True)]
    return _native.numpy_column(values, nan_is_null=True)


def _is_arrows(series: Any) -> bool:
    """Whether pyarrow is there, and has a type for what pandas has."""
    pandas, dtype = sys.modules["pandas"], series.dtype
    if hasattr(dtype, "pyarrow_dtype"):
        return True
    # Of periods and intervals it would make something that they are not.
    return (
        "pyarrow" in sys.modules
        and hasattr(series.array, "__arrow_array__")
        and hasattr(dtype, "na_value")
        and dtype.kind == "O"
        and not isinstance(dtype, (pandas.PeriodDtype, pandas.IntervalDtype))
    )
