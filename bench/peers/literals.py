"""The benchmark's queries with constants drawn anew: same texts, other literals.

A plan, an answer or a key order that an engine keeps for thirteen fixed texts helps nobody who asks a fourteenth. So each
round draws, for each query, constants of the same kind: a region for a region, two cities of one nation for two cities of
one nation, a month for a month. They come from what the dimensions hold, and depend on the seed, the round and the query
only: every engine gets the same, whichever other queries are measured.

    where lo_orderdate = d_datekey and d_year = 1993 and lo_discount between 1 and 3 and lo_quantity < 25
                                                ────                         ─     ─                   ──
    DRAWS["1.1"]                                 year                   discount, + 2            quantity
"""

import random
import re
from dataclasses import dataclass

LITERAL = re.compile(r"'(?:[^']|'')*'|\b\d+\b")

# The fact table's own domains, as the benchmark defines them.
DISCOUNTS = range(0, 11)
QUANTITIES = range(1, 51)


@dataclass
class Domains:
    """What the dimensions hold, each list sorted."""

    years: list
    months: list  # As numbers, 199401.
    month_names: list  # As strings, Dec1997.
    weeks: list  # Year and number of the week in it.
    manufacturers: list
    categories: list
    brands: list
    regions: dict  # These three: by dimension, "c" or "s".
    nations: dict
    cities: dict  # A list per nation.


def read_domains(connection):
    """From tables or views that a DuckDB connection has."""

    # The last months of the calendar have no orders.
    days = "(FROM date WHERE d_datekey IN (SELECT lo_orderdate FROM lineorder))"

    def rows(columns, table):
        return connection.execute(f"SELECT DISTINCT {columns} FROM {table} ORDER BY ALL").fetchall()

    def values(column, table):
        return [value for (value,) in rows(column, table)]

    sides = {"c": "customer", "s": "supplier"}
    cities = {side: {} for side in sides}
    for side, table in sides.items():
        for nation, city in rows(f"{side}_nation, {side}_city", table):
            cities[side].setdefault(nation, []).append(city)
    return Domains(
        years=values("d_year", days),
        months=values("d_yearmonthnum", days),
        month_names=values("d_yearmonth", days),
        weeks=rows("d_year, d_weeknuminyear", days),
        manufacturers=values("p_mfgr", "part"),
        categories=values("p_category", "part"),
        brands=values("p_brand1", "part"),
        regions={side: values(f"{side}_region", table) for side, table in sides.items()},
        nations={side: values(f"{side}_nation", table) for side, table in sides.items()},
        cities=cities,
    )


class Draw:
    """One query's draws."""

    def __init__(self, domains, source):
        self.domains, self.random = domains, source

    def one(self, values):
        return self.random.choice(values)

    def window(self, values, length):
        """As many neighbours among sorted values, or all of them."""
        length = min(length, len(values))
        start = self.random.randrange(len(values) - length + 1)
        return values[start : start + length]

    def ends(self, values, length):
        found = self.window(values, length)
        return [found[0], found[-1]]

    def pair(self, values):
        """Two different values, or one twice where there is only one."""
        return sorted(self.random.sample(values, 2)) if len(values) > 1 else values * 2

    def region(self, side):
        return self.one(self.domains.regions[side])

    def nation(self, side):
        return self.one(self.domains.nations[side])

    def cities(self, side):
        """Two cities of one nation."""
        return self.pair(self.domains.cities[side][self.nation(side)])

    def discounts(self):
        return self.ends(DISCOUNTS, 3)

    def quantities(self):
        return self.ends(QUANTITIES, 10)

    def week(self):
        year, week = self.one(self.domains.weeks)
        return [week, year]

    def years(self, count):
        return self.ends(self.domains.years, count)


# The literals of each query in the order of its text.
DRAWS = {
    "1.1": lambda d: [d.one(d.domains.years), *d.discounts(), d.one(range(20, 31))],
    "1.2": lambda d: [d.one(d.domains.months), *d.discounts(), *d.quantities()],
    "1.3": lambda d: [*d.week(), *d.discounts(), *d.quantities()],
    "2.1": lambda d: [d.one(d.domains.categories), d.region("s")],
    "2.2": lambda d: [*d.ends(d.domains.brands, 8), d.region("s")],
    "2.3": lambda d: [d.one(d.domains.brands), d.region("s")],
    "3.1": lambda d: [d.region("c"), d.region("s"), *d.years(6)],
    "3.2": lambda d: [d.nation("c"), d.nation("s"), *d.years(6)],
    "3.3": lambda d: [*d.cities("c"), *d.cities("s"), *d.years(6)],
    "3.4": lambda d: [*d.cities("c"), *d.cities("s"), d.one(d.domains.month_names)],
    "4.1": lambda d: [d.region("c"), d.region("s"), *d.pair(d.domains.manufacturers)],
    "4.2": lambda d: [d.region("c"), d.region("s"), *d.years(2), *d.pair(d.domains.manufacturers)],
    "4.3": lambda d: [d.region("c"), d.nation("s"), *d.years(2), d.one(d.domains.categories)],
}


def fresh(name, sql, domains, seed, number):
    """The query's text with the literals of one round."""
    literals = DRAWS[name](Draw(domains, random.Random(f"{seed}/{number}/{name}")))
    return replace(sql, literals)


def replace(sql, literals):
    """The text with its literals, in their order, exchanged for others of the same kind."""
    written = LITERAL.findall(sql)
    if [text.startswith("'") for text in written] != [isinstance(value, str) for value in literals]:
        raise ValueError(f"{literals} do not fit the literals {written} of the query:\n{sql}")
    values = iter(literals)
    return LITERAL.sub(lambda _: literal(next(values)), sql)


def literal(value):
    return "'" + value.replace("'", "''") + "'" if isinstance(value, str) else str(value)
