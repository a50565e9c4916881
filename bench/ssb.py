#!/usr/bin/env python3
"""The Star Schema Benchmark in eris and its peers: same files, same query texts, side by side.

    ssb.py --data data/ssb1                            all engines, 7 rounds
    ssb.py --data data/ssb10 --rounds 15 --query 2.1
    ssb.py --data data/ssb1 --engines duckdb,datafusion

Every engine has a process of its own that holds the five tables in memory. After one round that is not timed, the rounds
are interleaved: in each, every query runs once in every engine, the engines taking turns at going first, so that a slow
minute of the machine hits all of them. Times are what a client sees: eris from writing the statement into its pipe to the
marker behind the result (with one trivial statement's time in it, measured and reported as `framing_ms`, not subtracted);
the others, in process, from the call to the complete result. All results must agree.

Engines and their settings, each the best found:

- eris: as built, on the machine's topology; joined columns re-coded, which `recode_s` tells the time of;
- DuckDB: in-memory tables, threads as cores, text with few values as ENUM, values in alphabetical order;
- Hyper: temporary tables;
- DataFusion: MemTable, one partition per core, text with few values dictionary-encoded, batches of 122,880 rows.

The table goes to standard output, all numbers to bench/results/<date>-<machine>.json, one entry per scale.
Exit status: 0 all results agree, 1 some do not or an engine failed, 2 the command line is wrong.
"""

import argparse
import datetime
import json
import math
import multiprocessing
import os
import platform
import statistics
import sys
import time
from pathlib import Path

ROOT = Path(__file__).resolve().parents[1]
sys.path.insert(0, str(ROOT / "tests/oracle"))

from common import benchmark  # noqa: E402
from common.compare import difference  # noqa: E402
from common.process import Session, StatementFailed, find_binary, parse_row  # noqa: E402

CORES = len(os.sched_getaffinity(0))
DATAFUSION_BATCH_ROWS = 122_880
# Text with more values than this stays text: the names, addresses and phone numbers.
FEW_VALUES = 10_000


def main():
    options = parse_arguments()
    queries = {name: sql for name, sql in benchmark.queries().items() if name in options.query}
    files = {table: str(benchmark.parquet(options.data, table)) for table in benchmark.TABLES}
    engines = {}
    try:
        for name in options.engines:
            engines[name] = ENGINES[name](files, options)
            print(f"{name}: loaded in {engines[name].load_s:.1f} s, {engines[name].version}", file=sys.stderr)
        wrong = check_results(engines, queries)
        if "eris" in engines:
            engines["eris"].settle()
        times = measure(engines, queries, options.rounds)
        report = summary(engines, queries, times, files)
    finally:
        for engine in engines.values():
            engine.close()
    print(table(report))
    path = Path(options.output) if options.output else default_output()
    save(report, path)
    print(f"\nraw numbers: {path}")
    return 1 if wrong else 0


def parse_arguments():
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("--data", required=True, help="directory with the five Parquet files")
    parser.add_argument("--eris", help="the binary [ERIS, or the build's]")
    parser.add_argument("--engines", default="eris,duckdb,hyper,datafusion", help="which, in this order [%(default)s]")
    parser.add_argument("--rounds", type=int, default=7, help="timed rounds [%(default)s]")
    parser.add_argument("--query", action="append", help="only this query, such as 2.1; may be repeated")
    parser.add_argument("--output", help="JSON file [bench/results/<date>-<machine>.json]")
    options = parser.parse_args()
    options.engines = options.engines.split(",")
    options.query = options.query or list(benchmark.queries())
    for given, known in ((options.engines, ENGINES), (options.query, benchmark.queries())):
        unknown = [name for name in given if name not in known]
        if unknown:
            parser.error(f"unknown: {', '.join(unknown)}; there are {', '.join(known)}")
    if options.rounds < 1:
        parser.error("at least one round")
    return options


# ---- engines ---------------------------------------------------------------------------------------------------------


class Eris:
    """A long-living eris process behind a pipe."""

    def __init__(self, files, options):
        binary = find_binary(options.eris)
        self.session = Session(binary)
        self.session.rows("SELECT 1 AS one")
        begin = time.perf_counter()
        for name, path in files.items():
            self.session.lines(benchmark.load_statement(name, path), timeout=3600)
        self.load_s = time.perf_counter() - begin
        self.version = os.popen(f"'{binary}' --version").read().strip()
        self.framing_ms = statistics.median(self.timed("SELECT 1 AS one")[0] for _ in range(50)) / 2

    def timed(self, sql):
        begin = time.perf_counter()
        lines = self.session.lines(sql)
        milliseconds = (time.perf_counter() - begin) * 1e3
        return milliseconds, lines

    def run(self, sql):
        """Milliseconds and rows."""
        milliseconds, lines = self.timed(sql)
        return milliseconds, [parse_row(line) for line in lines]

    def settle(self):
        """Waits until the columns that the warm-up has joined are stored for it, which began in the background."""
        begin = time.perf_counter()
        self.session.lines("CALL eris.recode('lineorder')", timeout=600)
        self.recode_s = time.perf_counter() - begin

    def resident_bytes(self):
        return resident_bytes(self.session.process.pid)

    def close(self):
        self.session.close()


class Peer:
    """An engine with a Python client, in a process of its own."""

    def __init__(self, serve, files):
        context = multiprocessing.get_context("spawn")
        self.pipe, other = context.Pipe()
        self.process = context.Process(target=serve, args=(other, files), daemon=True)
        self.process.start()
        other.close()
        self.version, self.load_s = self.answer()

    def answer(self):
        try:
            reply = self.pipe.recv()
        except EOFError:
            raise StatementFailed("the process of a peer died") from None
        if isinstance(reply, Exception):
            raise StatementFailed(str(reply))
        return reply

    def run(self, sql):
        """Milliseconds, measured in the engine's own process, and rows."""
        self.pipe.send(sql)
        return self.answer()

    def resident_bytes(self):
        return resident_bytes(self.process.pid)

    def close(self):
        self.pipe.close()
        self.process.join(timeout=10)


def serve_duckdb(pipe, files):
    import duckdb

    def load():
        connection = duckdb.connect(config={"threads": CORES})
        for name, path in files.items():
            columns = []
            for column, kind, *_ in connection.execute(f"DESCRIBE SELECT * FROM '{path}'").fetchall():
                if kind == "VARCHAR" and is_few(connection, path, column):
                    values = f"SELECT DISTINCT {column} FROM '{path}' ORDER BY 1"
                    connection.execute(f"CREATE TYPE {column}_t AS ENUM ({values})")
                    columns.append(f"{column}::{column}_t AS {column}")
                else:
                    columns.append(column)
            connection.execute(f"CREATE TABLE {name} AS SELECT {', '.join(columns)} FROM '{path}'")
        return connection

    def is_few(connection, path, column):
        (count,) = connection.execute(f"SELECT approx_count_distinct({column}) FROM '{path}'").fetchone()
        return count <= FEW_VALUES

    serve(pipe, f"DuckDB {duckdb.__version__}", load, lambda connection, sql: connection.execute(sql).fetchall())


def serve_datafusion(pipe, files):
    import datafusion
    import pyarrow as pa
    import pyarrow.parquet as pq

    def load():
        config = datafusion.SessionConfig().with_target_partitions(CORES).with_batch_size(DATAFUSION_BATCH_ROWS)
        context = datafusion.SessionContext(config)
        for name, path in files.items():
            table = pq.read_table(path)
            for position, field in enumerate(table.schema):
                if not pa.types.is_string(field.type):
                    continue
                encoded = table.column(position).dictionary_encode().unify_dictionaries()
                if encoded.num_chunks and len(encoded.chunk(0).dictionary) <= FEW_VALUES:
                    table = table.set_column(position, field.name, encoded)
            batches = table.combine_chunks().to_batches(max_chunksize=DATAFUSION_BATCH_ROWS)
            partitions = [part for core in range(CORES) if (part := batches[core::CORES])]
            context.register_record_batches(name, partitions)
        return context

    def run(context, sql):
        batches = context.sql(sql).collect()
        return [list(row.values()) for batch in batches for row in batch.to_pylist()]

    serve(pipe, f"DataFusion {datafusion.__version__}", load, run)


def serve_hyper(pipe, files):
    import tableauhyperapi as api

    # Kept by this frame: with the process its tables go.
    process = api.HyperProcess(api.Telemetry.DO_NOT_SEND_USAGE_DATA_TO_TABLEAU, parameters={"log_config": ""})

    def load():
        connection = api.Connection(process.endpoint)
        for name, path in files.items():
            connection.execute_command(f"CREATE TEMP TABLE \"{name}\" AS (SELECT * FROM external('{path}'))")
        return connection

    with process:
        serve(pipe, f"Hyper {api.__version__}", load, lambda connection, sql: connection.execute_list_query(sql))


def serve(pipe, version, load, run):
    """A peer's process: loads, then answers each query text with its time and rows until the pipe closes."""
    try:
        begin = time.perf_counter()
        engine = load()
        pipe.send((version, time.perf_counter() - begin))
    except Exception as error:  # Whatever it is, the parent reports it.
        pipe.send(error)
        return
    while True:
        try:
            sql = pipe.recv()
        except EOFError:
            return
        try:
            begin = time.perf_counter()
            rows = run(engine, sql)
            pipe.send(((time.perf_counter() - begin) * 1e3, rows))
        except Exception as error:
            pipe.send(error)


ENGINES = {
    "eris": Eris,
    "duckdb": lambda files, options: Peer(serve_duckdb, files),
    "datafusion": lambda files, options: Peer(serve_datafusion, files),
    "hyper": lambda files, options: Peer(serve_hyper, files),
}


def resident_bytes(pid):
    """Memory that the process and those that it has started occupy now."""
    pages = int(Path(f"/proc/{pid}/statm").read_text().split()[1])
    children = [child for task in Path(f"/proc/{pid}/task").iterdir() for child in (task / "children").read_text().split()]
    return pages * os.sysconf("SC_PAGE_SIZE") + sum(resident_bytes(child) for child in children)


# ---- measurement -----------------------------------------------------------------------------------------------------


def check_results(engines, queries):
    """The warm-up round: runs each query once everywhere; the number of results that differ from the reference's."""
    reference = "duckdb" if "duckdb" in engines else next(iter(engines))
    wrong = 0
    for name, sql in queries.items():
        _, expected = engines[reference].run(sql)
        for engine in engines:
            if engine == reference:
                continue
            _, rows = engines[engine].run(sql)
            report = difference(expected, rows, order_of(sql, expected))
            if report:
                wrong += 1
                print(f"Q{name}: {engine} differs from {reference}: {report[0]}", *report[1:], sep="\n")
    return wrong


def order_of(sql, rows):
    """Positions of the sorted columns; the columns' names are those of the select list."""
    selected = sql[len("select ") : sql.index("\nfrom")].split(", ")
    return benchmark.order_columns(sql, [item.split(" as ")[-1] for item in selected]) if rows else []


def measure(engines, queries, rounds):
    """Milliseconds by engine and query, one per round."""
    times = {engine: {query: [] for query in queries} for engine in engines}
    names = list(engines)
    for number in range(rounds):
        first = number % len(names)
        for query, sql in queries.items():
            for engine in names[first:] + names[:first]:
                times[engine][query].append(engines[engine].run(sql)[0])
        print(f"\rround {number + 1} of {rounds}", end="", file=sys.stderr)
    print(file=sys.stderr)
    return times


# ---- results ---------------------------------------------------------------------------------------------------------


def summary(engines, queries, times, files):
    rows = parquet_rows(files["lineorder"])
    report = {
        "when": datetime.datetime.now(datetime.timezone.utc).isoformat(timespec="seconds"),
        "machine": {"name": platform.node(), "cpu": cpu_name(), "cores": CORES, "memory_bytes": memory_bytes()},
        "scale": round(rows / 6_000_000, 3 if rows < 6_000_000 else 0),
        "fact_rows": rows,
        "load_average": os.getloadavg(),
        "engines": {},
    }
    for name, engine in engines.items():
        report["engines"][name] = {
            "version": engine.version,
            "load_s": round(engine.load_s, 3),
            "resident_bytes": engine.resident_bytes(),
            "queries_ms": {query: [round(one, 3) for one in samples] for query, samples in times[name].items()},
            "geometric_mean_of_medians_ms": geometric_mean(times[name], statistics.median),
            "geometric_mean_of_minima_ms": geometric_mean(times[name], min),
        }
        if isinstance(engine, Eris):
            report["engines"][name]["framing_ms"] = engine.framing_ms
            report["engines"][name]["recode_s"] = round(engine.recode_s, 3)
    return report


def geometric_mean(times, pick):
    return statistics.geometric_mean(max(pick(samples), 1e-3) for samples in times.values())


def parquet_rows(path):
    import pyarrow.parquet as pq

    return pq.read_metadata(path).num_rows


def cpu_name():
    for line in Path("/proc/cpuinfo").read_text().splitlines():
        if line.startswith("model name"):
            return line.split(":", 1)[1].strip()
    return platform.machine()


def memory_bytes():
    return os.sysconf("SC_PHYS_PAGES") * os.sysconf("SC_PAGE_SIZE")


def table(report):
    """Median (minimum to maximum) in milliseconds, as Markdown."""
    engines = report["engines"]
    lines = [
        f"Star Schema Benchmark, {report['fact_rows']:,} fact rows, {report['machine']['cores']} cores"
        f" ({report['machine']['cpu']}); median (min–max) in ms",
        "",
        "| query | " + " | ".join(engine["version"] for engine in engines.values()) + " |",
        "|---|" + "---|" * len(engines),
    ]
    queries = next(iter(engines.values()))["queries_ms"]
    for query in queries:
        cells = []
        for engine in engines.values():
            samples = engine["queries_ms"][query]
            cells.append(f"{digits(statistics.median(samples))} ({digits(min(samples))}–{digits(max(samples))})")
        lines.append(f"| {query} | " + " | ".join(cells) + " |")
    for title, key in (("medians", "geometric_mean_of_medians_ms"), ("minima", "geometric_mean_of_minima_ms")):
        cells = [digits(engine[key]) for engine in engines.values()]
        lines.append(f"| geometric mean of {title} | " + " | ".join(cells) + " |")
    lines.append("| load from Parquet, s | " + " | ".join(f"{engine['load_s']:.1f}" for engine in engines.values()) + " |")
    cells = [f"{engine['resident_bytes'] / 2**30:.2f}" for engine in engines.values()]
    lines.append("| resident memory, GiB | " + " | ".join(cells) + " |")
    return "\n".join(lines)


def digits(value):
    """About three digits."""
    return f"{value:.{max(0, 2 - math.floor(math.log10(max(value, 0.01))))}f}"


def default_output():
    today = datetime.date.today().isoformat()
    return ROOT / "bench/results" / f"{today}-{platform.node()}.json"


def save(report, path):
    """Adds the report to the file's entries; one of the same scale is replaced."""
    path.parent.mkdir(parents=True, exist_ok=True)
    entries = json.loads(path.read_text()) if path.is_file() else {}
    entries[f"ssb scale {report['scale']:g}"] = report
    path.write_text(json.dumps(entries, indent=1) + "\n")


if __name__ == "__main__":
    try:
        sys.exit(main())
    except StatementFailed as failure:
        sys.exit(str(failure))
