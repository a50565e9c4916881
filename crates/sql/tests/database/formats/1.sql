-- What the database in the directory 1 was made of. Both stay as they are: whoever has data in this format wants it back.
CREATE SCHEMA "Odd schema";
CREATE SEQUENCE numbers START 5 INCREMENT 3;
SET balancing = 'off';

-- Many rows lie in a chunk file; all kinds of columns are among them.
CREATE TABLE many (
    i BIGINT, small SMALLINT, flag BOOLEAN, city VARCHAR, name VARCHAR, price DECIMAL(10, 2), x DOUBLE, r REAL, d DATE,
    t TIMESTAMP, u UBIGINT, runs INTEGER, short_runs BIGINT, framed BIGINT
);
INSERT INTO many
SELECT i * 1000003 % 999983, i % 300 - 150, i % 3 = 0, CASE WHEN i % 7 > 0 THEN 'city ' || i % 40 END,
       'a name among many, ' || i, CAST(i % 5000 AS DECIMAL(10, 2)) / 100, CASE WHEN i % 11 > 0 THEN i % 8 / 8.0 END, i % 4,
       DATE '2020-01-01' + i % 1000, TIMESTAMP '2024-02-29 12:00:00' + i % 100 * INTERVAL '1 minute',
       i + 9223372036854775808, i // 900, i // 6 * 2654435769 % 99999989, i // 1024 * 1099511627776 + i % 99
FROM range(0, 32900) AS all_rows(i);

-- Few lie in the log and in the snapshot.
CREATE TABLE keyed (k BIGINT PRIMARY KEY, a INTEGER, b VARCHAR, UNIQUE (b));
CREATE INDEX by_a ON keyed (a);
INSERT INTO keyed SELECT i, i % 17, 'b' || i FROM range(0, 700) AS all_rows(i);
CREATE TABLE texts ("The key" VARCHAR, "select" DECIMAL(8, 2) DEFAULT 9.99, CONSTRAINT "Key; one" PRIMARY KEY ("The key"));
INSERT INTO texts VALUES ('x', 1), ('', -3.5), ('it''s', NULL);
CREATE TABLE kinds (
    d DATE, u UUID, i INTERVAL, z TIMESTAMPTZ, b BLOB, h HUGEINT, c TIME, one TINYINT
);
INSERT INTO kinds VALUES
    ('2024-01-01', 'a0eebc99-9c0b-4ef8-bb6d-6bb9bd380a11', INTERVAL '1 month 2 days 3 seconds', '2024-06-01 10:00:00+00',
     '\xAB\x00'::BLOB, -99999999999999999999999999999999999999, '04:05:06', -128),
    (NULL, NULL, NULL, NULL, NULL, NULL, NULL, NULL);
CREATE TABLE dropped AS SELECT * FROM keyed;
CREATE TABLE children (
    id INTEGER GENERATED ALWAYS AS IDENTITY, k BIGINT REFERENCES keyed, n BIGINT DEFAULT nextval('numbers'),
    twice BIGINT GENERATED ALWAYS AS (n * 2), CHECK (n > 0)
);
INSERT INTO children (k) VALUES (7), (8), (9);
CREATE MACRO doubled(x, y := 2) AS x * y;
CREATE VIEW doubles AS SELECT k, doubled(k) AS d FROM keyed WHERE k < 5;
COMMENT ON TABLE keyed IS 'with a key; and a comment';
COMMENT ON COLUMN keyed.a IS 'seventeen of them';

CHECKPOINT;

-- The log behind the snapshot.
DELETE FROM many WHERE small = 149;
DELETE FROM keyed WHERE k % 5 = 0 AND k NOT IN (7, 8, 9);
UPDATE keyed SET a = a + 1000, b = 'was ' || b WHERE k % 7 = 0;
INSERT INTO many SELECT i, 0, NULL, 'another city', 'late ' || i % 50, 0.01, 0, 0, NULL, NULL, i, 0, 0, 0 FROM range(0, 32800) AS all_rows(i);
INSERT INTO texts VALUES ('later', DEFAULT);
DROP TABLE dropped;
ALTER TABLE texts ADD COLUMN extra INTEGER DEFAULT 4;
CREATE TABLE "Odd schema".copied AS SELECT k, b FROM keyed WHERE k < 20;
DROP MACRO IF EXISTS nothing;
CREATE VIEW gone AS SELECT 1 AS one;
DROP VIEW gone;
INSERT INTO children (k) VALUES (11);
