"""Rows by key and bare indexes, beside a dict."""

import datetime
import decimal
import random
import threading
import uuid

import numpy
import pandas
import polars
import pyarrow
import pytest

import eris_db

Decimal = decimal.Decimal


@pytest.fixture
def stock(con):
    con.execute("CREATE TABLE stock (k BIGINT PRIMARY KEY, s VARCHAR, f DOUBLE DEFAULT 5)")
    rows = con.rows("stock")
    rows.put({"k": [3, 1, 2], "s": ["c", "a", None], "f": [1.5, None, -2.0]})
    return rows


ALL = {1: (1, "a", None), 2: (2, None, -2.0), 3: (3, "c", 1.5)}


def found(answer):
    rows, of = answer
    assert of.dtype == numpy.uint32
    return rows.fetchall(), of.tolist()


@pytest.mark.parametrize(
    "keys",
    [
        [2, 9, 1, 2],
        (numpy.array([2, 9, 1, 2]),),
        numpy.array([2, 9, 1, 2]),
        numpy.array([2, 9, 1, 2], "uint8"),
        numpy.array([2, 0, 9, 0, 1, 0, 2])[::2],
        pyarrow.array([2, 9, 1, 2]),
        pyarrow.array([5, 2, 9, 1, 2]).slice(1),
        pyarrow.chunked_array([[2, 9], [], [1, 2]]),
        pyarrow.array([2, 9, 1, 2]).dictionary_encode(),
        polars.Series([2, 9, 1, 2]),
        pandas.Series([2, 9, 1, 2]),
        pandas.Series([2, 9, 1, 2], dtype="Int64"),
    ],
    ids=lambda keys: f"{type(keys).__module__}.{type(keys).__name__}",
)
def test_keys_of_all_kinds(stock, keys):
    assert found(stock.get(keys)) == ([ALL[2], ALL[1], ALL[2]], [0, 2, 3])
    assert found(stock.get(keys, ["f", "k"])) == ([(-2.0, 2), (None, 1), (-2.0, 2)], [0, 2, 3])


def test_null_is_no_key(stock):
    assert found(stock.get(pyarrow.array([1, None, 3]))) == ([ALL[1], ALL[3]], [0, 2])
    assert found(stock.get([None, 3])) == ([ALL[3]], [1])


def test_no_keys(stock):
    assert found(stock.get(numpy.array([], "int64"))) == ([], [])
    assert found(stock.get([])) == ([], [])
    assert found(stock.get([None])) == ([], [])
    assert stock.remove([]) == 0


def test_scalars_of_numpy(stock):
    assert found(stock.get(list(numpy.array([1, 3])))) == ([ALL[1], ALL[3]], [0, 1])
    assert [rows.fetchall() for rows in stock.ranges([(numpy.int64(1), numpy.int64(3))], 9)] == [[ALL[1], ALL[2]]]


def test_rows_go_out_as_all_results_do(stock):
    assert stock.get([1, 3])[0].arrow().to_pylist() == [dict(zip("ksf", ALL[k], strict=True)) for k in (1, 3)]
    assert stock.get([1, 3])[0].pl().rows() == [ALL[1], ALL[3]]
    assert stock.get([1, 3])[0].df()["k"].tolist() == [1, 3]
    assert stock.get([1, 3])[0].numpy()["k"].tolist() == [1, 3]
    assert "2 rows" in repr(stock.get([1, 3])[0])
    assert polars.DataFrame(stock.get([1, 3])[0]).height == 2


def test_rows_that_are_put(con, stock):
    assert stock.key == ["k"]
    assert stock.put({"k": [1, 4], "s": ["new", "d"]}) == 1
    assert found(stock.get([1, 4])) == ([(1, "new", 5.0), (4, "d", 5.0)], [0, 1])
    for number, batch in enumerate(
        [
            pyarrow.table({"k": [10, 11], "s": ["x", "y"]}),
            pyarrow.record_batch({"k": [10, 11], "s": ["x", "y"]}),
            polars.DataFrame({"k": [10, 11], "s": ["x", "y"]}),
            pandas.DataFrame({"k": [10, 11], "s": ["x", "y"]}),
            {"k": numpy.array([10, 11]), "s": pyarrow.array(["x", "y"])},
            polars.LazyFrame({"k": [10, 11], "s": ["x", "y"]}),
            pyarrow.table({"k": [10, 11], "s": ["x", "y"]}).to_reader(),
        ]
    ):
        assert stock.put(batch) == (2 if number else 0)
    assert found(stock.get([10, 11], ["s"])) == ([("x",), ("y",)], [0, 1])
    assert stock.put({"k": [], "s": []}) == 0
    assert stock.put({"k": numpy.array([], "int64")}) == 0


def test_rows_that_are_wrong_change_nothing(con, stock):
    for wrong, kind in [
        ({"s": ["x"]}, eris_db.IntegrityError),
        ({"k": [None], "s": ["x"]}, eris_db.IntegrityError),
        ({"k": [7, 7], "s": ["x", "y"]}, eris_db.IntegrityError),
        ({"k": [7], "z": [1]}, eris_db.ProgrammingError),
        ({"k": ["a"]}, eris_db.DataError),
        ({"k": [7, 8], "f": [1.0, "a"]}, eris_db.DataError),
        ({"k": [7, 8], "s": ["a"]}, eris_db.DataError),
        ({"k": numpy.zeros((2, 2))}, eris_db.DataError),
        (5, eris_db.ProgrammingError),
    ]:
        with pytest.raises(kind):
            stock.put(wrong)
    for wrong in ("1", [2**70], numpy.array([1.5]), (numpy.array([1]), numpy.array([1]))):
        with pytest.raises(eris_db.Error):
            stock.get(wrong)
        with pytest.raises(eris_db.Error):
            stock.remove(wrong)
    with pytest.raises(eris_db.ProgrammingError, match='"x"'):
        stock.get([1], ["x"])
    with pytest.raises(TypeError):
        stock.get(1)
    assert con.execute("SELECT * FROM stock ORDER BY k").fetchall() == list(ALL.values())


def test_which_tables_have_rows_by_key(con):
    con.execute("CREATE TABLE without (k BIGINT)")
    with pytest.raises(eris_db.ProgrammingError, match="PRIMARY KEY"):
        con.rows("without")
    with pytest.raises(eris_db.ProgrammingError, match="nix"):
        con.rows("nix")


def test_a_table_that_is_gone(con, stock):
    con.execute("DROP TABLE stock")
    for use in (
        lambda: stock.put({"k": [1]}),
        lambda: stock.remove([1]),
        lambda: stock.get([1]),
        lambda: stock.ranges([(1, 2)], 1),
    ):
        with pytest.raises(eris_db.OperationalError, match="dropped"):
            use()


def test_ranges(stock):
    def ranges(bounds, limit=10, columns=("k",)):
        return [[row[0] for row in rows.fetchall()] for rows in stock.ranges(bounds, limit, list(columns))]

    assert ranges([(None, None), (1, 3), (3, 1), (2, None), (None, 2), (2, 2)]) == [
        [1, 2, 3],
        [1, 2],
        [],
        [2, 3],
        [1],
        [],
    ]
    assert ranges([(None, None), (2, None)], limit=1) == [[1], [2]]
    assert ranges([(None, None)], limit=0) == [[]]
    assert ranges([]) == []
    assert stock.ranges([(1, 2)], 10)[0].fetchall() == [ALL[1]]
    with pytest.raises(eris_db.ProgrammingError):
        stock.ranges([("a", "b")], 1)
    for wrong in ([1], [(1,)], [(1, 2, 3)], 5):
        with pytest.raises((TypeError, ValueError)):
            stock.ranges(wrong, 1)
    with pytest.raises(OverflowError):
        stock.ranges([(1, 2)], -1)


KEYS = {
    "VARCHAR": lambda chosen: "".join(chosen.choice("aß€\0") for _ in range(chosen.randrange(4))),
    "BIGINT": lambda chosen: chosen.choice([-(2**63), 2**63 - 1, 0, chosen.randrange(-5, 5)]),
    "UBIGINT": lambda chosen: chosen.choice([0, 2**64 - 1, chosen.randrange(10)]),
    "SMALLINT": lambda chosen: chosen.randrange(-10, 10),
    "DOUBLE": lambda chosen: chosen.choice([-1.5, 0.0, 2.5, float("inf"), 5e-324]),
    "DECIMAL(10, 2)": lambda chosen: Decimal(chosen.randrange(-9, 9)).scaleb(-2),
    "DATE": lambda chosen: datetime.date(1969, 12, 28) + datetime.timedelta(chosen.randrange(9)),
    "TIMESTAMP": lambda chosen: (
        datetime.datetime(1970, 1, 1) + datetime.timedelta(microseconds=chosen.randrange(-5, 5))
    ),
    "TIMESTAMPTZ": lambda chosen: datetime.datetime(2024, 1, 1, chosen.randrange(9), tzinfo=datetime.UTC),
    "TIME": lambda chosen: datetime.time(chosen.randrange(9)),
    "UUID": lambda chosen: uuid.UUID(int=chosen.choice([0, 2**128 - 1, 2**127, chosen.randrange(9)])),
    "BLOB": lambda chosen: bytes(chosen.choice([0, 255]) for _ in range(chosen.randrange(4))),
    "BOOLEAN": lambda chosen: chosen.random() < 0.5,
}


@pytest.mark.parametrize(
    "kinds", [[kind] for kind in KEYS] + [["VARCHAR", "BIGINT"], ["BLOB", "DATE", "DOUBLE"]], ids="+".join
)
def test_a_dict_is_the_oracle(con, kinds):
    """Puts, removals, lookups and ranges at random."""
    seed = random.randrange(2**32)
    print(f"seed {seed}")
    chosen = random.Random(seed)
    names = [f"k{number}" for number in range(len(kinds))]
    columns = ", ".join(f"{name} {kind}" for name, kind in zip(names, kinds, strict=True))
    con.execute(f"CREATE TABLE t (v INTEGER, {columns}, PRIMARY KEY ({', '.join(names)}))")
    rows, model = con.rows("t"), {}

    def new_key():
        return tuple(KEYS[kind](chosen) for kind in kinds)

    def arrays(keys):
        return tuple([key[at] for key in keys] for at in range(len(kinds)))

    for number in range(60):
        keys = list({new_key() for _ in range(chosen.randint(1, 8))})
        match chosen.randrange(4):
            case 0 | 1:
                values = [number * 100 + at for at in range(len(keys))]
                replaced = rows.put({"v": values, **dict(zip(names, arrays(keys), strict=True))})
                assert replaced == sum(key in model for key in keys)
                model.update(zip(keys, values, strict=True))
            case 2:
                assert rows.remove(arrays(keys)) == sum(model.pop(key, None) is not None for key in keys)
            case 3:
                low, high = (chosen.choice([None, new_key()]) for _ in range(2))
                (answer,) = rows.ranges([(low, high)], 5, ["v", *names])
                inside = sorted(key for key in model if (low is None or key >= low) and (high is None or key < high))
                assert answer.fetchall() == [(model[key], *key) for key in inside[:5]]
        keys = [new_key() for _ in range(10)]
        answer, of = rows.get(arrays(keys), ["v", *names])
        expected = [(at, (model[key], *key)) for at, key in enumerate(keys) if key in model]
        assert list(zip(of.tolist(), answer.fetchall(), strict=True)) == expected
    assert con.execute("SELECT count(*) FROM t").fetchone() == (len(model),)


def test_large_batches(con):
    con.execute("CREATE TABLE t (k BIGINT PRIMARY KEY, v BIGINT, s VARCHAR)")
    rows, count = con.rows("t"), 200_000
    keys = numpy.random.default_rng(5).permutation(count)
    assert rows.put({"k": keys, "v": keys * 7, "s": [f"s{k}" for k in keys]}) == 0
    wanted = numpy.random.default_rng(6).integers(0, 2 * count, count)
    answer, of = rows.get(wanted, ["v", "k"])
    answer = answer.numpy()
    there = wanted < count
    assert (of == numpy.flatnonzero(there)).all()
    assert (answer["k"] == wanted[there]).all() and (answer["v"] == wanted[there] * 7).all()
    assert rows.remove(wanted) == len(numpy.unique(wanted[there]))


def test_threads_that_put_and_get(database):
    """What is put at once is seen at once: both rows of a pair have the same number."""
    con = database.connect()
    con.execute("CREATE TABLE t (k BIGINT PRIMARY KEY, v BIGINT)")
    con.rows("t").put({"k": [1, 2], "v": [0, 0]})
    wrong, ended = [], threading.Event()

    def read():
        rows = database.connect().rows("t")
        while not ended.is_set():
            values = {value for (value,) in rows.get([1, 2], ["v"])[0].fetchall()}
            if len(values) != 1:
                wrong.append(values)

    readers = [threading.Thread(target=read) for _ in range(3)]
    for reader in readers:
        reader.start()
    rows = con.rows("t")
    for number in range(300):
        assert rows.put({"k": [1, 2], "v": [number, number]}) == 2
    ended.set()
    for reader in readers:
        reader.join()
    assert not wrong


# ---- bare indexes ----------------------------------------------------------------------------------------------------


def keys(*values):
    return numpy.array(values, "uint64")


def test_a_dict_is_the_oracle_of_an_index(database):
    seed = random.randrange(2**32)
    print(f"seed {seed}")
    chosen = numpy.random.default_rng(seed)
    index, model = eris_db.KeyIndex(database, 0, 2**20), {}
    for _ in range(40):
        batch = chosen.integers(0, 5000, chosen.integers(0, 2000), dtype="uint64") * chosen.choice([1, 2**50])
        batch = batch.astype("uint64")
        values = chosen.integers(0, 2**64, len(batch), dtype="uint64", endpoint=False)
        if chosen.random() < 0.6:
            before, known = 0, set(model)
            for key in batch.tolist():
                before += key in known
                known.add(key)
            assert index.put(batch, values) == before
            model.update(zip(batch.tolist(), values.tolist(), strict=True))
        else:
            gone = 0
            for key in batch.tolist():
                gone += model.pop(key, None) is not None
            assert index.remove(batch) == gone
        asked = chosen.integers(0, 6000, 3000, dtype="uint64")
        assert index.get(asked, default=9).tolist() == [model.get(key, 9) for key in asked.tolist()]
        assert index.contains(asked).tolist() == [key in model for key in asked.tolist()]


def test_an_index_writes_into_a_given_array(database):
    index = eris_db.KeyIndex(database)
    index.put(keys(1, 2, 2**64 - 1, 0), keys(10, 20, 2**64 - 1, 5))
    out = numpy.full(5, 77, "uint64")
    assert index.get(keys(2, 3, 1, 2**64 - 1, 0), out=out) is out
    assert out.tolist() == [20, 0, 10, 2**64 - 1, 5]
    assert index.get(keys(3), default=2**64 - 1).tolist() == [2**64 - 1]
    assert index.get(keys()).tolist() == [] and index.put(keys(), keys()) == 0


def test_arrays_that_an_index_rejects(database):
    index, given = eris_db.KeyIndex(database), keys(1, 2, 3)
    index.put(given, given)
    frozen = numpy.zeros(3, "uint64")
    frozen.setflags(write=False)
    for use in (
        lambda: index.get(numpy.array([1])),
        lambda: index.get([1]),
        lambda: index.get(given.astype(">u8")),
        lambda: index.get(given[::2]),
        lambda: index.get(numpy.zeros((2, 2), "uint64")),
        lambda: index.get(given, out=numpy.zeros(2, "uint64")),
        lambda: index.get(given, out=numpy.zeros(6, "uint64")[::2]),
        lambda: index.get(given, out=frozen),
        lambda: index.get(given, out=given),
        lambda: index.get(given, default=-1),
        lambda: index.put(given, given[:2]),
        lambda: eris_db.KeyIndex(database, 5, 1),
        lambda: eris_db.KeyIndex(database, -1),
        lambda: eris_db.KeyIndex(None),
    ):
        with pytest.raises((TypeError, OverflowError, eris_db.DataError)):
            use()
    assert index.get(given).tolist() == [1, 2, 3]


def test_an_array_of_another_type_is_named(database):
    with pytest.raises((TypeError, eris_db.DataError), match="uint64.*int64"):
        eris_db.KeyIndex(database).get(numpy.array([1]))


def test_an_index_of_a_closed_database():
    database = eris_db.Database(memory="256MB", aeus=1)
    index = eris_db.KeyIndex(database)
    database.connect().execute("CREATE TABLE t (k BIGINT PRIMARY KEY)")
    rows = database.connect().rows("t")
    database.close()
    for use in (
        lambda: index.get(keys(1)),
        lambda: index.put(keys(1), keys(1)),
        lambda: eris_db.KeyIndex(database),
        lambda: rows.get([1]),
        lambda: rows.put({"k": [1]}),
        lambda: rows.key,
    ):
        with pytest.raises(eris_db.InterfaceError, match="closed"):
            use()
