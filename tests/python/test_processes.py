"""The ends of things: closing in all orders, exit, fork, other processes, pickling, databases in directories."""

import copy
import gc
import itertools
import multiprocessing
import os
import pickle
import subprocess
import sys

import numpy
import pytest
from support import run

import eris_db

# ---- closing ---------------------------------------------------------------------------------------------------------


@pytest.mark.parametrize("how", ["close", "forget"])
def test_closing_in_all_orders(how):
    for order in itertools.permutations(["reader", "result", "cursor", "con", "database"]):
        things = {"database": eris_db.Database(memory="64MB", aeus=1)}
        things["con"] = things["database"].connect()
        things["cursor"] = things["con"].cursor()
        things["con"].execute("CREATE TABLE t AS SELECT x FROM generate_series(1, 100000) AS g(x)")
        things["result"] = things["cursor"].execute("SELECT x FROM t")
        things["result"].fetchone()
        things["reader"] = things["con"].execute("SELECT x FROM t").reader()
        things["reader"].read_next_batch()
        for name in order:
            thing = things.pop(name)
            if how == "close":
                thing.close()
                assert name in ("reader", "result") or thing.closed
            del thing
    gc.collect()


def test_context_managers():
    with eris_db.Database(memory="64MB", aeus=1) as database:
        with database.connect() as con, con.cursor() as cursor:
            assert cursor.execute("SELECT 1").fetchone() == (1,)
            assert cursor.connection is con and con.connection is con
        assert con.closed and cursor.closed and not database.closed
        with pytest.raises(ZeroDivisionError), database.connect() as con:
            raise ZeroDivisionError
        assert con.closed
    assert database.closed
    with pytest.raises(eris_db.InterfaceError, match="closed"):
        database.connect()
    assert "closed" in repr(database) and "closed" in repr(con)


def test_a_connection_with_a_database_of_its_own_closes_it():
    con = eris_db.connect(memory="64MB", aeus=1)
    cursor = con.cursor()
    result = cursor.execute("SELECT 1")
    con.close()
    assert cursor.closed
    with pytest.raises(eris_db.InterfaceError, match="closed"):
        result.fetchone()


@pytest.mark.parametrize("how", ["connection", "database"])
def test_what_is_closed_gives_memory_and_threads_back(how):
    # Variables still lead to all of it.
    out = run(f"""
        def used():
            status = open("/proc/self/status").read().split("VmRSS:")[1]
            return int(status.split()[0]) // 1024, len(os.listdir("/proc/self/task"))

        database = eris_db.Database(memory="1GB", aeus=2)
        con = database.connect()
        con.execute("SELECT 1").fetchall()
        con.close()
        database.close()

        con = eris_db.connect(memory="1GB", aeus=2)
        uses = []
        if {how!r} == "database":
            import numpy
            database = eris_db.Database(memory="1GB", aeus=2)
            con = database.connect()
            index = eris_db.KeyIndex(database)
            keys = numpy.array([1], dtype=numpy.uint64)
            uses = [lambda: index.get(keys)]
        cursor = con.cursor()
        cursor.execute("CREATE TABLE t AS SELECT x AS k, x * 0.1 AS v FROM generate_series(1, 10000000) AS g(x)")
        cursor.execute("CREATE TABLE keyed (k BIGINT PRIMARY KEY)")
        rows = cursor.rows("keyed")
        cursor.execute("SELECT v FROM t WHERE k = ?", [1]).fetchall()
        unread = cursor.execute("SELECT v FROM t WHERE k < 5")
        reader = cursor.execute("SELECT v FROM t").reader()
        reader.read_next_batch()
        before = used()
        (database if {how!r} == "database" else con).close()
        for _ in range(100):
            after = used()
            if after[0] < before[0] - 50 and after[1] < before[1] - 3:
                break
            time.sleep(0.1)
        else:
            print("kept", before, after)
        uses += [cursor.fetchone, con.cursor, lambda: rows.get([1]), lambda: cursor.execute("SELECT 1"), unread.fetchone]
        for use in uses:
            try:
                use()
            except eris_db.InterfaceError as error:
                assert "closed" in str(error), error
            else:
                print("used", use)
        print("done")
    """)
    assert out.strip() == "done", out


def test_the_default_connection_is_opened_anew():
    assert eris_db.sql("SELECT 1").fetchone() == (1,)
    first = eris_db.default_connection()
    assert eris_db.default_connection() is first
    first.close()
    assert eris_db.sql("SELECT 2").fetchone() == (2,)
    assert eris_db.default_connection() is not first


def test_a_machine_whose_links_are_imitated_is_told():
    text = """
        import warnings
        with warnings.catch_warnings(record=True) as told:
            warnings.simplefilter("always")
            eris_db.connect(memory="1GB").close()
        print(*(warning.message for warning in told))
    """
    out = run(text, ERIS_MACHINE="eris-amd")
    assert "chunks that are read on other nodes come as slowly as on" in out, out


def test_arguments_of_databases():
    with eris_db.Database(memory=64_000_000, topology="1x2") as database:
        assert database.memory[1] == 64_000_000
        assert database.connect().execute("SELECT count(*) FROM eris.nodes").fetchone() is not None
    for wrong in (
        {"memory": "much"},
        {"memory": 1.5},
        {"memory": -1},
        {"topology": "x"},
        {"topology": "0x0"},
        {"aeus": 0},
        {"aeus": -1},
        {"huge_pages": "perhaps"},
        {"read_only": True},
        {"synchronous": "on"},
        {"directory": "\0"},
        {"directory": "/dev/null"},
        {"nonsense": 1},
    ):
        with pytest.raises((eris_db.Error, TypeError, OverflowError, ValueError)):
            eris_db.connect(**wrong)


# ---- exit ------------------------------------------------------------------------------------------------------------

ENDS = {
    "nothing open": "",
    "a result": "result = con.execute(ENDLESS.replace('sum(a.n + l.n)', 'a.n'))\nresult.fetchone()",
    "a reader": "reader = con.execute(ENDLESS.replace('sum(a.n + l.n)', 'a.n')).reader()\nreader.read_next_batch()",
    "a capsule": "capsule = con.execute('SELECT 1').__arrow_c_stream__()",
    "a frame of Polars": "frame = con.execute('SELECT * FROM generate_series(1, 100000)').pl()",
    "a registered frame": "con.register('frame', {'k': [1, 2]})\nresult = con.execute('SELECT k FROM frame')",
    "a cycle": "class Holder: pass\nholder = Holder()\nholder.self, holder.con, holder.result = holder, con, con.execute('SELECT 1')",
    "an attribute of a module": "sys.kept = con, con.execute('SELECT 1')",
    "an exception": "try:\n    con.execute('SELEC')\nexcept eris_db.Error as error:\n    sys.kept = error, con",
    "rows and an index": "con.execute('CREATE TABLE t (k BIGINT PRIMARY KEY)')\nrows = con.rows('t')\nindex = eris_db.KeyIndex(eris_db.Database(memory='64MB'))",
    "the default connection": "eris_db.sql('SELECT 1')",
    "a thread that is done": "thread = threading.Thread(target=lambda: con.execute('SELECT 1').fetchall())\nthread.start()\nthread.join()",
    "a daemon that executes": "threading.Thread(target=lambda: con.execute(ENDLESS).fetchall(), daemon=True).start()\ntime.sleep(0.1)",
    "a daemon that fetches": "threading.Thread(target=lambda: [None for _ in con.execute(ENDLESS.replace('sum(a.n + l.n)', 'a.n'))], daemon=True).start()\ntime.sleep(0.1)",
    "many daemons": """
def work():
    cursor = con.cursor()
    while True:
        cursor.execute("SELECT count(*) FROM generate_series(1, 1000)").fetchall()
for _ in range(8):
    threading.Thread(target=work, daemon=True).start()
time.sleep(0.1)""",
    "a daemon that reads a frame": """
import pyarrow
def batches():
    while True:
        time.sleep(0.001)
        yield pyarrow.record_batch({"k": [1]})
def work():
    frame = pyarrow.RecordBatchReader.from_batches(pyarrow.schema([("k", pyarrow.int64())]), batches())
    con.execute("CREATE TABLE t AS SELECT sum(k) AS s FROM frame")
threading.Thread(target=work, daemon=True).start()
time.sleep(0.1)""",
    "atexit": "import atexit\natexit.register(lambda: print(con.execute('SELECT 41 + 1').fetchone()))",
    "a finalizer": "import weakref\nclass Thing: pass\nthing = Thing()\nweakref.finalize(thing, lambda: con.execute('SELECT 1').fetchone())",
    "asyncio": "import asyncio\nasync def work():\n    asyncio.ensure_future(con.aexecute(ENDLESS))\n    await asyncio.sleep(0.1)\nasyncio.run(work())",
}  # fmt: skip


@pytest.mark.parametrize("what", ENDS)
@pytest.mark.parametrize("last", ["", "sys.exit()", "con.close()"], ids=["end", "exit", "closed"])
def test_the_interpreter_ends_in_order(what, last):
    if what in ("atexit", "a finalizer") and last == "con.close()":
        last = ""
    run(f"con = connect()\n{ENDS[what]}\n{last}", seconds=15)


def test_what_was_written_is_there_without_a_close(tmp_path):
    for k in range(3):
        run(
            f"""
            con = connect(directory=os.environ["DIRECTORY"])
            con.execute("CREATE TABLE IF NOT EXISTS t (k BIGINT PRIMARY KEY)")
            con.execute("INSERT INTO t VALUES (?)", [{k}])
            {["", "os._exit(0)", "con.close()"][k]}
            """,
            DIRECTORY=str(tmp_path / "database"),
        )
    with eris_db.connect(tmp_path / "database", memory="64MB") as con:
        assert con.execute("SELECT k FROM t ORDER BY k").fetchall() == [(0,), (1,), (2,)]


def test_nothing_is_started_by_the_import():
    run(
        """
        assert len(os.listdir("/proc/self/task")) == 1, os.listdir("/proc/self/task")
        con = connect()
        assert len(os.listdir("/proc/self/task")) > 1
        """,
        prelude="import os\nimport eris_db\ndef connect():\n    return eris_db.connect(memory='64MB')\n",
    )


# ---- fork, other processes, pickling ---------------------------------------------------------------------------------

FORKED = """
con = connect()
con.execute("CREATE TABLE t AS SELECT x FROM generate_series(1, 100000) AS g(x)")
con.execute("CREATE TABLE u (k BIGINT PRIMARY KEY)")
database, rows = eris_db.Database(memory="64MB"), con.rows("u")
index = eris_db.KeyIndex(database)
half = con.execute("SELECT x FROM t")
half.fetchone()
cursor = con.cursor()
reader = con.cursor().execute("SELECT x FROM t").reader()
import numpy, warnings
warnings.simplefilter("ignore")
child = os.fork()
if child == 0:
    for use in (
        lambda: con.execute("SELECT 1"), con.cursor, con.fetchone, half.fetchall, con.close, con.interrupt,
        con.commit, lambda: con.rows("u"), lambda: rows.get([1]), database.connect, database.close, lambda: con.append("u", {"k": [1]}),
        lambda: index.get(numpy.array([1], "uint64")), lambda: cursor.execute("SELECT 1"), reader.read_next_batch,
    ):
        try:
            use()
        except eris_db.InterfaceError as error:
            assert "forked" in str(error)
        except Exception as error:
            assert "forked" in str(error), error
        else:
            os._exit(3)
    repr(con), repr(half), repr(database), con.closed
    with connect() as own:
        assert own.execute("SELECT 41 + 1").fetchone() == (42,)
    assert eris_db.sql("SELECT 5").fetchone() == (5,)
    {end}
pid, status = os.waitpid(child, 0)
assert os.waitstatus_to_exitcode(status) == 0, status
assert len(half.fetchall()) == 99999
assert con.execute("SELECT count(*) FROM t").fetchone() == (100000,)
print("in order")
"""


@pytest.mark.parametrize(
    "end",
    [
        "sys.exit(0)",
        "os._exit(0)",
        "del con, half, cursor, rows, index, database, reader; sys.exit(0)",
    ],
)
def test_fork(end):
    assert "in order" in run(FORKED.replace("{end}", end))


def test_fork_while_another_thread_opens_the_default_database():
    out = run(
        """
        import warnings
        warnings.simplefilter("ignore")
        def child():
            pid = os.fork()
            if pid == 0:
                try:
                    os._exit(eris_db.sql("SELECT 7").fetchone()[0])
                finally:
                    os._exit(1)
            assert os.waitstatus_to_exitcode(os.waitpid(pid, 0)[1]) == 7
        opening, goes_on = threading.Event(), threading.Event()
        Connection = eris_db.Connection
        def slow():
            opening.set()
            goes_on.wait()
            return Connection(memory="64MB", aeus=1)
        eris_db.Connection = slow
        thread = threading.Thread(target=lambda: eris_db.sql("SELECT 5").fetchall())
        thread.start()
        opening.wait()
        eris_db.Connection = lambda: Connection(memory="64MB", aeus=1)
        child()
        goes_on.set()
        thread.join()
        # The parent has used it.
        assert eris_db.sql("SELECT 6").fetchone() == (6,)
        child()
        assert eris_db.sql("SELECT 6").fetchone() == (6,)
        print("in order")
        """
    )
    assert "in order" in out


def test_memory_as_others_call_it(tmp_path, monkeypatch):
    monkeypatch.chdir(tmp_path)
    with eris_db.connect(":memory:", memory="64MB", aeus=1) as con:
        assert con.execute("SELECT 5").fetchone() == (5,)
    with pytest.raises(eris_db.ProgrammingError, match="no names"):
        eris_db.connect(":memory:shared", memory="64MB", aeus=1)
    assert list(tmp_path.iterdir()) == []


def test_fork_while_others_execute():
    run(
        """
        import warnings
        warnings.simplefilter("ignore")
        con, ended = connect(), []
        def work():
            cursor = con.cursor()
            while not ended:
                cursor.execute("SELECT count(*) FROM generate_series(1, 5000)").fetchall()
        threads = [threading.Thread(target=work) for _ in range(3)]
        for thread in threads:
            thread.start()
        for number in range(10):
            child = os.fork()
            if child == 0:
                try:
                    con.execute("SELECT 1")
                except eris_db.InterfaceError:
                    own = eris_db.connect(memory="64MB", aeus=1)
                    os._exit(own.execute("SELECT 7").fetchone()[0])
                os._exit(1)
            assert os.waitstatus_to_exitcode(os.waitpid(child, 0)[1]) == 7
        ended.append(1)
        for thread in threads:
            thread.join()
        """
    )


def square(number):
    with eris_db.connect(memory="64MB", aeus=1) as con:
        return con.execute("SELECT ? * ?", [number, number]).fetchone()[0]


@pytest.mark.parametrize("method", ["fork", "spawn", "forkserver"])
def test_multiprocessing(con, method):
    con.execute("SELECT 1")
    with multiprocessing.get_context(method).Pool(2) as pool:
        assert pool.map(square, range(4)) == [0, 1, 4, 9]
        with pytest.raises(eris_db.InterfaceError, match="pickled"):
            pool.apply(repr, (con,))
    assert con.execute("SELECT 1").fetchone() == (1,)


def test_pickling(database, con):
    con.execute("CREATE TABLE t (k BIGINT PRIMARY KEY)")
    for thing in (database, con, con.execute("SELECT 1"), con.rows("t"), eris_db.KeyIndex(database)):
        for work in (pickle.dumps, copy.copy, copy.deepcopy):
            with pytest.raises(eris_db.InterfaceError, match="pickled"):
                work(thing)
    with pytest.raises(eris_db.ProgrammingError) as raised:
        con.execute("SELECT *\nFROM nix")
    error = pickle.loads(pickle.dumps(raised.value))
    assert (type(error), str(error)) == (type(raised.value), str(raised.value))
    assert (error.sqlstate, error.position) == ("42P01", (2, 6))
    described = con.execute("SELECT 1 AS x").description
    assert pickle.loads(pickle.dumps(described)) == described == copy.deepcopy(described)
    assert pickle.loads(pickle.dumps(described))[0][1] == eris_db.NUMBER


# ---- directories -----------------------------------------------------------------------------------------------------


def test_a_database_is_opened_again(tmp_path):
    where = tmp_path / "database"
    for turn in range(3):
        with eris_db.connect(where, memory="256MB", topology="1x2") as con:
            con.execute("CREATE TABLE IF NOT EXISTS t (k BIGINT PRIMARY KEY, s VARCHAR)")
            con.append("t", {"k": numpy.arange(1000) + 1000 * turn, "s": ["x"] * 1000})
            con.rows("t").put({"k": [turn], "s": [f"put {turn}"]})
            assert con.execute("SELECT count(*) FROM t").fetchone() == (1000 * (turn + 1),)
    with eris_db.connect(str(where), memory="256MB", read_only=True) as con:
        assert con.execute("SELECT s FROM t WHERE k < 3 ORDER BY k").fetchall() == [("put 0",), ("put 1",), ("put 2",)]
        with pytest.raises(eris_db.Error) as raised:
            con.execute("DELETE FROM t")
        assert raised.value.sqlstate == "25006"


def test_a_directory_is_opened_once(tmp_path):
    where = tmp_path / "database"
    with eris_db.connect(where, memory="64MB") as con:
        con.execute("CREATE TABLE t AS SELECT 1 AS k")
        with pytest.raises(eris_db.OperationalError, match="database"):
            eris_db.connect(where, memory="64MB")
        # By another process, too.
        done = subprocess.run(
            [sys.executable, "-c", "import sys, eris_db; eris_db.connect(sys.argv[1], memory='64MB')", str(where)],
            capture_output=True,
            text=True,
            check=False,
        )
        assert done.returncode == 1 and "OperationalError" in done.stderr, done.stderr
        assert con.execute("SELECT k FROM t").fetchone() == (1,)
    with (
        eris_db.connect(where, memory="64MB", read_only=True) as con,
        eris_db.connect(where, memory="64MB", read_only=True) as other,
    ):
        assert con.execute("SELECT k FROM t").fetchone() == other.execute("SELECT k FROM t").fetchone() == (1,)


def test_a_directory_of_a_forgotten_connection_is_free(tmp_path):
    con = eris_db.connect(tmp_path / "database", memory="64MB")
    con.execute("CREATE TABLE t AS SELECT 1 AS k")
    del con
    gc.collect()
    with eris_db.connect(tmp_path / "database", memory="64MB") as con:
        assert con.execute("SELECT k FROM t").fetchone() == (1,)


def test_a_killed_process_leaves_what_was_committed(tmp_path):
    where = str(tmp_path / "database")
    program = (
        "import os, sys, eris_db\n"
        "con = eris_db.connect(sys.argv[1], memory='64MB')\n"
        "con.execute('CREATE TABLE t (k BIGINT PRIMARY KEY)')\n"
        "for k in range(100000):\n"
        "    con.execute('INSERT INTO t VALUES (?)', [k])\n"
        "    print(k, flush=True)\n"
    )
    child = subprocess.Popen([sys.executable, "-c", program, where], stdout=subprocess.PIPE, text=True)
    told = [int(next(child.stdout)) for _ in range(200)][-1]
    child.kill()
    told = max([told, *[int(line) for line in child.stdout if line.endswith("\n")]])
    child.wait()
    child.stdout.close()
    with eris_db.connect(where, memory="64MB") as con:
        count, last = con.execute("SELECT count(*), max(k) FROM t").fetchone()
        assert count == last + 1 and last >= told
    assert os.path.isdir(where)
