#!/usr/bin/env python3
"""Eight threads do everything at once, for `ERIS_TORTURE_SECONDS` (600); to be run with `PYTHONDEVMODE=1`.

    ledger   accounts whose amounts always have the same sum, in every snapshot that anybody sees
    others   frames, results of all kinds, rows by key, an index, statements that fail, interruptions, databases that come
             and go

A failure prints the seed of its thread. Each thread has a generator of its own, but not the schedule.
"""

import asyncio
import faulthandler
import gc
import os
import random
import sys
import threading
import time
import traceback

import numpy
import pandas
import polars
import pyarrow

import eris_db

SECONDS = float(os.environ.get("ERIS_TORTURE_SECONDS", "600"))
THREADS = 8
ACCOUNTS = 1000
TOTAL = ACCOUNTS * 100
ENDLESS = "SELECT sum(a.x + b.x) FROM generate_series(1, 1000000) AS a(x), generate_series(1, 1000000) AS b(x)"


class Worker(threading.Thread):
    """One of the threads: a connection, and things that it does at random."""

    def __init__(self, database, number, seed, end):
        super().__init__(name=f"torture {number}")
        self.database, self.number, self.end = database, number, end
        self.seed = seed
        self.chosen = random.Random(seed)
        self.done = {}
        self.failure = None

    def run(self):
        deeds = [getattr(self, name) for name in dir(self) if name.startswith("do_")]
        try:
            self.con = self.database.connect()
            self.con.show_progress = False
            self.con.execute(f"CREATE TABLE own{self.number} (k BIGINT PRIMARY KEY, s VARCHAR, f DOUBLE)")
            self.model = {}
            self.index = eris_db.KeyIndex(self.database)
            self.entries = {}
            while time.monotonic() < self.end:
                deed = self.chosen.choice(deeds)
                deed()
                self.done[deed.__name__] = self.done.get(deed.__name__, 0) + 1
        except BaseException:
            self.failure = traceback.format_exc()

    # ---- the ledger, which all share ----

    def do_transfer(self):
        one, other = self.chosen.sample(range(ACCOUNTS), 2)
        amount = self.chosen.randrange(1, 50)
        moved = "UPDATE accounts SET amount = amount + CASE WHEN k = ? THEN ? ELSE ? END WHERE k = ANY(?)"
        try:
            assert self.con.execute(moved, [one, -amount, amount, [one, other]]).rowcount == 2
        except eris_db.OperationalError as error:
            # Another writer was first.
            assert error.sqlstate == "40001", error

    def do_audit(self):
        text = "SELECT amount FROM accounts"
        match self.chosen.randrange(6):
            case 0:
                total = sum(amount for (amount,) in self.con.execute(text).fetchall())
            case 1:
                total = int(self.con.execute(text).pl()["amount"].sum())
            case 2:
                total = int(self.con.execute(text).df()["amount"].sum())
            case 3:
                total = int(self.con.execute(text).numpy()["amount"].sum())
            case 4:
                total = sum(sum(batch.column(0).to_pylist()) for batch in self.con.execute(text).reader())
            case _:
                total = int(self.con.execute("SELECT sum(amount) FROM accounts").fetchone()[0])
        assert total == TOTAL, f"the ledger has {total}"

    def do_audit_by_keys(self):
        rows, of = self.con.rows("accounts").get(numpy.arange(ACCOUNTS), ["amount"])
        assert len(of) == ACCOUNTS
        assert int(rows.numpy()["amount"].sum()) == TOTAL

    # ---- a table of its own ----

    def keys(self):
        return [self.chosen.randrange(2000) for _ in range(self.chosen.randrange(1, 50))]

    def do_put(self):
        keys = list(dict.fromkeys(self.keys()))
        texts = [self.chosen.choice([None, "x", "a text that is too long for a view"]) for _ in keys]
        numbers = [self.chosen.random() for _ in keys]
        columns = {"k": keys, "s": texts, "f": numbers}
        made = self.chosen.choice([dict, pyarrow.table, polars.DataFrame, pandas.DataFrame])(columns)
        replaced = self.con.rows(f"own{self.number}").put(made)
        assert replaced == sum(key in self.model for key in keys)
        self.model.update(zip(keys, zip(texts, numbers, strict=True), strict=True))

    def do_remove(self):
        keys = self.keys()
        there = {key for key in keys if key in self.model}
        if self.chosen.random() < 0.5:
            removed = self.con.rows(f"own{self.number}").remove(keys)
        else:
            removed = self.con.execute(f"DELETE FROM own{self.number} WHERE k = ANY(?)", [keys]).rowcount
        assert removed == len(there)
        for key in there:
            del self.model[key]

    def do_compare(self):
        found = self.con.execute(f"SELECT k, s, f FROM own{self.number} ORDER BY k").fetchall()
        assert found == [(key, *self.model[key]) for key in sorted(self.model)]

    def do_look_up(self):
        for key in self.keys():
            row = self.con.execute(f"SELECT s, f FROM own{self.number} WHERE k = ?", [key]).fetchone()
            assert row == self.model.get(key)

    def do_append_that_fails(self):
        if self.model:
            there = next(iter(self.model))
            try:
                self.con.append(f"own{self.number}", {"k": [-1, there], "s": ["x", "y"], "f": [0.0, 0.0]})
            except eris_db.IntegrityError:
                return
            raise AssertionError("a key was there twice")

    def do_index(self):
        keys = numpy.unique(numpy.array([self.chosen.randrange(500) for _ in range(100)], "uint64"))
        if self.chosen.random() < 0.6:
            values = keys * numpy.uint64(self.chosen.randrange(1, 1000))
            self.index.put(keys, values)
            self.entries.update(zip(keys.tolist(), values.tolist(), strict=True))
        else:
            self.index.remove(keys)
            for key in keys.tolist():
                self.entries.pop(key, None)
        asked = numpy.arange(600, dtype="uint64")
        assert self.index.get(asked, default=9).tolist() == [self.entries.get(key, 9) for key in range(600)]

    # ---- frames ----

    def do_frames(self):
        count = self.chosen.randrange(1, 5000)
        columns = {"k": numpy.arange(count), "s": [f"s{k % 7}" for k in range(count)]}
        frame = self.chosen.choice(
            [
                lambda: columns,
                lambda: pyarrow.table(columns),
                lambda: pyarrow.table(columns).to_reader(max_chunksize=100),
                lambda: polars.DataFrame(columns),
                lambda: polars.LazyFrame(columns),
                lambda: pandas.DataFrame(columns),
            ]
        )()
        assert self.con.execute("SELECT count(DISTINCT s), sum(k) FROM frame").fetchone() == (
            min(7, count),
            count * (count - 1) // 2,
        )
        del frame

    def do_a_frame_that_fails(self):
        def batches():
            for k in range(self.chosen.randrange(5)):
                yield pyarrow.record_batch({"k": [k]})
            raise LookupError(self.number)

        frame = pyarrow.RecordBatchReader.from_batches(pyarrow.schema([("k", pyarrow.int64())]), batches())
        try:
            self.con.execute("SELECT sum(k) FROM frame").fetchall()
        except LookupError as error:
            assert error.args == (self.number,)
        else:
            raise AssertionError(f"{frame} did not fail")

    # ---- ends ----

    def do_errors(self):
        for text, kind in (
            ("SELEC", eris_db.ProgrammingError),
            ("SELECT 1 / 0", eris_db.DataError),
            ("SELECT nix", eris_db.ProgrammingError),
        ):
            try:
                self.con.execute(text).fetchall()
            except kind:
                continue
            raise AssertionError(text)

    def do_interrupt(self):
        cursor = self.con.cursor()
        ended = threading.Event()

        def stop():
            while not ended.wait(0.01):
                cursor.interrupt()

        stopper = threading.Thread(target=stop)
        stopper.start()
        try:
            cursor.execute(ENDLESS).fetchall()
        except eris_db.OperationalError as error:
            assert error.sqlstate == "57014", error
        else:
            raise AssertionError("it was not interrupted")
        finally:
            ended.set()
            stopper.join()

    def do_timeout(self):
        cursor = self.con.cursor()
        cursor.timeout = self.chosen.uniform(0.001, 0.05)
        try:
            cursor.execute(ENDLESS).fetchall()
        except eris_db.OperationalError as error:
            assert error.sqlstate == "57014", error

    def do_asyncio(self):
        async def work():
            task = asyncio.ensure_future(
                self.con.aexecute(ENDLESS.replace("SELECT", f"CREATE TABLE t{self.number} AS SELECT"))
            )
            await asyncio.sleep(self.chosen.uniform(0, 0.02))
            task.cancel()
            await asyncio.wait([task])
            assert task.cancelled()
            return (await self.con.aexecute("SELECT ?", [self.number])).fetchone()

        assert asyncio.run(work(), debug=False) == (self.number,)

    def do_half(self):
        result = self.con.execute("SELECT k, amount FROM accounts")
        match self.chosen.randrange(4):
            case 0:
                result.fetchone()
            case 1:
                result.reader().read_next_batch()
            case 2:
                result.__arrow_c_stream__()
            case _:
                repr(result)

    def do_databases(self):
        with eris_db.connect(memory="64MB", aeus=1) as con:
            con.execute("CREATE TABLE t AS SELECT x FROM generate_series(1, 1000) AS g(x)")
            kept = (
                con.execute("SELECT x FROM t").arrow() if self.chosen.random() < 0.5 else con.execute("SELECT x FROM t")
            )
        if isinstance(kept, pyarrow.Table):
            assert kept.num_rows == 1000

    def do_collect(self):
        gc.collect()


def main():
    """Runs the threads; 1 if one of them has failed."""
    faulthandler.enable()
    # A hang is a failure: where all threads are is shown.
    faulthandler.dump_traceback_later(SECONDS + 120, exit=True)
    seed = int(os.environ.get("ERIS_TORTURE_SEED", random.randrange(2**32)))
    print(f"seed {seed}, {SECONDS:.0f} s, {THREADS} threads", flush=True)
    with eris_db.Database(memory="2GB", topology="1x2") as database:
        con = database.connect()
        con.execute("CREATE TABLE accounts (k BIGINT PRIMARY KEY, amount BIGINT)")
        con.append("accounts", {"k": numpy.arange(ACCOUNTS), "amount": numpy.full(ACCOUNTS, 100)})
        end = time.monotonic() + SECONDS
        workers = [Worker(database, number, seed + number, end) for number in range(THREADS)]
        for worker in workers:
            worker.start()
        for worker in workers:
            worker.join()
        total = con.execute("SELECT sum(amount) FROM accounts").fetchone()[0]
    done = {}
    for worker in workers:
        for name, count in worker.done.items():
            done[name] = done.get(name, 0) + count
    print(", ".join(f"{name.removeprefix('do_')} {count}" for name, count in sorted(done.items())))
    failures = [worker for worker in workers if worker.failure]
    for worker in failures:
        print(f"{worker.name}, seed {worker.seed}:\n{worker.failure}", file=sys.stderr)
    if total != TOTAL:
        print(f"the ledger has {total} at the end", file=sys.stderr)
    return 1 if failures or total != TOTAL else 0


if __name__ == "__main__":
    sys.exit(main())
