#!/usr/bin/env python3
"""Writes the exports anew: run it in this folder, with the Python package duckdb."""

import duckdb
c=duckdb.connect()
c.execute("""
CREATE SEQUENCE ids START 5 INCREMENT 2;
CREATE SCHEMA past;
CREATE TABLE city (name VARCHAR PRIMARY KEY, region VARCHAR NOT NULL DEFAULT 'it''s new');
CREATE TABLE sale (
    id BIGINT PRIMARY KEY DEFAULT nextval('ids'), city VARCHAR REFERENCES city, day DATE, moment TIMESTAMP,
    amount DECIMAL(12,2) CHECK (amount > 0), cents BIGINT AS (amount * 100), note VARCHAR, rate DOUBLE, ok BOOLEAN,
    UNIQUE (city, day)
);
CREATE TABLE past.sale (id INTEGER, "Odd name" VARCHAR);
INSERT INTO city VALUES ('Lyon', 'Europe'), ('Kyoto', 'Asia');
INSERT INTO city (name) VALUES ('Nowhere');
INSERT INTO sale (city, day, moment, amount, note, rate, ok) VALUES
    ('Lyon', '2024-01-01', '2024-01-01 10:30:00.5', 12.5, 'a "quoted", one', 0.1, true),
    ('Kyoto', '2024-02-29', NULL, 7, '', -1e300, false),
    (NULL, NULL, NULL, NULL, NULL, NULL, NULL);
INSERT INTO past.sale VALUES (1, 'x'), (2, NULL);
CREATE INDEX by_day ON sale (day ASC, city DESC);
CREATE UNIQUE INDEX by_note ON sale (note);
CREATE VIEW total AS SELECT city, sum(amount) AS amount FROM sale GROUP BY ALL;
CREATE VIEW grand (g) AS SELECT sum(amount) FROM total;
COMMENT ON TABLE sale IS 'what was sold';
""")
c.execute("EXPORT DATABASE 'csv' (FORMAT csv)")
c.execute("EXPORT DATABASE 'gzip' (FORMAT csv, COMPRESSION gzip, DELIMITER '|', NULLSTR 'NIL')")
c.execute("EXPORT DATABASE 'parquet' (FORMAT parquet)")
