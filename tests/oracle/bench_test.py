#!/usr/bin/env python3
"""The comparison with other engines: which literals it draws, what it says the limit is, and its ratios."""

import sys
import unittest

import duckdb
from common.benchmark import ROOT, queries

sys.path.insert(0, str(ROOT / "bench"))

from peers import limit, literals, output, summary  # noqa: E402
from peers.engines import in_join_order  # noqa: E402


def domains():
    cities = {"CHINA": ["CHINA    0", "CHINA    1", "CHINA    2"], "PERU": ["PERU     4"]}
    return literals.Domains(
        years=list(range(1992, 1999)),
        months=[199401, 199402],
        month_names=["Feb1994", "Jan1994"],
        weeks=[(1994, 1), (1994, 6)],
        manufacturers=["MFGR#1", "MFGR#2"],
        categories=["MFGR#11", "MFGR#12"],
        brands=[f"MFGR#11{number}" for number in range(10, 30)],
        regions={"c": ["AMERICA", "ASIA"], "s": ["ASIA"]},
        nations={"c": ["CHINA", "PERU"], "s": ["CHINA"]},
        cities={"c": cities, "s": cities},
    )


class Literals(unittest.TestCase):
    def texts(self, seed, number):
        return {name: literals.fresh(name, sql, domains(), seed, number) for name, sql in queries().items()}

    def test_seed_and_round_determine_them(self):
        self.assertEqual(self.texts(1, 0), self.texts(1, 0))
        self.assertNotEqual(self.texts(1, 0), self.texts(1, 1))
        self.assertNotEqual(self.texts(1, 0), self.texts(2, 0))

    def test_nothing_but_literals_changes(self):
        for name, sql in queries().items():
            for number in range(20):
                fresh = literals.fresh(name, sql, domains(), 7, number)
                self.assertEqual(literals.LITERAL.sub("?", fresh), literals.LITERAL.sub("?", sql))

    def test_they_are_drawn_from_the_domains(self):
        known = domains()
        for number in range(50):
            drawn = {name: literals.LITERAL.findall(sql) for name, sql in self.texts(3, number).items()}
            year, low, high, quantity = map(int, drawn["1.1"])
            self.assertIn(year, known.years)
            self.assertTrue(0 <= low and high == low + 2 <= 10 and 20 <= quantity <= 30)
            week, year = map(int, drawn["1.3"][:2])
            self.assertIn((year, week), known.weeks)
            first, last, region = (text.strip("'") for text in drawn["2.2"])
            self.assertEqual(known.brands.index(last) - known.brands.index(first), 7)
            self.assertEqual(region, "ASIA")
            self.assertEqual(int(drawn["3.1"][3]) - int(drawn["3.1"][2]), 5)
            # Two different cities of one nation, or the only one twice.
            one, other = (text.strip("'") for text in drawn["3.4"][:2])
            self.assertEqual(one[:5], other[:5])
            self.assertEqual(one == other, one.startswith("PERU"))
            self.assertNotEqual(*drawn["4.1"][2:])
            self.assertEqual(int(drawn["4.3"][3]) - int(drawn["4.3"][2]), 1)

    def test_a_kind_that_does_not_fit_is_rejected(self):
        self.assertEqual(literals.replace("a = 'x' and b1 < 5", ["it's", 7]), "a = 'it''s' and b1 < 7")
        for wrong in ([7, "x"], ["x"], ["x", 7, 8]):
            with self.assertRaises(ValueError):
                literals.replace("a = 'x' and b1 < 5", wrong)


class Limit(unittest.TestCase):
    def test_what_queries_read(self):
        found = limit.reads(queries()["4.1"])
        self.assertEqual(list(found.conditions), ["lo_custkey", "lo_suppkey", "lo_partkey"])
        self.assertEqual(
            found.conditions["lo_partkey"],
            "lo_partkey IN (SELECT p_partkey FROM part WHERE (p_mfgr = 'MFGR#1' or p_mfgr = 'MFGR#2'))",
        )
        self.assertEqual(found.outputs, ["lo_orderdate", "lo_revenue", "lo_supplycost"])
        found = limit.reads(queries()["1.3"])
        self.assertEqual(set(found.conditions), {"lo_orderdate", "lo_discount", "lo_quantity"})
        self.assertIn("d_weeknuminyear = 6 AND d_year = 1994", found.conditions["lo_orderdate"])
        self.assertEqual(found.outputs, ["lo_extendedprice"])

    def test_bytes_of_a_table_made_by_hand(self):
        connection = duckdb.connect()
        # 4,096 rows. Quantities take 4 bits, so 32 lines of 64 bytes; days 8 bits, 64 lines; prices 12 bits, 96 lines.
        connection.execute(
            "CREATE TABLE lineorder AS SELECT i AS row, i % 16 AS lo_quantity, i // 16 AS lo_orderdate, i % 2 AS lo_discount,"
            " i AS lo_extendedprice FROM range(4096) AS r(i)"
        )
        connection.execute("CREATE TABLE date AS SELECT i AS d_datekey, i // 128 AS d_year FROM range(256) AS r(i)")
        limits = limit.Limits(connection)
        columns = ["lo_quantity", "lo_orderdate", "lo_discount", "lo_extendedprice"]
        self.assertEqual([limits.bits(column) for column in columns], [4, 8, 1, 12])

        def lines(conditions):
            sql = f"select sum(lo_extendedprice)\nfrom lineorder, date\nwhere {conditions}"
            self.assertEqual(limits.bytes(sql) % 64, 0)
            return limits.bytes(sql) // 64

        # Every line of prices has a row that is left.
        self.assertEqual(lines("lo_quantity = 3"), 32 + 96)
        # The days of year 0 are the first half of the rows. All days, half of the quantities, half of the prices;
        # quantities first would make it 32 + 64 + 48.
        self.assertEqual(lines("lo_orderdate = d_datekey\n  and d_year = 0\n  and lo_quantity = 3"), 64 + 16 + 48)
        # One day, in one line of quantities, and of it one row.
        self.assertEqual(lines("lo_orderdate = 77\n  and lo_quantity = 3"), 64 + 1 + 1)
        # Nothing passes: prices are not read.
        self.assertEqual(lines("lo_discount = 2"), 8)

    def test_bandwidth_is_that_of_all_nodes_in_their_own_memory(self):
        def row(case, source, home, value):
            return {"case": case, "params": {"source": source, "home": home}, "value": value}

        report = [row("sequential read", 0, 0, 30.0), row("sequential read", 0, 1, 10.0), row("sequential read", 1, 1, 20.0)]
        self.assertEqual(limit.bandwidth({"rows": [*report, row("dependent load", 0, 0, 150.0)]}), 50e9)


def samples(fixed, fresh):
    return {"fixed": {"1.1": fixed}, "fresh": {"1.1": fresh}}


class Summary(unittest.TestCase):
    groups = [
        {"eris": samples([1.0, 2.0, 3.0], [4.0]), "duckdb": samples([8.0, 8.0, 1.0], [8.0])},
        {"eris": samples([6.0, 6.0, 9.0], [4.0]), "polars": samples([12.0, 20.0, 12.0], [40.0])},
    ]

    def test_a_peer_is_compared_with_eris_in_its_group(self):
        self.assertEqual(summary.beside_peers(self.groups, "fixed"), {"1.1": ("polars", 0.5)})
        self.assertEqual(summary.beside_peers(self.groups, "fresh"), {"1.1": ("duckdb", 0.5)})
        # Of polars, the group's other times of eris count.
        self.assertEqual(summary.beside_eris(self.groups, "fixed"), {"duckdb": 4.0, "polars": 2.0})
        self.assertEqual(summary.beside_peers([{"eris": samples([1.0], [1.0])}], "fixed"), {})

    def test_times_of_all_groups_beside_the_limit(self):
        times = summary.merged(self.groups)
        self.assertEqual(times["eris"]["fixed"]["1.1"], [1.0, 2.0, 3.0, 6.0, 6.0, 9.0])
        # 9 MB at 6 GB/s are 1.5 ms, of which the median, 4.5 ms, is three times.
        self.assertEqual(summary.beside_limit(times, {"1.1": 9_000_000}, 6e9), {"1.1": (1.5, 3.0)})

    def test_means(self):
        self.assertAlmostEqual(summary.mean([1.0, 4.0, 16.0]), 4.0)
        self.assertIsNone(summary.mean([]))

    def test_the_report_is_shown_in_full(self):
        report = summary.summary(self.groups, {"1.1": 9_000_000}, 6e9)
        for name, engine in report["engines"].items():
            engine |= {"version": f"{name} & co", "load_s": 1.0, "settle_s": 0.5, "resident_bytes": 2**30}
        report |= {"machine": {"cores": 2, "cpu": "x"}, "fact_rows": 1, "rounds": 3, "seed": 1, "scale": 1}
        report |= {"groups": [["eris", "duckdb"], ["eris", "polars"]], "load_average": [0.0]}
        (row,) = [line for line in output.table(report).splitlines() if line.startswith("| 1.1")]
        cells = [cell.strip() for cell in row.strip("|").split("|")]
        self.assertEqual(cells[1:4], ["4.50 / 4.00", "8.00 / 8.00", "12.0 / 40.0"])
        self.assertEqual(cells[4:], ["0.500 / 0.500", "polars / duckdb", "1.50", "3.00"])
        drawing = output.figure(report)
        # Fixed and fresh, a dot each, and one in the key; the names are escaped.
        self.assertEqual(drawing.count("<circle"), 3 * 3)
        self.assertIn("eris &amp; co", drawing)


class JoinOrder(unittest.TestCase):
    def test_only_from_changes(self):
        for name, sql in queries().items():
            ordered = in_join_order(name, sql)
            before, after = (text.split("\nfrom ") for text in (sql, ordered))
            self.assertEqual(before[0], after[0])
            (tables, rest), (others, same) = (text[1].split("\n", 1) for text in (before, after))
            self.assertEqual(rest, same)
            self.assertEqual(sorted(tables.split(", ")), sorted(others.split(", ")))
            self.assertTrue(others.startswith("lineorder, "))


if __name__ == "__main__":
    unittest.main()
