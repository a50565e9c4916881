"""Random tables of all types, with NULLs, offsets and many chunks, through every library and back.

A failure prints the line `@reproduce_failure(…)` that shows it again.
"""

# Statements find variables that nothing else uses.
# ruff: noqa: B007, F841

import datetime
import decimal
import tempfile

import numpy
import pandas
import polars
import pyarrow
import pytest
from hypothesis import HealthCheck, configuration, given, settings
from hypothesis import strategies as st

import eris_db

# Nothing is written beside the sources.
configuration.set_hypothesis_home_dir(tempfile.mkdtemp(prefix="eris-hypothesis-"))
RANDOM = settings(
    max_examples=40, deadline=None, database=None, print_blob=True, suppress_health_check=list(HealthCheck)
)

FIRST, LAST = datetime.datetime(1700, 1, 1), datetime.datetime(2250, 1, 1)


def integers(bits, signed=True):
    low = -(2 ** (bits - 1)) if signed else 0
    return st.integers(low, low + 2**bits - 1)


def decimals(precision, scale):
    limit = 10**precision - 1
    return st.integers(-limit, limit).map(lambda value: decimal.Decimal(value).scaleb(-scale, decimal.Context(prec=50)))


def moments(unit):
    cut = {"s": 1_000_000, "ms": 1_000, "us": 1, "ns": 1}[unit]
    return st.datetimes(FIRST, LAST).map(lambda moment: moment.replace(microsecond=moment.microsecond // cut * cut))


TEXT = st.text(st.characters(codec="utf-8"), max_size=40)
UTC = datetime.UTC

# Types of columns that tables of Eris have, and their values.
STORED = {
    "bool": (pyarrow.bool_(), st.booleans()),
    **{f"int{bits}": (getattr(pyarrow, f"int{bits}")(), integers(bits)) for bits in (8, 16, 32, 64)},
    **{f"uint{bits}": (getattr(pyarrow, f"uint{bits}")(), integers(bits, signed=False)) for bits in (8, 16, 32, 64)},
    "float32": (pyarrow.float32(), st.floats(width=32)),
    "float64": (pyarrow.float64(), st.floats()),
    "decimal short": (pyarrow.decimal128(9, 4), decimals(9, 4)),
    "decimal long": (pyarrow.decimal128(38, 10), decimals(38, 10)),
    "string": (pyarrow.string(), TEXT),
    "large string": (pyarrow.large_string(), TEXT),
    "string view": (pyarrow.string_view(), TEXT),
    "binary": (pyarrow.binary(), st.binary(max_size=40)),
    "binary view": (pyarrow.binary_view(), st.binary(max_size=40)),
    "date": (pyarrow.date32(), st.dates()),
    "time": (pyarrow.time64("us"), st.times()),
    **{f"timestamp {unit}": (pyarrow.timestamp(unit), moments(unit)) for unit in ("s", "ms", "us", "ns")},
    "timestamp tz": (pyarrow.timestamp("us", "UTC"), moments("us").map(lambda moment: moment.replace(tzinfo=UTC))),
    "codes": (pyarrow.dictionary(pyarrow.int32(), pyarrow.string()), TEXT),
}
# Types that only pass through.
NESTED = {
    "null": (pyarrow.null(), st.none()),
    "list": (pyarrow.list_(pyarrow.int64()), st.lists(st.none() | integers(64), max_size=4)),
    "list of text": (pyarrow.large_list(pyarrow.string()), st.lists(st.none() | TEXT, max_size=4)),
    "list of lists": (
        pyarrow.list_(pyarrow.list_(pyarrow.int8())),
        st.lists(st.lists(integers(8), max_size=3), max_size=3),
    ),
    "struct": (
        pyarrow.struct([("a", pyarrow.int32()), ("b", pyarrow.string())]),
        st.fixed_dictionaries({"a": st.none() | integers(32), "b": st.none() | TEXT}),
    ),
}


@st.composite
def tables(draw, types):
    """A table of some columns, in some chunks, all of them parts of longer arrays."""
    chosen = draw(st.lists(st.sampled_from(sorted(types)), min_size=1, max_size=5))
    chunks = draw(st.lists(st.tuples(st.integers(0, 3), st.integers(0, 12)), min_size=1, max_size=4))
    columns = []
    for name in chosen:
        kind, values = types[name]
        parts = []
        for offset, length in chunks:
            rows = draw(st.lists(st.none() | values, min_size=offset + length, max_size=offset + length))
            plain = pyarrow.array(rows, kind.value_type if pyarrow.types.is_dictionary(kind) else kind)
            parts.append(plain.cast(kind).slice(offset))
        columns.append(pyarrow.chunked_array(parts, kind))
    names = [f"{name} {number}" for number, name in enumerate(chosen)]
    return pyarrow.table(columns, names)


@pytest.fixture(scope="module")
def shared():
    with eris_db.connect(memory="1GB", topology="1x2") as connection:
        connection.show_progress = False
        yield connection


def alike(one, other):
    """Whether two values are the same: NaN is itself, -0.0 is not 0.0."""
    if isinstance(one, list | tuple | numpy.ndarray) and isinstance(other, list | tuple | numpy.ndarray):
        return len(one) == len(other) and all(map(alike, one, other))
    if isinstance(one, dict) and isinstance(other, dict):
        return one.keys() == other.keys() and all(alike(one[key], other[key]) for key in one)
    if isinstance(one, float) and isinstance(other, float):
        return repr(float(one)) == repr(float(other)) or (one != one and other != other)
    return one == other


def check(found, expected):
    for name in expected.column_names:
        for row, (one, other) in enumerate(zip(found[name], expected.column(name).to_pylist(), strict=True)):
            assert alike(one, other), f"column {name!r}, row {row}: {one!r} is not {other!r}"


def lists(table):
    return {name: table.column(name).to_pylist() for name in table.column_names}


@RANDOM
@given(frame=tables({**STORED, **NESTED}))
def test_arrow_and_back(shared, frame):
    found = shared.execute("SELECT * FROM frame").arrow()
    found.validate(full=True)
    check(lists(found), frame)
    stream = shared.execute("SELECT * FROM frame").reader().read_all()
    check(lists(stream), frame)


@RANDOM
@given(frame=tables(STORED))
def test_tables_and_back(shared, frame):
    frame = frame.append_column("number", pyarrow.array(range(frame.num_rows)))
    shared.execute("CREATE OR REPLACE TABLE kept AS SELECT * FROM frame")
    check(lists(shared.execute("SELECT * FROM kept ORDER BY number").arrow()), frame)
    # The other ways in: appended, put by key, as parameters.
    shared.execute("DELETE FROM kept")
    shared.append("kept", frame.to_reader())
    found = shared.execute("SELECT * FROM kept ORDER BY number")
    names = found.columns
    check(
        dict(zip(names, map(list, zip(*found.fetchall(), strict=True)), strict=True))
        if frame.num_rows
        else lists(frame),
        finest(frame),
    )


def finest(frame):
    """Rows have microseconds."""
    fields = [
        field.with_type(pyarrow.timestamp("us")) if field.type == pyarrow.timestamp("ns") else field
        for field in frame.schema
    ]
    return frame.cast(pyarrow.schema(fields), safe=False)


@RANDOM
@given(frame=tables(STORED))
def test_rows_as_parameters(shared, frame):
    rows = [tuple(row.values()) for row in finest(frame).to_pylist()]
    shared.execute("CREATE OR REPLACE TABLE kept AS SELECT 0 AS number, * FROM frame LIMIT 0")
    marks = ", ".join("?" * (frame.num_columns + 1))
    shared.executemany(f"INSERT INTO kept VALUES ({marks})", [(number, *row) for number, row in enumerate(rows)])
    found = shared.execute("SELECT * FROM kept ORDER BY number").fetchall()
    assert alike([row[1:] for row in found], rows)


@RANDOM
@given(frame=tables({**STORED, **NESTED}))
def test_polars_and_back(shared, frame):
    given_frame = polars.from_arrow(frame)
    for frame in (given_frame, given_frame.lazy(), given_frame.rechunk()):
        found = shared.execute("SELECT * FROM frame").pl()
        for name in given_frame.columns:
            assert alike(found[name].to_list(), given_frame[name].to_list()), name


def missing(value):
    return value is None or value is pandas.NA or value is pandas.NaT or (isinstance(value, float) and value != value)


def as_pandas(value):
    """What a value is in pandas, if a column has both numbers and NULLs."""
    if missing(value):
        return None
    if isinstance(value, decimal.Decimal | int) and not isinstance(value, bool):
        return float(value)
    if isinstance(value, numpy.floating | numpy.integer):
        return float(value)
    if isinstance(value, datetime.date) and not isinstance(value, datetime.datetime):
        return datetime.datetime(value.year, value.month, value.day)
    return value


@RANDOM
@given(frame=tables(STORED))
def test_pandas_and_back(shared, frame):
    expected = {name: [as_pandas(value) for value in frame.column(name).to_pylist()] for name in frame.column_names}
    for made in (
        frame.to_pandas(),
        frame.to_pandas(types_mapper=pandas.ArrowDtype),
        frame.to_pandas(date_as_object=False),
    ):
        found = shared.execute("SELECT * FROM made").df()
        for name in frame.column_names:
            values = [as_pandas(value) for value in found[name].tolist()]
            # float32 that comes as float64 has the same value.
            assert alike(values, expected[name]), name


NUMPY = {name: STORED[name] for name in STORED if "decimal" not in name and name not in ("timestamp tz", "date")}


@RANDOM
@given(frame=tables(NUMPY))
def test_numpy_and_back(shared, frame):
    arrays = shared.execute("SELECT * FROM frame").numpy()
    for name, values in arrays.items():
        kind = frame.schema.field(name).type
        if pyarrow.types.is_integer(kind) or pyarrow.types.is_floating(kind):
            assert values.dtype == kind.to_pandas_dtype()
    check(lists(shared.execute("SELECT * FROM arrays").arrow()), frame)


@RANDOM
@given(frame=tables(STORED), data=st.data())
def test_slices_are_as_the_whole(shared, frame, data):
    start = data.draw(st.integers(0, frame.num_rows))
    part = frame.slice(start, data.draw(st.integers(0, frame.num_rows)))
    check(lists(shared.execute("SELECT * FROM part").arrow()), part)
    name = frame.column_names[0].replace('"', '""')
    counted = shared.execute(f'SELECT count(*), count("{name}") FROM part').fetchone()
    assert counted == (part.num_rows, part.num_rows - part.column(0).null_count)
