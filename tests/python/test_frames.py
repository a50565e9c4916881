"""Frames in: objects of all kinds, their names and scopes, what is read of them, producers that fail or lie."""

# Statements find variables that nothing else uses.
# ruff: noqa: F841

import datetime
import decimal
import sys
import types

import numpy
import pandas
import polars
import pyarrow
import pyarrow.dataset
import pytest

import eris_db

GLOBAL = pyarrow.table({"k": [7]})
Decimal = decimal.Decimal
UTC = datetime.UTC


def rows(con, name="frame", columns="*"):
    return con.execute(f"SELECT {columns} FROM {name}").fetchall()


# ---- kinds of objects ------------------------------------------------------------------------------------------------

EXPECTED = [(1, "x", 1.5), (2, None, None), (3, "z", -2.5)]
COLUMNS = {"k": [1, 2, 3], "s": ["x", None, "z"], "f": [1.5, None, -2.5]}


class OnlyArrays:
    """An object that has one batch, and nothing but Arrow's interface."""

    def __init__(self, batch):
        self.batch = batch

    def __arrow_c_array__(self, requested_schema=None):
        return self.batch.__arrow_c_array__(requested_schema)


class OnlyStreams:
    """An object that has a stream, and nothing else."""

    def __init__(self, table):
        self.table = table

    def __arrow_c_stream__(self, requested_schema=None):
        return self.table.__arrow_c_stream__(requested_schema)


def table():
    return pyarrow.table(COLUMNS)


KINDS = {
    "pyarrow table": table,
    "pyarrow batch": lambda: table().to_batches()[0],
    "pyarrow reader": lambda: table().to_reader(),
    "pyarrow dataset": lambda: pyarrow.dataset.dataset(table()),
    "arrays": lambda: OnlyArrays(table().to_batches()[0]),
    "stream": lambda: OnlyStreams(table()),
    "polars frame": lambda: polars.DataFrame(COLUMNS),
    "polars lazy frame": lambda: polars.LazyFrame(COLUMNS),
    "pandas frame": lambda: pandas.DataFrame(COLUMNS),
    "pandas frame of Arrow": lambda: table().to_pandas(types_mapper=pandas.ArrowDtype),
    "pandas frame with nullable types": lambda: pandas.DataFrame(COLUMNS).convert_dtypes(),
    "pandas frame of objects": lambda: pandas.DataFrame(COLUMNS, dtype="object"),
    "dict of lists": lambda: dict(COLUMNS),
    "dict of numpy": lambda: {
        "k": numpy.array([1, 2, 3]),
        "s": numpy.array(["x", None, "z"], dtype="object"),
        "f": numpy.ma.array([1.5, 0, -2.5], mask=[False, True, False]),
    },
    "dict of all kinds": lambda: {
        "k": pandas.Series([1, 2, 3]),
        "s": polars.Series(["x", None, "z"]),
        "f": pyarrow.chunked_array([[1.5], [None, -2.5]]),
    },
}


@pytest.fixture(params=KINDS, ids=lambda name: name.replace(" ", "-"))
def made(request):
    return KINDS[request.param]


def test_every_kind_is_a_relation(con, made):
    frame = made()
    assert con.execute("SELECT k, s, f FROM frame ORDER BY k").fetchall() == EXPECTED
    frame = made()
    assert con.execute("SELECT sum(k), count(s), count(f) FROM frame").fetchall() == [(6, 2, 2)]
    frame = made()
    assert con.execute("SELECT f FROM frame WHERE k >= 2 AND s IS NOT NULL").fetchall() == [(-2.5,)]
    frame = made()
    assert con.execute("SELECT count(*) FROM frame").fetchall() == [(3,)]
    frame = made()
    con.execute("CREATE TABLE t AS SELECT * FROM frame")
    assert con.execute("SELECT k, s, f FROM t ORDER BY k").fetchall() == EXPECTED


def test_every_kind_is_registered(con, made):
    assert con.register("Given", made()) is con
    con.scan_variables = False
    assert con.execute("SELECT k, s, f FROM given ORDER BY k").fetchall() == EXPECTED
    con.unregister("GIVEN")
    with pytest.raises(eris_db.ProgrammingError, match='"given" does not exist'):
        con.execute("SELECT * FROM given")


def test_every_kind_is_appended(con, made):
    con.execute("CREATE TABLE t (f DOUBLE, k BIGINT PRIMARY KEY, s VARCHAR, d BIGINT DEFAULT 9)")
    assert con.append("t", made()).rowcount == 3
    assert con.execute("SELECT k, s, f, d FROM t ORDER BY k").fetchall() == [(*row, 9) for row in EXPECTED]


@pytest.mark.parametrize("frame", [polars.Series([1]), pyarrow.array([1])], ids=type)
def test_columns_are_no_relations(con, frame):
    with pytest.raises(eris_db.ProgrammingError):
        con.execute("SELECT * FROM frame")
    with pytest.raises(eris_db.ProgrammingError):
        con.register("frame", frame)


def test_other_objects_are_no_relations(con):
    for frame in (5, "text", [1, 2], {}, object(), numpy.array([1]), len):
        with pytest.raises(eris_db.ProgrammingError, match="no relation"):
            con.execute("SELECT * FROM frame")
        with pytest.raises(eris_db.ProgrammingError):
            con.register("frame", frame)
    assert con.execute("SELECT 1").fetchone() == (1,)


def test_a_wrong_column_of_a_dict_is_named(con):
    for column in ([1, "a"], [object()], numpy.array([1j]), numpy.zeros((1, 1))):
        frame = {"k": [1] * len(column), "x": column}
        with pytest.raises(eris_db.DataError, match='column "x"') as raised:
            con.execute("SELECT k FROM frame")
        assert raised.value.sqlstate == "22000"


def test_a_library_that_is_being_imported(con, monkeypatch):
    """Another thread imports pandas: the module is there already, its classes are not."""
    for name in ("pandas", "polars", "pyarrow.dataset"):
        monkeypatch.setitem(sys.modules, name, types.ModuleType(name))
    frame = pyarrow.table({"k": [1]})
    assert con.execute("SELECT k FROM frame").fetchall() == [(1,)]


def test_columns_of_different_lengths(con):
    frame = {"a": numpy.arange(3), "b": numpy.arange(4)}
    with pytest.raises(eris_db.DataError, match='"a" has 3 values, but column "b" 4'):
        con.execute("SELECT * FROM frame")


# ---- pandas ----------------------------------------------------------------------------------------------------------


@pytest.mark.parametrize(
    ("series", "expected"),
    [
        (pandas.Series([1, None, 3], dtype="Int64"), [1, None, 3]),
        (pandas.Series([1, None], dtype="UInt8"), [1, None]),
        (pandas.Series([1.5, None], dtype="Float32"), [1.5, None]),
        (pandas.Series([True, None], dtype="boolean"), [True, None]),
        (pandas.Series([True, None, False], dtype="object"), [True, None, False]),
        (pandas.Series([1, None, 3], dtype="object"), [1, None, 3]),
        (pandas.Series([2**63, None], dtype="object"), [2**63, None]),
        (pandas.Series([1.5, float("nan")]), [1.5, None]),
        (pandas.Series(["a", None, "ß"], dtype="str"), ["a", None, "ß"]),
        (pandas.Series(["a", None], dtype="object"), ["a", None]),
        (pandas.Series(["a", float("nan")], dtype="object"), ["a", None]),
        (pandas.Series(["a", None], dtype="string[python]"), ["a", None]),
        (pandas.Series(["a", None], dtype="string[pyarrow]"), ["a", None]),
        (pandas.Series(["a", "b", "a", None], dtype="category"), ["a", "b", "a", None]),
        (pandas.Series([3, 1, None], dtype="category"), [3, 1, None]),
        (pandas.Series([datetime.datetime(2024, 1, 2), None], dtype="category"), [datetime.datetime(2024, 1, 2), None]),
        (pandas.Series([b"a", None], dtype="object"), [b"a", None]),
        (pandas.Series([Decimal("1.5"), Decimal("22.25"), None]), [Decimal("1.50"), Decimal("22.25"), None]),
        (pandas.Series([datetime.date(2024, 1, 2), None]), [datetime.date(2024, 1, 2), None]),
        (pandas.Series([datetime.time(1, 2), None]), [datetime.time(1, 2), None]),
        (pandas.Series([None, None], dtype="object"), [None, None]),
        (pandas.Series([], dtype="object"), []),
        (pandas.to_datetime(pandas.Series(["2024-01-02 03:04:05.678", None])), [datetime.datetime(2024, 1, 2, 3, 4, 5, 678000), None]),
        (
            pandas.to_datetime(pandas.Series(["2024-07-02 12:00", None])).dt.tz_localize("Europe/Berlin"),
            [datetime.datetime(2024, 7, 2, 10, tzinfo=UTC), None],
        ),
        (pandas.to_timedelta(pandas.Series(["1 day", None])), [datetime.timedelta(days=1), None]),
        (pandas.Series([1, None], dtype=pandas.ArrowDtype(pyarrow.int64())), [1, None]),
        (pandas.Series([[1], None], dtype=pandas.ArrowDtype(pyarrow.list_(pyarrow.int64()))), [[1], None]),
        (pandas.Series(pandas.arrays.SparseArray([0, 0, 5])), [0, 0, 5]),
        (pandas.Series(numpy.arange(10)[::3]), [0, 3, 6, 9]),
        (pandas.Series(numpy.array([1, 2], ">i4")), [1, 2]),
    ],
    ids=lambda value: str(value.dtype) if isinstance(value, pandas.Series) else "",
)  # fmt: skip
def test_columns_of_pandas(con, series, expected):
    frame = pandas.DataFrame({"x": series, "k": range(len(series))})
    assert [value for (value,) in con.execute("SELECT x FROM frame ORDER BY k").fetchall()] == expected


@pytest.mark.parametrize(
    "series",
    [
        pandas.Series([1, "a"], dtype="object"),
        pandas.Series([object()]),
        pandas.Series([1 + 2j]),
        pandas.Series(pandas.period_range("2024-01", periods=2, freq="M")),
        pandas.Series(pandas.interval_range(0, 2)),
    ],
    ids=lambda value: str(value.dtype) if isinstance(value, pandas.Series) else "",
)
def test_columns_of_pandas_that_sql_lacks(con, series):
    frame = pandas.DataFrame({"x": series, "k": range(len(series))})
    with pytest.raises(eris_db.Error, match='column "x"'):
        con.execute("SELECT * FROM frame").fetchall()
    assert con.execute("SELECT 1").fetchone() == (1,)


def test_a_column_that_sql_lacks_does_not_matter_if_nobody_wants_it(con):
    frame = pandas.DataFrame({"k": [1, 2], "x": [1, "a"]})
    assert con.execute("SELECT k FROM frame").fetchall() == [(1,), (2,)]


def test_an_index_of_pandas_is_no_column(con):
    frame = pandas.DataFrame({"a": [1, 2]}, index=pandas.Index([10, 20], name="i"))
    assert con.execute("SELECT * FROM frame").fetchall() == [(1,), (2,)]
    frame = frame.reset_index()
    assert con.execute("SELECT * FROM frame").fetchall() == [(10, 1), (20, 2)]
    frame = frame[frame["a"] > 1]
    assert con.execute("SELECT * FROM frame").fetchall() == [(20, 2)]


def test_names_of_columns(con):
    frame = pandas.DataFrame({0: [1], ("a", "b"): [2], "With Blank": [3], 'quo"te': [4]})
    result = con.execute("SELECT * FROM frame")
    assert result.columns == ["0", "('a', 'b')", "With Blank", 'quo"te']
    assert result.fetchall() == [(1, 2, 3, 4)]
    assert con.execute('SELECT "With Blank", "quo""te" FROM frame').fetchall() == [(3, 4)]
    frame = pandas.DataFrame([[1, 2]], columns=["a", "a"])
    try:
        assert con.execute("SELECT * FROM frame").fetchall() == [(1, 2)]
    except eris_db.Error as error:
        assert '"a"' in str(error)
    doubled = pyarrow.table([[1], [2]], names=["a", "a"])
    try:
        assert con.execute("SELECT * FROM doubled").fetchall() == [(1, 2)]
    except eris_db.Error as error:
        assert '"a"' in str(error)


# ---- Polars ----------------------------------------------------------------------------------------------------------


def test_columns_of_polars(con):
    schema = {
        "nothing": polars.Null,
        "kind": polars.Categorical,
        "choice": polars.Enum(["a", "b"]),
        "pair": polars.Array(polars.Int8, 2),
        "span": polars.Duration("ms"),
        "amount": polars.Decimal(10, 2),
        "time": polars.Time,
    }
    values = [None, "x", "b", [1, 2], datetime.timedelta(milliseconds=5), Decimal("1.50"), datetime.time(1, 2)]
    eager = polars.DataFrame({name: [value, None] for name, value in zip(schema, values, strict=True)}, schema=schema)
    lazy = eager.lazy()
    for name in ("eager", "lazy"):
        assert con.execute(f"SELECT * FROM {name}").fetchall() == [tuple(values), (None,) * len(values)]


@pytest.mark.parametrize("kind", [polars.Object, polars.Int128, polars.UInt128], ids=str)
def test_columns_of_polars_that_sql_lacks(con, kind):
    eager = polars.DataFrame({"k": [1], "x": [1]}, schema={"k": polars.Int8, "x": kind})
    lazy = eager.lazy()
    for name in ("eager", "lazy"):
        with pytest.raises(eris_db.NotSupportedError, match='column "x".*(Object|Int128)'):
            con.execute(f"SELECT k FROM {name}")


# ---- numpy -----------------------------------------------------------------------------------------------------------


@pytest.mark.parametrize(
    "dtype", "bool int8 int16 int32 int64 uint8 uint16 uint32 uint64 float16 float32 float64".split()
)
def test_numbers_of_numpy(con, dtype):
    values = numpy.array([0, 1, 1, 0, 1], dtype)
    frame = {"x": values, "every second": values[::2].repeat(2)[:5], "backwards": values[::-1]}
    if dtype not in ("bool", "int8", "uint8"):
        frame["big endian"] = values.astype(numpy.dtype(dtype).newbyteorder(">"))
    expected = list(zip(*(column.tolist() for column in frame.values()), strict=True))
    assert con.execute("SELECT * FROM frame").fetchall() == expected


@pytest.mark.parametrize("unit", ["Y", "M", "W", "D", "h", "m", "s", "ms", "us", "ns", "25s", "ps"])
def test_times_of_numpy(con, unit):
    times = numpy.array(["2024-01-01", "NaT", "1969-01-01"], f"M8[{unit}]")
    frame = {"t": times, "d": times - times[0] if unit not in "YM" else numpy.array([0, 1, 2], "m8[s]")}
    found = con.execute("SELECT t FROM frame").fetchall()
    assert found == [(None if value != value else value.astype("M8[us]").item(),) for value in times]
    assert len(con.execute("SELECT d FROM frame").fetchall()) == 3


def test_arrays_of_numpy_that_sql_lacks(con):
    for values in (
        numpy.zeros((2, 2)),
        numpy.array(5),
        numpy.array([1j]),
        numpy.zeros(2, "i4,f8"),
        numpy.array([b""], "V3"),
    ):
        frame = {"x": values}
        with pytest.raises(eris_db.DataError):
            con.execute("SELECT * FROM frame")


def test_nan_of_numpy_is_a_number_and_that_of_pandas_is_null(con):
    values = numpy.array([1.0, numpy.nan])
    arrays, frame = {"x": values}, pandas.DataFrame({"x": values})
    assert con.execute("SELECT count(x) FROM arrays").fetchone() == (2,)
    assert con.execute("SELECT count(x) FROM frame").fetchone() == (1,)


# ---- Arrow's types ---------------------------------------------------------------------------------------------------


def array(values, kind):
    return pyarrow.array(values, kind)


RUNS = pyarrow.RunEndEncodedArray.from_arrays(
    pyarrow.array([2, 3, 5], pyarrow.int32()), pyarrow.array(["a", None, "b"])
)
CODES = pyarrow.DictionaryArray.from_arrays(pyarrow.array([1, 0, None, 1], pyarrow.int8()), pyarrow.array(["a", "b"]))

USED = {
    "dictionary": (CODES, ["b", "a", None, "b"]),
    "runs": (RUNS, ["a", "a", None, "b", "b"]),
    "decimal32": (array([Decimal("1.5"), None], pyarrow.decimal32(5, 2)), [Decimal("1.50"), None]),
    "decimal64": (array([Decimal("1.5"), None], pyarrow.decimal64(12, 2)), [Decimal("1.50"), None]),
    "decimal128": (array([Decimal("9" * 38), None], pyarrow.decimal128(38, 0)), [Decimal("9" * 38), None]),
    "half": (array([1.5, None], pyarrow.float16()), [1.5, None]),
    "large string": (array(["x", None], pyarrow.large_string()), ["x", None]),
    "string view": (array(["x", None, "long enough for a buffer"], pyarrow.string_view()), ["x", None, "long enough for a buffer"]),
    "large binary": (array([b"x", None], pyarrow.large_binary()), [b"x", None]),
    "binary view": (array([b"x", None], pyarrow.binary_view()), [b"x", None]),
    "fixed binary": (array([b"xy", None], pyarrow.binary(2)), [b"xy", None]),
    "null": (pyarrow.nulls(2), [None, None]),
    "date64": (array([datetime.date(2024, 1, 1), None], pyarrow.date64()), [datetime.datetime(2024, 1, 1), None]),
    "time32 s": (array([datetime.time(1), None], pyarrow.time32("s")), [datetime.time(1), None]),
    "time32 ms": (array([datetime.time(1), None], pyarrow.time32("ms")), [datetime.time(1), None]),
    "time64 ns": (array([1000, None], pyarrow.time64("ns")), [datetime.time(0, 0, 0, 1), None]),
    "duration": (array([5, None], pyarrow.duration("s")), [datetime.timedelta(seconds=5), None]),
    "timestamp": (array([1, None], pyarrow.timestamp("ns", "Asia/Tokyo")), [datetime.datetime(1970, 1, 1, tzinfo=UTC), None]),
    "interval": (array([(0, 2, 3000), None], pyarrow.month_day_nano_interval()), [datetime.timedelta(2, 0, 3), None]),
    "uuid": (pyarrow.ExtensionArray.from_storage(pyarrow.uuid(), array([b"\0" * 16], pyarrow.binary(16))), None),
    "list": (array([[1, None], [], None], pyarrow.list_(pyarrow.int8())), [[1, None], [], None]),
    "large list": (array([["a"], None], pyarrow.large_list(pyarrow.string())), [["a"], None]),
    "fixed list": (array([[1, 2], None], pyarrow.list_(pyarrow.int8(), 2)), [[1, 2], None]),
    "list of codes": (array([["a"], None], pyarrow.list_(pyarrow.dictionary(pyarrow.int8(), pyarrow.string()))), [["a"], None]),
    "struct": (array([{"a": 1, "b": [None]}, None], None), [{"a": 1, "b": [None]}, None]),
}  # fmt: skip


@pytest.mark.parametrize("name", USED)
def test_types_of_arrow_that_are_used(con, name):
    values, expected = USED[name]
    expected = values.to_pylist() if expected is None else expected
    frame = pyarrow.table({"x": values, "k": range(len(values))})
    assert [value for (value,) in con.execute("SELECT x FROM frame ORDER BY k").fetchall()] == expected
    # Of a slice with an offset, in several batches.
    part = pyarrow.table({"x": values, "k": range(len(values))}).slice(1)
    frame = pyarrow.concat_tables([part, part.slice(0, 0), part])
    assert frame.column("x").num_chunks >= 2
    assert [value for (value,) in con.execute("SELECT x FROM frame").fetchall()] == expected[1:] * 2
    assert con.execute("SELECT count(*) FROM frame WHERE x IS NULL").fetchone() == (2 * expected[1:].count(None),)


def test_a_dictionary_whose_values_have_a_null(con):
    codes = pyarrow.DictionaryArray.from_arrays(pyarrow.array([0, 1, None], pyarrow.int8()), pyarrow.array(["a", None]))
    frame = pyarrow.table({"x": codes})
    assert con.execute("SELECT x FROM frame").fetchall() == [("a",), (None,), (None,)]


NULL_ROWS = pyarrow.StructArray.from_arrays(
    [pyarrow.array([7, 42, 5]), pyarrow.array(["a", "b", None])], ["a", "b"], mask=pyarrow.array([False, True, False])
)


@pytest.mark.parametrize(
    "frame",
    [NULL_ROWS, pyarrow.chunked_array([NULL_ROWS]), pyarrow.chunked_array([NULL_ROWS.slice(0, 1), NULL_ROWS.slice(1)])],
    ids=["array", "chunks", "slices"],
)
def test_rows_that_are_null(con, frame):
    expected = [(7, "a"), (None, None), (5, None)]
    assert con.execute("SELECT * FROM frame").fetchall() == expected
    con.register("registered", frame)
    assert con.execute("SELECT * FROM registered").fetchall() == expected
    con.execute("CREATE TABLE t (a BIGINT, b VARCHAR)")
    con.append("t", frame)
    assert con.execute("SELECT * FROM t").fetchall() == expected


def test_rows_that_are_null_with_a_value_that_cannot_be(con):
    runs = pyarrow.RunEndEncodedArray.from_arrays([2], ["x"])
    frame = pyarrow.StructArray.from_arrays([runs], ["a"], mask=pyarrow.array([False, True]))
    with pytest.raises(eris_db.Error, match='column "a".*NULL'):
        con.execute("SELECT * FROM frame").fetchall()


def test_values_of_one_column_are_no_rows(con):
    class Stream:
        """An object with Arrow's interface, of which nothing else is known."""

        def __arrow_c_stream__(self, requested_schema=None):
            return pyarrow.chunked_array([[1, 2]]).__arrow_c_stream__()

    frame = Stream()
    with pytest.raises(eris_db.Error, match="Int64"):
        con.execute("SELECT * FROM frame").fetchall()


def test_times_before_their_day(con):
    frame = pyarrow.table({"x": pyarrow.array([-5], pyarrow.int64()).view(pyarrow.time64("us"))})
    with pytest.raises(eris_db.DataError):
        con.execute("SELECT x FROM frame").fetchall()


UNION = pyarrow.UnionArray.from_sparse(
    pyarrow.array([0, 1], pyarrow.int8()), [pyarrow.array([1, 2]), pyarrow.array(["a", "b"])]
)
REJECTED = {
    "256 bits": array([Decimal("1.5")], pyarrow.decimal256(50, 2)),
    "union": UNION,
    "map": array([[("k", 1)]], pyarrow.map_(pyarrow.string(), pyarrow.int8())),
    "view of lists": array([[1]], pyarrow.list_view(pyarrow.int8())),
    "list of 256 bits": array([[Decimal("1.5")]], pyarrow.list_(pyarrow.decimal256(50, 2))),
}


@pytest.mark.parametrize("name", REJECTED)
def test_types_of_arrow_that_are_rejected_by_name(con, name):
    frame = pyarrow.table({"k": [1] * len(REJECTED[name]), "x": REJECTED[name]})
    with pytest.raises(eris_db.NotSupportedError, match='column "x".*(Decimal256|Union|Map|ListView)') as raised:
        con.execute("SELECT x FROM frame").fetchall()
    assert '"frame"' in str(raised.value)
    assert con.execute("SELECT 1").fetchone() == (1,)


def test_times_out_of_range(con):
    frame = pyarrow.table({"x": pyarrow.array([2**62], pyarrow.timestamp("s"))})
    with pytest.raises(eris_db.DataError, match='column "x"'):
        con.execute("SELECT x FROM frame").fetchall()


# ---- names and scopes ------------------------------------------------------------------------------------------------


def test_locals_go_before_globals(con):
    assert con.execute("SELECT k FROM GLOBAL").fetchall() == [(7,)]
    GLOBAL = pyarrow.table({"k": [8]})
    assert con.execute("SELECT k FROM GLOBAL").fetchall() == [(8,)]


def test_only_the_callers_variables_are_seen(con):
    hidden = pyarrow.table({"k": [1]})

    def other():
        return con.execute("SELECT * FROM hidden")

    with pytest.raises(eris_db.ProgrammingError, match='"hidden" does not exist'):
        other()
    nested = pyarrow.table({"k": [1]})

    def closure():
        assert nested is not None
        return con.execute("SELECT * FROM nested").fetchall()

    assert closure() == [(1,)]
    assert [con.execute("SELECT k FROM GLOBAL").fetchone() for _ in range(2)] == [(7,), (7,)]


def test_a_table_wins(con):
    frame = pyarrow.table({"k": [1]})
    con.register("named", pyarrow.table({"k": [2]}))
    con.execute("CREATE TABLE frame AS SELECT 10 AS k; CREATE TABLE named AS SELECT 20 AS k")
    assert rows(con, "frame") == [(10,)]
    assert rows(con, "named") == [(20,)]
    con.execute("DROP TABLE frame; DROP TABLE named")
    assert con.execute("SELECT * FROM frame").fetchall() == [(1,)]
    assert rows(con, "named") == [(2,)]
    # A name that the statement gives itself, too.
    assert con.execute("WITH frame AS (SELECT 5 AS k) SELECT * FROM frame").fetchall() == [(5,)]


def test_what_is_registered_goes_before_variables(con):
    frame = pyarrow.table({"k": [1]})
    con.register("frame", pyarrow.table({"k": [2]}))
    assert con.execute("SELECT * FROM frame").fetchall() == [(2,)]
    con.register("frame", pyarrow.table({"k": [3]}))
    assert con.execute("SELECT * FROM frame").fetchall() == [(3,)]
    con.unregister("frame").unregister("frame")
    assert con.execute("SELECT * FROM frame").fetchall() == [(1,)]


def test_variables_may_be_left_alone(con):
    frame = pyarrow.table({"k": [1]})
    assert con.scan_variables
    con.scan_variables = False
    for cursor in (con, con.cursor()):
        with pytest.raises(eris_db.ProgrammingError, match='"frame" does not exist'):
            cursor.execute("SELECT * FROM frame")
    con.scan_variables = True
    assert con.execute("SELECT * FROM frame").fetchall() == [(1,)]


def test_cursors_have_what_was_registered(con):
    con.register("given", {"k": [1]})
    cursor = con.cursor()
    assert rows(cursor, "given") == [(1,)]
    cursor.register("own", {"k": [2]})
    with pytest.raises(eris_db.ProgrammingError):
        con.execute("SELECT * FROM own")


def test_a_variable_that_is_no_relation_says_what_it_is(con):
    frame = 5
    with pytest.raises(
        eris_db.ProgrammingError, match='"frame" does not exist, and the variable of this name is a int'
    ):
        con.execute("SELECT * FROM frame")
    frame = None
    with pytest.raises(eris_db.ProgrammingError, match='"frame" does not exist'):
        con.execute("SELECT * FROM frame")


def test_a_variable_that_is_no_relation_has_a_sqlstate(con):
    frame = 5
    with pytest.raises(eris_db.ProgrammingError) as raised:
        con.execute("SELECT * FROM frame")
    assert raised.value.sqlstate == "42P01"
    with pytest.raises(eris_db.ProgrammingError) as raised:
        con.register("frame", frame)
    assert raised.value.sqlstate == "42809"


def test_a_variable_in_another_case(con):
    Frame = pyarrow.table({"k": [1]})
    assert con.execute("SELECT * FROM Frame").fetchall() == [(1,)]
    assert con.execute('SELECT * FROM "Frame"').fetchall() == [(1,)]
    FRAME = pyarrow.table({"k": [2]})
    assert con.execute('SELECT * FROM "FRAME"').fetchall() == [(2,)]
    with pytest.raises(eris_db.ProgrammingError):
        con.execute("SELECT * FROM frame")


def test_views_and_macros_reject_frames(con):
    frame = pyarrow.table({"k": [1]})
    con.register("given", {"k": [1]})
    for name in ("frame", "given"):
        with pytest.raises(eris_db.Error, match=name):
            con.execute(f"CREATE VIEW v AS SELECT * FROM {name}")
    with pytest.raises(eris_db.ProgrammingError, match='"v" does not exist'):
        con.execute("SELECT * FROM v")


def test_frames_are_read_only(con):
    frame = pyarrow.table({"k": [1]})
    for text in ("INSERT INTO frame VALUES (2)", "DELETE FROM frame", "UPDATE frame SET k = 2", "DROP TABLE frame"):
        with pytest.raises(eris_db.ProgrammingError):
            con.execute(text)


def test_explain_shows_which_was_meant(con):
    frame, lazy = pyarrow.table({"k": [1], "s": ["x"]}), polars.LazyFrame({"k": [1], "s": ["x"]})

    assert "pyarrow.Table" in str(con.execute("EXPLAIN SELECT k FROM frame").fetchall())
    assert "polars.LazyFrame" in str(con.execute("EXPLAIN SELECT k FROM lazy WHERE k > 0").fetchall())
    con.execute("CREATE TABLE frame AS SELECT 5 AS k")
    assert "pyarrow" not in str(con.execute("EXPLAIN SELECT k FROM frame").fetchall())


def test_values_and_frames_in_one_statement(con):
    for limit in (1, 2, 3):
        frame = pyarrow.table({"k": list(range(limit + 1))})
        assert con.execute("SELECT count(*) FROM frame WHERE k < ?", [limit]).fetchall() == [(limit,)]
    con.execute("CREATE TABLE frame AS SELECT 100 AS k")
    assert con.execute("SELECT count(*) FROM frame WHERE k < ?", [5]).fetchall() == [(0,)]


def test_frames_are_joined_with_tables_and_with_themselves(con):
    con.execute("CREATE TABLE t AS SELECT x AS k, x * x AS v FROM generate_series(1, 1000) AS g(x)")
    keys, other = polars.DataFrame({"k": [3, 500, 2000]}), {"k": numpy.array([500])}
    assert con.execute("SELECT v FROM t JOIN keys USING (k) ORDER BY v").fetchall() == [(9,), (250_000,)]
    assert con.execute("SELECT k FROM t WHERE k IN (SELECT k FROM keys) ORDER BY k").fetchall() == [(3,), (500,)]
    assert con.execute("SELECT count(*) FROM keys AS a, keys AS b, other").fetchone() == (9,)
    assert con.execute("SELECT k FROM keys EXCEPT SELECT k FROM other ORDER BY k").fetchall() == [(3,), (2000,)]


def test_the_default_connection_sees_the_callers_variables():
    mine = polars.DataFrame({"k": [1, 2]})
    assert eris_db.sql("SELECT sum(k) FROM mine").fetchone() == (3,)
    assert eris_db.sql("SELECT sum(k) + ? FROM mine", [1]).fetchone() == (4,)
