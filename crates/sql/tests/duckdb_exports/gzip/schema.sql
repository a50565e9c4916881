CREATE SCHEMA past;
CREATE SEQUENCE ids INCREMENT BY 2 MINVALUE 1 MAXVALUE 9223372036854775807 START 11 NO CYCLE;
CREATE TABLE city("name" VARCHAR PRIMARY KEY, region VARCHAR DEFAULT('it''s new') NOT NULL);
CREATE TABLE past.sale(id INTEGER, "Odd name" VARCHAR);
CREATE TABLE sale(id BIGINT DEFAULT(nextval('ids')) PRIMARY KEY, city VARCHAR, "day" DATE, moment TIMESTAMP, amount DECIMAL(12,2), cents BIGINT GENERATED ALWAYS AS((amount * 100)), note VARCHAR, rate DOUBLE, ok BOOLEAN, FOREIGN KEY (city) REFERENCES city("name"), CHECK((amount > 0)), UNIQUE(city, "day"));
CREATE VIEW grand (g) AS SELECT sum(amount) FROM total;
CREATE VIEW total AS SELECT city, sum(amount) AS amount FROM sale GROUP BY ALL;
CREATE INDEX by_day ON sale("day", city);
CREATE UNIQUE INDEX by_note ON sale(note);

