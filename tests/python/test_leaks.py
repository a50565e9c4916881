"""Every call, often: memory, references, threads and descriptors are as they were.

`ERIS_LEAK_CALLS` says how often; 10,000 in the nightly run. What a call allocates and keeps would be there so many times.
"""

import gc
import os
import sys
import threading
from pathlib import Path

import numpy
import pandas
import polars
import pyarrow
import pyarrow.dataset
import pytest
from support import run

import eris_db

CALLS = int(os.environ.get("ERIS_LEAK_CALLS", "300"))

TABLE = pyarrow.table({"k": [1, 2, 3], "s": ["x", None, "a text that is too long for a view"]})
OBJECTS = {
    "table": TABLE,
    "polars": polars.from_arrow(TABLE),
    "lazy": polars.from_arrow(TABLE).lazy(),
    "pandas": TABLE.to_pandas(),
    "dataset": pyarrow.dataset.dataset(TABLE),
    "arrays": {"k": numpy.arange(3), "s": ["x", None, "y"]},
}
VALUES = [1, "a text", 1.5, None, [1, 2, 3], b"bytes"]
KEYS, NUMBERS = numpy.array([1, 2, 3]), numpy.array([1, 2, 3], "uint64")


def fails(work):
    try:
        work()
    except eris_db.Error:
        return
    raise AssertionError("it did not fail")


def drop_half(con):
    reader = con.execute("SELECT * FROM big").reader()
    reader.read_next_batch()


def broken(con):
    def batches():
        yield TABLE.to_batches()[0]
        raise LookupError

    reader = pyarrow.RecordBatchReader.from_batches(TABLE.schema, batches())
    con.register("broken", reader)
    try:
        con.execute("SELECT * FROM broken").fetchall()
    except LookupError:
        con.unregister("broken")
    else:
        raise AssertionError("it did not fail")


SCRATCH = "CREATE OR REPLACE TABLE scratch (k BIGINT PRIMARY KEY, s VARCHAR)"
USES = {
    "execute": lambda con: con.execute("SELECT k, s FROM t").fetchall(),
    "execute with values": lambda con: con.execute("SELECT ?, ?, ?, ?, ?, ?", VALUES).fetchone(),
    "execute with names": lambda con: con.execute("SELECT $a, $b", {"a": 1, "b": "two"}).fetchone(),
    "execute without fetching": lambda con: con.execute("SELECT * FROM big"),
    "fetchone": lambda con: con.execute("SELECT * FROM big").fetchone(),
    "iterate": lambda con: [next(row) for row in [con.execute("SELECT * FROM t")]],
    "wrong syntax": lambda con: fails(lambda: con.execute("SELEC 1")),
    "wrong value": lambda con: fails(lambda: con.execute("SELECT ?", [object()])),
    "a failure while rows are read": lambda con: fails(lambda: con.execute("SELECT 1 / (k - 2) FROM t").fetchall()),
    "executemany": lambda con: con.executemany("UPDATE t SET s = ? WHERE k = ?", [("x", 1), (None, 2)]),
    "many rows": lambda con: con.executemany("INSERT INTO big VALUES (?)", [(-1,), (-2,)]) and con.execute("DELETE FROM big WHERE x < 0"),
    "tables": lambda con: con.execute(SCRATCH) and con.execute("DROP TABLE scratch"),
    "arrow": lambda con: con.execute("SELECT * FROM t").arrow(),
    "arrow strings": lambda con: con.execute("SELECT * FROM t").arrow(strings="string"),
    "reader": lambda con: con.execute("SELECT * FROM t").reader().read_all(),
    "reader, half read": drop_half,
    "capsule": lambda con: con.execute("SELECT * FROM t").__arrow_c_stream__(),
    "schema": lambda con: con.execute("SELECT * FROM t").__arrow_c_schema__(),
    "pl": lambda con: con.execute("SELECT * FROM t").pl(),
    "df": lambda con: con.execute("SELECT * FROM t").df(),
    "numpy": lambda con: con.execute("SELECT * FROM t").numpy(),
    "repr": lambda con: repr(con.execute("SELECT * FROM t")),
    "html": lambda con: con.execute("SELECT * FROM t")._repr_html_(),
    "description": lambda con: con.execute("SELECT * FROM t").description,
    "cursor": lambda con: con.cursor().execute("SELECT 1").fetchone(),
    "closed cursor": lambda con: con.cursor().close(),
    **{
        f"frame of {name}": lambda con, name=name: con.register("frame", OBJECTS[name]).execute("SELECT * FROM frame WHERE k > 1").fetchall()
        for name in OBJECTS
    },
    "a variable": lambda con: [con.execute("SELECT sum(k) FROM mine").fetchone() for mine in [TABLE]],
    "a variable and values": lambda con: [con.execute("SELECT sum(k) FROM mine WHERE k > ?", [1]).fetchone() for mine in [TABLE]],
    "a frame that fails": broken,
    "append": lambda con: con.append("big", {"x": KEYS * -1}) and con.execute("DELETE FROM big WHERE x < 0"),
    "append that fails": lambda con: fails(lambda: con.append("t", {"k": [4, 1], "s": ["x", "y"]})),
    "rows": lambda con: con.rows("t"),
    "rows get": lambda con: con.rows("t").get(KEYS)[0].fetchall(),
    "rows put": lambda con: con.rows("t").put({"k": KEYS, "s": ["x", "y", "z"]}),
    "rows remove": lambda con: con.rows("t").remove(KEYS + 100),
    "rows ranges": lambda con: con.rows("t").ranges([(1, 3)], 5),
    "settings": lambda con: setattr(con, "timeout", 5.0) or setattr(con, "timeout", None),
    "interrupt and progress": lambda con: (con.interrupt(), con.progress()),
}  # fmt: skip


def state():
    """Memory of the process in bytes, objects of Python, threads of the system, descriptors."""
    gc.collect()
    resident = int(Path("/proc/self/statm").read_text().split()[1]) * os.sysconf("SC_PAGE_SIZE")
    return resident, len(gc.get_objects()), len(os.listdir("/proc/self/task")), len(os.listdir("/proc/self/fd"))


@pytest.fixture(scope="module")
def shared():
    with eris_db.Database(memory="512MB", topology="1x2") as database:
        con = database.connect()
        con.show_progress = False
        con.execute("CREATE TABLE t AS SELECT 1 AS k")
        con.execute("CREATE OR REPLACE TABLE t (k BIGINT PRIMARY KEY, s VARCHAR)")
        con.append("t", TABLE)
        con.execute("CREATE TABLE big AS SELECT x FROM generate_series(1, 100000) AS g(x)")
        yield con


@pytest.mark.parametrize("name", USES)
def test_calls_leave_nothing(shared, name):
    use = USES[name]
    references = [TABLE, VALUES, KEYS, *OBJECTS.values(), None, eris_db.DataError]
    for _ in range(CALLS // 3):
        use(shared)
    shared.execute("SELECT 1").fetchall()
    before, counts = state(), [sys.getrefcount(thing) for thing in references]
    for _ in range(CALLS):
        use(shared)
    shared.execute("SELECT 1").fetchall()
    after, now = state(), [sys.getrefcount(thing) for thing in references]
    print(f"{CALLS} calls: {(after[0] - before[0]) / CALLS:.0f} bytes each, {after[1] - before[1]} objects")
    # None is referred to by what other code does meanwhile; a leak would be there for each call.
    assert all(new - old < CALLS // 10 for old, new in zip(counts, now, strict=True)), list(
        zip(counts, now, strict=True)
    )
    # pandas has a weak reference to each view, and throws dead ones away now and then.
    others = 2_000 if name == "frame of pandas" else 0
    assert after[1] - before[1] < CALLS // 10 + others
    # Threads of pools come and go, but no call has one of its own.
    assert after[2] <= before[2] + 8 and after[3] <= before[3] + 2
    # What is freed is kept for a while: 16 MB in all, or 500 bytes for each of many calls.
    assert after[0] - before[0] < max(32_000_000, 500 * CALLS)


STATE = """
import gc, numpy
def state():
    gc.collect()
    resident = int(pathlib.Path("/proc/self/statm").read_text().split()[1]) * 4096
    return resident, len(gc.get_objects()), len(os.listdir("/proc/self/task")), len(os.listdir("/proc/self/fd"))
def repeated(use, times):
    for _ in range(5):
        use()
    before = state()
    for _ in range(times):
        use()
    # Threads and descriptors are as they were; the last ones may still be ending.
    for _ in range(200):
        after = state()
        if after[2] <= before[2] and after[3] <= before[3]:
            break
        time.sleep(0.01)
    print(before, after, sorted(path.read_text().strip() for path in pathlib.Path("/proc/self/task").glob("*/comm")))
    assert after[2] <= before[2] and after[3] <= before[3]
    assert after[1] - before[1] < 100 and after[0] - before[0] < 64_000_000
"""


def test_databases_leave_nothing():
    print(
        run(
            STATE
            + f"""
def use():
    with eris_db.Database(memory="64MB", aeus=1) as database, database.connect() as con:
        con.execute("CREATE TABLE t AS SELECT x FROM generate_series(1, 1000) AS g(x)")
        numbers = numpy.arange(3, dtype="uint64")
        eris_db.KeyIndex(database).put(numbers, numbers)
        assert con.execute("SELECT count(*) FROM t").fetchone() == (1000,)
repeated(use, {max(20, CALLS // 20)})
"""
        )
    )


def test_databases_that_are_forgotten_leave_nothing():
    print(
        run(
            STATE
            + f"""
def use():
    con = eris_db.connect(memory="64MB", aeus=1)
    result = con.execute("SELECT x FROM generate_series(1, 100000) AS g(x)")
    result.fetchone()
    con.register("frame", {{"k": [1, 2, 3]}})
    assert len(con.execute("SELECT k FROM frame").fetchall()) == 3
repeated(use, {max(20, CALLS // 20)})
"""
        )
    )


def test_threads_leave_nothing(shared):
    def work():
        shared.cursor().execute("SELECT sum(x) FROM big").fetchall()

    def use():
        threads = [threading.Thread(target=work) for _ in range(4)]
        for thread in threads:
            thread.start()
        for thread in threads:
            thread.join()

    for _ in range(10):
        use()
    before = state()
    for _ in range(CALLS // 4):
        use()
    after = state()
    assert after[1] - before[1] < CALLS // 10 and after[2] <= before[2] + 8 and after[3] <= before[3] + 2
    assert after[0] - before[0] < max(32_000_000, 500 * CALLS)


def test_frames_of_pandas_are_let_go(shared):
    frame = pandas.DataFrame({"k": numpy.arange(1000), "s": ["x"] * 1000})
    before = sys.getrefcount(frame)
    for _ in range(50):
        shared.execute("SELECT max(k) FROM frame").fetchall()
        shared.execute("SELECT max(k) FROM frame WHERE k > ?", [5]).fetchall()
    shared.execute("SELECT 1").fetchall()
    gc.collect()
    assert sys.getrefcount(frame) <= before + 2
