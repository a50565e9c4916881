"""Ctrl-C, in processes of their own: at every phase of a statement, twice in a row, at random moments.

The process interrupts itself: a thread sends the signal, as a terminal would. How long the exception took is printed.
"""

import pytest
from support import run

# `interrupted(work, after)`: does something that only Ctrl-C ends, and returns when the exception was there.
HELPERS = """
def signals(*delays):
    def send():
        for delay in delays:
            time.sleep(delay)
            sent.append(time.monotonic())
            os.kill(os.getpid(), signal.SIGINT)
    thread = threading.Thread(target=send)
    thread.start()
    return thread

def heard(work):
    try:
        return work()
    except Exception as error:
        # A consumer has an exception of its own for what a stream fails with. The one of Ctrl-C follows.
        if "KeyboardInterrupt" not in str(error):
            raise
        while True:
            time.sleep(0.01)

sent = []
def interrupted(work, *delays):
    sent.clear()
    thread = signals(*(delays or (0.3,)))
    try:
        found = heard(work)
    except KeyboardInterrupt as raised:
        print(f"{(time.monotonic() - sent[0]) * 1000:.0f} ms")
        return raised
    finally:
        while thread.is_alive():
            try:
                thread.join()
            except KeyboardInterrupt:
                pass
    raise AssertionError(f"no KeyboardInterrupt, but {found!r}")

def used():
    return con.execute("SELECT 1").fetchone() and memory()
def memory():
    return database.memory[0]

database = eris_db.Database(memory="1GB", topology="1x2")
con = database.connect()
con.show_progress = False
con.execute("CREATE TABLE t AS SELECT x FROM generate_series(1, 300000) AS g(x)")
FOREVER = ENDLESS.replace("sum(a.n + l.n)", "a.n, l.n AS m")
before = used()
"""
AFTER = """
assert con.execute("SELECT count(*), sum(x) FROM t").fetchone() == (300000, 45000150000)
try:
    con.execute("SELECT * FROM made")
except eris_db.ProgrammingError:
    pass
else:
    raise AssertionError("it had an effect")
# Memory comes back: of the statement nothing is left.
while memory() > before + 20_000_000:
    time.sleep(0.01)
print("in order")
"""

PHASES = {
    "planning": 'con.execute("SELECT " + " + ".join(["x"] * 200) + " FROM t WHERE " + " OR ".join(f"x * {n} = {n * n}" for n in range(2500)))',
    "scanning": "con.execute(ENDLESS).fetchall()",
    "scanning with values": 'con.execute(ENDLESS + " WHERE a.n >= ?", [0]).fetchall()',
    "a table": 'con.execute("CREATE TABLE made AS " + ENDLESS)',
    "fetching rows": "con.execute(FOREVER).fetchall()",
    "iterating": "[None for _ in con.execute(FOREVER)]",
    "fetching for pyarrow": "con.execute(FOREVER).arrow()",
    "fetching for Polars": "con.execute(FOREVER).pl()",
    "fetching for pandas": "con.execute(FOREVER).df()",
    "fetching for numpy": "con.execute(FOREVER).numpy()",
    "a reader": "[batch.num_rows for batch in con.execute(FOREVER).reader()]",
    "pyarrow's table": "pyarrow.table(con.execute(FOREVER))",
    "a table on the screen": "repr(con.execute(ENDLESS))",
    "waiting for another thread": "wait_for_another()",
    "a frame without an end": "load(endless())",
    "a frame that sleeps": "load(sleeping())",
    "appending": "con.append('t', reader(endless()))",
}
FRAMES = """
import pyarrow
def reader(batches):
    return pyarrow.RecordBatchReader.from_batches(pyarrow.schema([("x", pyarrow.int64())]), batches)
def endless():
    batch = pyarrow.record_batch([pyarrow.array([1] * 100)], names=["x"])
    while True:
        yield batch
def sleeping():
    yield from [next(endless())] * 3
    while True:
        time.sleep(0.01)
        yield next(endless())
def load(batches):
    frame = reader(batches)
    return con.execute("CREATE TABLE made AS SELECT max(x) AS m FROM frame")
def wait_for_another():
    thread = threading.Thread(target=lambda: quietly(lambda: con.execute("CREATE TABLE made AS " + ENDLESS)))
    try:
        thread.start()
        time.sleep(0.03)
        con.execute("SELECT 1")
    finally:
        while thread.is_alive():
            con.interrupt()
            thread.join(0.01)
def quietly(work):
    try:
        work()
    except eris_db.OperationalError:
        pass
"""


@pytest.mark.parametrize("phase", PHASES)
def test_ctrl_c(phase):
    print(
        run(
            f"{HELPERS}{FRAMES}interrupted(lambda: {PHASES[phase]})\n{AFTER}interrupted(lambda: {PHASES[phase]}, 0.05)\n{AFTER}"
        )
    )


@pytest.mark.parametrize("delays", [(0.2, 0.0), (0.2, 0.01), (0.2, 0.06)], ids=str)
def test_two_in_a_row(delays):
    """The second one is heard wherever it comes: here, around what the first one has raised."""
    out = run(
        HELPERS
        + f"""
heard = 0
thread = signals(*{delays})
try:
    try:
        con.execute("CREATE TABLE made AS " + ENDLESS)
    except KeyboardInterrupt:
        heard += 1
    while thread.is_alive():
        time.sleep(0.01)
    thread.join()
except KeyboardInterrupt:
    heard += 1
assert heard in (1, 2), heard
"""
        + AFTER
    )
    assert "in order" in out


def test_when_numpy_is_used_first():
    """Its functions are looked up by Python code, which must not be interrupted."""
    run("""
        import signal, numpy
        from numpy.lib import NumpyVersion
        looked, before = [], NumpyVersion.__init__
        def interrupted(self, version):
            looked.append(version)
            signal.raise_signal(signal.SIGINT)
            before(self, version)
        NumpyVersion.__init__ = interrupted
        con = connect()
        try:
            con.execute("SELECT 1 AS a").numpy()
        except KeyboardInterrupt:
            looked.append("interrupted")
        assert looked == [numpy.__version__, "interrupted"], looked
        assert con.execute("SELECT 41 + 1 AS a").numpy()["a"].tolist() == [42]
        # So may be what an import runs.
        import builtins
        before_import = builtins.__import__
        def interrupted_import(*arguments):
            signal.raise_signal(signal.SIGINT)
            return before_import(*arguments)
        index = eris_db.KeyIndex(eris_db.Database(memory="1GB", topology="1x1"))
        keys = numpy.array([1], dtype="uint64")
        builtins.__import__ = interrupted_import
        assert index.get(keys, default=7).tolist() == [7]
        builtins.__import__ = before_import
    """)


def test_at_random_moments(tmp_path):
    """A statement that writes: all of it or nothing, whenever the signal comes; and on a disk, when it is opened again."""
    out = run(
        """
        import random
        seed = random.randrange(2**32)
        print("seed", seed)
        chosen = random.Random(seed)
        con = connect(directory=os.environ["DIRECTORY"])
        con.execute("CREATE TABLE t (n INTEGER, x BIGINT)")
        heard = late = expected = 0
        inside = False
        def profile(frame, event, function):
            # Whether the interpreter is inside of execute: only there the handler raises. Behind it is no part of it.
            global inside
            if getattr(function, "__name__", "") == "execute":
                inside = event == "c_call"
        def handler(number, frame):
            if inside and frame.f_code is not profile.__code__:
                raise KeyboardInterrupt
        insert = "INSERT INTO t SELECT ?, x FROM generate_series(1, 60000) AS g(x)"
        begun = time.monotonic()
        for number in range(-5, 0):
            expected += con.execute(insert, [number]).rowcount
        usual = (time.monotonic() - begun) / 5
        signal.signal(signal.SIGINT, handler)
        sys.setprofile(profile)
        for number in range(40):
            timer = threading.Timer(chosen.uniform(0, usual), os.kill, (os.getpid(), signal.SIGINT))
            timer.start()
            done = True
            try:
                con.execute(insert, [number])
            except KeyboardInterrupt as raised:
                heard += 1
                done = any("too late" in note for note in getattr(raised, "__notes__", []))
                late += done
            timer.join()
            (count,) = con.execute("SELECT count(*) FROM t WHERE n = ?", [number]).fetchone()
            assert count == (60000 if done else 0), (number, count, done)
            expected += count
        sys.setprofile(None)
        print("heard", heard, "of 40, too late", late)
        assert con.execute("SELECT count(*) FROM t").fetchone() == (expected,)
        con.close()
        con = connect(directory=os.environ["DIRECTORY"])
        assert con.execute("SELECT count(*) FROM t").fetchone() == (expected,)
        """,
        DIRECTORY=str(tmp_path / "database"),
    )
    print(out)


def test_a_signal_that_comes_while_a_short_statement_writes():
    """Its frame sends it: the statement has mostly committed before anybody looks for signals."""
    run(
        HELPERS
        + FRAMES
        + """
def sending():
    os.kill(os.getpid(), signal.SIGINT)
    yield next(endless())
con.execute("CREATE TABLE u (x BIGINT)")
expected = heard = 0
for number in range(20):
    frame = reader(sending())
    try:
        con.execute("INSERT INTO u SELECT x FROM frame")
    except KeyboardInterrupt as raised:
        expected += 100 * any("too late" in note for note in getattr(raised, "__notes__", []))
        heard += 1
    else:
        # Python ignores it where something ends just then.
        expected += 100
    assert con.execute("SELECT count(*) FROM u").fetchone() == (expected,), heard
assert heard
"""
    )


@pytest.mark.parametrize("call", ["execute", "put", "remove"])
def test_a_call_that_has_written_says_so(call):
    """With the handler that Python has: a KeyboardInterrupt without a note leaves nothing, unless the call has returned."""
    out = run(
        HELPERS
        + f"call = {call!r}"
        + """
import random
import numpy
seed = random.randrange(2**32)
print("seed", seed)
chosen = random.Random(seed)
con.execute("CREATE TABLE u (k BIGINT PRIMARY KEY, v BIGINT)")
rows, keys = con.rows("u"), numpy.arange(30_000)
def write(number):
    if call == "execute":
        return con.execute("INSERT INTO u SELECT x, ? FROM generate_series(0, 29999) AS g(x)", [number])
    if call == "put":
        return rows.put({"k": keys, "v": keys})
    return rows.remove(keys)
def prepare():
    con.execute("DELETE FROM u")
    if call == "remove":
        rows.put({"k": keys, "v": keys})
prepare()
begun = time.monotonic()
write(0)
usual = time.monotonic() - begun
heard = late = silents = 0
for number in range(40):
    prepare()
    returned = False
    timer = threading.Timer(chosen.uniform(0, 1.1 * usual), os.kill, (os.getpid(), signal.SIGINT))
    try:
        timer.start()
        write(number)
        returned = True
        timer.join()
        time.sleep(0.01)
    except KeyboardInterrupt as raised:
        # The call is the innermost line, or the interpreter is behind it.
        noted = any("too late" in note for note in getattr(raised, "__notes__", []))
        heard += not returned
        late += noted
        (count,) = con.execute("SELECT count(*) FROM u").fetchone()
        has_written = count == (0 if call == "remove" else 30_000)
        assert has_written or count == (30_000 if call == "remove" else 0), count
        assert has_written or not noted
        silents += has_written and not noted and not returned
    timer.join()
print("heard", heard, "too late", late, "behind the call", silents)
# Between the last look for signals and the end of the call are some hundred nanoseconds.
assert silents <= 2, (heard, silents)
"""
    )
    print(out)


def test_a_large_batch_of_an_index_hears_it():
    out = run(
        HELPERS
        + """
import numpy
index = eris_db.KeyIndex(database)
keys = numpy.arange(4_000_000, dtype="uint64")
index.put(keys, keys)
begun = time.monotonic()
def forever():
    while True:
        index.put(keys, keys)
interrupted(forever)
took = time.monotonic() - sent[0]
once = time.monotonic()
index.put(keys, keys)
once = time.monotonic() - once
assert took < once / 2, (took, once)
assert (index.get(keys) == keys).all()
"""
    )
    print(out)


def test_beside_other_threads():
    """Ctrl-C is the main thread's: what others execute goes on."""
    run(
        HELPERS
        + """
cursor = database.connect()
done = []
def others():
    for k in range(200):
        done.append(cursor.execute("SELECT count(*) + ? FROM t", [k]).fetchone()[0])
thread = threading.Thread(target=others)
thread.start()
for _ in range(3):
    interrupted(lambda: con.execute(ENDLESS).fetchall(), 0.1)
thread.join()
assert done == [300000 + k for k in range(200)]
"""
        + AFTER
    )


def test_in_asyncio():
    run(
        HELPERS
        + """
import asyncio
async def work():
    await con.aexecute("CREATE TABLE made AS " + ENDLESS)
interrupted(lambda: asyncio.run(work()))
"""
        + AFTER
    )


def test_handlers_of_the_program_run():
    """Another signal's handler runs while a statement does, and its exception ends the statement."""
    run(
        HELPERS
        + """
class Alarm(Exception):
    pass
ticks = []
def tick(*_):
    ticks.append(1)
    if len(ticks) == 5:
        signal.setitimer(signal.ITIMER_REAL, 0)
        raise Alarm
signal.signal(signal.SIGALRM, tick)
signal.setitimer(signal.ITIMER_REAL, 0.06, 0.06)
try:
    con.execute("CREATE TABLE made AS " + ENDLESS)
except Alarm:
    assert len(ticks) == 5
else:
    raise AssertionError
"""
        + AFTER
    )


def test_rows_and_indexes_hear_it_too():
    run(
        HELPERS
        + """
import numpy
con.execute("CREATE TABLE u (k BIGINT PRIMARY KEY, v BIGINT)")
rows, keys = con.rows("u"), numpy.arange(50_000)
def forever():
    while True:
        rows.put({"k": keys, "v": keys})
        rows.get(keys)
interrupted(forever)
count, total = con.execute("SELECT count(*), sum(k) FROM u").fetchone()
assert (count, total) in ((0, None), (50_000, 1_249_975_000))
"""
        + AFTER.replace("20_000_000", "60_000_000")
    )


def test_opening_a_database_is_interrupted(tmp_path):
    """Recovery of a database hears it, or has ended before; then the database can be opened."""
    run(
        """
        where = os.environ["DIRECTORY"]
        con = connect(directory=where)
        con.execute("CREATE TABLE t AS SELECT x, 's' || x::VARCHAR AS s FROM generate_series(1, 300000) AS g(x)")
        con.close()
        for delay in (0.0, 0.001, 0.005, 0.02, 0.05):
            timer = threading.Timer(delay, os.kill, (os.getpid(), signal.SIGINT))
            opened = []
            try:
                timer.start()
                try:
                    opened.append(connect(directory=where))
                except eris_db.OperationalError as error:
                    # What was given up before is still being closed.
                    assert "lock" in str(error), error
                timer.join()
                # It comes here at the latest.
                time.sleep(0.05)
            except KeyboardInterrupt:
                pass
            timer.join()
            for connection in opened:
                connection.close()
        while True:
            try:
                con = connect(directory=where)
                break
            except eris_db.OperationalError as error:
                # It is being closed.
                time.sleep(0.05)
        assert con.execute("SELECT count(*) FROM t").fetchone() == (300000,)
        """,
        DIRECTORY=str(tmp_path / "database"),
    )
