"""The parts of the comparison with other engines, which bench/ssb.py puts together.

    literals.py   the benchmark's queries with other constants
    limit.py      the fewest bytes that a query has to read
    process.py    Eris and its peers, each in a process of its own
    engines.py    how each peer loads the tables and runs a query
    measure.py    warm-up, comparison of results, interleaved rounds
    summary.py    medians, ratios and means of what was measured
    output.py     the table, the figure and the raw numbers
"""
