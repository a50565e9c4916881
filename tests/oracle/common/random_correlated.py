"""Random subqueries that refer to the rows around them, of every kind that SQL has: as a value, in EXISTS and IN, LATERAL,
with aggregates, groups, HAVING, LIMIT, windows, unions, joins and subqueries of their own, tied by equality or not.

Both sides are small parts of a table: a subquery tied by an inequality compares each row with each.
"""

from .random_queries import Query

OUTER_ROWS = 40
INNER_ROWS = 60
COMPARISONS = ["=", "=", "<>", "<", ">=", "IS NOT DISTINCT FROM"]


class CorrelatedGenerator:
    def __init__(self, random, tables):
        self.random = random
        self.tables = tables

    def query(self):
        outer, o = self.part("o", OUTER_ROWS)
        draw = self.random.random()
        if draw < 0.25:
            join = self.random.choice(["CROSS JOIN LATERAL {}", "LEFT JOIN LATERAL {} ON TRUE", "JOIN LATERAL {} ON l.v >= 0"])
            sql = f"SELECT {o('id')} AS c0, l.v AS c1 FROM {outer} " + join.format(f"({self.rows(o)}) AS l(v)")
            return Query(sql)
        if draw < 0.35:
            return Query(f"SELECT {o('id')} AS c0 FROM {outer} WHERE {self.predicate(o)}")
        if draw < 0.42:
            return self.joins(outer, o)
        if draw < 0.5:
            return Query(f"SELECT sum({self.value(o)}) AS c0, count(*) AS c1 FROM {outer}")
        if draw < 0.6:
            key = f"{self.value(o)} NULLS LAST"
            return Query(f"SELECT {o('id')} AS c0 FROM {outer} ORDER BY {key}, {o('id')} LIMIT 7")
        items = ", ".join(f"{self.item(o)} AS c{place}" for place in range(1, self.random.randint(2, 3)))
        return Query(f"SELECT {o('id')} AS c0, {items} FROM {outer}")

    def part(self, alias, rows):
        """A small part of a table, and how its columns are called."""
        table = self.random.choice(self.tables)
        name = table.columns[0].name[: -len("id")]
        sql = f"(SELECT * FROM {table.name} WHERE {name}id < {self.random.choice([0, 3, rows, rows])}) AS {alias}"
        return sql, lambda suffix: f"{alias}.{name}{suffix}"

    def joins(self, outer, o):
        """Joins of three parts, by keys where NULL equals NULL and by others."""
        kind = self.random.choice(["JOIN", "JOIN", "LEFT JOIN"])
        (second, j), (third, k) = self.part("j", INNER_ROWS), self.part("k", OUTER_ROWS)
        on = [self.key(o, j), " AND ".join([self.key(j, k)] + self.random.choice([[], [self.key(o, k)]]))]
        where = self.random.choice(["", f" WHERE {self.key(o, j)}", f" WHERE {self.key(j, k)}"])
        items = f"count(*) AS c0, sum({o('id')}) AS c1, sum({k('id')}) AS c2"
        return Query(f"SELECT {items} FROM {outer} {kind} {second} ON {on[0]} {kind} {third} ON {on[1]}{where}")

    def key(self, left, right):
        operator = self.random.choice(["=", "IS NOT DISTINCT FROM"])
        return f"{left(self.number())} {operator} {right(self.number())}"

    def number(self):
        return self.random.choice(["id", "fk", "i8", "i16", "u8"])

    def column(self):
        return self.random.choice(["id", "fk", "i8", "i16", "i32", "u8"])

    def tie(self, inner, o):
        """A condition that ties a subquery's rows to the outer row."""
        ties = []
        for _ in range(self.random.randint(1, 2)):
            if self.random.random() < 0.25:
                suffix = self.random.choice(["txt_low", "flag"])
                ties.append(f"{inner(suffix)} = {o(suffix)}")
            else:
                ties.append(f"{inner(self.number())} {self.random.choice(COMPARISONS)} {o(self.number())}")
        if self.random.random() < 0.2:
            ties.append(f"{o(self.number())} > {self.random.randint(-5, 20)}")
        return self.random.choice([" AND ", " AND ", " OR "]).join(ties)

    def item(self, o):
        return self.predicate(o) if self.random.random() < 0.25 else self.value(o)

    def predicate(self, o):
        source, i = self.part("i", INNER_ROWS)
        negation = self.random.choice(["", "NOT "])
        inside = f"FROM {source} WHERE {self.tie(i, o)}"
        kind = self.random.randrange(7)
        if kind == 0:
            return f"{negation}EXISTS (SELECT 1 {inside})"
        if kind == 4:
            having = self.random.choice(["", " HAVING count(*) > 1", " HAVING count(*) = 0"])
            return f"{negation}EXISTS (SELECT max({i(self.number())}) {inside}{having})"
        if kind == 5:
            return f"{self.random.randint(0, 2)} {negation}IN (SELECT count(*) {inside})"
        if kind == 6:
            return f"{o(self.number())} {self.random.choice(['=', '<>', '>='])} {self.value(o)}"
        if kind == 1:
            return f"{negation}EXISTS (SELECT {i('txt_low')} {inside} GROUP BY {i('txt_low')} HAVING count(*) > 2)"
        if kind == 2:
            return f"{o(self.number())} {negation}IN (SELECT {i(self.number())} {inside})"
        return f"{o(self.number())} {negation}IN (SELECT max({i(self.number())}) {inside} GROUP BY {i('flag')})"

    def value(self, o):
        """A subquery with one row at most."""
        source, i = self.part("i", INNER_ROWS)
        tie = self.tie(i, o)
        kind = self.random.randrange(10)
        column = i(self.column())
        if kind <= 1:
            aggregate = self.random.choice(["count(*)", f"count({column})", f"max({column})", f"sum({column})", f"count(DISTINCT {column})"])
            having = self.random.choice(["", "", " HAVING count(*) > 3"])
            return f"(SELECT {aggregate} FROM {source} WHERE {tie}{having})"
        if kind == 2:
            skip = self.random.choice(["", " OFFSET 2"])
            return f"(SELECT {column} FROM {source} WHERE {tie} ORDER BY {column} NULLS LAST, {i('id')} LIMIT 1{skip})"
        if kind == 3:
            other = f"SELECT {o(self.number())}"
            return f"(SELECT max(v) FROM (SELECT {column} FROM {source} WHERE {tie} UNION ALL {other}) AS s(v))"
        if kind == 4:
            again, j = self.part("j", INNER_ROWS)
            nested = f"(SELECT max({j(self.number())}) FROM {again} WHERE {self.tie(j, o)} AND {self.tie(j, i)})"
            return f"(SELECT count(*) FROM {source} WHERE ({tie}) AND {column} <= {nested})"
        if kind == 5:
            row = f"row_number() OVER (PARTITION BY {i('flag')} ORDER BY {i('id')})"
            return f"(SELECT max(r) FROM (SELECT {row} AS r FROM {source} WHERE {tie}) AS s)"
        if kind == 6:
            groups = f"SELECT {i('txt_low')} AS t, count(*) AS n FROM {source} WHERE {tie} GROUP BY {i('txt_low')}"
            return f"(SELECT max(n) FROM ({groups}) AS s)"
        if kind == 7:
            again, j = self.part("j", INNER_ROWS)
            join = self.random.choice(["JOIN", "LEFT JOIN"])
            on = f"{i('fk')} = {j('fk')} AND {self.tie(j, o)}"
            return f"(SELECT count({j('id')}) + count(*) FROM {source} {join} {again} ON {on} WHERE {tie})"
        if kind == 8:
            return f"(SELECT count(*) FROM (SELECT DISTINCT {i('i8')}, {i('flag')} FROM {source} WHERE {tie}) AS s)"
        return f"(SELECT max(v) FROM (VALUES ({o(self.number())}), ({o(self.number())} + CAST(1 AS BIGINT))) AS s(v))"

    def rows(self, o):
        """A subquery with any number of rows, of one column."""
        source, i = self.part("i", INNER_ROWS)
        tie = self.tie(i, o)
        column = i(self.column())
        return self.random.choice(
            [
                f"SELECT {column} FROM {source} WHERE {tie}",
                f"SELECT {column} FROM {source} WHERE {tie} ORDER BY {column} DESC NULLS LAST, {i('id')} LIMIT 2",
                f"SELECT count(*) FROM {source} WHERE {tie}",
                f"SELECT count(*) FROM {source} WHERE {tie} GROUP BY {i('flag')}",
                f"SELECT count(*) FROM {source} WHERE {tie} HAVING count(*) > 4",
                f"SELECT * FROM (SELECT count(*) AS n FROM {source} WHERE {tie}) AS s WHERE n > 1",
                f"SELECT {column} FROM {source} WHERE {tie} UNION SELECT {o(self.number())}",
            ]
        )
