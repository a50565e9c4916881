#!/usr/bin/env python3
"""The interactive shell on a pseudo-terminal: lines, completion, history, commands, pager, progress, Ctrl-C, Ctrl-D.

Needs nothing but Python's standard library. The binary: the environment's ERIS.
"""

import os
import re
import signal
import sys
import tempfile
import time
import unittest
from pathlib import Path

from terminal import ERIS, PROMPT, Terminal

ENDLESS = (
    "WITH d(n) AS (VALUES (0), (1), (2), (3), (4), (5), (6), (7), (8), (9)) SELECT a.n FROM "
    "d AS a, d AS b, d AS c, d AS e, d AS f, d AS g, d AS h, d AS i, d AS j, d AS k, d AS l;"
)
UP, PAGE_UP, CTRL_R, CTRL_C = "\x1b[A", "\x1b[5~", "\x12", "\x03"


class Shell(unittest.TestCase):
    def setUp(self):
        directory = tempfile.TemporaryDirectory()
        self.addCleanup(directory.cleanup)
        self.state = directory.name

    def open(self, **how):
        shell = Terminal(self.state, **how)
        self.addCleanup(shell.close)
        return shell

    def file(self, name, text=""):
        path = Path(self.state, name)
        path.write_text(text)
        return path


class Lines(Shell):
    def test_a_statement_may_span_lines(self):
        shell = self.open()
        shell.send("SELECT 40 +\r")
        shell.wait_for("   …> ")
        shell.send("2 AS answer;\r")
        shown = shell.wait_for("1 row in ")
        self.assertIn("│     42 │", shown)
        shell.wait_for(PROMPT)
        # Whole in the history, with its second line, and editable there.
        shell.send(UP + "\x7f" * 12 + "7 AS answer;\r")
        self.assertIn("│     47 │", shell.wait_for("1 row in "))
        shell.wait_for(PROMPT)
        self.assertEqual(shell.end("\\q\r"), 0)

    def test_a_terminal_without_cursor_keys(self):
        shell = self.open(TERM="dumb")
        shell.send("SELECT 40 +\n")
        shell.send("2 AS answer;\n")
        shell.wait_for("│     42 │")
        shell.wait_for(PROMPT)
        self.assertEqual(shell.end(), 0)

    def test_a_string_over_several_lines_keeps_what_was_typed(self):
        shell = self.open()
        shell.send("SELECT length('a\r")
        shell.send("b') AS three;\r")
        shell.wait_for("│     3 │")
        shell.wait_for(PROMPT)
        self.assertEqual(shell.end(), 0)

    def test_the_history_survives_a_crash(self):
        shell = self.open()
        shell.ask("SELECT 10 AS ten;")
        shell.ask("SELECT 11\\g")
        history = Path(self.state, "eris/history").read_text()
        self.assertIn("SELECT 10 AS ten;", history)
        shell.process.send_signal(signal.SIGKILL)
        shell.process.wait()
        shell = self.open()
        shell.send(UP + UP + "\r")
        shell.wait_for("│  10 │")
        shell.wait_for(PROMPT)
        # By a part of it, and by its beginning.
        shell.send(CTRL_R + "ten")
        shell.wait_for("SELECT 10 AS ten;")
        shell.send("\r")
        shell.wait_for("│  10 │")
        shell.wait_for(PROMPT)
        shell.send("SELECT 11" + PAGE_UP + "\r")
        shell.wait_for("│ 11 │")
        shell.wait_for(PROMPT)
        self.assertEqual(shell.end(), 0)

    def test_what_is_typed_ahead_is_not_lost(self):
        shell = self.open()
        shell.send("SELECT 1 AS one;\rSELECT 2 AS two;\rSELECT\r  44 AS many;\r")
        for shown in ("│   1 │", "│   2 │", "│   44 │"):
            shell.wait_for(shown)
        shell.wait_for(PROMPT)
        self.assertEqual(shell.end(), 0)

    def test_ctrl_c_at_the_prompt_forgets_the_input(self):
        shell = self.open()
        shell.send("SELECT 'half" + CTRL_C)
        shell.wait_for("\n" + PROMPT)
        shell.send("SELECT 9 AS nine;\r")
        shell.wait_for("│    9 │")
        shell.wait_for(PROMPT)
        self.assertEqual(shell.end(), 0)

    def test_completion(self):
        self.file("some data.csv", "a,b\n1,2\n")
        shell = self.open()
        shell.ask("CREATE TABLE customer (c_custkey INTEGER, c_region VARCHAR, \"Odd\" DATE, \"order\" INTEGER);")
        for typed, completed in [
            ("sele\t", "select"),
            ("SELECT * FROM cust\t", "customer"),
            ("SELECT c.c_r\t", "c.c_region"),
            ("SELECT c. FROM customer AS c" + "\x1b[D" * 19 + "c_r\t", "c.c_region FROM"),
            ("SELECT c_cu\t", "c_custkey"),
            ("SELECT \"O\t", '"Odd"'),
            ("SELECT customer.orde\t", 'customer."order"'),
            ("SELECT * FROM read_parq\t", "read_parquet("),
            ("SELECT date_tr\t", "date_trunc("),
            (f"SELECT * FROM '{self.state}/some\t", "some data.csv'"),
            (f"\\i {self.state}/some\t", "data.csv"),
            ("\\tim\t", "\\timing"),
            ("\\d cust\t", "\\d customer"),
            (".mode mark\t", ".mode markdown"),
        ]:
            shell.send(typed)
            shell.wait_for(completed)
            shell.send(CTRL_C)
            shell.wait_for("\n" + PROMPT)
        # Several: all are listed.
        shell.send("SELECT c_\t")
        listed = shell.wait_for("c_region")
        self.assertIn("c_custkey", listed)
        shell.wait_for(PROMPT + "SELECT c_")
        shell.send(CTRL_C)
        shell.wait_for("\n" + PROMPT)
        self.assertEqual(shell.end(), 0)


class Statements(Shell):
    def test_an_error_keeps_the_shell(self):
        shell = self.open()
        shown = shell.ask("SELECT 1, nothing FROM nowhere;")
        self.assertIn('error: line 1:24: table "nowhere" does not exist', shown)
        self.assertIn("^", shown)
        self.assertIn("│     7 │", shell.ask("SELECT 7 AS seven;"))
        self.assertEqual(shell.end(), 0)

    def test_ctrl_c_cancels_the_statement_and_keeps_the_shell(self):
        shell = self.open()
        shell.ask(".maxrows 0")
        for _ in range(2):
            shell.send(ENDLESS + "\r")
            shell.wait_for("│ 0 │")
            shell.interrupt()
            shell.interrupt()
            shell.wait_for("cancelled")
            shell.wait_for(PROMPT)
        self.assertIn("│     8 │", shell.ask("SELECT 8 AS eight;"))
        self.assertEqual(shell.end(), 0)

    def test_what_is_said_to_be_cancelled_has_no_effect(self):
        shell = self.open()
        shell.ask("CREATE TABLE t AS SELECT i, 0 AS v FROM generate_series(1, 300000) AS g(i);")
        began = time.monotonic()
        shell.ask("UPDATE t SET v = v + 1;")
        usual = time.monotonic() - began
        said, expected = set(), 1
        for attempt in range(60):
            shell.send("UPDATE t SET v = v + 1;\r")
            shell.wait_for("\n")
            # From before it begins to after its end.
            time.sleep(usual * (attempt % 20) / 10)
            shell.interrupt()
            answer = shell.wait_for(PROMPT)
            is_done, is_cancelled = "UPDATE: 300,000 rows" in answer, "cancelled" in answer
            self.assertNotEqual(is_done, is_cancelled, answer)
            expected += is_done
            said.add(is_done)
            # The prompt may have been drawn again.
            shell.send("SELECT min(v), max(v) FROM t;\r")
            shell.wait_for("max(v) │")
            found = shell.wait_for(PROMPT)
            self.assertIn(f"│ {expected} │ {expected} │", re.sub(" +", " ", found), answer)
        self.assertEqual(said, {False, True}, "it was too late at times, and in time at others")
        self.assertEqual(shell.end(), 0)

    def test_a_long_statement_shows_its_progress_and_can_be_cancelled(self):
        shell = self.open(columns=160)
        shell.ask("CREATE TABLE n AS SELECT i FROM generate_series(1, 300000) AS g(i);")
        shell.send("SELECT count(*) FROM n a, n b WHERE a.i + b.i < 0;\r")
        bar = shell.wait_for("memory")
        self.assertRegex(bar, r"600 k of 600 k rows · .* k rows/s")
        shell.interrupt()
        shell.wait_for("cancelled")
        shell.wait_for(PROMPT)
        self.assertIn("300000", shell.ask("SELECT count(*) FROM n;"))
        self.assertEqual(shell.end(), 0)

    def test_results_are_fitted_to_the_screen(self):
        shell = self.open(columns=80)
        columns = ", ".join(f"'a text of 23 characters' AS c{i}" for i in range(12))
        wide = self.file("w.sql", f"SELECT {columns};")
        shown = shell.ask(f"\\i {wide}")
        table = [line for line in shown.splitlines() if line.startswith("│")]
        self.assertTrue(table and all(len(line) <= 80 for line in table), shown)
        self.assertIn("│ … │", shown)
        self.assertIn("12 columns (6 shown, \\x shows all)", shown)
        shell.ask("\\x auto")
        shown = shell.ask(f"\\i {wide}")
        self.assertIn("c7  │ a text of 23 characters", shown)
        self.assertIn("┌", shell.ask("SELECT 1;"), "what fits is a table")
        shell.ask("\\x off")
        shown = shell.ask("SELECT * FROM generate_series(1, 1234) AS g(i);")
        self.assertIn("1,234 rows (40 shown)", shown)
        self.assertIn("│    ⋮ │", shown)
        self.assertIn("│ 1234 │", shown)
        self.assertEqual(shell.end(), 0)

    def test_long_results_are_paged(self):
        shell = self.open(ERIS_PAGER="sed 's/^/page:/'")
        self.assertNotIn("page:", shell.ask("SELECT 1 AS one;"))
        shown = shell.ask("SELECT * FROM generate_series(1, 1234) AS g(i);")
        self.assertIn("page:│ 1234 │", shown)
        self.assertIn("page:1,234 rows in ", shown)
        shell.ask("\\pager off")
        self.assertNotIn("page:", shell.ask("SELECT * FROM generate_series(1, 1234) AS g(i);"))
        self.assertEqual(shell.end(), 0)

    def test_leaving_the_pager_ends_the_statement(self):
        shell = self.open(ERIS_PAGER="head -n 3")
        shown = shell.ask(f"\\i {self.file('endless.sql', ENDLESS)}")
        self.assertIn("│ n │", shown)
        self.assertNotIn("error", shown)
        self.assertIn("│     8 │", shell.ask("SELECT 8 AS eight;"))
        self.assertEqual(shell.end(), 0)

    def test_ctrl_c_in_the_pager_does_not_reach_the_next_statement(self):
        # A pager that, like less, stays when Ctrl-C is pressed.
        shell = self.open(ERIS_PAGER="sh -c \"trap '' INT; head -n 5; read line < /dev/tty\"")
        shell.send(f"\\i {self.file('endless.sql', ENDLESS)}\r")
        shell.wait_for("│ 0 │")
        shell.interrupt()
        shell.send("\r")
        shell.wait_for("\n" + PROMPT)
        self.assertIn("│     8 │", shell.ask("SELECT 8 AS eight;"))
        self.assertEqual(shell.end(), 0)

    def test_null_is_told_from_text(self):
        shell = self.open()
        shell.ask("\\pset null ∅")
        self.assertIn("│ ∅ │ NULL │", shell.ask("SELECT NULL AS n, 'NULL' AS t;"))
        shell.ask(".nullvalue nothing")
        self.assertIn("│ nothing │", shell.ask("SELECT NULL AS n;"))
        self.assertEqual(shell.end(), 0)


class Commands(Shell):
    def test_what_there_is(self):
        shell = self.open()
        shell.ask("CREATE TABLE sales (id INTEGER NOT NULL, price DECIMAL(8,2) DEFAULT 9.50);")
        self.assertIn("│ public │ sales │ table │", shell.ask("\\d"))
        self.assertIn("│ public │ sales │ table │       2 │", shell.ask(".tables sal"))
        for pattern in ("s*", "public.*", "%LES", "pub*.sal"):
            self.assertIn("│ sales │", shell.ask(f"\\dt {pattern}"))
        for pattern in ("*.x*", "other.*", "s?"):
            self.assertNotIn("│ sales │", shell.ask(f"\\dt {pattern}"))
        self.assertNotIn("sales", shell.ask("\\dt other"))
        self.assertNotIn("sales", shell.ask("\\dv"))
        self.assertRegex(shell.ask("\\dn"), r"│ public +│")
        shown = shell.ask("\\d sales;")
        self.assertIn("table public.sales", shown)
        self.assertIn("│ price  │ DECIMAL(8,2) │          │ 9.50    │", shown)
        self.assertIn("id INTEGER NOT NULL", shell.ask(".schema sales"))
        self.assertIn('did you mean "sales"?', shell.ask("\\d sale"))
        self.assertIn("date_trunc", shell.ask("\\df date_tr"))
        self.assertEqual(shell.end(), 0)

    def test_settings(self):
        shell = self.open()
        self.assertIn("timing is off", shell.ask("\\timing"))
        shown = shell.ask("SELECT 1 AS one;")
        self.assertIn("1 row", shown)
        self.assertNotIn(" in ", shown)
        self.assertIn("expanded display is on", shell.ask("\\x"))
        self.assertIn("one │ 1", shell.ask("SELECT 1 AS one;"))
        shell.ask("\\x off")
        shell.ask(".mode csv")
        self.assertIn("one,two\n1,2", shell.ask("SELECT 1 AS one, 2 AS two;"))
        shell.ask(".headers off")
        self.assertNotIn("one,two", shell.ask("SELECT 1 AS one, 2 AS two /* */;").split("*/;")[-1])
        self.assertIn("mode: csv", shell.ask(".mode"))
        self.assertIn("pager", shell.ask("\\pset"))
        self.assertEqual(shell.end(), 0)

    def test_files(self):
        script = self.file("script.sql", "CREATE TABLE s (n INTEGER);\n.mode csv\nINSERT INTO s VALUES (1), (2);\n")
        wrong = self.file("wrong.sql", "SELECT 1;\nSELECT\n  nothing;\n")
        data = self.file("data.csv", "a,b\n1,x\n2,y\n")
        result = Path(self.state, "result.csv")
        shell = self.open()
        self.assertIn("INSERT: 2 rows", shell.ask(f"\\i {script}"))
        shell.ask(f"\\o {result}")
        self.assertNotIn("sum", shell.ask("SELECT sum(n) AS s FROM s;").split("FROM s;")[-1])
        shell.ask("\\o")
        self.assertEqual(result.read_text(), "s\n3\n")
        shell.ask(".mode table")
        self.assertIn("2 rows", shell.ask(f".import {data} imported"))
        self.assertIn("│ 2 │ y │", shell.ask("SELECT * FROM imported;"))
        shown = shell.ask(f".read {wrong}")
        self.assertIn(f"error: {wrong}: line 3:3:", shown)
        self.assertIn("cannot read", shell.ask("\\i /nowhere.sql"))
        self.assertIn("hello world", shell.ask("\\! echo hello wor\"\"ld"))
        self.assertEqual(shell.end(".exit\r"), 0)

    def test_watch_repeats_until_ctrl_c(self):
        shell = self.open()
        shown = shell.ask("SELECT 5 AS five \\watch 0.1 c=3")
        self.assertEqual(shown.count("│    5 │"), 3, shown)
        shell.send("\\watch 0.1\r")
        for _ in range(4):
            shell.wait_for("│    5 │")
        shell.interrupt()
        shell.wait_for("cancelled")
        shell.wait_for(PROMPT)
        self.assertEqual(shell.end(), 0)

    def test_help_and_unknown_commands(self):
        shell = self.open(rows=100)
        shown = shell.ask("\\?")
        for word in ("Ctrl-C", "\\copy", ".mode", "Examples:"):
            self.assertIn(word, shown)
        self.assertIn(".mode", shell.ask("\\? markdown"))
        self.assertIn("one │ 1", shell.ask("SELECT 1 AS one \\gx"))
        self.assertIn("┌", shell.ask("SELECT 1 AS one;"), "for one statement only")
        self.assertIn("unknown command .tabels\nhint: did you mean .tables?", shell.ask(".tabels"))
        self.assertIn("unknown command \\nonsense", shell.ask("\\nonsense"))
        self.assertEqual(shell.end(), 0)


if __name__ == "__main__":
    if not Path(ERIS).is_file():
        sys.exit("no eris binary: run `make build`, or give ERIS=PATH")
    unittest.main()
