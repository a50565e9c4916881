#!/usr/bin/env python3
"""The Star Schema Benchmark in eris and its peers: same files, same query texts, side by side.

    ssb.py --data data/ssb1                              all engines, 7 rounds
    ssb.py --data data/ssb10 --rounds 15 --query 2.1
    ssb.py --data data/ssb1 --engines eris,duckdb --no-recoding

Every engine has a process of its own that holds the five tables in memory, at its best settings (peers/engines.py). After
one round that is not timed, the rounds are interleaved: in each, every query runs once in every engine, the engines taking
turns at going first, so that a slow minute of the machine hits all of them. Then each query runs once more with literals
that are new in this round and the same for all engines (peers/literals.py). Times are what a client sees: eris from writing
the statement into its pipe to the marker behind the result (with one trivial statement's time in it, measured and reported
as `framing_ms`, not subtracted); the others, in process, from the call to the complete rows. All results must agree.

If not all peers fit into the memory together, they are measured in groups, eris in each, and each peer is compared with
eris in its group. Beside the peers stands the limit of the machine (peers/limit.py): the fewest bytes that a query has to
read, at the bandwidth that `eris machine --measure` finds right before. Its bytes are computed once and kept beside the data.

The table goes to standard output, all numbers to bench/results/<date>-<machine>.json, one entry per scale, and a figure
beside it. Exit status: 0 all results agree, 1 some do not or an engine failed, 2 the command line is wrong.
"""

import argparse
import datetime
import json
import os
import platform
import subprocess
import sys
from pathlib import Path

ROOT = Path(__file__).resolve().parents[1]
sys.path.insert(0, str(ROOT / "tests/oracle"))

from common import benchmark  # noqa: E402
from common.process import StatementFailed, find_binary  # noqa: E402
from peers import limit, literals, output  # noqa: E402
from peers.engines import CORES, PEERS  # noqa: E402
from peers.measure import measure, warm_up  # noqa: E402
from peers.process import Eris, Peer  # noqa: E402
from peers.summary import ERIS, summary  # noqa: E402

# Memory that a peer takes per row of the fact table, about: the most that any has been seen to hold after its load.
PEER_BYTES_PER_ROW = 110


def main():
    options = parse_arguments()
    queries = {name: sql for name, sql in benchmark.queries().items() if name in options.query}
    files = {table: str(benchmark.parquet(options.data, table)) for table in benchmark.TABLES}
    binary = find_binary(options.eris)

    connection = limit.connect(files)
    fact_rows = limit.Limits(connection).rows
    bytes_of = limit.cached(connection, options.data, queries, say)
    domains = literals.read_domains(connection)
    connection.close()
    measured = [binary, "machine", "--measure", "--json"]
    machine = subprocess.run(measured, capture_output=True, text=True, check=True).stdout
    bandwidth = limit.bandwidth(json.loads(machine))
    rounds = [texts(queries, domains, options.seed, number) for number in range(options.rounds)]

    groups = grouped(options.engines, options.at_once or peers_that_fit(fact_rows))
    say(f"seed {options.seed}; groups: {'; '.join(' + '.join(group) for group in groups)}")
    entries, measured, wrong = {}, [], 0
    engines = {}
    try:
        for group in groups:
            for name in group:
                if name not in engines:
                    engines[name] = start(name, binary, files, options)
                    say(f"{engines[name].version}: loaded in {engines[name].load_s:.1f} s")
            running = {name: engines[name] for name in group}
            wrong += warm_up(running, queries)
            say(f"measuring {' + '.join(group)}")
            times, differences = measure(running, rounds)
            wrong += differences
            measured.append(times)
            for name in group:
                entries[name] = entry(engines[name])
                if name != ERIS:
                    engines.pop(name).close()
    finally:
        for engine in engines.values():
            engine.close()

    report = describe(fact_rows, groups, options) | summary(measured, bytes_of, bandwidth)
    report["wrong_results"] = wrong
    report["engines"] = {name: entries[name] | report["engines"][name] for name in entries}
    print(output.table(report))
    path = Path(options.output) if options.output else default_output()
    drawing = output.save(report, path)
    print(f"\nraw numbers: {path}\nfigure: {drawing}")
    return 1 if wrong else 0


def parse_arguments():
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("--data", required=True, help="directory with the five Parquet files")
    parser.add_argument("--eris", help="the binary [ERIS, or the build's]")
    parser.add_argument("--engines", default=",".join([ERIS, *PEERS]), help="which, in this order [%(default)s]")
    parser.add_argument("--rounds", type=int, default=7, help="timed rounds [%(default)s]")
    parser.add_argument("--query", action="append", help="only this query, such as 2.1; may be repeated")
    parser.add_argument("--seed", type=int, default=1, help="of the fresh literals [%(default)s]")
    parser.add_argument("--at-once", type=int, help="peers in memory together, beside eris [as many as fit]")
    parser.add_argument("--no-recoding", action="store_true", help="eris does not store joined columns by a key order")
    parser.add_argument("--output", help="JSON file [bench/results/<date>-<machine>.json]")
    options = parser.parse_args()
    options.engines = list(dict.fromkeys(options.engines.split(",")))
    options.query = options.query or list(benchmark.queries())
    for given, known in ((options.engines, [ERIS, *PEERS]), (options.query, benchmark.queries())):
        unknown = [name for name in given if name not in known]
        if unknown:
            parser.error(f"unknown: {', '.join(unknown)}; there are {', '.join(known)}")
    if options.rounds < 1:
        parser.error("at least one round")
    if options.at_once is not None and options.at_once < 1:
        parser.error("at least one peer at once")
    return options


def texts(queries, domains, seed, number):
    """What one round runs: (kind, name, text)."""
    fixed = [("fixed", name, sql) for name, sql in queries.items()]
    return fixed + [("fresh", name, literals.fresh(name, sql, domains, seed, number)) for name, sql in queries.items()]


def grouped(engines, at_once):
    """The peers in groups of at most so many, eris before each if it is among the engines."""
    own, peers = [name for name in engines if name == ERIS], [name for name in engines if name != ERIS]
    return [own + peers[start : start + at_once] for start in range(0, len(peers), at_once)] or [own]


def peers_that_fit(fact_rows):
    available = os.sysconf("SC_AVPHYS_PAGES") * os.sysconf("SC_PAGE_SIZE")
    for line in Path("/proc/meminfo").read_text().splitlines():
        if line.startswith("MemAvailable:"):
            available = int(line.split()[1]) * 1024
    return max(1, available // (fact_rows * PEER_BYTES_PER_ROW))


def start(name, binary, files, options):
    return Eris(binary, files, not options.no_recoding) if name == ERIS else Peer(PEERS[name], files)


def entry(engine):
    """What a report says of an engine besides its times."""
    found = {
        "version": engine.version,
        "load_s": round(engine.load_s, 3),
        "settle_s": round(engine.settle_s, 3),
        "resident_bytes": engine.resident_bytes(),
    }
    return found | ({"framing_ms": round(engine.framing_ms, 4)} if isinstance(engine, Eris) else {})


def describe(fact_rows, groups, options):
    return {
        "when": datetime.datetime.now(datetime.timezone.utc).isoformat(timespec="seconds"),
        "machine": {"name": platform.node(), "cpu": cpu_name(), "cores": CORES, "memory_bytes": memory_bytes()},
        "scale": round(fact_rows / 6_000_000, 3 if fact_rows < 6_000_000 else 0),
        "fact_rows": fact_rows,
        "load_average": os.getloadavg(),
        "rounds": options.rounds,
        "seed": options.seed,
        "key_recoding": not options.no_recoding,
        "groups": groups,
    }


def cpu_name():
    for line in Path("/proc/cpuinfo").read_text().splitlines():
        if line.startswith("model name"):
            return line.split(":", 1)[1].strip()
    return platform.machine()


def memory_bytes():
    return os.sysconf("SC_PHYS_PAGES") * os.sysconf("SC_PAGE_SIZE")


def default_output():
    today = datetime.date.today().isoformat()
    return ROOT / "bench/results" / f"{today}-{platform.node()}.json"


def say(line):
    print(line, file=sys.stderr)


if __name__ == "__main__":
    try:
        sys.exit(main())
    except StatementFailed as failure:
        sys.exit(str(failure))
