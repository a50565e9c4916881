"""PEP 249: its compliance suite, parameters of all kinds, exceptions by SQLSTATE, `executemany`."""

import datetime
import decimal
import fractions
import random
import uuid

import dbapi20
import numpy
import pandas
import pytest

import eris_db

UTC = datetime.UTC
Decimal = decimal.Decimal


class Driver:
    """The module, but connections are to one database, as the suite expects them of a server."""

    def __init__(self, database):
        self.connect = database.connect

    def __getattr__(self, name):
        return getattr(eris_db, name)


class TestCompliance(dbapi20.DatabaseAPI20Test):
    """Every test of the suite dbapi-compliance."""

    def setUp(self):
        database = eris_db.Database(memory="256MB", aeus=1)
        self.addCleanup(database.close)
        self.driver = Driver(database)

    def test_nextset(self):
        # PEP 249 has it as an option: a cursor has the rows of the last statement only.
        with self._connect() as connection:
            assert not hasattr(connection.cursor(), "nextset")

    def test_non_idempotent_close(self):
        # The suite says itself that reasonable persons differ. Who closes twice means it.
        connection = self._connect()
        connection.close()
        connection.close()
        assert connection.closed

    def test_setoutputsize(self):
        with self._connect() as connection:
            cursor = connection.cursor()
            cursor.setoutputsize(1000)
            cursor.setoutputsize(2000, 0)
            assert cursor.execute("SELECT 'x'").fetchone() == ("x",)


# ---- parameters ------------------------------------------------------------------------------------------------------


SAME = [
    None,
    True,
    False,
    0,
    -1,
    2**63 - 1,
    -(2**63),
    2**63,
    2**64 - 1,
    1.5,
    -0.0,
    float("inf"),
    5e-324,
    "",
    "nail",
    "a\0b",
    "ß😀",
    b"",
    b"\0\xff",
    datetime.date(1, 1, 1),
    datetime.date(1969, 12, 31),
    datetime.date(9999, 12, 31),
    datetime.datetime(1, 1, 1),
    datetime.datetime(1969, 12, 31, 23, 59, 59, 999_999),
    datetime.datetime(9999, 12, 31, 23, 59, 59, 999_999),
    datetime.datetime(2024, 2, 29, 1, 2, 3, 4, tzinfo=UTC),
    datetime.time(0),
    datetime.time(23, 59, 59, 999_999),
    datetime.timedelta(0),
    datetime.timedelta(days=3, seconds=4, microseconds=5),
    datetime.timedelta(microseconds=-1),
    Decimal("1.50"),
    Decimal("-0.00001"),
    Decimal("9" * 38),
    Decimal("-0." + "9" * 38),
    Decimal("1E-38"),
    uuid.UUID(int=5),
    uuid.UUID(int=2**128 - 1),
    [1, 2, 3],
    [],
    [None],
    ["a", None],
    [1.5, 2.5],
]


@pytest.mark.parametrize("value", SAME, ids=repr)
def test_a_value_comes_back_as_it_went(con, value):
    (found,) = con.execute("SELECT ?", [value]).fetchone()
    assert found == value
    assert type(found) is type(value)


@pytest.mark.parametrize(
    ("value", "expected"),
    [
        (2**64, Decimal(2**64)),
        (10**38 - 1, Decimal(10**38 - 1)),
        (-(10**38) + 1, Decimal(-(10**38) + 1)),
        (Decimal("1E10"), Decimal(10**10)),
        (Decimal("-0"), Decimal(0)),
        (bytearray(b"ab"), b"ab"),
        ((1, 2), [1, 2]),
        (numpy.int8(-3), -3),
        (numpy.uint64(2**64 - 1), 2**64 - 1),
        (numpy.float32(1.5), 1.5),
        (numpy.float64(2.5), 2.5),
        (numpy.float16(0.5), 0.5),
        (numpy.bool_(True), True),
        (numpy.str_("s"), "s"),
        (numpy.bytes_(b"b"), b"b"),
        (numpy.array(5), 5),
        (numpy.array([1, 2], "int16"), [1, 2]),
        (numpy.array(["a", "b"]), ["a", "b"]),
        (numpy.datetime64("2024-01-02T03:04:05.123456"), datetime.datetime(2024, 1, 2, 3, 4, 5, 123456)),
        (numpy.datetime64("2024-01-02T03:04:05.123456789"), datetime.datetime(2024, 1, 2, 3, 4, 5, 123456)),
        (numpy.datetime64("NaT"), None),
        (numpy.timedelta64("NaT"), None),
        (numpy.ma.masked, None),
        (numpy.ma.array([1, 2], mask=[True, False])[0], None),
        ([1, numpy.ma.masked], [1, None]),
        ([numpy.ma.masked, 1], [None, 1]),
        (pandas.NA, None),
        (pandas.NaT, None),
        (pandas.Timestamp("2024-01-02 03:04:05.123456"), datetime.datetime(2024, 1, 2, 3, 4, 5, 123456)),
        (pandas.Timestamp("2024-07-02", tz="Europe/Berlin"), datetime.datetime(2024, 7, 1, 22, tzinfo=UTC)),
        (pandas.Timedelta("1 day"), datetime.timedelta(days=1)),
        (pandas.Series([1, 2]), [1, 2]),
        (
            datetime.datetime(2024, 1, 2, 3, tzinfo=datetime.timezone(datetime.timedelta(hours=5, minutes=30))),
            datetime.datetime(2024, 1, 1, 21, 30, tzinfo=UTC),
        ),
    ],
    ids=repr,
)
def test_a_value_of_another_class_comes_back_as_pythons_own(con, value, expected):
    (found,) = con.execute("SELECT ?", [value]).fetchone()
    assert found == expected
    assert type(found) is type(expected)


def test_spans_of_numpy(con):
    assert con.execute("SELECT ?", [numpy.timedelta64(5, "s")]).fetchone() == (datetime.timedelta(seconds=5),)


def test_memory_views(con):
    assert con.execute("SELECT ?", [memoryview(b"ab")]).fetchone() == (b"ab",)


def test_nan(con):
    (found,) = con.execute("SELECT ?", [float("nan")]).fetchone()
    assert found != found


def test_random_decimals_are_exact(con):
    seed = random.randrange(2**32)
    print(f"seed {seed}")
    chosen = random.Random(seed)
    values = []
    for _ in range(300):
        digits = "".join(chosen.choice("0123456789") for _ in range(chosen.randint(1, 38)))
        value = Decimal(f"{chosen.choice(['', '-'])}{digits}").scaleb(
            -chosen.randint(0, len(digits)), decimal.Context(prec=50)
        )
        values.append(value)
    found = [con.execute("SELECT ?", [value]).fetchone()[0] for value in values]
    assert found == values
    # As rows of a table, too: all in one statement.
    con.execute("CREATE TABLE amounts (k INTEGER PRIMARY KEY, value DECIMAL(38, 10))")
    short = [value for value in values if value.as_tuple().exponent >= -10 and abs(value) < 10**28]
    con.executemany("INSERT INTO amounts VALUES (?, ?)", list(enumerate(short)))
    assert con.execute("SELECT k, value FROM amounts ORDER BY k").fetchall() == list(enumerate(short))


class WithoutText:
    """Whoever shows it fails."""

    def __str__(self):
        raise ValueError("no text")

    __repr__ = __str__


class DecimalWithoutText(Decimal):
    """The same, but a number."""

    def __str__(self):
        raise ValueError("no text")

    __repr__ = __str__


class Wrong(int):
    """An integer whose digits cannot be seen."""

    def __str__(self):
        raise ZeroDivisionError("no digits")

    __repr__ = __str__


@pytest.mark.parametrize(
    ("value", "words"),
    [
        (10**38, "38 digits"),
        (-(10**38), "38 digits"),
        (10**5000, "38 digits"),
        (Decimal("9" * 39), "38 digits"),
        (Decimal("1E-39"), "38 digits"),
        (Decimal("1E+1000000"), "38 digits"),
        (Decimal("NaN"), "no number"),
        (Decimal("sNaN"), "no number"),
        (Decimal("Infinity"), "no number"),
        ("\ud800", "surrogate"),
        (["a", "\ud800"], "surrogate"),
        (datetime.time(1, tzinfo=UTC), "time zone"),
        ({1, 2}, "set"),
        ({"a": 1}, "dict"),
        (1 + 2j, "complex"),
        (fractions.Fraction(1, 3), "Fraction"),
        (range(3), "range"),
        (object(), "object"),
        (WithoutText(), "WithoutText"),
        ([WithoutText()], "WithoutText"),
        ([1, "a"], "one type"),
        ([[1], [2]], "list"),
        (numpy.array([[1], [2]]), "one dimension"),
        (numpy.array([1 + 2j]), "complex128"),
        (numpy.longdouble(1.5), "longdouble"),
        (numpy.clongdouble(1.5), "clongdouble"),
        (numpy.array(numpy.longdouble(1.5)), "longdouble"),
        ([numpy.longdouble(1.5)], "longdouble"),
        (numpy.array(numpy.array(object()), "object"), "object"),
    ],
    ids=lambda value: type(value).__name__,
)
def test_a_value_that_sql_lacks_is_a_data_error(con, value, words):
    with pytest.raises(eris_db.DataError, match=words):
        con.execute("SELECT ?", [value])
    assert con.execute("SELECT 1").fetchone() == (1,)


@pytest.mark.parametrize(
    "value",
    [
        DecimalWithoutText("1.5"),
        Wrong(2**70),
        Wrong(5),
    ],
    ids=["decimal", "wide", "short"],
)
def test_a_number_without_a_text_is_its_value_or_its_own_exception(con, value):
    try:
        (found,) = con.execute("SELECT ?", [value]).fetchone()
    except (ValueError, ZeroDivisionError) as raised:
        assert str(raised) in ("no text", "no digits")
    else:
        assert found == value


def test_a_value_that_its_column_does_not_hold(con):
    con.execute("CREATE TABLE t (k BIGINT PRIMARY KEY, i INTEGER, n DECIMAL(5, 2), s VARCHAR NOT NULL)")
    for column, value in [("i", float("nan")), ("i", 2**64), ("i", 2**40), ("i", 1e300), ("n", 10**5), ("k", 2**63)]:
        with pytest.raises(eris_db.DataError) as raised:
            con.execute(
                f"INSERT INTO t ({'' if column == 'k' else 'k, '}{column}, s) VALUES ({'' if column == 'k' else '1, '}?, '')",
                [value],
            )
        assert raised.value.sqlstate.startswith("22")
        assert f'"{column}"' in str(raised.value)
    assert con.execute("SELECT count(*) FROM t").fetchone() == (0,)


@pytest.mark.parametrize(
    ("text", "values"),
    [
        ("SELECT ?::INTEGER - ?::INTEGER", [5, 3]),
        ("SELECT ?::INTEGER - ?::INTEGER", (5, 3)),
        ("SELECT $1::INTEGER - $2::INTEGER", [5, 3]),
        ("SELECT $2::INTEGER - $1::INTEGER", [3, 5]),
        ("SELECT $1::INTEGER - $2::INTEGER + $1 - $1", [5, 3]),
        ("SELECT $a::INTEGER - $b::INTEGER", {"a": 5, "b": 3}),
        ("SELECT $b::INTEGER - $a::INTEGER + $a - $a", {"a": 3, "b": 5}),
        ("SELECT $1::INTEGER - $2::INTEGER", {"1": 5, "2": 3}),
        ("SELECT ?::INTEGER - ?::INTEGER;", [5, 3]),
        ("SELECT ?::INTEGER - ?::INTEGER -- why?\n", [5, 3]),
        ("SELECT ?::INTEGER - ?::INTEGER WHERE '?' <> '$1'", [5, 3]),
    ],
)
def test_styles_of_parameters(con, text, values):
    for _ in range(2):  # The second time it is prepared already.
        assert con.execute(text, values).fetchall() == [(2,)]


@pytest.mark.parametrize(
    ("text", "values"),
    [
        ("SELECT ?", []),
        ("SELECT ?", [1, 2]),
        ("SELECT ?", {}),
        ("SELECT 1", [1]),
        ("SELECT $1, $2", [1]),
        ("SELECT $a", {}),
        ("SELECT $a", {"b": 1}),
        ("SELECT $a", {"a": 1, "b": 1}),
        ("SELECT ?, $a", [1, 2]),
        ("SELECT ?", "1"),
        ("SELECT ?", b"1"),
        ("SELECT ?", 1),
        ("SELECT ?", {1}),
        ("SELECT ?", iter([1])),
        ("SELECT ?; SELECT 1", [1]),
        ("SELECT ?", None),
        ("", None),
        (" ; -- nothing", None),
    ],
)
def test_wrong_numbers_and_names_of_values(con, text, values):
    with pytest.raises(eris_db.ProgrammingError):
        con.execute(text, values)
    assert con.execute("SELECT 1").fetchone() == (1,)


@pytest.mark.parametrize(("text", "expected"), [("? - ?", 2), ("? < ?", False), ("$1 * $2", 15)])
def test_types_of_values_are_those_of_parameters(con, text, expected):
    assert con.execute(f"SELECT {text}", [5, 3]).fetchone() == (expected,)


def test_a_missing_value_says_how_python_gives_it(con):
    with pytest.raises(eris_db.ProgrammingError) as raised:
        con.execute("SELECT ?")
    assert raised.value.sqlstate == "42P02"
    assert "PREPARE" not in raised.value.hint


@pytest.mark.parametrize("text", [None, 5, b"SELECT 1", "SELECT '\ud800'"], ids=repr)
def test_a_statement_is_a_text(con, text):
    with pytest.raises((TypeError, UnicodeEncodeError)):
        con.execute(text)


@pytest.mark.parametrize(
    "condition",
    ["2>?", "2>=?", "2<>?", "2-?=1", "-?<0", "'a'||?='a1'", "2=?", "2+?=3", "2*?=2", "2!=?", "not(2=?)"],
)
def test_marks_without_blanks(con, condition):
    """With blanks between them they mean the same."""
    spaced = condition.replace("?", " ? ")
    expected = con.execute(f"SELECT {spaced.replace('-  ? ', '- ?')}", [1]).fetchall()
    assert con.execute(f"SELECT {condition}", [1]).fetchall() == expected


def test_lists_for_any(con):
    con.execute("CREATE TABLE t (k BIGINT PRIMARY KEY, s VARCHAR)")
    con.executemany("INSERT INTO t VALUES (?, ?)", [(k, f"s{k}") for k in range(100)])
    wanted = {3, 50, 99}
    for keys in ([3, 50, 99, 100], (3, 50, 99), numpy.array([99, 50, 3]), pandas.Series([3, 50, 99])):
        found = con.execute("SELECT k FROM t WHERE k = ANY(?)", [keys]).fetchall()
        assert {k for (k,) in found} == wanted
    for keys in ([], None, [None], numpy.array([], "int64")):
        assert con.execute("SELECT k FROM t WHERE k = ANY(?)", [keys]).fetchall() == []
    assert con.execute("SELECT k FROM t WHERE s = ANY(?)", [["s7", None, "x"]]).fetchall() == [(7,)]
    assert con.execute("SELECT count(*) FROM t WHERE k <> ALL(?)", [[1, 2]]).fetchone() == (98,)


def test_a_statement_is_prepared_anew_when_its_table_is(con):
    for kind, value in (("BIGINT", 5), ("VARCHAR", "five"), ("DATE", datetime.date(2024, 1, 5))):
        con.execute(f"CREATE OR REPLACE TABLE t (k INTEGER PRIMARY KEY, v {kind})")
        con.execute("INSERT INTO t VALUES (?, ?)", [1, value])
        assert con.execute("SELECT v FROM t WHERE k = ?", [1]).fetchall() == [(value,)]
    con.execute("DROP TABLE t")
    with pytest.raises(eris_db.ProgrammingError):
        con.execute("SELECT v FROM t WHERE k = ?", [1])


def test_more_statements_than_are_kept_prepared(con):
    for number in range(600):
        assert con.execute(f"SELECT ? + {number}", [1]).fetchone() == (number + 1,)


# ---- exceptions ------------------------------------------------------------------------------------------------------


@pytest.mark.parametrize(
    ("text", "kind", "sqlstate", "position", "hint"),
    [
        ("SELEC 1", eris_db.ProgrammingError, "42601", (1, 1), None),
        ("SELECT 1; SELEC 2", eris_db.ProgrammingError, "42601", (1, 11), None),
        ("SELECT *\n  FROM nix", eris_db.ProgrammingError, "42P01", (2, 8), None),
        ("SELECT kk FROM t", eris_db.ProgrammingError, "42703", (1, 8), '"k"'),
        ("SELECT cnt(k) FROM t", eris_db.ProgrammingError, "42883", (1, 8), "mean"),
        ("CREATE TABLE t (k INTEGER)", eris_db.ProgrammingError, "42P07", (1, 14), "IF NOT EXISTS"),
        ("SELECT 1 / (k - k) FROM t", eris_db.DataError, "22012", None, None),
        ("SELECT CAST(s AS INTEGER) FROM t", eris_db.DataError, "22P02", None, "TRY_CAST"),
        ("INSERT INTO t VALUES (1, 'again')", eris_db.IntegrityError, "23505", None, None),
        ("INSERT INTO t VALUES (2, NULL)", eris_db.IntegrityError, "23502", None, None),
        ("INSERT INTO t VALUES (-1, 'x')", eris_db.IntegrityError, "23514", None, None),
        ("BEGIN", eris_db.NotSupportedError, "0A000", None, "statement"),
    ],
)
def test_exceptions_by_sqlstate(con, text, kind, sqlstate, position, hint):
    con.execute("CREATE TABLE t (k BIGINT PRIMARY KEY CHECK (k >= 0), s VARCHAR NOT NULL)")
    con.execute("INSERT INTO t VALUES (1, 'one')")
    with pytest.raises(eris_db.Error) as raised:
        con.execute(text).fetchall()
    error = raised.value
    assert type(error) is kind
    assert (error.sqlstate, error.position) == (sqlstate, position)
    assert (error.hint is None) == (hint is None)
    if hint is not None:
        assert hint in error.hint
    assert con.execute("SELECT * FROM t").fetchall() == [(1, "one")]


def test_hints_are_of_python(con):
    with pytest.raises(eris_db.OperationalError) as raised:
        con.execute("SELECT array_agg(repeat('x', 1000) || i) FROM range(10_000_000) AS r(i)").fetchall()
    assert raised.value.sqlstate == "53200"
    assert "memory=" in raised.value.hint and "--" not in raised.value.hint and "--memory" not in str(raised.value)


def test_memory_that_is_missing_fails_one_statement():
    with eris_db.connect(memory="64MB", aeus=1) as con:
        con.execute("CREATE TABLE t AS SELECT * FROM generate_series(1, 3000) AS s(value)")
        with pytest.raises(eris_db.OperationalError) as raised:
            con.execute(
                "CREATE TABLE u AS SELECT a.value AS x, a.value || 'abcdefghijklmnopqrstuvwxyz' || b.value AS y FROM t AS a, t AS b"
            )
        assert raised.value.sqlstate == "53200"
        assert con.execute("SELECT count(*) FROM t").fetchone() == (3000,)


def test_the_classes_of_pep_249():
    assert issubclass(eris_db.Warning, Exception)
    assert issubclass(eris_db.InterfaceError, eris_db.Error)
    for kind in ("Data", "Operational", "Integrity", "Internal", "Programming", "NotSupported"):
        known = getattr(eris_db, f"{kind}Error")
        assert issubclass(known, eris_db.DatabaseError)
        assert known.__module__ == "eris_db"


def test_what_is_closed_says_so(con):
    other = con.cursor()
    other.execute("SELECT 1")
    other.close()
    other.close()
    for use in (
        lambda: other.execute("SELECT 1"),
        lambda: other.executemany("SELECT ?", [[1]]),
        other.fetchone,
        other.fetchall,
        other.cursor,
        other.commit,
        other.rollback,
        other.interrupt,
        lambda: other.rows("t"),
        lambda: other.append("t", {"k": [1]}),
        lambda: other.register("f", {"k": [1]}),
        lambda: setattr(other, "timeout", 1.0),
    ):
        with pytest.raises(eris_db.InterfaceError, match="closed"):
            use()
    assert other.closed
    assert con.execute("SELECT 1").fetchone() == (1,)


# ---- executemany, commit, rollback -----------------------------------------------------------------------------------


def test_executemany_is_one_statement(con):
    con.execute("CREATE TABLE t (k BIGINT PRIMARY KEY, s VARCHAR)")
    rows = [(k, None if k % 7 == 0 else f"s{k}") for k in range(20_000)]
    assert con.executemany("INSERT INTO t VALUES (?, ?)", rows).rowcount == 20_000
    assert con.rowcount == 20_000
    assert con.execute("SELECT * FROM t ORDER BY k").fetchall() == rows
    # The last row is there already: none of them is written.
    again = [(k, "new") for k in range(20_000, 40_000)] + [(5, "there")]
    with pytest.raises(eris_db.IntegrityError):
        con.executemany("INSERT INTO t VALUES (?, ?)", again)
    assert con.execute("SELECT count(*) FROM t").fetchone() == (20_000,)


def test_executemany_of_rows_that_are_wrong(con):
    con.execute("CREATE TABLE t (k BIGINT PRIMARY KEY, s VARCHAR)")
    insert = "INSERT INTO t VALUES (?, ?)"
    for rows, kind in [
        ([(1, "a"), (2,)], eris_db.ProgrammingError),
        ([(1, "a"), 5], eris_db.ProgrammingError),
        ([(1, "a"), (2, object())], eris_db.DataError),
        ([(1, "a"), (2**64, "b")], eris_db.DataError),
        ([(1, "a"), ("x", "b")], eris_db.DataError),
    ]:
        with pytest.raises(kind):
            con.executemany(insert, rows)
    with pytest.raises(TypeError):
        con.executemany(insert, 5)

    def broken():
        yield (1, "a")
        raise LookupError("no more")

    with pytest.raises(LookupError, match="no more"):
        con.executemany(insert, broken())
    assert con.execute("SELECT count(*) FROM t").fetchone() == (0,)
    assert con.executemany(insert, []).rowcount == 0
    assert con.executemany(insert, ((k, str(k)) for k in range(3))).rowcount == 3


def test_executemany_whose_rows_use_the_connection(con):
    con.execute("CREATE TABLE t (k BIGINT PRIMARY KEY)")
    other = con.cursor()
    rows = (other.execute("SELECT count(*) + ? FROM t", [k]).fetchone() for k in range(5))
    assert con.executemany("INSERT INTO t VALUES (?)", rows).rowcount == 5


def test_executemany_of_other_statements(con):
    con.execute("CREATE TABLE t (k BIGINT PRIMARY KEY, v BIGINT)")
    con.executemany("INSERT INTO t VALUES ($k, $v)", [{"k": k, "v": 0} for k in range(10)])
    assert con.executemany("UPDATE t SET v = ? WHERE k = ?", [(k * k, k) for k in range(20)]).rowcount == 10
    assert con.executemany("DELETE FROM t WHERE k = ?", [[0], [99]]).rowcount == 1
    assert con.execute("SELECT k, v FROM t ORDER BY k").fetchall() == [(k, k * k) for k in range(1, 10)]
    with pytest.raises(eris_db.ProgrammingError):
        con.executemany("SELECT ?", [[1], [2]])


def test_commit_and_rollback(con):
    con.rollback()
    con.execute("CREATE TABLE t (k BIGINT)")
    with pytest.raises(eris_db.NotSupportedError):
        con.rollback()
    con.commit()
    con.rollback()
    con.execute("SELECT * FROM t").fetchall()
    con.rollback()
    con.execute("INSERT INTO t VALUES (1)")
    with pytest.raises(eris_db.NotSupportedError):
        con.rollback()
    assert con.execute("SELECT count(*) FROM t").fetchone() == (1,)


@pytest.mark.parametrize(
    "write",
    [
        lambda con: con.append("t", {"k": [1]}),
        lambda con: con.executemany("INSERT INTO t VALUES (?)", [[1], [2]]),
        lambda con: con.execute("INSERT INTO t VALUES (1) RETURNING k").fetchall(),
        lambda con: con.execute("INSERT INTO t VALUES (?) RETURNING k", [1]).fetchall(),
        lambda con: con.rows("t").put({"k": [1]}),
        lambda con: con.execute("INSERT INTO t VALUES (3); SELECT 1"),
        lambda con: con.execute("/* c */ -- d\n INSERT INTO t VALUES (1) RETURNING k").fetchall(),
        lambda con: con.execute("WITH w AS (SELECT 1 AS k) INSERT INTO t SELECT k FROM w RETURNING k").fetchall(),
    ],
    ids=["append", "executemany", "returning", "returning with values", "rows", "script", "comment", "with"],
)
def test_rollback_after_any_write_raises(con, write):
    con.execute("CREATE TABLE t (k BIGINT PRIMARY KEY)")
    con.commit()
    write(con)
    with pytest.raises(eris_db.NotSupportedError):
        con.rollback()


@pytest.mark.parametrize(
    "text",
    ["WITH w AS (SELECT 'INSERT' AS \"delete\") SELECT * FROM w -- UPDATE", "/* DELETE */ SELECT 1", "EXPLAIN SELECT 1"],
)
def test_rollback_after_a_query_does_nothing(con, text):
    con.execute(text).fetchall()
    con.rollback()


def test_uuids_go_in_every_way(con):
    first, second = uuid.UUID(int=5), uuid.UUID(int=2**128 - 1)
    con.execute("CREATE TABLE t (id UUID PRIMARY KEY)")
    assert con.executemany("INSERT INTO t VALUES (?)", [(first,), (second,)]).rowcount == 2
    assert con.execute("SELECT id FROM t WHERE id = ANY(?)", [[first, None]]).fetchall() == [(first,)]
    assert con.execute("SELECT id = ANY(?) FROM t ORDER BY id", [[first, None]]).fetchall() == [(True,), (None,)]
    frames = [
        {"id": [first, second]},
        {"id": numpy.array([first, second], "object")},
        con.execute("SELECT id FROM t ORDER BY id").arrow(),
        con.execute("SELECT id FROM t ORDER BY id").df(),
    ]
    for frame in frames:
        assert con.execute("SELECT count(*) FROM t JOIN frame USING (id)").fetchone() == (2,)
        con.execute("CREATE TABLE u (id UUID)")
        assert con.append("u", frame).rowcount == 2
        assert con.execute("SELECT id FROM u ORDER BY id").fetchall() == [(first,), (second,)]
        con.execute("DROP TABLE u")
    assert con.execute("SELECT ?::BLOB = ANY(?)", [b"a", [b"a"]]).fetchone() == (True,)


def test_names_of_tables_in_another_case(con):
    con.execute("CREATE TABLE Stock (k BIGINT PRIMARY KEY)")
    assert con.append("Stock", {"k": [1]}).rowcount == 1
    assert con.append("public.STOCK", {"k": [2]}).rowcount == 1
    assert con.rows("Stock").get([1, 2])[0].fetchall() == [(1,), (2,)]
    con.execute('CREATE TABLE "STOCK" (k BIGINT PRIMARY KEY)')
    con.append("STOCK", {"k": [3]})
    assert con.rows("STOCK").get([1, 2, 3])[0].fetchall() == [(3,)]
    with pytest.raises(eris_db.ProgrammingError, match='"nix"'):
        con.append("Nix", {"k": [1]})


def test_description(con):
    con.execute(
        "CREATE TABLE t (k BIGINT PRIMARY KEY, s VARCHAR, d DATE, b BLOB, n DECIMAL(10, 2), f DOUBLE, o BOOLEAN)"
    )
    assert con.description is None
    assert con.rowcount == -1 or con.rowcount == 0
    described = con.execute("SELECT * FROM t").description
    assert [column[0] for column in described] == ["k", "s", "d", "b", "n", "f", "o"]
    assert all(len(column) == 7 for column in described)
    assert [column[6] for column in described] == [False] + [True] * 6
    kinds = [eris_db.NUMBER, eris_db.STRING, eris_db.DATETIME, eris_db.BINARY, eris_db.NUMBER, eris_db.NUMBER]
    assert [column[1] for column in described][:6] == kinds
    assert [str(column[1]) for column in described][:2] == ["Int64", "Utf8View"]
    others = [eris_db.STRING, eris_db.BINARY, eris_db.NUMBER, eris_db.DATETIME, eris_db.ROWID]
    assert not any(described[6][1] == kind for kind in others)
    assert con.description == described


def test_types_of_description_are_texts_and_kinds(con):
    described = con.execute("SELECT 1 AS k, 'x' AS s, 2.5::DOUBLE AS f").description
    number, text, other = (column[1] for column in described)
    assert number == "Int64" and number == eris_db.NUMBER and number != eris_db.STRING and number != other
    assert other == eris_db.NUMBER and text == eris_db.STRING and not text != eris_db.STRING
    assert hash(number) == hash(eris_db.NUMBER) and number in {eris_db.NUMBER}


def test_other_names_of_execute(con):
    result = con.sql("SELECT ? AS x", [5])
    assert (result.columns, result.statement, result.rowcount) == (["x"], "SELECT", -1)
    assert result.fetchone() == (5,)
    done = con.sql("CREATE TABLE t AS SELECT 1 AS k")
    assert done.columns == [] and done.description is None and done.statement.startswith("CREATE TABLE")
    assert con.execute("UPDATE t SET k = 2").rowcount == 1 == con.rowcount


def test_fetchmany_in_sizes_of_all_kinds(con):
    con.execute("CREATE TABLE t AS SELECT * FROM generate_series(1, 10) AS s(value)")
    con.execute("SELECT value FROM t ORDER BY value")
    assert con.fetchmany() == [(1,)]
    con.arraysize = 4
    assert con.fetchmany() == [(2,), (3,), (4,), (5,)]
    assert con.fetchmany(0) == []
    assert con.fetchone() == (6,)
    assert next(con) == (7,)
    assert con.fetchmany(100) == [(8,), (9,), (10,)]
    assert con.fetchmany(100) == con.fetchall() == list(con) == []
    assert con.fetchone() is None
    with pytest.raises(OverflowError):
        con.fetchmany(-1)


def test_rows_of_what_has_none(con):
    con.execute("CREATE TABLE t (k BIGINT)")
    for fetch in (con.fetchone, con.fetchall, con.fetchmany, con.arrow, con.df, con.pl, con.numpy, con.reader):
        with pytest.raises(eris_db.ProgrammingError, match="has no rows"):
            fetch()
    with pytest.raises(eris_db.ProgrammingError, match="no statement"):
        con.cursor().fetchone()
