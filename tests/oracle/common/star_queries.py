"""Random queries over a star: its tables joined in any order and notation, asked for groups, rows or existence.

Every column is written with its table's alias. What is left out for the engines' differences, see random_queries.py;
besides, a value of a grouped query is sorted by only after everything that tells its groups apart.
"""

from dataclasses import dataclass, replace

from common.random_queries import Query, literal


@dataclass
class Source:
    """What stands in FROM: its text, its alias, and its columns with the alias before their names."""

    text: str
    alias: str
    columns: list
    table: object  # whose references it has; None: none


@dataclass
class Edge:
    """A table of the join: which column of what is there already it is joined by, and how."""

    source: Source
    left: str
    right: str
    kind: str = "JOIN"
    on: str = ""  # more conditions


class StarQueries:
    def __init__(self, random, tables):
        self.random = random
        self.fact, self.dimensions = tables[0], tables[1:]
        # Rows that a query without aggregates may read from a large fact.
        self.part = max(1, self.fact.rows // 3_000)
        self.aliases = 0

    def query(self):
        kinds = [self.grouped] * 5 + [self.ungrouped] * 3 + [self.rows] * 3 + [self.first] * 2 + [self.of_dimension, self.derived]
        return self.random.choice(kinds)()

    # ---- whole queries --------------------------------------------------------------------------------------------

    def ungrouped(self):
        source, columns = self.joined()
        items = [self.aggregate(columns) for _ in range(self.random.randint(1, 4))]
        return Query(f"SELECT {named(items)} FROM {source}")

    def grouped(self):
        source, columns = self.joined()
        keys = [self.key(columns) for _ in range(self.random.choice([1, 1, 2, 2, 3, 4]))]
        items = keys + [self.aggregate(columns) for _ in range(self.random.randint(0, 4))]
        sql = f"SELECT {named(items)} FROM {source} GROUP BY {', '.join(keys)}"
        if self.random.random() < 0.2:
            number = self.number(columns)
            sql += self.random.choice([
                f" HAVING count(*) {self.comparison()} {self.random.choice([1, 2, 10, 100])}",
                f" HAVING sum({number}) > {self.random.choice([0, 10, 1_000])}",
                f" HAVING min({number}) < max({number})",
            ])
        return self.sorted(sql, len(keys))

    def rows(self):
        """Rows without aggregates: of a large fact only some."""
        part = self.random.random() < 0.7 and f"f.f_id % {self.part} = {self.random.randrange(self.part)}"
        source, columns = self.joined(part)
        items = [f"{column.name}" for column in self.random.sample(columns, min(len(columns), self.random.randint(1, 6)))]
        if self.random.random() < 0.4:
            items.append(self.number(columns))
        distinct = "DISTINCT " if self.random.random() < 0.2 else ""
        return self.sorted(f"SELECT {distinct}{named(items)} FROM {source}", len(items), limited=not part)

    def first(self):
        """The first of the joined rows by the fact's key, perhaps an indexed one; columns of dimensions are needed, but always give the same."""
        source, columns = self.joined()
        others = [column.name for column in columns if not column.name.startswith("f.")]
        texts = " || ".join(f"coalesce(CAST({name} AS VARCHAR), '')" for name in self.random.sample(others, min(len(others), 2)))
        items = ["f.f_id"] + ([f"length({texts}) < 0"] if others else [])
        direction = self.random.choice(["ASC", "DESC"])
        limit = self.random.choice([1, 10, 100])
        return Query(f"SELECT {named(items)} FROM {source} ORDER BY 1 {direction} NULLS LAST LIMIT {limit}", [0])

    def of_dimension(self):
        """A dimension's rows, as far as the fact has them or not."""
        dimension = self.random.choice(self.dimensions)
        columns = aliased(dimension.columns, dimension.name)
        key = f"{dimension.name}.{dimension.key.name}"
        references = [column for column, other in self.fact.references if other is dimension]
        if not references:
            return self.grouped()
        fact = aliased(self.fact.columns, "f")
        reference = f"f.{self.random.choice(references).name}"
        part = f" AND {self.predicate(fact)}" if self.random.random() < 0.7 else ""
        test = self.random.choice([
            f"{key} IN (SELECT {reference} FROM f WHERE f.f_id >= 0{part})",
            f"EXISTS (SELECT 1 FROM f WHERE {reference} = {key}{part})",
            f"NOT EXISTS (SELECT 1 FROM f WHERE {reference} = {key}{part})",
            f"{key} NOT IN (SELECT {reference} FROM f WHERE {reference} IS NOT NULL{part})",
        ])
        items = [column.name for column in self.random.sample(columns, min(len(columns), 3))]
        more = f" AND {self.predicate(columns)}" if self.random.random() < 0.4 else ""
        return self.sorted(f"SELECT {named(items)} FROM {dimension.name} WHERE {test}{more}", len(items))

    def derived(self):
        """An aggregate over a grouped join, perhaps by a name."""
        source, columns = self.joined()
        keys = [self.key(columns) for _ in range(self.random.choice([1, 2]))]
        inner = f"SELECT {named(keys + ['count(*)', f'sum({self.number(columns)})'])} FROM {source} GROUP BY {', '.join(keys)}"
        n = len(keys)
        outer = f"SELECT count(*) AS n, count(c0) AS k, sum(c{n}) AS s, max(c{n + 1}) AS m FROM"
        if self.random.random() < 0.5:
            return Query(f"WITH w AS ({inner}) {outer} w")
        return Query(f"{outer} ({inner}) AS w")

    def sorted(self, sql, width, limited=False):
        """By all columns that tell the rows apart."""
        if not limited and self.random.random() < 0.5:
            return Query(sql)
        order = self.random.sample(range(width), width)
        words = ", ".join(
            f"{at + 1} {self.random.choice(['ASC', 'DESC'])} NULLS {self.random.choice(['FIRST', 'LAST'])}" for at in order
        )
        sql += f" ORDER BY {words}"
        if limited or self.random.random() < 0.5:
            sql += f" LIMIT {self.random.choice([1, 10, 100])}"
            if self.random.random() < 0.2:
                sql += f" OFFSET {self.random.choice([1, 7])}"
        return Query(sql, order)

    # ---- FROM and WHERE -------------------------------------------------------------------------------------------

    def joined(self, condition=None):
        """FROM and WHERE: the fact, some of its sides, and conditions; and the columns to be asked for."""
        fact = self.fact_source()
        conditions = [condition] if condition else []
        edges, semi = [], []
        for column, dimension in self.fact.references:
            draw = self.random.random()
            if draw < 0.62:
                self.attach(edges, f"{fact.alias}.{column.name}", dimension, outer=False)
            elif draw < 0.8:
                semi.append(self.existence(f"{fact.alias}.{column.name}", dimension))
        if self.random.random() < 0.12:
            edges.append(self.fact_again(fact))
        conditions += semi[:2]
        columns = fact.columns + [column for edge in edges for column in edge.source.columns]
        for _ in range(self.random.choice([0, 1, 1, 1, 2])):
            conditions.append(self.predicate(columns))
        comma = self.random.random() < 0.4 and all(edge.kind == "JOIN" for edge in edges)
        if comma:
            texts = [fact.text] + [edge.source.text for edge in edges]
            self.random.shuffle(texts)
            source = ", ".join(texts)
            conditions += [f"{self.equal(edge)}{edge.on}" for edge in edges]
            self.random.shuffle(conditions)
        else:
            source = self.chained(fact, edges)
        where = f" WHERE {' AND '.join(conditions)}" if conditions else ""
        return source + where, columns

    def equal(self, edge):
        sides = [edge.left, edge.right]
        self.random.shuffle(sides)
        return " = ".join(sides)

    def chained(self, fact, edges):
        """JOIN … ON in an order in which each finds what it is joined to."""
        first = [edge for edge in edges if edge.left.startswith(f"{fact.alias}.") and edge.kind == "JOIN"]
        done, open_edges = {fact.alias}, list(edges)
        text = fact.text
        if first and self.random.random() < 0.4:
            edge = self.random.choice(first)
            open_edges.remove(edge)
            done.add(edge.source.alias)
            text = f"{edge.source.text} JOIN {fact.text} ON {self.equal(edge)}{edge.on}"
        while open_edges:
            edge = self.random.choice([edge for edge in open_edges if edge.left.split(".")[0] in done])
            open_edges.remove(edge)
            done.add(edge.source.alias)
            own, other = edge.left.split(".")[1], edge.right.split(".")[1]
            if own == other and not edge.on and len(done) == 2:
                text += f" {edge.kind} {edge.source.text} USING ({own})"
            else:
                text += f" {edge.kind} {edge.source.text} ON {self.equal(edge)}{edge.on}"
        return text

    def attach(self, edges, left, dimension, outer):
        """A dimension, and perhaps what it refers to."""
        source = self.side(dimension)
        kind = self.random.choice(["JOIN"] * 7 + ["LEFT JOIN"]) if not outer else self.random.choice(["LEFT JOIN", "JOIN"])
        key = f"{source.alias}.{dimension.key.name}"
        on = ""
        draw = self.random.random()
        if draw < 0.15:
            on = f" AND {self.predicate(source.columns)}"
        elif draw < 0.2:
            on = f" AND {self.predicate(self.fact_columns(left) + source.columns)}"
        edges.append(Edge(source, left, key, kind, on))
        if source.table is None:
            return
        for column, above in dimension.references:
            if self.random.random() < 0.6:
                self.attach(edges, f"{source.alias}.{column.name}", above, kind != "JOIN")

    def fact_columns(self, left):
        """Those of the fact, if that is what something is joined to."""
        return aliased(self.fact.columns, "f") if left.startswith("f.") else []

    def fact_source(self):
        draw = self.random.random()
        columns = aliased(self.fact.columns, "f")
        text = "f"
        if draw < 0.08:
            text = f"(SELECT * FROM f WHERE {self.predicate(columns)}) AS f"
        return Source(text, "f", columns, self.fact)

    def fact_again(self, fact):
        """The fact joined to itself, as it is or as what it sums up to."""
        alias = self.alias("g")
        if self.random.random() < 0.5:
            columns = aliased(self.fact.columns, alias)
            return Edge(Source(f"f AS {alias}", alias, columns, None), "f.f_id", f"{alias}.f_id", "JOIN", "")
        key = self.random.choice([column for column, _ in self.fact.references])
        small = self.random.choice([column for column in self.fact.columns if column.kind == "small"])
        text = f"(SELECT {key.name}, count(*) AS n, max({small.name}) AS m FROM f GROUP BY {key.name}) AS {alias}"
        columns = [replace(key, name=f"{alias}.{key.name}"), replace(small, name=f"{alias}.m")]
        return Edge(Source(text, alias, columns, None), f"f.{key.name}", f"{alias}.{key.name}")

    def side(self, dimension):
        """A dimension as it is, or what a query makes of it."""
        name, key = dimension.name, dimension.key.name
        own = aliased(dimension.columns, name)
        alias = self.alias(name)
        columns = aliased(dimension.columns, alias)
        draw = self.random.random()
        some = self.random.choice([column for column in dimension.columns[1:] if column.kind != "flag"])
        pair = [replace(dimension.key, name=f"{alias}.{key}"), replace(some, name=f"{alias}.{some.name}")]
        if draw < 0.7:
            return Source(f"{name} AS {alias}", alias, columns, dimension)
        if draw < 0.78:
            return Source(f"(SELECT * FROM {name} WHERE {self.predicate(own)}) AS {alias}", alias, columns, dimension)
        if draw < 0.83:
            inner = f"SELECT DISTINCT {key}, {some.name} FROM {name}"
        elif draw < 0.89:
            inner = f"SELECT {key}, {self.random.choice(['min', 'max'])}({some.name}) AS {some.name} FROM {name} GROUP BY {key}"
        elif draw < 0.94:
            one, other = (f"SELECT {key}, {some.name} FROM {name} WHERE {self.predicate(own)}" for _ in range(2))
            inner = f"{one} UNION ALL {other}"
        elif dimension.key.domain and some.domain:
            keys = self.random.sample(dimension.key.domain, min(len(dimension.key.domain), 5))
            rows = ", ".join(
                f"(CAST({literal(value)} AS {dimension.key.sql}), CAST({literal(self.random.choice(some.domain))} AS {some.sql}))"
                for value in keys
            )
            return Source(f"(VALUES {rows}) AS {alias}({key}, {some.name})", alias, pair, None)
        else:
            inner = f"SELECT {key}, {some.name} FROM {name} ORDER BY {key} NULLS LAST, {some.name} NULLS LAST LIMIT 7"
        return Source(f"({inner}) AS {alias}", alias, pair, None)

    def existence(self, left, dimension):
        """A condition on whether a side has a row."""
        name, key = dimension.name, f"{dimension.name}.{dimension.key.name}"
        columns = aliased(dimension.columns, name)
        tables, link = name, ""
        if dimension.references and self.random.random() < 0.5:
            column, above = dimension.references[0]
            tables = f"{name} JOIN {above.name} ON {name}.{column.name} = {above.name}.{above.key.name}"
            columns = columns + aliased(above.columns, above.name)
        link = f"{self.predicate(columns)}" if self.random.random() < 0.8 else f"{key} IS NOT NULL"
        return self.random.choice([
            f"{left} IN (SELECT {key} FROM {tables} WHERE {link})",
            f"{left} IN (SELECT {key} FROM {tables} WHERE {link})",
            f"EXISTS (SELECT 1 FROM {tables} WHERE {key} = {left} AND {link})",
            f"NOT EXISTS (SELECT 1 FROM {tables} WHERE {key} = {left} AND {link})",
            f"{left} NOT IN (SELECT {key} FROM {tables} WHERE {link})",
            f"{left} NOT IN (SELECT {key} FROM {tables} WHERE {key} IS NOT NULL AND {link})",
        ])

    def alias(self, name):
        self.aliases += 1
        return f"{name}_{self.aliases}"

    # ---- expressions ----------------------------------------------------------------------------------------------

    def column(self, columns, *kinds):
        """One of these kinds; None if there is none. The fact's columns are many: half of the time another table's."""
        alike = [column for column in columns if not kinds or column.kind in kinds]
        others = [column for column in alike if not column.name.startswith("f.")]
        if others and self.random.random() < 0.6:
            return self.random.choice(others)
        return self.random.choice(alike) if alike else None

    def comparison(self):
        return self.random.choice(["=", "<>", "<", "<=", ">", ">="])

    def number(self, columns):
        """Something to be summed: its magnitude is at most 2^27, or it is a double or a decimal."""
        kind = self.random.choice(["small", "small", "small", "two", "two", "double", "decimal", "case"])
        if kind == "two":
            one, other = self.column(columns, "small").name, self.column(columns, "small").name
            sign = self.random.choice(["+", "-", "*"])
            return f"CAST({one} AS BIGINT) {sign} CAST({other} AS BIGINT)"
        if kind == "case":
            return f"CASE WHEN {self.test(columns)} THEN {self.column(columns, 'small').name} ELSE {self.random.choice(['0', '1', 'NULL'])} END"
        column = self.column([c for c in columns if not c.name.endswith("_key") and "(15" not in c.sql], kind)
        if column is None:
            return "f.f_qty"
        if kind == "decimal" and self.random.random() < 0.3:
            return f"{column.name} * {self.column([c for c in columns if c.sql == 'DECIMAL(12,2)'], 'decimal').name}"
        if kind == "double" and self.random.random() < 0.3:
            return f"{column.name} + {self.column(columns, 'double').name}"
        return column.name

    def key(self, columns):
        """Something to group by."""
        draw = self.random.random()
        if draw < 0.75:
            return self.column(columns).name
        if draw < 0.82:
            return self.number(columns)
        if draw < 0.88:
            return f"coalesce({self.column(columns, 'string').name}, 'none')"
        if draw < 0.92:
            return f"{self.column(columns, 'string').name} || {self.column(columns, 'string').name}"
        if draw < 0.96:
            column = self.column(columns, "day", "timestamp")
            return f"extract(year FROM {column.name})" if column else "f.f_color"
        return f"CASE WHEN {self.test(columns)} THEN 'so' ELSE {self.column(columns, 'string').name} END"

    def aggregate(self, columns):
        kind = self.random.choice(["count(*)", "count", "sum", "sum", "sum", "min", "max", "avg", "distinct"])
        if kind == "count(*)":
            call = kind
        elif kind == "distinct":
            call = f"count(DISTINCT {self.column(columns).name})"
        elif kind == "count":
            call = f"count({self.column(columns).name})"
        elif kind in ("min", "max"):
            column = self.column(columns, "integer", "small", "double", "decimal", "string", "day", "timestamp")
            call = f"{kind}({self.random.choice([column.name, self.number(columns)])})"
        elif kind == "avg":
            call = f"avg(CAST({self.number(columns)} AS DOUBLE))"
        else:
            call = f"sum({self.number(columns)})"
        if self.random.random() < 0.15:
            call += f" FILTER (WHERE {self.test(columns)})"
        return call

    def predicate(self, columns):
        draw = self.random.random()
        if draw < 0.7:
            return self.test(columns)
        if draw < 0.85:
            return f"({self.test(columns)} OR {self.test(columns)})"
        if draw < 0.92:
            return f"NOT ({self.test(columns)})"
        one, other = self.column(columns, "small"), self.column(columns, "small")
        if one is None:
            return self.test(columns)
        return f"{one.name} {self.comparison()} {other.name}"

    def test(self, columns):
        """A condition on one column."""
        column = self.column(columns)
        name = column.name
        if column.kind == "flag":
            return self.random.choice([name, f"NOT {name}", f"{name} IS NULL", f"{name} = TRUE"])
        draw = self.random.random()
        if draw < 0.08 or not column.domain:
            return f"{name} IS {self.random.choice(['', 'NOT '])}NULL"
        values = [self.constant(column) for _ in range(self.random.choice([2, 3, 8]))]
        low, high = sorted([self.random.choice(column.domain) for _ in range(2)])
        if column.kind == "string" and draw < 0.3:
            value = str(self.random.choice(column.domain)).replace("'", "''")
            piece = value[: self.random.choice([1, 3, 6])]
            return f"{name} {self.random.choice(['', '', 'NOT '])}LIKE '{self.random.choice([piece + '%', '%' + piece, '%' + piece[-2:] + '%'])}'"
        if draw < 0.5:
            return f"{name} {self.random.choice(['', '', 'NOT '])}IN ({', '.join(values)})"
        if draw < 0.75:
            return f"{name} BETWEEN {self.constant(column, low)} AND {self.constant(column, high)}"
        return f"{name} {self.random.choice(['=', '=', '<>', '<', '>='])} {values[0]}"

    def constant(self, column, value=None):
        value = self.random.choice(column.domain) if value is None else value
        if column.kind in ("decimal",):
            return f"CAST('{value}' AS {column.sql})"
        return literal(value)


def aliased(columns, alias):
    return [replace(column, name=f"{alias}.{column.name}") for column in columns]


def named(items):
    """With a name for each, since both engines have their own."""
    return ", ".join(f"{item} AS c{number}" for number, item in enumerate(items))
