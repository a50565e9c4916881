"""The wider half of the random queries: windows, grouping sets, set operations of whole rows, functions of strings and
times, subqueries and common table expressions everywhere, joins of every kind, prepared statements.

Left out, because the engines differ and neither is wrong: `substr` before the first character; dates plus intervals
(a date in one engine, a timestamp in the other: dates are cast first); numbers with a fraction as strings; NATURAL RIGHT and
FULL joins, which eris rejects.
"""

from common.random_queries import MOST, Query, QueryGenerator, literal

# Pairs that a join by something else than equality may look at.
PAIRS = 200_000


class WideGenerator(QueryGenerator):
    def __init__(self, random, tables):
        super().__init__(random, tables)
        self.prepared = 0

    def query(self):
        if self.random.random() < 0.4:
            return super().query()
        kinds = [self.windows, self.windows, self.windows, self.grouping_sets, self.filtered, self.distinct_on]
        kinds += [self.first_ranks, self.first_ranks, self.grouped_union]
        kinds += [self.whole_rows, self.functions, self.functions, self.correlated, self.correlated, self.common_tables]
        kinds += [self.joins, self.joins, self.execute, self.inequality, self.top, self.recursive, self.texts_of_groups]
        return self.random.choice(kinds)()

    # ---- whole queries --------------------------------------------------------------------------------------------

    def table(self, most=None):
        tables = [table for table in self.tables if most is None or table.rows <= most]
        return self.random.choice(tables) if tables else min(self.tables, key=lambda table: table.rows)

    def windows(self):
        """Every row with some functions of its neighbours; the order within a window is total."""
        table = self.table()
        calls = [self.window(table) for _ in range(self.random.randint(1, 3))]
        if self.random.random() < 0.2:
            inner = f"SELECT {self.named([id_of(table)] + calls)} FROM {table.name}{self.where(table.columns)}"
            return Query(f"SELECT count(*) AS n, min(c1) AS l, max(c1) AS m FROM ({inner}) AS w WHERE c1 IS NOT NULL")
        return self.sorted(
            f"SELECT {self.named([id_of(table)] + calls)} FROM {table.name}{self.where(table.columns)}", 1
        )

    def window(self, table):
        columns, number = table.columns, self.random.choice([0, 1, 2, 5])
        partition = ", ".join(self.key(columns) for _ in range(self.random.choice([0, 1, 1, 2])))
        partition = f"PARTITION BY {partition} " if partition else ""
        key = self.column(columns).name
        way = f"{self.random.choice(['ASC', 'DESC'])} NULLS {self.random.choice(['FIRST', 'LAST'])}"
        total = f"{partition}ORDER BY {key} {way}, {id_of(table)} {self.random.choice(['ASC', 'DESC'])}"
        draw = self.random.random()
        if draw < 0.2:
            call = self.random.choice(["row_number()", f"ntile({number + 1})"])
            return f"{call} OVER ({total})"
        if draw < 0.4:
            call = self.random.choice(["rank()", "dense_rank()", "percent_rank()", "cume_dist()", "count(*)"])
            return f"{call} OVER ({partition}ORDER BY {key} {way})"
        if draw < 0.55:
            return f"{self.random.choice(['lag', 'lead'])}({self.column(columns).name}, {number}) OVER ({total})"
        if draw < 0.7:
            call = self.random.choice(["first_value({})", "last_value({})", "nth_value({}, 2)"])
            return f"{call.format(self.column(columns).name)} OVER ({total} {self.frame()})"
        call = self.random.choice([self.sum_of, self.least_or_most, self.count_of])(columns)
        draw = self.random.random()
        if draw < 0.2:
            return f"{call} OVER ({partition.strip()})"
        if draw < 0.35:
            name = self.column([c for c in columns if c.countable], "integer").name
            frame = f"RANGE BETWEEN {number} PRECEDING AND {self.random.choice(['CURRENT ROW', '3 FOLLOWING'])}"
            return f"{call} OVER ({partition}ORDER BY CAST({name} AS BIGINT) ASC NULLS FIRST {frame})"
        if draw < 0.5:
            return f"{call} OVER ({partition}ORDER BY {key} {way})"
        return f"{call} OVER ({total} {self.frame()})"

    def first_ranks(self):
        """The first rows of each partition, by one rank or two."""
        table = self.table()
        columns, number = table.columns, self.random.choice([1, 1, 2, 3, 10, 100])
        keys = [self.key(columns) for _ in range(self.random.choice([0, 1, 1, 2]))]
        partition = f"PARTITION BY {', '.join(keys)} " if keys else ""
        key = self.column(columns).name
        order = f"{key} {self.random.choice(['ASC', 'DESC'])} NULLS {self.random.choice(['FIRST', 'LAST'])}"
        total = f"{order}, {id_of(table)} {self.random.choice(['ASC', 'DESC'])}"
        ranks = [f"row_number() OVER ({partition}ORDER BY {total})"]
        if self.random.random() < 0.5:
            rank = self.random.choice(["rank()", "dense_rank()"])
            ranks = [f"{rank} OVER ({partition}ORDER BY {order})"] + ranks * self.random.choice([0, 1])
        inner = f"SELECT {self.named([id_of(table)] + ranks)} FROM {table.name}{self.where(columns)}"
        first = self.random.choice(["c1 <= {}", "c1 < {} + 1", "c1 = {}", "{} >= c1"]).format(number)
        first += self.random.choice(["", "", " AND c0 % 3 = 1"])
        return Query(f"SELECT * FROM ({inner}) AS w WHERE {first}")

    def grouped_union(self):
        """Groups of the rows of several tables."""
        kinds = [self.random.choice(["integer", "string", "day", "flag"]), "integer"]
        sides = []
        for _ in range(self.random.randint(2, 3)):
            table = self.table(20_000)
            items = [self.plain(table.columns, kind) for kind in kinds]
            sides.append(f"SELECT {self.named(items)} FROM {table.name}{self.where(table.columns)}")
        union = " UNION ALL ".join(sides)
        call = self.random.choice(["count(*)", "sum(c1)", "min(c1)", "max(c1)", "count(c1)", "count(DISTINCT c1)"])
        return Query(f"SELECT c0, {call} AS n FROM ({union}) AS u GROUP BY c0")

    def frame(self):
        starts = ["UNBOUNDED PRECEDING", "3 PRECEDING", "1 PRECEDING", "CURRENT ROW"]
        ends = ["CURRENT ROW", "1 FOLLOWING", "4 FOLLOWING", "UNBOUNDED FOLLOWING"]
        if self.random.random() < 0.2:
            starts, ends = ["3 PRECEDING", "2 FOLLOWING"], ["4 FOLLOWING"]
        unit = self.random.choice(["ROWS", "ROWS", "GROUPS"])
        return f"{unit} BETWEEN {self.random.choice(starts)} AND {self.random.choice(ends)}"

    def sum_of(self, columns):
        return f"sum({self.integer(columns, 1)[0]})"

    def least_or_most(self, columns):
        return f"{self.random.choice(['min', 'max'])}({self.column(columns).name})"

    def count_of(self, columns):
        return f"count({self.column(columns).name})"

    def grouping_sets(self):
        source, columns = self.source()
        keys = list(dict.fromkeys(self.column(columns).name for _ in range(3)))
        clause = self.random.choice(["ROLLUP ({})", "CUBE ({})", "GROUPING SETS (({}), ({k}), ())"])
        clause = clause.format(", ".join(keys), k=self.random.choice(keys))
        items = keys + [f"grouping({self.random.choice(keys)})"]
        items += [self.aggregate(columns) for _ in range(self.random.randint(1, 3))]
        return Query(f"SELECT {self.named(items)} FROM {source}{self.where(columns)} GROUP BY {clause}")

    def filtered(self):
        source, columns = self.source()
        keys = [self.key(columns) for _ in range(self.random.randint(0, 2))]
        calls = [self.aggregate(columns) for _ in range(self.random.randint(1, 3))]
        calls = [f"{call} FILTER (WHERE {self.predicate(columns, 1)})" for call in calls]
        tail = f" GROUP BY {', '.join(keys)}" if keys else ""
        return Query(f"SELECT {self.named(keys + calls)} FROM {source}{self.where(columns)}{tail}")

    def distinct_on(self):
        table = self.table()
        key = self.key(table.columns)
        other = self.column(table.columns).name
        items = [key, other, id_of(table)]
        sql = f"SELECT DISTINCT ON ({key}) {self.named(items)} FROM {table.name}{self.where(table.columns)}"
        return Query(f"{sql} ORDER BY {key} ASC NULLS LAST, {other} DESC NULLS FIRST, {id_of(table)}", [0])

    def whole_rows(self):
        """Set operations over several columns, duplicates kept and counted as the standard says."""
        kinds = [self.random.choice(["integer", "string", "day", "flag"]) for _ in range(self.random.randint(1, 3))]
        sides = []
        for _ in range(self.random.randint(2, 3)):
            table = self.table(20_000)
            items = [self.plain(table.columns, kind) for kind in kinds]
            sides.append(f"SELECT {self.named(items)} FROM {table.name}{self.where(table.columns)}")
        sql = sides[0]
        for side in sides[1:]:
            operation = self.random.choice(["UNION", "INTERSECT", "EXCEPT"]) + self.random.choice(["", " ALL", " ALL"])
            sql = f"({sql}) {operation} ({side})"
        return Query(sql)

    def plain(self, columns, kind):
        column = self.column([c for c in columns if c.countable], kind)
        return f"CAST({column.name} AS BIGINT)" if kind == "integer" else column.name

    def functions(self):
        source, columns = self.source()
        items = [self.function(columns) for _ in range(self.random.randint(1, 5))]
        if self.random.random() < 0.5:
            sql = f"SELECT {self.named(items)} FROM {source}{self.where(columns)}"
            return self.sorted(sql, len(items))
        sql = f"SELECT {items[0]} AS c0, count(*) AS c1 FROM {source}{self.where(columns)} GROUP BY {items[0]}"
        return self.sorted(sql, 1)

    def function(self, columns):
        return self.random.choice([self.of_text, self.of_text, self.of_time, self.choice, self.converted])(columns)

    def of_text(self, columns):
        name, other = (self.column(columns, "string").name for _ in range(2))
        number, letter = self.random.randint(0, 4), self.random.choice(["a", "o", "K", "ü", "", "ka"])
        forms = [
            f"substring({name} FROM {number + 1} FOR {number})",
            f"position('{letter}' IN {name})",
            f"trim({name})",
            f"ltrim({name}, '{letter}a')",
            f"rtrim({name}, '0123456789')",
            f"split_part({name}, '{letter or 'r'}', {number + 1})",
            f"concat({name}, '/', {other})",
            f"concat_ws('-', {name}, {other})",
            f"length({name})",
            f"reverse({name})",
            f"left({name}, {number - 2})",
            f"right({name}, {number})",
            f"lpad({name}, {number + 3}, '*')",
            f"rpad({name}, {number + 3}, 'xy')",
            f"repeat({name}, {number})",
            f"starts_with({name}, '{letter}')",
            f"regexp_replace({name}, '[aeiou]+', '_')",
            f"regexp_replace({name}, '([a-z])([0-9])', '\\2\\1', 'g')",
            f"regexp_matches({name}, '^[A-Za-k].*[0-4]$')",
            f"({name} ILIKE '%{letter}%')",
            f"({name} LIKE {other} || '%')" if name != other else f"({name} LIKE '%a%')",
            f"translate({name}, 'abk', 'xy')",
            f"strpos({name}, '{letter}')",
            f"upper({name})",
            f"(lower({name}) < {other})",
        ]
        return self.random.choice(forms)

    def of_time(self, columns):
        day, timestamp = self.column(columns, "day").name, self.column(columns, "timestamp").name
        both = self.random.choice([timestamp, f"CAST({day} AS TIMESTAMP)"])
        part = self.random.choice(["year", "quarter", "month", "week", "day", "hour", "minute", "dow", "doy"])
        unit = self.random.choice(["year", "quarter", "month", "week", "day", "hour", "minute", "second"])
        span = self.random.choice(["1 month", "3 days", "1 year", "90 minutes", "13 months", "2 weeks"])
        forms = [
            f"CAST(extract({part} FROM {both}) AS BIGINT)",
            f"CAST(date_part('{part}', {both}) AS BIGINT)",
            f"date_trunc('{unit}', {both})",
            f"({both} + INTERVAL '{span}')",
            f"({both} - INTERVAL '{span}')",
            f"({both} > TIMESTAMP '1970-06-01 00:00:00' + INTERVAL '{span}')",
            f"CAST({timestamp} AS DATE)",
            f"CAST({day} AS VARCHAR)",
            f"({day} - DATE '1999-12-31')",
            f"(CAST({timestamp} AS DATE) = {day})",
            f"extract(epoch FROM date_trunc('second', {timestamp}))",
        ]
        return self.random.choice(forms)

    def choice(self, columns):
        number, text = self.column([c for c in columns if c.countable], "integer"), self.column(columns, "string")
        big = f"CAST({number.name} AS BIGINT)"
        value = self.value(number)
        forms = [
            f"coalesce({self.integer(columns, 1)[0]}, {big}, -1)",
            f"nullif({big}, {value if abs(value) < MOST else 0})",
            f"nullif({text.name}, {literal(self.value(text))})",
            f"CASE {text.name} WHEN {literal(self.value(text))} THEN 1 WHEN 'a' THEN 2 ELSE 3 END",
            f"greatest({big}, {self.integer(columns, 1)[0]})",
            f"least({big}, {self.integer(columns, 1)[0]}, 0)",
            f"-({self.integer(columns, 1)[0]})",
            f"(({self.predicate(columns, 1)}) IS NOT TRUE)",
            f"({text.name} IS DISTINCT FROM {self.column(columns, 'string').name})",
            f"sign({self.integer(columns, 1)[0]})",
        ]
        return self.random.choice(forms)

    def converted(self, columns):
        number = self.column(columns, "integer").name
        forms = [
            f"CAST({number} AS VARCHAR)",
            f"CAST({number} AS DECIMAL(38, 2))",
            f"TRY_CAST({number} AS SMALLINT)",
            f"CAST(CAST({number} AS VARCHAR) AS DECIMAL(30, 0))",
            f"TRY_CAST({self.column(columns, 'string').name} AS INTEGER)",
            f"CAST({self.column(columns, 'double').name} AS BIGINT)",
            f"CAST({self.column(columns, 'decimal').name} AS DECIMAL(38, 1))",
            f"CAST({self.column(columns, 'flag').name} AS INTEGER)",
            f"round({self.column(columns, 'decimal').name}, 1)",
            f"floor({self.column(columns, 'double').name})",
        ]
        return self.random.choice(forms)

    def correlated(self):
        table, other = self.random.sample(self.tables, 2)
        pairs = [pair for pair in self.join_keys(table, other) if pair[0].kind == "integer"]
        if not pairs:
            return self.common_tables()
        left, right = self.random.choice(pairs)
        call = self.random.choice([self.sum_of, self.least_or_most, self.count_of, lambda _: "count(*)"])(other.columns)
        where = f"{right.name} = {left.name}"
        if self.random.random() < 0.5:
            where += f" AND {self.predicate(other.columns, 0)}"
        inner = f"(SELECT {call} FROM {other.name} WHERE {where})"
        exists = f"EXISTS (SELECT 1 FROM {other.name} WHERE {where})"
        plain, values = id_of(table), self.column(other.columns, "string").name
        own = self.column(table.columns, "string").name
        draw = self.random.random()
        if draw < 0.3:
            sql = f"SELECT {plain} AS c0, {inner} AS c1 FROM {table.name}{self.where(table.columns)}"
        elif draw < 0.45:
            sql = f"SELECT {plain} AS c0 FROM {table.name} WHERE {inner} IS NOT NULL AND {self.predicate(table.columns, 0)}"
        elif draw < 0.6:
            sql = f"SELECT {plain} AS c0, {exists} AS c1 FROM {table.name}{self.where(table.columns)}"
        elif draw < 0.75:
            member = f"{own} {self.random.choice(['IN', 'NOT IN'])} (SELECT {values} FROM {other.name}{self.where(other.columns)})"
            sql = f"SELECT {plain} AS c0, {member} AS c1 FROM {table.name}{self.where(table.columns)}"
        elif draw < 0.9:
            member = f"{own} NOT IN (SELECT {values} FROM {other.name}{self.where(other.columns)})"
            sql = f"SELECT {plain} AS c0 FROM {table.name} WHERE {member}"
        else:
            sql = f"SELECT {plain} AS c0 FROM {table.name} WHERE NOT ({exists} OR {self.predicate(table.columns, 1)})"
        return self.sorted(sql, 1)

    def common_tables(self):
        source, columns = self.source()
        key, one = self.key(columns), self.sum_of(columns)
        first = f"SELECT {key} AS k, {one} AS s, count(*) AS n FROM {source}{self.where(columns)} GROUP BY {key}"
        second = "SELECT k, n FROM x WHERE n > (SELECT avg(n) FROM x)"
        kind = self.random.choice(["JOIN", "LEFT JOIN", "FULL JOIN"])
        sql = f"WITH x AS ({first}), y AS ({second}) SELECT x.k AS c0, s AS c1, y.n AS c2 FROM x {kind} y ON x.k = y.k"
        return Query(sql)

    def joins(self):
        """Joins of two or three derived tables by USING, NATURAL or several keys."""
        kinds = ["JOIN", "LEFT JOIN", "RIGHT JOIN", "FULL JOIN"]
        parts = []
        for number in range(self.random.choice([2, 2, 3])):
            table = self.table(5_000)
            extra = self.column(table.columns, "integer", "string", "day").name
            parts.append(f"(SELECT {id_of(table)} AS k, {extra} AS v{number} FROM {table.name}{self.where(table.columns)}) AS t{number}")
        if self.random.random() < 0.2:
            return Query(f"SELECT * FROM {parts[0]} NATURAL {self.random.choice(kinds[:2])} {parts[1]}")
        sql = parts[0]
        for part in parts[1:]:
            sql += f" {self.random.choice(kinds)} {part} USING (k)"
        names = ["k"] + [f"v{number}" for number in range(len(parts))]
        return Query(f"SELECT {', '.join(names)} FROM {sql}")

    def inequality(self):
        """A join by something else than equality, or by nothing."""
        table = self.table(5_000)
        other = self.random.choice([t for t in self.tables if t is not table])
        if table.rows * other.rows > PAIRS:
            return self.joins()
        left = self.column([c for c in table.columns if c.countable], "integer").name
        right = self.column([c for c in other.columns if c.countable], "integer").name
        kind = self.random.choice(["JOIN", "LEFT JOIN", "RIGHT JOIN", "FULL JOIN"])
        on = f"CAST({left} AS BIGINT) {self.random.choice(['<', '>=', '<>'])} CAST({right} AS BIGINT)"
        if kind == "FULL JOIN":
            on += f" AND {id_of(table)} = {id_of(other)}"
        source = f"{table.name} {kind} {other.name} ON {on}"
        if self.random.random() < 0.3:
            source = f"{table.name} CROSS JOIN {other.name}"
        return Query(f"SELECT count(*) AS c0, sum(CAST({left} AS BIGINT)) AS c1, count({right}) AS c2 FROM {source}")

    def top(self):
        """The first rows by something that is not shown."""
        table = self.table()
        keys = ", ".join(
            f"{self.column(table.columns).name} {self.random.choice(['ASC', 'DESC'])} NULLS {self.random.choice(['FIRST', 'LAST'])}"
            for _ in range(self.random.randint(1, 3))
        )
        items = [id_of(table), self.scalar(table.columns)]
        sql = f"SELECT {self.named(items)} FROM {table.name}{self.where(table.columns)} ORDER BY {keys}, {id_of(table)}"
        sql += f" LIMIT {self.random.choice([1, 10, 1_025, 70_000])} OFFSET {self.random.choice([0, 1, 1_000, 66_000])}"
        return Query(sql, [0])

    def recursive(self):
        table = self.table()
        steps = "WITH RECURSIVE r(n) AS (SELECT 1 UNION ALL SELECT n + 1 FROM r WHERE n < 40)"
        return Query(f"{steps} SELECT n AS c0, count({id_of(table)}) AS c1 FROM r LEFT JOIN {table.name} ON n = {id_of(table)} GROUP BY n")

    def texts_of_groups(self):
        table = self.table(20_000)
        few = [column.name for column in table.columns if column.distinct <= 300]
        key = self.random.choice(few) if few else "1"
        text, number = self.column(table.columns, "string").name, self.integer(table.columns, 1)[0]
        items = [f"string_agg({text}, ',' ORDER BY {id_of(table)})", f"bit_xor({number})", f"bit_and({number})"]
        items += [f"median(CAST({number} AS DOUBLE))", f"stddev(CAST({number} % 1000 AS DOUBLE))"]
        items = [key] + self.random.sample(items, 2)
        return Query(f"SELECT {self.named(items)} FROM {table.name}{self.where(table.columns)} GROUP BY {key}")

    def execute(self):
        """A statement with parameters, prepared and executed."""
        self.prepared += 1
        source, columns = self.source()
        one, two = self.column(columns), self.column(columns, "integer", "string", "day")
        condition = f"{one.name} {self.comparison()} $1 OR {two.name} IN ($2, $3)"
        values = [literal(self.value(one)), literal(self.value(two)), literal(self.value(two))]
        name = f"p{self.prepared}"
        items = [self.column(columns).name for _ in range(2)]
        sql = f"PREPARE {name} AS SELECT {self.named(items)} FROM {source} WHERE {condition}"
        return Query(f"{sql}; EXECUTE {name}({', '.join(values)})")


def id_of(table):
    return table.columns[0].name
