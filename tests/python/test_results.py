"""Results out: values and types beside DuckDB, streams and their consumers, requested schemas, tables on the screen."""

import ctypes
import datetime
import decimal
import gc
import math
import random
import uuid

import duckdb
import numpy
import pandas
import polars
import pyarrow
import pytest
from support import DIGITS, run

import eris_db

# A type, values of it, and what Arrow, Polars and pandas have for it.
TYPES = [
    ("BOOLEAN", "(true), (false)", pyarrow.bool_(), polars.Boolean, "object"),
    ("TINYINT", "(-128), (127)", pyarrow.int8(), polars.Int8, "float64"),
    ("SMALLINT", "(-32768), (32767)", pyarrow.int16(), polars.Int16, "float64"),
    ("INTEGER", "(-2147483648), (2147483647)", pyarrow.int32(), polars.Int32, "float64"),
    ("BIGINT", "(-9223372036854775808), (9223372036854775807)", pyarrow.int64(), polars.Int64, "float64"),
    ("UTINYINT", "(0), (255)", pyarrow.uint8(), polars.UInt8, "float64"),
    ("USMALLINT", "(0), (65535)", pyarrow.uint16(), polars.UInt16, "float64"),
    ("UINTEGER", "(0), (4294967295)", pyarrow.uint32(), polars.UInt32, "float64"),
    ("UBIGINT", "(0), (18446744073709551615)", pyarrow.uint64(), polars.UInt64, "float64"),
    ("HUGEINT", "(-5), (12345678901234567890123456789012345678)", pyarrow.decimal128(38, 0), polars.Decimal(38, 0), "float64"),
    ("REAL", "(1.5), (-0.25)", pyarrow.float32(), polars.Float32, "float32"),
    ("DOUBLE", "(1.5), (1e300), ('inf')", pyarrow.float64(), polars.Float64, "float64"),
    ("DECIMAL(5, 2)", "(1.25), (-999.99)", pyarrow.decimal128(5, 2), polars.Decimal(5, 2), "float64"),
    ("DECIMAL(38, 10)", "(1.25), (-12345678901234567890.0123456789)", pyarrow.decimal128(38, 10), polars.Decimal(38, 10), "float64"),
    ("VARCHAR", "(''), ('ß, and more than fits into a view')", pyarrow.string_view(), polars.String, "str"),
    ("BLOB", "('ab'), ('\\x00\\xff')", pyarrow.binary_view(), polars.Binary, "object"),
    ("DATE", "('0001-01-01'), ('1969-12-31'), ('9999-12-31')", pyarrow.date32(), polars.Date, "datetime64[s]"),
    ("TIME", "('00:00:00'), ('23:59:59.999999')", pyarrow.time64("us"), polars.Time, "object"),
    ("TIMESTAMP", "('1969-12-31 23:59:59.999999'), ('2024-02-29 01:02:03')", pyarrow.timestamp("us"), polars.Datetime("us"), "datetime64[us]"),
    ("TIMESTAMP_S", "('1969-12-31 23:59:59'), ('2024-02-29 01:02:03')", pyarrow.timestamp("s"), polars.Datetime("ms"), "datetime64[s]"),
    ("TIMESTAMP_MS", "('1969-12-31 23:59:59.999')", pyarrow.timestamp("ms"), polars.Datetime("ms"), "datetime64[ms]"),
    ("TIMESTAMP_NS", "('2024-02-29 23:59:59.123456789')", pyarrow.timestamp("ns"), polars.Datetime("ns"), "datetime64[ns]"),
    ("TIMESTAMPTZ", "('1969-12-31 23:59:59+02'), ('2024-02-29 01:02:03+00')", pyarrow.timestamp("us", "UTC"), polars.Datetime("us", "UTC"), "datetime64[us, UTC]"),
    ("INTERVAL", "('3 days'), ('1 month 2 days 00:00:01'), ('-1 second')", pyarrow.month_day_nano_interval(), None, "timedelta64[us]"),
    ("UUID", "('00000000-0000-0000-0000-000000000005'), ('ffffffff-ffff-ffff-ffff-ffffffffffff')", pyarrow.uuid(), polars.Binary, "object"),
]  # fmt: skip


@pytest.fixture(params=TYPES, ids=[known[0] for known in TYPES])
def typed(con, request):
    """A table in Eris and in DuckDB, with a NULL between its values, and the types that are expected."""
    name, values, *expected = request.param
    duck = duckdb.connect()
    duck.execute("SET TimeZone = 'UTC'")
    for connection in (con, duck):
        connection.execute(f"CREATE TABLE t (k INTEGER, x {name})")
        for number, value in enumerate([*values.split("), ("), "NULL"]):
            connection.execute(f"INSERT INTO t VALUES ({number}, {value.strip('()')})")
    yield con, duck, *expected
    duck.close()


QUERY = "SELECT x FROM t ORDER BY k"


def test_rows_are_duckdbs(typed):
    con, duck, arrow, *_ = typed
    expected = [values[0] for values in duck.execute(QUERY).fetchall()]
    if arrow == pyarrow.decimal128(38, 0):
        # HUGEINT is a decimal here.
        expected = [None if value is None else decimal.Decimal(value) for value in expected]
    expected = [value.replace(tzinfo=datetime.UTC) if getattr(value, "tzinfo", None) else value for value in expected]
    for found in (
        con.execute(QUERY).fetchall(),
        list(con.execute(QUERY)),
        con.execute(QUERY).fetchmany(1000),
        [con.execute(QUERY).fetchone(), *[con.fetchone() for _ in expected[1:]]],
    ):
        assert [type(value) for (value,) in found] == [type(value) for value in expected]
        assert [value for (value,) in found] == expected


def test_arrow_tables_are_duckdbs(typed):
    con, duck, arrow, *_ = typed
    found = con.execute(QUERY).arrow()
    found.validate(full=True)
    assert found.schema.field("x").type == arrow
    expected = duck.sql(QUERY).to_arrow_table().column("x").to_pylist()
    if arrow == pyarrow.uuid():
        expected = [as_uuid(value) for value in expected]
    assert found.column("x").to_pylist() == expected
    assert con.execute(QUERY).reader().read_all() == found


def as_uuid(value):
    match value:
        case str():
            return uuid.UUID(value)
        case bytes():
            return uuid.UUID(bytes=value)
        case _:
            return value


def test_polars_frames_have_the_values_of_rows(typed):
    con, _, _, dtype, _ = typed
    if dtype is None:
        with pytest.raises(eris_db.NotSupportedError, match='column "x".*INTERVAL'):
            con.execute(QUERY).pl()
        return
    found = con.execute(QUERY).pl()
    assert found.schema == polars.Schema({"x": dtype})
    rows = [value for (value,) in con.execute(QUERY).fetchall()]
    values = found["x"].to_list()
    assert values == [value.bytes if isinstance(value, uuid.UUID) else value for value in rows]


def test_pandas_frames_are_duckdbs(typed):
    con, duck, *_, dtype = typed
    found = con.execute(QUERY).df()
    assert str(found.dtypes["x"]) == dtype
    expected = duck.execute(QUERY).df()
    if dtype in ("str", "object", "datetime64[s]"):
        assert [None if value is pandas.NA or value != value else value for value in found["x"]] == [
            bytes(value) if isinstance(value, bytearray) else None if value is pandas.NA or value != value else value
            for value in expected["x"]
        ]
    else:
        pandas.testing.assert_frame_equal(found, expected, check_dtype=False)


def test_numpy_arrays_have_the_values_of_rows(typed):
    con, _, arrow, *_ = typed
    found = con.execute(QUERY).numpy()["x"]
    rows = [value for (value,) in con.execute(QUERY).fetchall()]
    if found.dtype.kind == "M":
        assert numpy.isnat(found).tolist() == [value is None for value in rows]
        finest = (
            con.execute(QUERY)
            .arrow()
            .column("x")
            .cast(pyarrow.timestamp(numpy.datetime_data(found.dtype)[0], getattr(arrow, "tz", None)))
        )
        assert found.view("int64").tolist()[:-1] == finest.cast(pyarrow.int64()).to_pylist()[:-1]
    elif pyarrow.types.is_decimal(arrow):
        assert [value if value is None else float(value) for value in rows] == found.tolist()
    else:
        assert found.tolist() == rows
    assert con.execute("SELECT x FROM t WHERE x IS NOT NULL").numpy()["x"].__class__ is numpy.ndarray


def test_a_large_random_table_is_duckdbs(con):
    """Many batches, every type that both have, with NULLs; order is fixed by a key."""
    seed = random.randrange(2**32)
    print(f"seed {seed}")
    table = random_table(random.Random(seed), 30_000)
    duck = duckdb.connect()
    duck.execute("SET TimeZone = 'UTC'")
    con.execute('CREATE TABLE t AS SELECT * FROM "table"')
    table = table.sort_by("k")
    duck.register("given", table)
    duck.execute("CREATE TABLE t AS SELECT * FROM given")
    assert con.execute("SELECT * FROM t ORDER BY k").fetchall() == duck.execute("SELECT * FROM t ORDER BY k").fetchall()
    ours, theirs = (
        con.execute("SELECT * FROM t ORDER BY k").arrow(),
        duck.sql("SELECT * FROM t ORDER BY k").to_arrow_table(),
    )
    for name in table.column_names:
        assert (
            ours.column(name).cast(table.schema.field(name).type).combine_chunks()
            == table.column(name).combine_chunks()
        ), name
        assert ours.column(name).to_pylist() == theirs.column(name).to_pylist(), name
    ours, theirs = con.execute("SELECT * FROM t ORDER BY k").df(), duck.execute("SELECT * FROM t ORDER BY k").df()
    # DuckDB has bytearrays, pandas' NA for truth values and times of the day, and dates in microseconds.
    unlike = ["b", "o", "c", "d"]
    pandas.testing.assert_frame_equal(ours.drop(columns=unlike), theirs.drop(columns=unlike), check_dtype=False)
    for name in ("o", "c"):
        assert ours[name].isna().tolist() == theirs[name].isna().tolist()
    assert ours["d"].tolist() == theirs["d"].tolist()
    ours, theirs = (
        con.execute("SELECT * FROM t ORDER BY k").numpy(),
        duck.execute("SELECT * FROM t ORDER BY k").fetchnumpy(),
    )
    for name in ("k", "i", "f", "n"):
        assert (
            numpy.ma.allequal(ours[name], theirs[name], fill_value=False)
            or ours[name].tolist() == theirs[name].tolist()
        )


def random_table(chosen, rows):
    def column(make):
        return [None if chosen.random() < 0.1 else make() for _ in range(rows)]

    epoch = datetime.datetime(1970, 1, 1)

    def moment():
        return epoch + datetime.timedelta(microseconds=chosen.randrange(-(10**15), 4 * 10**15))

    keys = list(range(rows))
    chosen.shuffle(keys)
    return pyarrow.table(
        {
            "k": pyarrow.array(keys, pyarrow.int64()),
            "i": pyarrow.array(column(lambda: chosen.randrange(-(2**31), 2**31)), pyarrow.int32()),
            "u": pyarrow.array(column(lambda: chosen.randrange(2**64)), pyarrow.uint64()),
            "f": pyarrow.array(column(lambda: chosen.uniform(-1e9, 1e9)), pyarrow.float64()),
            "n": pyarrow.array(
                column(lambda: decimal.Decimal(chosen.randrange(-(10**12), 10**12)).scaleb(-3)),
                pyarrow.decimal128(15, 3),
            ),
            "s": pyarrow.array(column(lambda: "ß€x"[chosen.randrange(3)] * chosen.randrange(40)), pyarrow.string()),
            "b": pyarrow.array(column(lambda: chosen.randbytes(chosen.randrange(30))), pyarrow.binary()),
            "o": pyarrow.array(column(lambda: chosen.random() < 0.5), pyarrow.bool_()),
            "d": pyarrow.array(column(lambda: moment().date()), pyarrow.date32()),
            "t": pyarrow.array(column(moment), pyarrow.timestamp("us")),
            "c": pyarrow.array(column(lambda: moment().time()), pyarrow.time64("us")),
        }
    )


def test_lists_and_structs(con):
    nested = pyarrow.table(
        {
            "l": pyarrow.array([[1, None], [], None], pyarrow.list_(pyarrow.int32())),
            "s": pyarrow.array([{"a": 1, "b": "x"}, {"a": None, "b": None}, None]),
            "m": pyarrow.array([[[1.5]], [None], None]),
        }
    )
    con.register("nested", nested)
    assert con.execute("SELECT * FROM nested").fetchall() == [tuple(row.values()) for row in nested.to_pylist()]
    assert con.execute("SELECT * FROM nested").arrow().to_pylist() == nested.to_pylist()
    assert con.execute("SELECT * FROM nested").pl().to_dicts() == polars.from_arrow(nested).to_dicts()
    assert con.execute("SELECT l, m FROM nested").df()["l"].tolist()[:2] == [[1, None], []]
    assert con.execute("SELECT m FROM nested").numpy()["m"].tolist() == [[[1.5]], [None], None]


@pytest.mark.parametrize("text", ["SELECT 1 AS a, 'x' AS s WHERE false", "SELECT NULL AS a, NULL AS s LIMIT 0"])
def test_results_without_rows(con, text):
    assert con.execute(text).fetchall() == []
    assert con.execute(text).arrow().column_names == ["a", "s"]
    assert con.execute(text).arrow().num_rows == 0
    assert con.execute(text).reader().read_all().num_rows == 0
    assert con.execute(text).pl().shape == (0, 2)
    assert con.execute(text).df().shape == (0, 2)
    assert [len(values) for values in con.execute(text).numpy().values()] == [0, 0]


def test_doubled_names(con):
    text = "SELECT 1 AS a, 2 AS a"
    assert con.execute(text).fetchall() == [(1, 2)]
    assert con.execute(text).arrow().column_names == ["a", "a"]
    assert con.execute(text).df().values.tolist() == [[1, 2]]
    with pytest.raises(polars.exceptions.DuplicateError):
        con.execute(text).pl()


def test_doubled_names_in_a_dict(con):
    try:
        found = con.execute("SELECT 1 AS a, 2 AS a").numpy()
    except eris_db.Error:
        return
    assert len(found) == 2


def test_strings_are_views(con):
    assert con.execute("SELECT 'x' AS a").arrow().schema.field("a").type == pyarrow.string_view()


def test_times_that_python_lacks(con):
    text = (
        "SELECT DATE '9999-12-31' + INTERVAL '1 day', TIMESTAMP '0001-01-01' - INTERVAL '1 day', make_date(12345, 1, 2)"
    )
    assert con.execute(text).fetchall() == [("+10000-01-01T00:00:00", "0000-12-31T00:00:00", "+12345-01-02")]


# ---- in parts --------------------------------------------------------------------------------------------------------


@pytest.fixture
def numbers(con):
    con.execute(
        "CREATE TABLE numbers AS SELECT x, 's' || x::VARCHAR AS s, x * 0.5::DOUBLE AS d FROM generate_series(1, 200000) AS g(x)"
    )
    return con


def test_rows_are_read_once_in_parts(numbers):
    seed = random.randrange(2**32)
    print(f"seed {seed}")
    chosen = random.Random(seed)
    for _ in range(10):
        result = numbers.execute("SELECT x FROM numbers ORDER BY x")
        found = []
        for _ in range(chosen.randrange(12)):
            match chosen.randrange(4):
                case 0:
                    found.append(result.fetchone())
                case 1:
                    found += result.fetchmany(chosen.choice([0, 1, 7, 5000, 70_000]))
                case 2:
                    found.append(next(result, None))
                case 3:
                    assert "rows" in repr(result)
        found = [row for row in found if row is not None]
        match chosen.randrange(4):
            case 0:
                found += result.fetchall()
            case 1:
                found += list(result)
            case 2:
                found += [(value,) for value in result.arrow().column("x").to_pylist()]
            case 3:
                found += [(value,) for value in result.reader().read_all().column("x").to_pylist()]
        assert found == [(x,) for x in range(1, 200_001)]


def test_an_older_result_goes_on(numbers):
    older = numbers.execute("SELECT x FROM numbers ORDER BY x")
    assert older.fetchone() == (1,)
    numbers.execute("DELETE FROM numbers")
    assert numbers.execute("SELECT count(*) FROM numbers").fetchone() == (0,)
    assert len(older.fetchmany(10**6)) == 199_999


def test_rows_are_handed_on_once(numbers):
    result = numbers.execute("SELECT * FROM numbers")
    reader = result.reader()
    for use in (
        result.fetchone,
        result.fetchall,
        result.arrow,
        result.pl,
        result.df,
        result.numpy,
        result.__arrow_c_stream__,
    ):
        with pytest.raises(eris_db.InterfaceError, match="handed on"):
            use()
    assert pyarrow.schema(result) == reader.schema
    assert len(result.description) == 3
    assert reader.read_all().num_rows == 200_000


def test_what_is_handed_on_can_be_shown(numbers):
    result = numbers.execute("SELECT * FROM numbers")
    result.reader()
    assert "Result" in repr(result)
    result = numbers.execute("SELECT * FROM numbers")
    result.close()
    assert "Result" in repr(result)


def test_closed_results(numbers):
    result = numbers.execute("SELECT * FROM numbers")
    result.fetchone()
    result.close()
    result.close()
    with pytest.raises(eris_db.InterfaceError):
        result.fetchone()
    assert numbers.execute("SELECT 1").fetchone() == (1,)


# ---- streams and their consumers -------------------------------------------------------------------------------------


def schema(x=pyarrow.int64(), s=pyarrow.string_view(), d=pyarrow.float64()):
    return pyarrow.schema([("x", x), ("s", s), ("d", d)])


@pytest.mark.parametrize(
    "wanted",
    [
        schema(),
        schema(s=pyarrow.string()),
        schema(s=pyarrow.large_string()),
        schema(x=pyarrow.int32(), d=pyarrow.float32()),
        schema(x=pyarrow.string()),
        schema(x=pyarrow.decimal128(20, 2)),
        schema(s=pyarrow.dictionary(pyarrow.int32(), pyarrow.string())),
    ],
    ids=str,
)
def test_requested_schemas(numbers, wanted):
    text = "SELECT * FROM numbers ORDER BY x"
    reader = pyarrow.RecordBatchReader.from_stream(numbers.execute(text), schema=wanted)
    assert reader.schema == wanted
    found = reader.read_all()
    found.validate(full=True)
    given = numbers.execute(text).arrow(strings="string")
    for name in ("x", "s", "d"):
        assert (
            found.column(name).cast(given.schema.field(name).type).combine_chunks()
            == given.column(name).combine_chunks()
        )


@pytest.mark.parametrize(
    "wanted",
    [
        schema(x=pyarrow.int8()),
        schema(s=pyarrow.int64()),
        pyarrow.schema([("s", pyarrow.string()), ("x", pyarrow.int64()), ("d", pyarrow.float64())]),
    ],
    ids=["narrow", "other kind", "other order"],
)
def test_requested_schemas_never_lose_values(numbers, wanted):
    try:
        found = pyarrow.RecordBatchReader.from_stream(
            numbers.execute("SELECT * FROM numbers"), schema=wanted
        ).read_all()
    except (pyarrow.ArrowInvalid, eris_db.Error):
        return
    assert found.column("x").null_count == found.column("s").null_count == 0
    assert sum(map(int, found.column("x").to_pylist())) == 200_000 * 200_001 // 2


def test_forms_of_strings(numbers):
    text = "SELECT s FROM numbers ORDER BY x LIMIT 1000"
    views = numbers.execute(text).arrow()
    assert views.schema.field("s").type == pyarrow.string_view()
    for form, expected in (("string", pyarrow.string()), ("large_string", pyarrow.large_string())):
        for found in (numbers.execute(text).arrow(strings=form), numbers.execute(text).reader(strings=form).read_all()):
            assert found.schema.field("s").type == expected
            assert found.column("s").to_pylist() == views.column("s").to_pylist()
    with pytest.raises(eris_db.ProgrammingError, match="large_string"):
        numbers.execute(text).arrow(strings="utf8")


def test_consumers_of_all_kinds(numbers):
    text = "SELECT x, d FROM numbers"
    total = 200_000 * 200_001 // 2
    assert pyarrow.table(numbers.execute(text)).column("x").to_numpy().sum() == total
    assert polars.DataFrame(numbers.execute(text))["x"].sum() == total
    assert pandas.DataFrame.from_arrow(numbers.execute(text))["x"].sum() == total
    result = numbers.execute(text)  # noqa: F841 - DuckDB finds it
    assert duckdb.sql("SELECT sum(x) FROM result").fetchall() == [(total,)]


def test_a_stream_that_is_dropped_half_way(numbers):
    for _ in range(20):
        reader = numbers.execute("SELECT * FROM numbers").reader()
        assert reader.read_next_batch().num_rows > 0
        del reader
        # A capsule that nobody reads, and a result whose rows nobody wants.
        numbers.execute("SELECT * FROM numbers").__arrow_c_stream__()
        numbers.execute("SELECT * FROM numbers").fetchone()
    gc.collect()
    assert numbers.execute("SELECT count(*) FROM numbers").fetchone() == (200_000,)


def test_a_stream_without_an_end_is_dropped(con):
    endless = "SELECT a.n, f.n FROM " + ", ".join(DIGITS.format(name) for name in "abcdefghijkl")
    reader = con.execute(endless).reader()
    assert reader.read_next_batch().num_rows > 0
    reader.close()
    del reader
    assert con.execute("SELECT 1").fetchone() == (1,)


def test_a_batch_that_is_kept_for_ever():
    with eris_db.connect(memory="1GB", topology="1x2") as con:
        con.execute(
            "CREATE TABLE t AS SELECT x, 'value number ' || x::VARCHAR AS s FROM generate_series(1, 100000) AS g(x)"
        )
        kept = con.execute("SELECT * FROM t ORDER BY x").reader().read_next_batch()
        frame = con.execute("SELECT * FROM t ORDER BY x").pl()
        arrays = con.execute("SELECT x FROM t ORDER BY x").numpy()
        con.execute("DROP TABLE t")
    gc.collect()
    kept.validate(full=True)
    assert kept.column("s").to_pylist() == [f"value number {x}" for x in kept.column("x").to_pylist()]
    assert frame["s"][-1] == "value number 100000"
    assert arrays["x"].sum() == 100_000 * 100_001 // 2


def test_a_stream_that_is_read_after_its_database_was_closed():
    database = eris_db.Database(memory="1GB", topology="1x2")
    con = database.connect()
    con.execute("CREATE TABLE t AS SELECT x FROM generate_series(1, 500000) AS g(x)")
    reader = con.execute("SELECT x FROM t").reader()
    reader.read_next_batch()
    half = con.execute("SELECT x FROM t")
    half.fetchone()
    database.close()
    with pytest.raises(pyarrow.ArrowInvalid, match="closed"):
        reader.read_all()
    for use in (half.fetchone, half.fetchall, half.arrow, half.df, half.pl, half.numpy, half.reader, con.fetchone):
        with pytest.raises(eris_db.InterfaceError, match="closed"):
            use()


class ArrayStream(ctypes.Structure):
    """Arrow's C stream."""


GET_SCHEMA = ctypes.CFUNCTYPE(ctypes.c_int, ctypes.POINTER(ArrayStream), ctypes.c_void_p)
GET_ERROR = ctypes.CFUNCTYPE(ctypes.c_char_p, ctypes.POINTER(ArrayStream))
RELEASE = ctypes.CFUNCTYPE(None, ctypes.POINTER(ArrayStream))
ArrayStream._fields_ = [
    ("get_schema", GET_SCHEMA),
    ("get_next", GET_SCHEMA),
    ("get_last_error", GET_ERROR),
    ("release", RELEASE),
    ("private_data", ctypes.c_void_p),
]


def stream_of(capsule):
    pointer = ctypes.pythonapi.PyCapsule_GetPointer
    pointer.restype, pointer.argtypes = ctypes.c_void_p, [ctypes.py_object, ctypes.c_char_p]
    return ctypes.cast(pointer(capsule, b"arrow_array_stream"), ctypes.POINTER(ArrayStream))


def test_a_stream_that_is_released_twice(numbers):
    capsule = numbers.execute("SELECT * FROM numbers").__arrow_c_stream__()
    stream = stream_of(capsule)
    stream.contents.release(stream)
    # As the specification has it: whoever releases again sees that there is nothing left.
    assert not stream.contents.release
    with pytest.raises(ValueError):
        pyarrow.RecordBatchReader._import_from_c_capsule(capsule)
    del capsule
    # Read through, then imported again, then dropped.
    capsule = numbers.execute("SELECT * FROM numbers").__arrow_c_stream__()
    assert pyarrow.RecordBatchReader._import_from_c_capsule(capsule).read_all().num_rows == 200_000
    with pytest.raises(ValueError):
        pyarrow.RecordBatchReader._import_from_c_capsule(capsule)
    del capsule
    assert numbers.execute("SELECT 1").fetchone() == (1,)


def test_an_error_in_the_middle_of_a_stream(con):
    con.execute("CREATE TABLE t AS SELECT x FROM generate_series(1, 500000) AS g(x)")
    reader = con.execute("SELECT 1 / (x - 400000) FROM t").reader()
    with pytest.raises(pyarrow.ArrowInvalid, match="division by zero"):
        reader.read_all()
    # Behind an error there is nothing.
    with pytest.raises((pyarrow.ArrowInvalid, StopIteration)):
        reader.read_next_batch()
    for fetch in ("arrow", "pl", "df", "numpy", "fetchall"):
        with pytest.raises(eris_db.DataError) as raised:
            getattr(con.execute("SELECT 1 / (x - 400000) FROM t"), fetch)()
        assert raised.value.sqlstate == "22012"
    assert con.execute("SELECT count(*) FROM t").fetchone() == (500_000,)


def test_reading_batch_by_batch_takes_little_memory():
    """480 MB of rows: the process grows by no more than a part of them."""
    print(
        run(
            """
            con = connect()
            def resident(kind):
                line = next(line for line in open("/proc/self/status") if line.startswith(kind))
                return int(line.split()[1]) // 1024
            text = ("SELECT a.x * 100000 + b.x AS k, a.x AS l, b.x AS m FROM generate_series(1, 200) AS a(x),"
                    " generate_series(1, 100000) AS b(x)")
            con.execute(text + " LIMIT 100000").arrow()
            before = resident("VmRSS")
            open("/proc/self/clear_refs", "w").write("5")  # The peak begins anew.
            rows = total = 0
            for batch in con.execute(text).reader():
                rows += batch.num_rows
                total += batch.nbytes
            assert rows == 20_000_000 and total >= 480_000_000, (rows, total)
            grown = resident("VmHWM") - before
            print("grown by", grown, "MB")
            assert grown <= 100, grown
            """
        )
    )


# ---- on the screen ---------------------------------------------------------------------------------------------------


def test_a_table_in_text(con):
    result = con.execute(
        "SELECT * FROM (VALUES (1, 'nail', 1.5, true), (20, '<b>ß</b>', NULL, false), (NULL, NULL, -2.25, NULL)) AS t(k, s, n, o)"
    )
    assert repr(result).splitlines() == [
        "┌──────┬──────────┬───────┬───────┐",
        "│    k │ s        │     n │ o     │",
        "├──────┼──────────┼───────┼───────┤",
        "│    1 │ nail     │  1.50 │ true  │",
        "│   20 │ <b>ß</b> │  NULL │ false │",
        "│ NULL │ NULL     │ -2.25 │ NULL  │",
        "└──────┴──────────┴───────┴───────┘",
        "3 rows",
    ]
    shown = result._repr_html_()
    assert "&lt;b&gt;ß&lt;/b&gt;" in shown and "<b>ß" not in shown and "<p>3 rows</p>" in shown
    # Showing it has read nothing.
    assert len(result.fetchall()) == 3
    assert "0 rows" in repr(result)


def test_lines_of_a_table_are_equally_wide(con):
    result = con.execute(
        "SELECT 'a\nb' AS \"two\nlines\", repeat('x', 100) AS s, '\t\x1b[31m' AS t, '日本' AS w, 'e\u0301' AS c"
    )
    lines = repr(result).splitlines()
    assert len(lines) == 6
    # Letters of the east take two places, marks none.
    assert [len(line) for line in lines] == [
        len(lines[0]),
        len(lines[0]),
        len(lines[0]),
        len(lines[0]) - 2 + 1,
        len(lines[0]),
        5,
    ]
    assert "x" * 40 not in lines[3] and "…" in lines[3] and "\x1b" not in lines[3]
    assert "<script>" not in con.execute("SELECT '<script>' AS \"<script>\"")._repr_html_()


def test_only_what_is_shown_is_fetched(con):
    con.timeout = 30.0
    result = con.execute("SELECT a.n, f.n AS m FROM " + ", ".join(DIGITS.format(name) for name in "abcdefghijkl"))
    assert repr(result).splitlines()[-1] == "the first 20 rows"
    assert "the first 20 rows" in result._repr_html_()
    assert len(result.fetchmany(50)) == 50
    result.close()


def test_other_statements_are_shown_by_their_kind(con):
    assert repr(con.execute("CREATE TABLE t (k BIGINT)")) == "CREATE TABLE"
    assert repr(con.execute("INSERT INTO t VALUES (1), (2)")) == "INSERT 2"
    assert con.execute("DELETE FROM t")._repr_html_() is None


def test_numbers_that_are_none(con):
    found = con.execute("SELECT 'nan'::DOUBLE AS f, 'inf'::DOUBLE AS g").fetchone()
    assert math.isnan(found[0]) and found[1] == math.inf
