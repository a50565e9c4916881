"""Random macros that call each other, and queries that call them: in lists, conditions, aggregates, windows, joins and FROM, and as
keys of groups, sorts and windows.

Columns are called by their tables everywhere: DuckDB takes some of those that are not for columns within the macro.
"""

from .random_queries import Query

ROWS = 60
COLUMNS = ["id", "fk", "i8", "i16", "u8"]


class MacroGenerator:
    def __init__(self, random, tables):
        self.random = random
        self.tables = tables
        self.scalars = []
        self.definitions = []
        for number in range(6):
            name, values = f"m{number}", ["p", "q"][: random.randint(1, 2)]
            parameters = ", ".join(values) if len(values) == 1 or random.random() < 0.5 else f"p, q := {random.randint(-3, 3)}"
            required = 1 if ":=" in parameters else len(values)
            self.definitions.append(f"CREATE MACRO {name}({parameters}) AS {self.number(values, 3)}")
            self.scalars.append((name, required, len(values)))
        source, column = self.part("r")
        value = self.number([f"CAST({column('i8')} AS BIGINT)", "p"], 2)
        self.definitions.append(
            f"CREATE MACRO rows_of(p, least := -1000000) AS TABLE SELECT {column('id')} AS k, {value} AS v "
            f"FROM {source} WHERE {column('i16')} > least ORDER BY k LIMIT 20"
        )

    def part(self, alias):
        table = self.random.choice(self.tables)
        prefix = table.columns[0].name[: -len("id")]
        source = f"(SELECT * FROM {table.name} WHERE {prefix}id < {ROWS}) AS {alias}"
        return source, lambda suffix: f"{alias}.{prefix}{suffix}"

    def number(self, values, depth):
        draw = self.random.randrange(11 if depth else 2)
        part = lambda: self.number(values, depth - 1)
        if draw == 0:
            return self.random.choice(values)
        if draw == 1:
            return str(self.random.randint(0, 9))
        if draw <= 4:
            return f"{part()} {self.random.choice('+-')} {part()}"
        if draw == 5:
            return f"-({part()}) * {self.random.randint(0, 3)}"
        if draw == 6:
            return f"CASE WHEN {self.condition(values, depth - 1)} THEN {part()} ELSE {part()} END"
        if draw == 7:
            return f"coalesce({part()}, {part()})"
        if draw == 8:
            return f"({part()}) % {self.random.randint(2, 7)}"
        if draw == 9 and self.scalars:
            return self.call(values, depth)
        source, column = self.part("i")
        key = self.random.choice(COLUMNS)
        value = f"CAST({self.random.choice(['max', 'min', 'count'])}({column('i8')}) AS BIGINT)"
        return f"(SELECT {value} FROM {source} WHERE {column(key)} = {self.random.choice(values)})"

    def condition(self, values, depth):
        left, right = self.number(values, depth), self.number(values, depth)
        return self.random.choice(
            [f"{left} > {right}", f"{left} = {right} OR {right} < 3", f"({left}) IS NULL", f"NOT {left} <= {right}", f"{left} BETWEEN -5 AND {right}"]
        )

    def call(self, values, depth=2):
        name, required, most = self.random.choice(self.scalars)
        count = self.random.randint(required, most)
        given = [self.number(values, depth - 1) for _ in range(count)]
        if count == 2 and required == 1 and self.random.random() < 0.5:
            given[1] = f"q := {given[1]}"
        return f"{name}({', '.join(given)})"

    def query(self):
        source, o = self.part("o")
        values = [f"CAST({o(suffix)} AS BIGINT)" for suffix in self.random.sample(COLUMNS, 2)]
        call = lambda: self.call(values)
        kind = self.random.randrange(10)
        if kind == 0:
            return Query(f"SELECT {o('id')} AS c0, {call()} AS c1, {call()} + 1 AS c2 FROM {source}")
        if kind == 1:
            return Query(f"SELECT count(*) AS c0, sum({call()}) AS c1 FROM {source} WHERE {call()} > {self.random.randint(-20, 20)}")
        if kind == 2:
            return Query(f"SELECT {o('i8')} AS c0, sum({call()}) AS c1, max({call()}) AS c2 FROM {source} GROUP BY {o('i8')}")
        if kind == 3:
            return Query(f"SELECT {o('id')} AS c0, {call()} AS c1 FROM {source} ORDER BY {o('id')} DESC LIMIT 7", [0])
        if kind == 4:
            table = f"rows_of({self.random.randint(-5, 5)})" if self.random.random() < 0.5 else f"rows_of({self.random.randint(-5, 5)}, least := 0)"
            return Query(f"SELECT t.k AS c0, t.v AS c1, {o('id')} AS c2 FROM {table} AS t JOIN {source} ON t.k = {o('id')} AND t.v < {call()}")
        if kind == 5:
            return Query(f"SELECT c0, sum({self.call(['c0', 'c1'])}) OVER (PARTITION BY c0) AS c2 FROM (SELECT CAST({o('i8')} AS BIGINT) AS c0, {call()} AS c1 FROM {source}) AS s")
        key = lambda: self.random.choice([call(), f"abs({call()})", f"{call()} > {self.random.randint(-9, 9)}", f"-({call()})"])
        direction = lambda: self.random.choice(["ASC", "DESC"]) + self.random.choice([" NULLS FIRST", " NULLS LAST"])
        order = lambda: f"{key()} {direction()}, {key()} {direction()}, {o('id')}"
        if kind == 6:
            return Query(f"SELECT {o('id')} AS c0, {call()} AS c1 FROM {source} ORDER BY {order()} LIMIT {self.random.randint(1, 20)}")
        if kind == 7:
            return Query(f"SELECT {o('id')} AS c0, row_number() OVER (PARTITION BY {key()} ORDER BY {order()}) AS c1, sum({call()}) OVER (ORDER BY {order()}) AS c2 FROM {source}")
        if kind == 8:
            return Query(f"SELECT string_agg(CAST({o('id')} AS VARCHAR), ',' ORDER BY {order()}) AS c0, count(*) AS c1 FROM {source} GROUP BY {o('fk')}")
        return Query(f"SELECT {(one := key())} AS c0, max({call()}) AS c1, count({call()}) AS c2 FROM {source} GROUP BY {one}")
