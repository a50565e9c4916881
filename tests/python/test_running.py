"""Statements that run: threads, interruption, timeouts, progress, asyncio."""

import asyncio
import gc
import threading
import time

import polars
import pyarrow
import pytest
from support import DIGITS, ENDLESS

import eris_db

FOREVER = ENDLESS.replace("sum(a.n + l.n)", "a.n, l.n")


def in_thread(work):
    """Runs something in a thread; what it returns or raises."""
    found = {}

    def run():
        try:
            found["value"] = work()
        except BaseException as error:
            found["error"] = error

    thread = threading.Thread(target=run)
    thread.start()
    return thread, found


# ---- threads ---------------------------------------------------------------------------------------------------------


def test_threads_share_a_connection(con):
    con.execute("CREATE TABLE t (k BIGINT PRIMARY KEY, v BIGINT)")

    def work(number):
        for k in range(50):
            con.execute("INSERT INTO t VALUES (?, ?)", [number * 1000 + k, number])
            # Its own result, though others execute between.
            assert con.execute("SELECT v FROM t WHERE k = ?", [number * 1000 + k]).fetchall() == [(number,)]
        return number

    threads = [in_thread(lambda number=number: work(number)) for number in range(8)]
    for thread, _ in threads:
        thread.join()
    assert [found for _, found in threads] == [{"value": number} for number in range(8)]
    assert con.execute("SELECT count(*) FROM t").fetchone() == (400,)


def test_threads_with_cursors_run_side_by_side(con):
    """One of them would wait for ever, if it kept the others from running."""
    slow = con.cursor()
    thread, found = in_thread(lambda: slow.execute(ENDLESS).fetchall())
    try:
        for k in range(20):
            assert con.execute("SELECT ? + 1", [k]).fetchone() == (k + 1,)
    finally:
        stop(slow, thread)
    assert isinstance(found["error"], eris_db.OperationalError)


def stop(connection, thread):
    """Interrupts until it is heard: the statement may not have begun."""
    while thread.is_alive():
        connection.interrupt()
        thread.join(0.01)


def test_threads_that_read_one_result(con):
    con.execute("CREATE TABLE t AS SELECT x FROM generate_series(1, 100000) AS g(x)")
    result = con.execute("SELECT x FROM t")
    threads = [in_thread(lambda: [row for row in iter(lambda: result.fetchmany(777), [])]) for _ in range(6)]
    for thread, _ in threads:
        thread.join()
    rows = sorted(row[0] for _, found in threads for part in found["value"] for row in part)
    assert rows == list(range(1, 100_001))


def test_others_run_while_the_engine_works(con):
    """The GIL is released: a counter in Python goes on."""
    thread, _ = in_thread(lambda: con.execute(ENDLESS).fetchall())
    begun = time.monotonic()
    counted = 0
    while counted < 100_000:
        counted += 1
        assert time.monotonic() - begun < 30
    stop(con, thread)


# ---- interrupt, timeout, progress ------------------------------------------------------------------------------------


@pytest.mark.parametrize(
    "use",
    [
        lambda con: con.execute(ENDLESS).fetchall(),
        lambda con: con.execute(ENDLESS + " WHERE a.n >= ?", [0]).fetchone(),
        lambda con: con.execute(ENDLESS).arrow(),
        lambda con: con.execute(ENDLESS).pl(),
        lambda con: con.execute(ENDLESS).df(),
        lambda con: con.execute(ENDLESS).numpy(),
        lambda con: con.execute("CREATE TABLE made AS " + ENDLESS),
        lambda con: [None for _ in con.execute(FOREVER)],
    ],
    ids=["fetchall", "fetchone", "arrow", "pl", "df", "numpy", "create", "iterate"],
)
def test_interrupt_stops_the_statement(con, use):
    thread, found = in_thread(lambda: use(con))
    time.sleep(0.05)
    stop(con, thread)
    assert isinstance(found["error"], eris_db.OperationalError), found
    assert found["error"].sqlstate == "57014"
    assert con.execute("SELECT count(*) FROM eris.tables WHERE \"table\" = 'made'").fetchone() == (0,)


def test_a_representation_that_is_interrupted_says_so(con):
    thread, found = in_thread(lambda: repr(con.execute(ENDLESS)))
    time.sleep(0.05)
    stop(con, thread)
    assert "cancelled" in found["value"]


def test_interrupt_stops_a_reader(con):
    reader = con.execute(FOREVER).reader()
    thread, found = in_thread(reader.read_all)
    time.sleep(0.05)
    stop(con, thread)
    assert "cancel" in str(found["error"]) or "57014" in str(found["error"])
    assert con.execute("SELECT 1").fetchone() == (1,)


def test_interrupt_behind_the_last_row(con):
    con.execute("SELECT 1").fetchall()
    assert con.interrupt() is False


def test_interrupt_without_a_statement(con):
    assert con.interrupt() is False
    con.execute("CREATE TABLE t (k BIGINT)")
    assert con.interrupt() is False
    assert con.execute("SELECT 2").fetchone() == (2,)


def test_interrupt_is_for_one_connection(con):
    other = con.cursor()
    thread, found = in_thread(lambda: other.execute(ENDLESS).fetchall())
    time.sleep(0.05)
    con.interrupt()
    thread.join(0.2)
    assert thread.is_alive() and not found
    stop(other, thread)


def test_timeout(con):
    assert con.timeout is None
    con.timeout = 0.1
    assert con.timeout == 0.1
    for use in (
        lambda: con.execute(ENDLESS).fetchall(),
        lambda: con.execute(ENDLESS + " WHERE a.n >= ?", [0]).fetchall(),
        lambda: con.execute("CREATE TABLE made AS " + ENDLESS),
        lambda: [None for _ in con.execute(FOREVER)],
    ):
        with pytest.raises(eris_db.OperationalError) as raised:
            use()
        assert raised.value.sqlstate == "57014"
    assert con.execute("SELECT 1").fetchone() == (1,)
    con.timeout = None
    assert con.timeout is None
    for wrong in (0, -1.0, float("nan"), float("inf")):
        with pytest.raises(eris_db.ProgrammingError, match="positive"):
            con.timeout = wrong
    with pytest.raises(TypeError):
        con.timeout = "1s"


def test_a_timeout_leaves_the_last_result(con):
    con.execute("SELECT 1 AS a")
    con.timeout = 5
    assert con.fetchall() == [(1,)]
    assert con.description[0][0] == "a"


def test_rows_by_key_have_the_timeout_and_are_interrupted(con):
    con.execute("CREATE TABLE t (k BIGINT PRIMARY KEY, v BIGINT)")
    rows, other = con.rows("t"), con.cursor()
    # The write lock of the table is another statement's, and is waited for.
    asked, ended = threading.Event(), threading.Event()

    def waiting():
        asked.set()
        ended.wait()
        yield from ()

    con.execute("INSERT INTO t VALUES (5, 5)")
    schema = pyarrow.schema([("k", pyarrow.int64()), ("v", pyarrow.int64())])
    other.register("frame", pyarrow.RecordBatchReader.from_batches(schema, waiting()))
    writer, _ = in_thread(lambda: other.execute("UPDATE t SET v = (SELECT count(*) FROM frame)"))
    asked.wait()
    con.timeout = 0.2
    thread, timed = in_thread(lambda: rows.put({"k": [1], "v": [1]}))
    thread.join()
    con.timeout = None
    thread, interrupted = in_thread(lambda: rows.put({"k": [1], "v": [1]}))
    stop(con, thread)
    ended.set()
    writer.join()
    assert [found["error"].sqlstate for found in (timed, interrupted)] == ["57014", "57014"]
    assert con.execute("SELECT * FROM t").fetchall() == [(5, 0)]
    assert rows.put({"k": [1], "v": [1]}) == 0


def test_progress(con):
    assert con.cursor().progress() is None
    con.execute("CREATE TABLE t AS SELECT x FROM generate_series(1, 300000) AS g(x)")
    assert con.progress()["written"] == 300_000
    con.execute("SELECT sum(x) FROM t").fetchall()
    assert con.progress()["rows"] == (300_000, 300_000)
    frame = pyarrow.table({"k": range(1000)})  # noqa: F841
    con.execute("INSERT INTO t SELECT k FROM frame")
    assert set(con.progress()) == {"rows", "bytes", "written"}
    assert con.progress()["written"] == 1000


def test_progress_grows_while_it_is_watched(con):
    con.execute("CREATE TABLE t AS SELECT x FROM generate_series(1, 100000) AS g(x)")
    thread, _ = in_thread(
        lambda: con.execute(
            "SELECT sum(t.x * d.n) FROM t, "
            + DIGITS.format("d")
            + ", "
            + DIGITS.format("e")
            + ", "
            + DIGITS.format("f")
        ).fetchall()
    )
    seen = []
    while thread.is_alive():
        shown = con.progress()
        if shown is not None:
            done, total = shown["rows"]
            assert 0 <= done <= total
            seen.append(done)
        time.sleep(0.001)
    assert seen == sorted(seen)


# ---- asyncio ---------------------------------------------------------------------------------------------------------


def test_aexecute(con):
    async def work():
        frame = polars.DataFrame({"k": [1, 2]})
        await con.aexecute("CREATE TABLE t AS SELECT k FROM frame")
        result = await con.aexecute("SELECT k FROM t WHERE k > ?", [1])
        with pytest.raises(eris_db.ProgrammingError) as raised:
            await con.aexecute("SELEC 1")
        assert raised.value.position == (1, 1) and frame is not None
        return result.fetchall()

    assert asyncio.run(work()) == [(2,)]


def test_the_event_loop_goes_on(con):
    async def work():
        running = asyncio.ensure_future(con.aexecute("CREATE TABLE made AS " + ENDLESS))
        ticks = 0
        while ticks < 50:
            await asyncio.sleep(0.001)
            ticks += 1
            assert not running.done()
        running.cancel()
        with pytest.raises(asyncio.CancelledError):
            await running
        # The connection is free at once, and the statement had no effect.
        assert (await con.aexecute("SELECT 1")).fetchone() == (1,)
        with pytest.raises(eris_db.ProgrammingError):
            await con.aexecute("SELECT * FROM made")

    asyncio.run(work())


def test_tasks_that_run_together(con):
    async def one(cursor, number):
        return (await cursor.aexecute("SELECT sum(x) + ? FROM generate_series(1, 10000) AS g(x)", [number])).fetchone()[
            0
        ]

    async def work():
        return await asyncio.gather(*[one(con.cursor(), number) for number in range(20)])

    assert asyncio.run(work()) == [50_005_000 + number for number in range(20)]


def test_a_task_with_a_timeout(con):
    async def work():
        with pytest.raises(TimeoutError):
            async with asyncio.timeout(0.1):
                await con.aexecute("CREATE TABLE made AS " + ENDLESS)
        return (await con.aexecute("SELECT 5")).fetchone()

    assert asyncio.run(work()) == (5,)


# Its one row takes some tenths of a second.
SLOW = "SELECT sum(a.i * b.j) FROM range(8000) AS a(i), range(8000) AS b(j)"


def test_the_first_rows_are_there_when_a_task_goes_on(con):
    async def work():
        begun = time.monotonic()
        result = await con.aexecute(SLOW)
        computed = time.monotonic()
        assert result.fetchone() is not None
        return computed - begun, time.monotonic() - computed

    computing, fetching = asyncio.run(work())
    assert fetching < computing / 4


def test_an_error_of_the_first_rows_is_the_tasks(con):
    async def work():
        with pytest.raises(eris_db.DataError):
            await con.aexecute("SELECT 1 / (i - i) FROM range(5) AS r(i)")

    asyncio.run(work())


def test_a_task_that_is_cancelled_before_its_statement_begins_leaves_no_complaint(con):
    async def work():
        heard = []
        asyncio.get_running_loop().set_exception_handler(lambda _, context: heard.append(context["message"]))
        # Another thread has the connection.
        thread, _ = in_thread(lambda: con.execute("CREATE TABLE made AS " + ENDLESS))
        while con.progress() is None:
            await asyncio.sleep(0.001)
        task = asyncio.ensure_future(con.aexecute("SELECT 1"))
        await asyncio.sleep(0.1)
        task.cancel()
        await asyncio.wait([task])
        assert task.cancelled()
        while thread.is_alive():
            con.interrupt()
            await asyncio.sleep(0.01)
        # The thread of the loop finds that it has nothing to do, and then nobody has what it ended with.
        await asyncio.sleep(0.1)
        del task
        gc.collect()
        await asyncio.sleep(0)
        return heard

    assert asyncio.run(work()) == []


def test_waiting_for_ones_turn_is_cancelled_at_once(con):
    async def work():
        first = asyncio.ensure_future(con.aexecute("CREATE TABLE made AS " + ENDLESS))
        await asyncio.sleep(0.1)
        with pytest.raises(TimeoutError):
            await asyncio.wait_for(con.aexecute("CREATE TABLE second AS SELECT 1"), 0.1)
        assert not first.done()
        first.cancel()
        await asyncio.wait([first])
        # More tasks than the loop has threads leave some for others.
        many = [asyncio.ensure_future(con.aexecute(SLOW)) for _ in range(100)]
        await asyncio.sleep(0)
        assert (await con.cursor().aexecute("SELECT 5")).fetchone() == (5,)
        for task in many:
            task.cancel()
        await asyncio.wait(many)
        with pytest.raises(eris_db.ProgrammingError):
            await con.aexecute("SELECT * FROM second")

    asyncio.run(work())


def test_a_cancelled_task_leaves_the_statements_of_threads_alone(con):
    thread, found = in_thread(lambda: con.execute("CREATE TABLE made AS " + ENDLESS))

    async def work():
        while con.progress() is None:
            await asyncio.sleep(0.01)
        with pytest.raises(TimeoutError):
            await asyncio.wait_for(con.aexecute("SELECT 1"), 0.1)
        await asyncio.sleep(0.2)
        assert thread.is_alive() and not found

    asyncio.run(work())
    stop(con, thread)
    assert found["error"].sqlstate == "57014"


def test_a_task_that_is_cancelled_while_it_waits_for_the_connection(con):
    """The statement that runs is another task's, and goes on."""

    async def work():
        first = asyncio.ensure_future(con.aexecute("CREATE TABLE made AS " + ENDLESS))
        await asyncio.sleep(0.1)
        second = asyncio.ensure_future(con.aexecute("SELECT 1"))
        await asyncio.sleep(0.1)
        second.cancel()
        done, _ = await asyncio.wait([first], timeout=0.3)
        assert not done
        first.cancel()
        await asyncio.wait([first, second])
        return first.cancelled(), second.cancelled()

    assert asyncio.run(work()) == (True, True)
