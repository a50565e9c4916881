"""What is read of frames, and when: columns and conditions, once or often, producers that fail or lie, locks."""

# Statements find variables that nothing else uses.
# ruff: noqa: B007, F841

import ctypes
import datetime
import decimal
import gc
import random
import threading
import weakref
from pathlib import Path

import numpy
import pandas
import polars
import polars.io.plugins
import pyarrow
import pyarrow.dataset
import pyarrow.parquet
import pytest
from support import run

import eris_db
import eris_db._frames

# ---- columns and conditions ------------------------------------------------------------------------------------------


@pytest.fixture
def watched():
    """A lazy frame, and what was asked of it: columns and conditions of each reading."""
    asked = []
    data = polars.DataFrame(
        {
            "k": range(1000),
            "s": [f"s{k}" for k in range(1000)],
            "f": [k / 2 for k in range(1000)],
            "unwanted": [0] * 1000,
        }
    )

    def read(columns, predicate, rows, size):
        asked.append((columns, predicate))
        found = data if predicate is None else data.filter(predicate)
        yield found if columns is None else found.select(columns)

    return polars.io.plugins.register_io_source(read, schema=data.schema), asked


def test_lazy_frames_are_asked_for_wanted_columns_only(con, watched):
    frame, asked = watched
    assert con.execute("SELECT sum(f) FROM frame").fetchone() == (249_750.0,)
    assert [columns for columns, _ in asked] == [["f"]]


def test_conditions_go_into_lazy_frames(con, watched):
    frame, asked = watched
    found = con.execute("SELECT f FROM frame WHERE k >= 10 AND k < 12 AND s IN ('s10', 's11', 's12')").fetchall()
    assert found == [(5.0,), (5.5,)]
    ((columns, predicate),) = asked
    assert "f" in columns and "unwanted" not in columns
    assert predicate is not None and predicate.meta.root_names().count("k") == 2


def test_a_plan_alone_reads_nothing(con, watched):
    frame, asked = watched
    con.execute("EXPLAIN SELECT f FROM frame WHERE k = 5").fetchall()
    con.register("given", frame)
    assert asked == []


@pytest.fixture
def parquet(tmp_path):
    """A data set of two files, of which a column of the second one is damaged."""
    for part in range(2):
        data = pyarrow.table(
            {"k": range(part * 1000, part * 1000 + 1000), "s": [f"long text number {k}" for k in range(1000)]}
        )
        pyarrow.parquet.write_table(data, tmp_path / f"{part}.parquet", use_dictionary=False, compression="snappy")
    path = tmp_path / "1.parquet"
    place = pyarrow.parquet.ParquetFile(path).metadata.row_group(0).column(1).data_page_offset
    content = bytearray(path.read_bytes())
    content[place : place + 200] = bytes(200)
    path.write_bytes(content)
    return pyarrow.dataset.dataset(tmp_path)


def test_data_sets_are_read_for_wanted_columns_and_rows_only(con, parquet):
    with pytest.raises(OSError):
        con.execute("SELECT max(s) FROM parquet").fetchall()
    assert con.execute("SELECT sum(k), count(*) FROM parquet").fetchone() == (1_999_000, 2000)
    # The statistics of the second file say that it has no such row: it is left alone.
    assert con.execute("SELECT max(s) FROM parquet WHERE k < 500").fetchone() == ("long text number 99",)


def test_pandas_columns_of_numbers_that_nobody_wants_are_not_read(con, monkeypatch):
    read = []
    series = eris_db._frames._series
    monkeypatch.setattr(eris_db._frames, "_series", lambda column: read.append(column.name) or series(column))
    frame = pandas.DataFrame({name: [1.5, 2.5] for name in "abcdef"})
    assert con.execute("SELECT max(b) FROM frame WHERE e > 2").fetchall() == [(2.5,)]
    assert sorted(read) == ["b", "e"]


def random_frame(chosen, rows):
    def column(make):
        return [None if chosen.random() < 0.2 else make() for _ in range(rows)]

    start = datetime.datetime(2024, 1, 1)
    return pyarrow.table(
        {
            "i": pyarrow.array(column(lambda: chosen.randrange(-5, 5)), pyarrow.int32()),
            "u": pyarrow.array(column(lambda: chosen.randrange(10)), pyarrow.uint8()),
            "f": pyarrow.array(column(lambda: chosen.choice([-1.5, 0.0, -0.0, 1.0, 2.5, float("nan"), float("inf")])), pyarrow.float64()),
            "g": pyarrow.array(column(lambda: chosen.choice([-1.5, 0.0, 1.0])), pyarrow.float32()),
            "h": pyarrow.array(column(lambda: numpy.float16(chosen.choice([-1.5, 0.0, 1.0]))), pyarrow.float16()),
            "n": pyarrow.array(column(lambda: decimal.Decimal(chosen.randrange(-5, 5)).scaleb(-1)), pyarrow.decimal128(10, 2)),
            "s": pyarrow.array(column(lambda: chosen.choice(["", "a", "ab", "ß", "'"])), pyarrow.string()),
            "b": pyarrow.array(column(lambda: chosen.choice([b"", b"a", b"\0"])), pyarrow.binary()),
            "o": pyarrow.array(column(lambda: chosen.random() < 0.5), pyarrow.bool_()),
            "d": pyarrow.array(column(lambda: start.date() + datetime.timedelta(chosen.randrange(5))), pyarrow.date32()),
            "t": pyarrow.array(column(lambda: start + datetime.timedelta(hours=chosen.randrange(5))), pyarrow.timestamp("us")),
            "z": pyarrow.array(column(lambda: start + datetime.timedelta(hours=chosen.randrange(5))), pyarrow.timestamp("us", "UTC")),
            "c": pyarrow.array(column(lambda: datetime.time(chosen.randrange(5))), pyarrow.time64("us")),
        }
    )  # fmt: skip


CONSTANTS = {
    "i": ["0", "-3", "2.5", "100000000000"],
    "u": ["3", "-1", "300"],
    "f": ["0", "1.0", "'nan'::DOUBLE", "2.25"],
    "g": ["0", "1.0", "0.1"],
    "h": ["0", "1.0", "0.1"],
    "n": ["0.1", "-0.3", "0.25", "1"],
    "s": ["'a'", "''", "'ß'", "''''"],
    "b": ["'a'::BLOB", "''::BLOB"],
    "o": ["true", "false"],
    "d": ["DATE '2024-01-03'", "TIMESTAMP '2024-01-02 12:00'"],
    "t": ["TIMESTAMP '2024-01-01 02:00'", "DATE '2024-01-01'"],
    "z": ["TIMESTAMPTZ '2024-01-01 02:00+00'"],
}


def random_condition(chosen):
    name = chosen.choice(list(CONSTANTS))
    constant = chosen.choice(CONSTANTS[name])
    match chosen.randrange(8):
        case 0:
            return f"{name} IS NULL"
        case 1:
            return f"{name} IS NOT NULL"
        case 2:
            return f"{name} IN ({', '.join(chosen.choices(CONSTANTS[name], k=chosen.randint(1, 3)))})"
        case 3:
            return f"{constant} {chosen.choice(['=', '<', '>='])} {name}"
        case 4:
            return f"({random_condition(chosen)} OR {random_condition(chosen)})"
        case 5:
            return f"NOT {name} = {constant}"
        case _:
            return f"{name} {chosen.choice(['=', '<>', '<', '<=', '>', '>='])} {constant}"


def test_conditions_mean_the_same_in_every_frame(con, tmp_path):
    """The oracle is a table of Eris, which has all rows: whatever a library filters must be the same."""
    seed = random.randrange(2**32)
    print(f"seed {seed}")
    chosen = random.Random(seed)
    table = random_frame(chosen, 200)
    table = table.append_column("k", pyarrow.array(range(200)))
    pyarrow.parquet.write_table(table, tmp_path / "t.parquet")
    con.execute('CREATE TABLE known AS SELECT * FROM "table"')
    frames = {
        "dataset": pyarrow.dataset.dataset(table),
        "file": pyarrow.dataset.dataset(tmp_path),
        "lazy": polars.from_arrow(table).lazy(),
        "eager": polars.from_arrow(table),
    }
    for name, frame in frames.items():
        con.register(name, frame)
    wrong = []
    for _ in range(150):
        condition = " AND ".join(random_condition(chosen) for _ in range(chosen.randint(1, 3)))
        expected = con.execute(f"SELECT k FROM known WHERE {condition} ORDER BY k").fetchall()
        for name in frames:
            try:
                found = con.execute(f"SELECT k FROM {name} WHERE {condition} ORDER BY k").fetchall()
            except Exception as error:
                found = error
            if found != expected:
                wrong.append((name, condition, found if isinstance(found, Exception) else len(found), len(expected)))
    assert not wrong, "\n".join(map(str, wrong[:10]))


POLARS = {
    "nanoseconds": (
        polars.Series([1577836800000000001]).cast(polars.Datetime("ns")),
        ["> TIMESTAMP '2020-01-01'", "= TIMESTAMP '2020-01-01'", "IN (TIMESTAMP '2020-01-01')"],
    ),
    "milliseconds": (
        polars.Series([1577836800001]).cast(polars.Datetime("ms")),
        ["> TIMESTAMP '2020-01-01 00:00:00.0005'", "< TIMESTAMP '2020-01-01 00:00:00.0015'"],
    ),
    "Berlin": (
        polars.Series([datetime.datetime(2024, 7, 2)]).dt.replace_time_zone("Europe/Berlin"),
        ["> TIMESTAMPTZ '2024-07-01 21:59:59+00'", "> TIMESTAMPTZ '2024-07-01 22:00+00'", "IS NOT NULL"],
    ),
    "UTC": (
        polars.Series([datetime.datetime(2024, 7, 2)]).dt.replace_time_zone("UTC"),
        ["> TIMESTAMPTZ '2024-07-01 21:59:59+00'", "IN (TIMESTAMPTZ '2024-07-02 00:00+00')"],
    ),
    "enum": (polars.Series(["z", "b"], dtype=polars.Enum(["z", "b"])), ["> 'a'", "> 'q'", "IN ('b', 'x')"]),
    "categorical": (polars.Series(["z", "b"], dtype=polars.Categorical), ["> 'a'", "> 'q'", "= 'x'"]),
    "decimal": (polars.Series([decimal.Decimal("1.25")]), ["> 1.2", "= 1.25", "= 1.250"]),
    "small": (polars.Series([200], dtype=polars.UInt8), ["> 100", "> -1", "< 300", "IN (200, 300)"]),
    "large": (polars.Series([2**63 + 5], dtype=polars.UInt64), ["> 9223372036854775810", "IN (9223372036854775813)"]),
    "date": (polars.Series([datetime.date(2024, 1, 1)]), ["< DATE '9999-12-31' + 5", "> DATE '2023-12-31'"]),
    "span": (polars.Series([datetime.timedelta(1)]), ["> INTERVAL '1 hour'"]),
}


@pytest.mark.parametrize("name", POLARS)
def test_conditions_of_lazy_frames_mean_what_they_mean_in_sql(con, name, tmp_path):
    series, conditions = POLARS[name]
    eager = polars.DataFrame({"x": series})
    frames = {"lazy": eager.lazy()}
    frames["dataset"] = pyarrow.dataset.dataset(eager.to_arrow(compat_level=polars.CompatLevel.oldest()))
    for kind, frame in frames.items():
        for condition in conditions:
            expected = con.execute(f"SELECT count(*) FROM eager WHERE x {condition}").fetchone()
            found = con.execute(f"SELECT count(*) FROM frame WHERE x {condition}").fetchone()
            assert found == expected, (kind, condition, frame is None)


def test_pandas_frames_may_change_between_statements(con):
    frame = pandas.DataFrame({"a": [1, 2], "b": [1, 2], "s": ["x", "y"]})
    con.register("registered", frame)
    assert con.execute("SELECT a FROM registered").fetchall() == [(1,), (2,)]
    frame["a"] *= 10
    frame["b"] *= 10
    frame["s"] = ["z", "z"]
    assert con.execute("SELECT a, b, s FROM registered").fetchall() == [(10, 10, "z"), (20, 20, "z")]
    assert con.execute("SELECT a + ? FROM registered", [1]).fetchall() == [(11,), (21,)]
    del frame["b"]
    frame["c"] = [3, 4]
    assert con.execute("SELECT c FROM registered").fetchall() == [(3,), (4,)]
    with pytest.raises(eris_db.ProgrammingError, match='"b"'):
        con.execute("SELECT b FROM registered")


@pytest.mark.parametrize(
    "make",
    [
        lambda values: pandas.Series(values, dtype="str"),
        lambda values: pandas.Series(values, dtype="object"),
        lambda values: pandas.Series(values, dtype="string[python]"),
        lambda values: pandas.Series(values, dtype="category"),
        lambda values: pandas.Series([value.encode() for value in values], dtype="object"),
        lambda values: pandas.Series([datetime.datetime(2024, 1, 1)] * len(values)).dt.tz_localize("Europe/Berlin"),
    ],
    ids=["str", "object", "string", "category", "bytes", "times"],
)
def test_pandas_columns_that_nobody_wants_are_not_converted(con, monkeypatch, make):
    converted = []
    series = eris_db._frames._series
    monkeypatch.setattr(
        eris_db._frames, "_series", lambda column: converted.append((column.name, len(column))) or series(column)
    )
    frame = pandas.DataFrame({name: make(["x", "y", "z"]) for name in "abc"})
    assert con.execute("SELECT count(b) FROM frame").fetchall() == [(3,)]
    assert {name for name, rows in converted if rows > 0} == {"b"}


def test_times_of_polars_are_compared(con):
    frame = polars.DataFrame({"c": [datetime.time(2), datetime.time(3)]})
    assert con.execute("SELECT * FROM frame WHERE c = TIME '02:00'").fetchall() == [(datetime.time(2),)]


# ---- once, often, never ----------------------------------------------------------------------------------------------


def test_a_reader_is_read_once(con):
    reader = pyarrow.table({"k": [1, 2]}).to_reader()
    con.register("registered", reader)
    assert con.execute("SELECT * FROM registered").fetchall() == [(1,), (2,)]
    for _ in range(2):
        with pytest.raises(eris_db.ProgrammingError, match="once"):
            con.execute("SELECT * FROM registered").fetchall()
    assert con.execute("SELECT 1").fetchone() == (1,)


def test_a_reader_that_is_read_twice_in_one_statement(con):
    reader = pyarrow.table({"k": [1, 2]}).to_reader()
    with pytest.raises(eris_db.ProgrammingError, match="once"):
        con.execute("SELECT * FROM reader AS a, reader AS b").fetchall()


def test_a_variable_that_is_a_reader_is_read_once(con):
    reader = pyarrow.table({"k": [1, 2]}).to_reader()
    assert con.execute("SELECT * FROM reader").fetchall() == [(1,), (2,)]
    try:
        assert con.execute("SELECT * FROM reader").fetchall() == []
    except eris_db.ProgrammingError as error:
        assert "once" in str(error)
    else:
        pytest.fail("no rows, and no word that they were read already")


SCHEMA = pyarrow.schema([("k", pyarrow.int64()), ("s", pyarrow.string())])


def batch(*keys):
    return pyarrow.record_batch(
        [pyarrow.array(keys, pyarrow.int64()), pyarrow.array([f"s{k}" for k in keys], pyarrow.string())], schema=SCHEMA
    )


def reader_of(batches):
    return pyarrow.RecordBatchReader.from_batches(SCHEMA, batches)


def test_producers_without_batches(con):
    con.execute("CREATE TABLE t (k BIGINT, s VARCHAR)")
    for frame in (
        reader_of([]),
        SCHEMA.empty_table(),
        polars.DataFrame(schema={"k": polars.Int64, "s": polars.String}),
    ):
        con.register("frame", frame)
        assert con.execute("SELECT * FROM frame").fetchall() == []
    assert con.execute("SELECT count(*), sum(k) FROM frame").fetchone() == (0, None)
    assert con.append("t", reader_of([])).rowcount == 0


def test_a_thousand_empty_batches(con):
    empty = batch()
    frame = reader_of([*[empty] * 1000, batch(1), *[empty] * 1000, batch(2, 3), *[empty] * 1000])
    assert con.execute("SELECT sum(k), count(s) FROM frame").fetchone() == (6, 3)
    frame = pyarrow.Table.from_batches([*[empty] * 1000, batch(1), empty])
    assert con.execute("SELECT k, s FROM frame").fetchall() == [(1, "s1")]


def test_many_small_batches(con):
    frame = reader_of(batch(k) for k in range(5000))
    con.execute("CREATE TABLE t AS SELECT * FROM frame")
    assert con.execute("SELECT count(*), sum(k), count(DISTINCT s) FROM t").fetchone() == (5000, 12_497_500, 5000)


def test_slices_with_offsets(con):
    table = random_frame(random.Random(5), 1000)
    con.execute('CREATE TABLE whole AS SELECT *, i AS "again" FROM "table"')
    for start, length in [(0, 1000), (1, 998), (7, 1), (8, 64), (63, 130), (999, 1), (1000, 0)]:
        part = table.slice(start, length)
        found = con.execute("SELECT * FROM part").fetchall()
        expected = repr([tuple(row.values()) for row in part.to_pylist()])
        assert repr(found) == expected.replace("zoneinfo.ZoneInfo(key='UTC')", "datetime.timezone.utc")
        con.execute("CREATE OR REPLACE TABLE t AS SELECT * FROM part")
        # NaN is not equal to itself, but its text is.
        assert repr(con.execute("SELECT * FROM t").arrow().to_pylist()) == repr(part.to_pylist())


def test_a_frame_that_is_larger_than_memory(con):
    """The rows of a reader go through: 400 MB, in a database of 64 MB."""
    block = pyarrow.record_batch({"k": numpy.arange(100_000), "f": numpy.ones(100_000)})
    with eris_db.connect(memory="64MB", aeus=1) as small:
        reader = pyarrow.RecordBatchReader.from_batches(block.schema, (block for _ in range(250)))
        assert small.execute("SELECT count(*), sum(f), max(k) FROM reader").fetchone() == (25_000_000, 25e6, 99_999)


# ---- producers that fail ---------------------------------------------------------------------------------------------


class Own(Exception):
    """An exception that nobody else has."""


def failing(error, after=3):
    for k in range(after):
        yield batch(k)
    raise error


@pytest.mark.parametrize(
    "error",
    [
        ValueError("boom"),
        Own(5),
        OSError(2, "gone"),
        KeyError("k"),
        RecursionError(),
        MemoryError(),
        eris_db.DataError("ours"),
    ],
    ids=repr,
)
@pytest.mark.parametrize(
    "statement", ["SELECT * FROM frame", "SELECT sum(k) FROM frame", "CREATE TABLE made AS SELECT * FROM frame"]
)
def test_an_exception_arrives_as_itself(con, error, statement):
    frame = reader_of(failing(error))
    with pytest.raises(type(error)) as raised:
        con.execute(statement).fetchall()
    assert raised.value is error or raised.value.args == error.args
    with pytest.raises(eris_db.ProgrammingError):
        con.execute("SELECT * FROM made")
    # It tells where it was raised.
    assert any(entry.name == "failing" for entry in raised.traceback)


@pytest.mark.parametrize("error", [KeyboardInterrupt(), SystemExit(3), GeneratorExit()], ids=repr)
def test_exceptions_that_end_programs_arrive_as_themselves(con, error):
    frame = reader_of(failing(error))
    with pytest.raises(type(error)):
        con.execute("SELECT * FROM frame").fetchall()
    assert con.execute("SELECT 1").fetchone() == (1,)


def test_exceptions_of_lazy_frames_and_of_interfaces(con):
    def read(columns, predicate, rows, size):
        raise Own("while reading")
        yield

    lazy = polars.io.plugins.register_io_source(read, schema={"k": polars.Int64})
    with pytest.raises((Own, polars.exceptions.ComputeError), match="while reading"):
        con.execute("SELECT * FROM lazy").fetchall()

    class Broken:
        def __arrow_c_stream__(self, requested_schema=None):
            raise Own("no stream")

    class Lying:
        def __arrow_c_stream__(self, requested_schema=None):
            return "no capsule"

    class Foreign:
        def __arrow_c_stream__(self, requested_schema=None):
            return pyarrow.schema([]).__arrow_c_schema__()

    frame = Broken()
    with pytest.raises(Own, match="no stream"):
        con.execute("SELECT * FROM frame")
    for frame in (Lying(), Foreign()):
        with pytest.raises((eris_db.Error, ValueError, TypeError)):
            con.execute("SELECT * FROM frame")
    assert con.execute("SELECT 1").fetchone() == (1,)


def test_append_writes_all_rows_or_none(con):
    con.execute("CREATE TABLE t (k BIGINT PRIMARY KEY, s VARCHAR NOT NULL)")
    con.append("t", {"k": [100], "s": ["there"]})
    good = {"k": [1, 2], "s": ["a", "b"]}
    for wrong, kind in [
        (reader_of(failing(Own("boom"), after=50)), Own),
        ({"k": [1, 100], "s": ["a", "b"]}, eris_db.IntegrityError),
        ({"k": [1, 1], "s": ["a", "b"]}, eris_db.IntegrityError),
        ({"k": [1, 2], "s": ["a", None]}, eris_db.IntegrityError),
        ({"k": [1, 2]}, eris_db.IntegrityError),
        ({**good, "other": [1, 2]}, eris_db.ProgrammingError),
        ({"k": ["1", "x"], "s": ["a", "b"]}, eris_db.Error),
        ({"k": [1, 2**63], "s": ["a", "b"]}, eris_db.DataError),
    ]:
        with pytest.raises(kind):
            con.append("t", wrong)
        assert con.execute("SELECT * FROM t").fetchall() == [(100, "there")]
    with pytest.raises(eris_db.ProgrammingError):
        con.append("nix", good)
    assert con.append("t", good).rowcount == 2
    assert con.append("t", {"y": [3], "x": ["c"]}, by_name=False).rowcount == 1
    assert con.append("public.t", reader_of([batch(7)])).rowcount == 1
    assert [k for (k,) in con.execute("SELECT k FROM t ORDER BY k").fetchall()] == [1, 2, 3, 7, 100]
    con.execute('CREATE TABLE "Strange "" name" (k BIGINT)')
    assert con.append('Strange " name', {"k": [1]}).rowcount == 1


# ---- producers that lie ----------------------------------------------------------------------------------------------


class ArrayStream(ctypes.Structure):
    """Arrow's C stream."""


GET = ctypes.CFUNCTYPE(ctypes.c_int, ctypes.POINTER(ArrayStream), ctypes.c_void_p)
ERROR = ctypes.CFUNCTYPE(ctypes.c_void_p, ctypes.POINTER(ArrayStream))
RELEASE = ctypes.CFUNCTYPE(None, ctypes.POINTER(ArrayStream))
ArrayStream._fields_ = [
    ("schema", GET),
    ("next", GET),
    ("error", ERROR),
    ("release", RELEASE),
    ("data", ctypes.c_void_p),
]


class Liar:
    """A stream whose batches need not be what its schema says."""

    def __init__(self, schema, batches, error=None):
        self.given, self.batches = schema, iter(batches)
        self.text = None if error is None else ctypes.create_string_buffer(error)

    def __arrow_c_stream__(self, requested_schema=None):
        def schema(_, target):
            self.given._export_to_c(target)
            return 0

        def following(_, target):
            found = next(self.batches, None)
            if found is not None:
                found._export_to_c(target)
                return 0
            if self.text is not None:
                return 5
            ctypes.memset(target, 0, 80)
            return 0

        def release(stream):
            stream.contents.release = RELEASE()

        self.kept = ArrayStream(
            GET(schema),
            GET(following),
            ERROR(lambda _: self.text and ctypes.addressof(self.text)),
            RELEASE(release),
            None,
        )
        new = ctypes.pythonapi.PyCapsule_New
        new.restype, new.argtypes = ctypes.py_object, [ctypes.c_void_p, ctypes.c_char_p, ctypes.c_void_p]
        return new(ctypes.addressof(self.kept), b"arrow_array_stream", None)


def column(values, kind):
    return pyarrow.record_batch([pyarrow.array(values, kind)], names=["x"])


def overwritten(array, buffer, values, at=0):
    """A batch in one of whose buffers something else lies since somebody looked at it."""
    made = pyarrow.RecordBatch.from_arrays([array], names=["x"])
    ctypes.memmove(buffer(array).address + at, values, len(values))
    return made


def ints(*values, kind="int32"):
    return numpy.array(values, kind).tobytes()


def offsets(array):
    return array.buffers()[1]


def texts(array):
    return array.buffers()[2]


STRING, BINARY, LIST = pyarrow.string(), pyarrow.large_binary(), pyarrow.list_(pyarrow.int64())
CODES = pyarrow.dictionary(pyarrow.int8(), pyarrow.string())
RUNS = pyarrow.run_end_encoded(pyarrow.int32(), pyarrow.string())
VIEW = pyarrow.string_view()
LONG = ["more than fits into a view", "and another one as long"]


def runs():
    return pyarrow.RunEndEncodedArray.from_arrays(pyarrow.array([1, 2], pyarrow.int32()), pyarrow.array(["a", "b"]))


# The type that the schema names, and a batch.
LIES = {
    "another type": (pyarrow.int64(), lambda: column(["a", "b"], STRING)),
    "a text that is a number": (STRING, lambda: column([1, 2], pyarrow.int64())),
    "a list that is a number": (LIST, lambda: column([1, 2], pyarrow.int64())),
    "a struct that is a number": (pyarrow.struct([("a", pyarrow.int64())]), lambda: column([1, 2], pyarrow.int64())),
    "codes without a dictionary": (CODES, lambda: column([1, 2], pyarrow.int8())),
    "runs that are a number": (RUNS, lambda: column([1, 2], pyarrow.int64())),
    "bytes that are no text": (STRING, lambda: overwritten(pyarrow.array(["ab", "cd"]), texts, b"\xff\xfe")),
    "half a letter": (STRING, lambda: overwritten(pyarrow.array(["ß", "cd"]), offsets, ints(0, 1, 4))),
    "offsets that go back": (STRING, lambda: overwritten(pyarrow.array(["ab", "cd"]), offsets, ints(0, 3, 2))),
    "negative offsets": (STRING, lambda: overwritten(pyarrow.array(["ab", "cd"]), offsets, ints(-100, 2, 4))),
    "an offset far away": (STRING, lambda: overwritten(pyarrow.array(["ab", "cd"]), offsets, ints(0, 2**30, 4))),
    "long offsets that go back": (
        BINARY,
        lambda: overwritten(pyarrow.array([b"ab", b"cd"], BINARY), offsets, ints(0, 2**40, 2, kind="int64")),
    ),
    "codes beyond the dictionary": (
        CODES,
        lambda: overwritten(pyarrow.array(["a", "b"]).cast(CODES), lambda array: array.indices.buffers()[1], b"\0\x63"),
    ),
    "negative codes": (
        CODES,
        lambda: overwritten(pyarrow.array(["a", "b"]).cast(CODES), lambda array: array.indices.buffers()[1], b"\0\xff"),
    ),
    "offsets of a list that go back": (LIST, lambda: overwritten(pyarrow.array([[1, 2], [3]]), offsets, ints(0, 3, 2))),
    "offsets beyond a list": (LIST, lambda: overwritten(pyarrow.array([[1, 2], [3]]), offsets, ints(0, 2, 9999999))),
    "runs that go back": (RUNS, lambda: overwritten(runs(), lambda array: array.run_ends.buffers()[1], ints(2, 1))),
    "runs that are too short": (RUNS, lambda: overwritten(runs(), lambda array: array.run_ends.buffers()[1], ints(0, 1))),
    "views of another buffer": (VIEW, lambda: overwritten(pyarrow.array(LONG, VIEW), offsets, ints(99), at=8)),
    "views beyond a buffer": (VIEW, lambda: overwritten(pyarrow.array(LONG, VIEW), offsets, ints(9999999), at=12)),
    "views of no text": (VIEW, lambda: overwritten(pyarrow.array(LONG, VIEW), texts, b"\xff\xfe", at=6)),
    "short views of no text": (VIEW, lambda: overwritten(pyarrow.array(["ab", "cd"], VIEW), offsets, b"\xff\xfe", at=4)),
}  # fmt: skip


@pytest.mark.parametrize("name", LIES)
@pytest.mark.parametrize(
    "statement",
    [
        "SELECT * FROM frame",
        "SELECT count(*) FROM frame WHERE x IS NOT NULL",
        "SELECT max(x) FROM frame",
        "CREATE TABLE t AS SELECT x FROM frame",
    ],
)
def test_lies_are_found(con, name, statement):
    """An error in words, or at least values that are there; never a crash."""
    kind, make = LIES[name]
    frame = Liar(pyarrow.schema([("x", kind)]), [make()])
    try:
        found = con.execute(statement)
        found = found.fetchall() if found.columns else found
    except (eris_db.Error, pyarrow.ArrowInvalid, ValueError) as error:
        assert str(error)
    else:
        # What the statement does not look at need not be found.
        assert "count" in statement, found
    assert con.execute("SELECT 1").fetchone() == (1,)


def test_a_decimal_with_more_digits_than_its_type(con):
    values = pyarrow.array([decimal.Decimal(1), None], pyarrow.decimal128(3, 0))
    frame = overwritten(values, offsets, ints(10**9))
    with pytest.raises(eris_db.DataError):
        con.execute("SELECT * FROM frame").fetchall()


def test_lies_about_columns_and_nulls(con):
    two = pyarrow.record_batch([pyarrow.array([1]), pyarrow.array([2])], names=["x", "y"])
    one = column([1], pyarrow.int64())
    strict = pyarrow.schema([pyarrow.field("x", pyarrow.int64(), nullable=False)])
    for schema, given in [(one.schema, two), (two.schema, one), (strict, column([None], pyarrow.int64()))]:
        frame = Liar(schema, [given])
        with pytest.raises((eris_db.Error, ValueError)):
            con.execute("SELECT * FROM frame").fetchall()
    frame = Liar(one.schema, [one, one], error=b"the disk is gone")
    with pytest.raises((eris_db.Error, ValueError), match="the disk is gone"):
        con.execute("SELECT * FROM frame").fetchall()
    frame = Liar(one.schema, [one], error=b"\xff\xfe")
    with pytest.raises((eris_db.Error, ValueError)):
        con.execute("SELECT * FROM frame").fetchall()
    assert con.execute("SELECT 1").fetchone() == (1,)


# ---- threads, locks, lives -------------------------------------------------------------------------------------------


def test_code_of_a_frame_that_uses_the_same_connection(con):
    con.execute("CREATE TABLE t (k BIGINT)")

    def asking(connection):
        yield batch(1)
        yield batch(connection.execute("SELECT 41 + 1").fetchone()[0])

    for statement in ("INSERT INTO t SELECT k FROM frame", "CREATE TABLE u AS SELECT * FROM frame"):
        frame = reader_of(asking(con))
        with pytest.raises(eris_db.InterfaceError, match="cursor"):
            con.execute(statement)
    assert con.execute("SELECT count(*) FROM t").fetchone() == (0,)
    # While rows are only fetched the connection is free, or it is not yet.
    frame = reader_of(asking(con))
    try:
        assert con.execute("SELECT k FROM frame").fetchall() == [(1,), (42,)]
    except eris_db.InterfaceError as error:
        assert "cursor" in str(error)
    frame = reader_of(asking(con.cursor()))
    assert con.execute("SELECT k FROM frame").fetchall() == [(1,), (42,)]


def test_code_of_a_frame_runs_on_no_worker(con):
    """The thread's name at the system: those of workers begin with eris-aeu."""
    names = []

    def asking():
        for k in range(50):
            names.append(Path(f"/proc/self/task/{threading.get_native_id()}/comm").read_text())
            yield batch(k)

    frame = reader_of(asking())
    assert con.execute("SELECT count(*) FROM frame").fetchone() == (50,)
    frame = reader_of(asking())
    con.execute("CREATE TABLE t AS SELECT * FROM frame")
    assert len(names) == 100 and not any("aeu" in name for name in names), set(names)
    workers = {path.read_text() for path in Path("/proc/self/task").glob("*/comm")}
    assert any("aeu" in name for name in workers), workers


def test_code_of_a_frame_may_wait_for_other_threads(con):
    """It waits for a thread that uses the database, too: no lock is held meanwhile."""
    con.execute("CREATE TABLE t (k BIGINT)")
    other = con.cursor()

    def work():
        for k in range(20):
            thread = threading.Thread(target=lambda k=k: other.execute("INSERT INTO t VALUES (?)", [k]))
            thread.start()
            thread.join()
            yield batch(k)

    frame = reader_of(work())
    assert con.execute("SELECT sum(k) FROM frame").fetchone() == (190,)
    assert con.execute("SELECT sum(k) FROM t").fetchone() == (190,)


def test_a_frame_that_changes_while_it_is_read(con):
    values = numpy.zeros(200_000, "int64")
    frame = {"x": values}
    other, ended = pandas.DataFrame({"x": values}), threading.Event()

    def change():
        number = 0
        while not ended.is_set():
            number += 1
            values[:] = number % 2
            other["x"] = number % 2
            frame[f"y{number % 3}"] = values

    changer = threading.Thread(target=change)
    changer.start()
    try:
        for _ in range(20):
            for name in ("frame", "other"):
                try:
                    (total,) = con.execute(f"SELECT sum(x) FROM {name}").fetchone()
                except RuntimeError as error:
                    assert "changed size" in str(error)
                else:
                    assert 0 <= total <= 200_000
    finally:
        ended.set()
        changer.join()


def test_frames_are_let_go(con):
    class Table(dict):
        """A dict that can be watched."""

    def ask():
        # A function of its own: before Python 3.13 a frame of execution keeps its variables as they were last seen.
        frame = Table(k=[1, 2, 3])
        assert con.execute("SELECT count(*) FROM frame WHERE k > ?", [0]).fetchone() == (3,)
        return weakref.ref(frame)

    alive = ask()
    gc.collect()
    assert alive() is None
    # What is registered lives on.
    frame = pyarrow.table({"k": list(range(1000))})
    alive = weakref.ref(frame)
    con.register("frame", frame)
    del frame
    gc.collect()
    assert con.execute("SELECT sum(k) FROM frame").fetchone() == (499_500,)
    con.unregister("frame")
    con.execute("SELECT 1").fetchall()
    gc.collect()
    assert alive() is None


def test_none_of_the_libraries_is_imported_by_itself():
    run(
        """
        con = connect()
        frame = {"k": [1, 2], "s": ["a", None]}
        assert con.execute("SELECT * FROM frame").fetchall() == [(1, "a"), (2, None)]
        con.execute("CREATE TABLE t AS SELECT * FROM frame")
        repr(con.execute("SELECT * FROM t"))
        assert con.execute("SELECT ?", [[1, 2]]).fetchone() == ([1, 2],)
        assert con.append("t", {"k": [3], "s": ["c"]}).rowcount == 1
        assert not {"numpy", "pandas", "polars", "pyarrow", "IPython"} & set(sys.modules)
        """
    )
