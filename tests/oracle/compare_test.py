#!/usr/bin/env python3
"""The comparison itself: that it notices what must be noticed, and nothing else."""

import datetime
import os
import tempfile
import textwrap
import unittest
from decimal import Decimal

from common.benchmark import order_columns, queries
from common.compare import difference
from common.process import Session, StatementFailed, parse_row, run_statements


class Differences(unittest.TestCase):
    def agree(self, expected, actual, order=None):
        self.assertEqual(difference(expected, actual, order), [])

    def differ(self, expected, actual, order=None):
        self.assertNotEqual(difference(expected, actual, order), [])

    def test_rows_are_a_multiset_unless_ordered(self):
        self.agree([(1,), (2,), (2,)], [[2], [1], [2]])
        self.differ([(1,), (2,), (2,)], [[2], [1], [1]])
        self.differ([(1,), (2,)], [[2], [1]], order=[0])
        # Equal in what is sorted by: the rest may come in any order.
        self.agree([(1, "a"), (1, "b")], [[1, "b"], [1, "a"]], order=[0])

    def test_missing_rows_and_columns(self):
        self.differ([(1,)], [])
        self.differ([], [[1]])
        self.differ([(1,)], [[1, 2]])

    def test_null_is_no_value(self):
        self.agree([(None,)], [[None]])
        for value in (0, "", False):
            self.differ([(None,)], [[value]])
            self.differ([(value,)], [[None]])
        self.differ([(1.5, "a"), (None, "b")], [[None, "a"], [Decimal("1.5"), "b"]])

    def test_reals_have_a_tolerance_and_exact_numbers_have_none(self):
        self.agree([(0.1 + 0.2,)], [[Decimal("0.3")]])
        self.differ([(0.3,)], [[Decimal("0.3001")]])
        self.agree([(Decimal("1.50"),)], [[Decimal("1.5")]])
        self.differ([(Decimal("1.50"),)], [[Decimal("1.5000000001")]])
        self.differ([(2**60,)], [[2**60 + 1]])
        # A group's rows are paired however close their real values are to those of other groups.
        self.agree([("a", 1.0), ("b", 1.0)], [["b", Decimal("1.0000000000001")], ["a", 1]])

    def test_types_that_only_look_alike(self):
        self.differ([(True,)], [[1]])
        self.differ([("1",)], [[1]])

    def test_days_and_timestamps(self):
        self.agree([(datetime.date(1996, 2, 29),)], [["1996-02-29"]])
        timestamp = datetime.datetime(1996, 2, 29, 1, 2, 3, 500)
        self.agree([(timestamp,)], [["1996-02-29 01:02:03.000500"]])
        self.agree([(timestamp.replace(microsecond=0),)], [["1996-02-29 01:02:03"]])
        self.differ([(timestamp,)], [["1996-02-29 01:02:03"]])

    def test_rows_keep_their_digits(self):
        self.assertEqual(parse_row('{"a":12.50,"b":null,"c":18446744073709551615}'), [Decimal("12.50"), None, 2**64 - 1])


class Benchmark(unittest.TestCase):
    def test_what_the_queries_sort_by(self):
        texts = queries()
        self.assertEqual(len(texts), 13)
        self.assertEqual(order_columns(texts["1.1"], ["revenue"]), [])
        self.assertEqual(order_columns(texts["2.1"], ["sum(lo_revenue)", "d_year", "p_brand1"]), [1, 2])
        self.assertEqual(order_columns(texts["3.1"], ["c_nation", "s_nation", "d_year", "revenue"]), [2, 3])


class Framing(unittest.TestCase):
    """Against a process that echoes: `rows N` prints N rows, `fail` fails, everything else prints nothing."""

    def setUp(self):
        script = """\
            #!/usr/bin/env python3
            import sys, time
            for line in sys.stdin:
                sql = line.strip().rstrip(";")
                if sql.startswith("SELECT 'done"):
                    print('{"marker":"' + sql.split("'")[1] + '"}', flush=True)
                elif sql.startswith("rows"):
                    for row in range(int(sql.split()[1])):
                        print('{"a":%d}' % row)
                elif sql == "fail":
                    sys.exit("no such table")
                elif sql == "hang":
                    time.sleep(60)
            """
        with tempfile.NamedTemporaryFile("w", delete=False) as file:
            file.write(textwrap.dedent(script))
        os.chmod(file.name, 0o755)
        self.binary = file.name
        self.addCleanup(os.unlink, file.name)

    def test_a_failure_costs_one_statement(self):
        outcomes = run_statements(self.binary, ["create"], ["rows 2", "fail", "rows 0", "fail", "rows 1"])
        self.assertEqual([outcomes[0], outcomes[2], outcomes[4]], [[[0], [1]], [], [[0]]])
        for failed in (outcomes[1], outcomes[3]):
            self.assertIsInstance(failed, StatementFailed)
            self.assertIn("no such table", str(failed))

    def test_many_failures_end_the_batch(self):
        outcomes = run_statements(self.binary, [], ["fail"] * 50 + ["rows 1"])
        self.assertEqual(len(outcomes), 51)
        self.assertIn("not run", str(outcomes[-1]))

    def test_a_statement_that_hangs_is_given_up(self):
        outcomes = run_statements(self.binary, [], ["rows 1", "hang", "rows 2"], timeout=1)
        self.assertEqual([outcomes[0], outcomes[2]], [[[0]], [[0], [1]]])
        self.assertIn("no end within 1 s", str(outcomes[1]))

    def test_a_failing_setup_is_raised(self):
        with self.assertRaisesRegex(StatementFailed, "no such table"):
            run_statements(self.binary, ["fail"], ["rows 1"])

    def test_a_session_takes_one_statement_at_a_time(self):
        with Session(self.binary) as session:
            self.assertEqual(session.rows("rows 3"), [[0], [1], [2]])
            self.assertEqual(session.rows("create"), [])
            with self.assertRaisesRegex(StatementFailed, "no such table"):
                session.rows("fail")


if __name__ == "__main__":
    unittest.main()
