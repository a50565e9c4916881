"""Warm-up, comparison of results, and rounds in which the engines take turns."""

import sys

from common import benchmark
from common.compare import difference

# Two kinds of texts: the benchmark's own, and the same with literals that are new in each round.
KINDS = ["fixed", "fresh"]


def warm_up(engines, queries):
    """Runs each query once everywhere, then lets the engines finish what that began; the number of wrong results."""
    wrong = 0
    for name, sql in queries.items():
        wrong += compare(name, sql, {engine: engines[engine].run(name, sql)[1] for engine in engines})
    for engine in engines.values():
        engine.settle()
    return wrong


def compare(name, sql, results):
    """Holds the rows of each engine against DuckDB's or, without it, the first engine's; how many differ."""
    reference = "duckdb" if "duckdb" in results else next(iter(results))
    expected, wrong = results[reference], 0
    for engine, rows in results.items():
        report = difference(expected, rows, order_of(sql, expected)) if engine != reference else []
        if report:
            wrong += 1
            print(f"Q{name}: {engine} differs from {reference}: {report[0]}", *report[1:], sql, sep="\n")
    return wrong


def order_of(sql, rows):
    """Positions of the sorted columns; the columns' names are those of the select list."""
    selected = sql[len("select ") : sql.index("\nfrom")].split(", ")
    return benchmark.order_columns(sql, [item.split(" as ")[-1] for item in selected]) if rows else []


def measure(engines, rounds):
    """Runs rounds, each a list of (kind, name, sql); milliseconds by engine, kind and query, and how many results were wrong.

    In each round the next engine goes first. Results are compared outside of what is timed.
    """
    names = list(engines)
    times = {engine: {kind: {} for kind in KINDS} for engine in names}
    wrong = 0
    for number, texts in enumerate(rounds):
        first = number % len(names)
        for kind, name, sql in texts:
            results = {}
            for engine in names[first:] + names[:first]:
                milliseconds, results[engine] = engines[engine].run(name, sql)
                times[engine][kind].setdefault(name, []).append(milliseconds)
            wrong += compare(name, sql, results)
        print(f"\rround {number + 1} of {len(rounds)}", end="", file=sys.stderr, flush=True)
    print(file=sys.stderr)
    return times, wrong
