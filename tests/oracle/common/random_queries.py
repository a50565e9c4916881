"""Random queries over random tables, only such as mean the same in both engines.

Left out, because PostgreSQL's dialect (eris) and DuckDB's differ and neither is wrong:

- `/` (DuckDB divides integers to a double), `%` by zero, mixing decimals with other numbers, `avg` of a decimal (its
  type differs: it is taken of the value as a double);
- arithmetic whose result may leave 64 bits or, as DuckDB checks, its operands' type: operands are cast to BIGINT and
  every expression carries a bound of its magnitude;
- ORDER BY without NULLS FIRST or LAST; LIMIT without an order over all columns of the result; order by a real number
  that was summed; `NOT IN` over a subquery with nulls; date arithmetic;
- subqueries as predicates elsewhere than in WHERE (DataFusion cannot plan them) and `NOT (… IN (subquery) …)`
  (DataFusion takes the unknown result that nulls bring for false, and so keeps rows that the standard drops).
"""

import datetime
import uuid
from decimal import Decimal

from common.compare import escaped

# sum() over at most 2^20 rows of this magnitude stays within 64 bits.
MOST = 2**42
# Rows that a join may produce.
JOIN_ROWS = 1_000_000


def literal(value):
    """A value as SQL; the type is the column's, which both engines would also give it."""
    if isinstance(value, bool):
        return "TRUE" if value else "FALSE"
    if isinstance(value, datetime.datetime):
        return f"TIMESTAMP '{value.isoformat(sep=' ')}'"
    if isinstance(value, datetime.date):
        return f"DATE '{value.isoformat()}'"
    if isinstance(value, datetime.time):
        return f"TIME '{value.isoformat()}'"
    if isinstance(value, uuid.UUID):
        return f"CAST('{value}' AS UUID)"
    if isinstance(value, bytes):
        return f"CAST('{escaped(value)}' AS BLOB)"
    if isinstance(value, str):
        return "'" + value.replace("'", "''") + "'"
    if isinstance(value, float):
        return f"CAST('{value!r}' AS DOUBLE)"
    if isinstance(value, Decimal):
        return f"CAST('{value}' AS DECIMAL(30,{-value.as_tuple().exponent}))"
    return str(value)


class Query:
    """A generated query: its text, and the positions of the columns that it sorts by (none: any order)."""

    def __init__(self, sql, order=()):
        self.sql, self.order = sql, list(order)


class QueryGenerator:
    def __init__(self, random, tables):
        self.random = random
        self.tables = tables

    # ---- whole queries --------------------------------------------------------------------------------------------

    def query(self):
        kind = self.random.choices(
            [self.rows, self.grouped, self.ungrouped, self.distinct, self.set_operation, self.derived],
            [4, 5, 3, 2, 1, 1],
        )[0]
        return kind()

    def rows(self):
        """Projection of a filter; half of the time sorted, and then perhaps cut off."""
        source, columns = self.source()
        items = [self.scalar(columns) for _ in range(self.random.randint(1, 5))]
        sql = f"SELECT {self.named(items)} FROM {source}{self.where(columns)}"
        return self.sorted(sql, len(items))

    def distinct(self):
        source, columns = self.source()
        count = self.random.randint(1, 3)
        items = [column.name for column in self.random.sample(columns, count)]
        sql = f"SELECT DISTINCT {self.named(items)} FROM {source}{self.where(columns)}"
        return self.sorted(sql, count)

    def ungrouped(self):
        source, columns = self.source()
        items = [self.aggregate(columns) for _ in range(self.random.randint(1, 5))]
        return Query(f"SELECT {self.named(items)} FROM {source}{self.where(columns)}")

    def grouped(self):
        source, columns = self.source()
        keys = [self.key(columns) for _ in range(self.random.randint(1, 3))]
        items = keys + [self.aggregate(columns) for _ in range(self.random.randint(1, 4))]
        sql = f"SELECT {self.named(items)} FROM {source}{self.where(columns)}"
        sql += f" GROUP BY {', '.join(keys)}"
        if self.random.random() < 0.2:
            sql += f" HAVING count(*) {self.comparison()} {self.random.choice([1, 2, 10, 1000])}"
        # The keys are unique in the result, so sorting by them is a total order.
        return self.sorted(sql, len(keys))

    def set_operation(self):
        table = self.random.choice(self.tables)
        kind = self.random.choice(["integer", "string", "day"])
        ours = [column.name for column in table.columns if column.kind == kind]
        left, right = self.random.choice(ours), self.random.choice(ours)
        if kind == "integer":
            # One type on both sides; the whole range of an unsigned 64-bit column has none in common with the others.
            ours = [name for name in ours if not name.endswith("uwide")]
            left, right = (f"CAST({self.random.choice(ours)} AS BIGINT)" for _ in range(2))
        operation = self.random.choice(["UNION ALL", "UNION", "INTERSECT", "EXCEPT"])
        sides = [f"SELECT {side} AS x FROM {table.name}{self.where(table.columns)}" for side in (left, right)]
        return Query(f" {operation} ".join(sides))

    def derived(self):
        """An aggregate over a grouped subquery."""
        source, columns = self.source()
        key = self.key(columns)
        inner = f"SELECT {key} AS k, count(*) AS n FROM {source}{self.where(columns)} GROUP BY {key}"
        return Query(f"SELECT count(*) AS c0, count(k) AS c1, max(n) AS c2, sum(n) AS c3 FROM ({inner}) AS s")

    # ---- clauses --------------------------------------------------------------------------------------------------

    def source(self):
        """A FROM clause, and the columns that it offers."""
        table = self.random.choice(self.tables)
        if self.random.random() < 0.6:
            return table.name, table.columns
        other = self.random.choice(self.tables)
        pairs = self.join_keys(table, other)
        if other is table or not pairs:
            return table.name, table.columns
        left, right = self.random.choice(pairs)
        if self.random.random() < 0.3:
            return self.old_join(table, other, left, right)
        kind = self.random.choice(["JOIN", "JOIN", "LEFT JOIN", "RIGHT JOIN", "FULL JOIN"])
        source = f"{table.name} {kind} {other.name} ON {left.name} = {right.name}"
        return source, table.columns + other.columns

    def old_join(self, table, other, left, right):
        """A comma in FROM, as the star queries write it; the condition in a subquery to leave WHERE to others."""
        inner = f"SELECT * FROM {table.name}, {other.name} WHERE {left.name} = {right.name}"
        return f"({inner}) AS j", table.columns + other.columns

    def join_keys(self, table, other):
        """Pairs of columns whose join is meaningful and not too large."""
        pairs = []
        for left in table.columns:
            for right in other.columns:
                joinable = left.kind == right.kind and left.kind in ("integer", "string", "day", "time", "uuid", "blob")
                # Signed with unsigned 64 bits: no common type of the same width.
                joinable = joinable and left.name.endswith("uwide") == right.name.endswith("uwide")
                expected = table.rows * other.rows / max(left.distinct, right.distinct)
                # A skewed pair may produce many times the average.
                if joinable and expected * 20 <= JOIN_ROWS:
                    pairs.append((left, right))
                elif joinable and expected <= JOIN_ROWS and min(left.distinct, right.distinct) > 1_000:
                    pairs.append((left, right))
        return pairs

    def where(self, columns):
        if self.random.random() < 0.2:
            return ""
        return f" WHERE {self.predicate(columns, self.random.choice([0, 1, 2]), subqueries=True)}"

    def sorted(self, sql, width):
        if self.random.random() < 0.5:
            return Query(sql)
        positions = list(range(width))
        self.random.shuffle(positions)
        items = []
        for position in positions:
            direction = self.random.choice(["ASC", "DESC"])
            items.append(f"c{position} {direction} NULLS {self.random.choice(['FIRST', 'LAST'])}")
        sql += f" ORDER BY {', '.join(items)}"
        if self.random.random() < 0.6:
            sql += f" LIMIT {self.random.choice([0, 1, 10, 1_000, 100_000])}"
            if self.random.random() < 0.3:
                sql += f" OFFSET {self.random.choice([0, 1, 50, 70_000])}"
        return Query(sql, positions)

    def named(self, items):
        return ", ".join(f"{item} AS c{number}" for number, item in enumerate(items))

    # ---- values ---------------------------------------------------------------------------------------------------

    def column(self, columns, *kinds):
        choices = [column for column in columns if not kinds or column.kind in kinds]
        return self.random.choice(choices)

    def scalar(self, columns):
        draw = self.random.random()
        if draw < 0.5:
            return self.column(columns).name
        if draw < 0.7:
            return self.integer(columns, 2)[0]
        if draw < 0.8:
            return self.text(columns)
        if draw < 0.9:
            return self.case(columns)
        return self.random.choice([self.double, self.decimal, self.part_of_day])(columns)

    def key(self, columns):
        """Something to group by: columns mostly, few values mostly."""
        if self.random.random() < 0.8:
            few = [column for column in columns if column.distinct <= 300]
            return self.random.choice(few if few and self.random.random() < 0.7 else columns).name
        return self.random.choice([self.case, self.text, self.part_of_day])(columns)

    def integer(self, columns, depth):
        """An integer expression and the bound of its magnitude."""
        if depth == 0 or self.random.random() < 0.3:
            choices = [column for column in columns if column.kind == "integer" and column.countable]
            column = self.random.choice(choices)
            return f"CAST({column.name} AS BIGINT)", column.bound
        left, left_bound = self.integer(columns, depth - 1)
        draw = self.random.random()
        if draw < 0.5:
            right, right_bound = self.integer(columns, depth - 1)
            operator, bound = self.random.choice("+-"), left_bound + right_bound
        elif draw < 0.8:
            number = self.random.choice([2, 3, 7, 100])
            operator, right, bound = "*", f"CAST({number} AS BIGINT)", left_bound * number
        elif draw < 0.9:
            return f"abs({left})", left_bound
        else:
            number = self.random.choice([2, 7, 1000])
            operator, right, bound = "%", f"CAST({number} AS BIGINT)", left_bound
        return (f"({left} {operator} {right})", bound) if bound <= MOST else (left, left_bound)

    def double(self, columns):
        names = [self.column(columns, "double").name for _ in range(2)]
        operator = self.random.choice(["+", "-", "*"])
        return f"(CAST({names[0]} AS DOUBLE) {operator} CAST({names[1]} AS DOUBLE))"

    def decimal(self, columns):
        narrow = [column for column in columns if column.kind == "decimal" and column.scale == 2]
        names = [self.random.choice(narrow).name for _ in range(2)]
        return f"({names[0]} {self.random.choice(['+', '-', '*'])} {names[1]})"

    def text(self, columns):
        name = self.column(columns, "string").name
        other = self.column(columns, "string").name
        return self.random.choice(
            [
                f"upper({name})",
                f"lower({name})",
                f"substr({name}, {self.random.randint(1, 3)}, {self.random.randint(0, 4)})",
                f"({name} || '-' || {other})",
                f"coalesce({name}, 'none')",
                f"replace({name}, 'a', 'bb')",
            ]
        )

    def part_of_day(self, columns):
        name = self.column(columns, "day", "timestamp").name
        part = self.random.choice(["year", "month", "day"])
        return f"CAST(extract({part} FROM {name}) AS BIGINT)"

    def case(self, columns):
        condition = self.predicate(columns, 1)
        if self.random.random() < 0.5:
            return f"CASE WHEN {condition} THEN 'yes' WHEN {self.predicate(columns, 0)} THEN 'perhaps' END"
        then, otherwise = self.integer(columns, 1)[0], self.integer(columns, 1)[0]
        return f"CASE WHEN {condition} THEN {then} ELSE {otherwise} END"

    def aggregate(self, columns):
        draw = self.random.random()
        if draw < 0.15:
            return "count(*)"
        if draw < 0.3:
            return f"count({self.distinct_word()}{self.column(columns).name})"
        if draw < 0.55:
            return f"{self.random.choice(['min', 'max'])}({self.column(columns).name})"
        if draw < 0.75:
            return f"sum({self.integer(columns, 2)[0]})"
        if draw < 0.8:
            return f"sum({self.distinct_word()}{self.integer(columns, 0)[0]})"
        if draw < 0.85:
            return f"sum({self.column(columns, 'decimal').name})"
        if draw < 0.9:
            return f"sum({self.double(columns)})"
        if draw < 0.95:
            return f"avg(CAST({self.column(columns, 'integer', 'double', 'decimal').name} AS DOUBLE))"
        if draw < 0.98:
            return f"sum({self.case_number(columns)})"
        return f"{self.random.choice(['bool_and', 'bool_or'])}({self.column(columns, 'flag').name})"

    def case_number(self, columns):
        return f"CASE WHEN {self.predicate(columns, 1)} THEN {self.integer(columns, 1)[0]} ELSE 0 END"

    def distinct_word(self):
        return self.random.choice(["", "", "DISTINCT "])

    # ---- predicates -----------------------------------------------------------------------------------------------

    def predicate(self, columns, depth, subqueries=False):
        if depth > 0 and self.random.random() < 0.6:
            negated = self.random.random() < 0.1
            left, right = (self.predicate(columns, depth - 1, subqueries and not negated) for _ in range(2))
            joined = f"({left} {self.random.choice(['AND', 'AND', 'OR'])} {right})"
            return f"NOT {joined}" if negated else joined
        forms = [self.compare, self.compare, self.between, self.in_list, self.is_null, self.like, self.flag]
        forms += [self.compare_columns, self.compare_expression]
        if subqueries:
            forms += [self.in_subquery, self.exists, self.scalar_subquery]
        return self.random.choice(forms)(columns)

    def comparison(self):
        return self.random.choice(["=", "<>", "<", "<=", ">", ">="])

    def value(self, column):
        """A value to compare a column with: one that occurs, or beside one, or outside of the column's type."""
        if not column.domain:
            samples = {
                "integer": 1,
                "double": 0.5,
                "decimal": Decimal("1.50"),
                "string": "a",
                "day": datetime.date(2000, 2, 29),
                "timestamp": datetime.datetime(2000, 2, 29, 1, 2, 3),
                "flag": True,
                "time": datetime.time(1, 2, 3),
                "uuid": uuid.UUID(int=7),
                "blob": b"a\xff",
            }
            return samples[column.kind]
        value = self.random.choice(column.domain)
        draw = self.random.random()
        if column.kind == "integer" and draw < 0.3:
            nearby = value + self.random.choice([-1, 1, 1_000])
            # Beyond 64 bits the engines disagree on a literal's type.
            return nearby if abs(nearby) < 2**63 or column.name.endswith("uwide") and 0 <= nearby < 2**64 else value
        if column.kind == "string" and draw < 0.2:
            return value + "z"
        return value

    def compare(self, columns):
        column = self.column(columns)
        if column.kind == "flag":
            return self.flag(columns)
        sides = [column.name, literal(self.value(column))]
        if self.random.random() < 0.1:
            sides.reverse()
        return f"{sides[0]} {self.comparison()} {sides[1]}"

    def compare_columns(self, columns):
        left = self.column(columns, "integer", "string", "day", "time", "uuid", "blob")
        same = [
            column
            for column in columns
            if column.kind == left.kind and column.name.endswith("uwide") == left.name.endswith("uwide")
        ]
        return f"{left.name} {self.comparison()} {self.random.choice(same).name}"

    def compare_expression(self, columns):
        expression, bound = self.integer(columns, 2)
        return f"{expression} {self.comparison()} {self.random.randint(-bound, bound)}"

    def between(self, columns):
        column = self.column(columns, "integer", "double", "decimal", "string", "day", "timestamp")
        low, high = self.value(column), self.value(column)
        if low > high and self.random.random() < 0.9:
            low, high = high, low
        word = self.random.choice(["BETWEEN", "BETWEEN", "NOT BETWEEN"])
        return f"{column.name} {word} {literal(low)} AND {literal(high)}"

    def in_list(self, columns):
        column = self.column(columns, "integer", "string", "day", "decimal")
        values = [literal(self.value(column)) for _ in range(self.random.choice([1, 2, 5, 40]))]
        return f"{column.name} {self.random.choice(['IN', 'IN', 'NOT IN'])} ({', '.join(values)})"

    def is_null(self, columns):
        return f"{self.column(columns).name} {self.random.choice(['IS NULL', 'IS NOT NULL'])}"

    def like(self, columns):
        column = self.column(columns, "string")
        value = self.value(column)
        start = self.random.randint(0, len(value))
        piece = value[start : start + self.random.randint(0, 3)].replace("'", "''")
        pattern = self.random.choice([f"{piece}%", f"%{piece}", f"%{piece}%", f"_{piece}%", f"%{piece}_", piece])
        return f"{column.name} {self.random.choice(['LIKE', 'LIKE', 'NOT LIKE'])} '{pattern}'"

    def flag(self, columns):
        name = self.column(columns, "flag").name
        return self.random.choice([name, f"NOT {name}", f"{name} IS TRUE", f"{name} = FALSE"])

    def other_table(self, columns):
        """A table none of whose columns is in reach, for a subquery; None if there is no such."""
        names = {column.name for column in columns}
        tables = [table for table in self.tables if table.columns[0].name not in names]
        return self.random.choice(tables) if tables else None

    def in_subquery(self, columns):
        other = self.other_table(columns)
        if other is None:
            return self.in_list(columns)
        column = self.column(columns, "integer", "string", "day")
        same = [c for c in other.columns if c.kind == column.kind]
        same = [c for c in same if c.name.endswith("uwide") == column.name.endswith("uwide")]
        inner = self.random.choice(same).name
        return f"{column.name} IN (SELECT {inner} FROM {other.name} WHERE {self.predicate(other.columns, 0)})"

    def exists(self, columns):
        other = self.other_table(columns)
        if other is None:
            return self.between(columns)
        outer = next(column for column in columns if column.name.endswith(("_id", "_fk")))
        inner = self.random.choice([c for c in other.columns if c.name.endswith(("_id", "_fk"))])
        word = self.random.choice(["EXISTS", "NOT EXISTS"])
        condition = f"{inner.name} = {outer.name} AND {self.predicate(other.columns, 0)}"
        return f"{word} (SELECT 1 FROM {other.name} WHERE {condition})"

    def scalar_subquery(self, columns):
        other = self.other_table(columns)
        if other is None:
            return self.compare(columns)
        column = self.column(columns, "integer", "day", "string")
        same = [c for c in other.columns if c.kind == column.kind]
        same = [c for c in same if c.name.endswith("uwide") == column.name.endswith("uwide")]
        inner = f"SELECT {self.random.choice(['min', 'max'])}({self.random.choice(same).name}) FROM {other.name}"
        return f"{column.name} {self.comparison()} ({inner})"
