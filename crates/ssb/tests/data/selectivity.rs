//! The thirteen queries select what the paper says they select (SSB paper, Section 3, "filter factor").

use crate::tables::{collect, numbers, text};
use arrow_array::RecordBatch;
use eris_ssb::{Generator, Scale, SsbTable};

/// Days on which orders are placed.
const DAYS: f64 = 2_406.0;

/// The share of the fact rows that one column's predicate keeps.
struct Share {
    of: f64,
    /// Among how many random rows it is drawn; without limit where it is exact.
    drawn_from: f64,
}

struct Expected {
    id: &'static str,
    paper: f64,
    shares: Vec<Share>,
}

#[test]
fn filter_factors_are_those_of_the_paper() {
    let generator = Generator::new(Scale::new(1.0).unwrap());
    let matches = count_matches(&generator);
    let rows = generator.rows(SsbTable::Lineorder) as f64;
    for (expected, matches) in expected().iter().zip(matches) {
        let nominal: f64 = expected.shares.iter().map(|share| share.of).product();
        // The paper counts years as sevenths of the time and halves for `lo_quantity < 25`; hence not closer.
        assert!(
            (nominal / expected.paper - 1.0).abs() < 0.17,
            "Q{}: the rules give {nominal}, the paper {}",
            expected.id,
            expected.paper
        );
        // Relative variances of independent draws add up.
        let variance: f64 = expected
            .shares
            .iter()
            .map(|share| (1.0 - share.of) / (share.of * share.drawn_from))
            .sum::<f64>()
            + 1.0 / (nominal * rows);
        let measured = matches as f64 / rows;
        assert!(
            (measured / nominal - 1.0).abs() < 4.0 * variance.sqrt(),
            "Q{}: {measured} selected, {nominal} expected, relative deviation {}",
            expected.id,
            variance.sqrt()
        );
    }
}

fn expected() -> Vec<Expected> {
    let days = |days: f64| Share {
        of: days / DAYS,
        drawn_from: f64::INFINITY,
    };
    let fact = |of| Share {
        of,
        drawn_from: f64::INFINITY,
    };
    let customer = |of| Share {
        of,
        drawn_from: 20_000.0,
    };
    let supplier = |of| Share {
        of,
        drawn_from: 2_000.0,
    };
    let part = |of| Share {
        of,
        drawn_from: 200_000.0,
    };
    let region = 1.0 / 5.0;
    let nation = 1.0 / 25.0;
    let cities = 2.0 / 250.0;
    let until_1997 = 2_192.0;
    let from_1997 = 365.0 + 214.0;
    let query = |id, paper, shares| Expected { id, paper, shares };
    vec![
        query(
            "1.1",
            1.0 / 7.0 * 0.5 * 3.0 / 11.0,
            vec![days(365.0), fact(3.0 / 11.0), fact(0.48)],
        ),
        query(
            "1.2",
            1.0 / 84.0 * 0.2 * 3.0 / 11.0,
            vec![days(31.0), fact(3.0 / 11.0), fact(0.2)],
        ),
        // Printed with 0.1 for the quantity, although the query's range is ten of fifty.
        query(
            "1.3",
            1.0 / 364.0 * 0.2 * 3.0 / 11.0,
            vec![days(7.0), fact(3.0 / 11.0), fact(0.2)],
        ),
        query("2.1", 1.0 / 125.0, vec![part(1.0 / 25.0), supplier(region)]),
        query(
            "2.2",
            1.0 / 625.0,
            vec![part(1.0 / 125.0), supplier(region)],
        ),
        query(
            "2.3",
            1.0 / 5_000.0,
            vec![part(1.0 / 1_000.0), supplier(region)],
        ),
        query(
            "3.1",
            6.0 / 175.0,
            vec![customer(region), supplier(region), days(until_1997)],
        ),
        query(
            "3.2",
            6.0 / 4_375.0,
            vec![customer(nation), supplier(nation), days(until_1997)],
        ),
        query(
            "3.3",
            6.0 / 109_375.0,
            vec![customer(cities), supplier(cities), days(until_1997)],
        ),
        query(
            "3.4",
            1.0 / 1_312_500.0,
            vec![customer(cities), supplier(cities), days(31.0)],
        ),
        query(
            "4.1",
            2.0 / 125.0,
            vec![customer(region), supplier(region), part(2.0 / 5.0)],
        ),
        query(
            "4.2",
            4.0 / 875.0,
            vec![
                customer(region),
                supplier(region),
                part(2.0 / 5.0),
                days(from_1997),
            ],
        ),
        query(
            "4.3",
            2.0 / 21_875.0,
            vec![
                customer(region),
                supplier(nation),
                part(nation),
                days(from_1997),
            ],
        ),
    ]
}

/// Which rows of a dimension a predicate keeps, by key; keys count from one.
fn keep(batch: &RecordBatch, predicate: impl Fn(usize) -> bool) -> Vec<bool> {
    let mut kept = vec![false];
    kept.extend((0..batch.num_rows()).map(predicate));
    kept
}

/// Fact rows that each query's predicates keep, by hand and without the query texts.
fn count_matches(generator: &Generator) -> [u64; 13] {
    let customers = collect(generator, SsbTable::Customer, 1);
    let suppliers = collect(generator, SsbTable::Supplier, 1);
    let parts = collect(generator, SsbTable::Part, 1);
    let date = collect(generator, SsbTable::Date, 1);

    let is =
        |batch, column, value: &'static str| keep(batch, |row| text(batch, column, row) == value);
    let one_of = |batch, column, values: [&'static str; 2]| {
        keep(batch, |row| values.contains(&text(batch, column, row)))
    };
    let cities = ["UNITED KI1", "UNITED KI5"];
    let customer_asia = is(&customers, "c_region", "ASIA");
    let customer_america = is(&customers, "c_region", "AMERICA");
    let customer_nation = is(&customers, "c_nation", "UNITED STATES");
    let customer_cities = one_of(&customers, "c_city", cities);
    let supplier_asia = is(&suppliers, "s_region", "ASIA");
    let supplier_america = is(&suppliers, "s_region", "AMERICA");
    let supplier_europe = is(&suppliers, "s_region", "EUROPE");
    let supplier_nation = is(&suppliers, "s_nation", "UNITED STATES");
    let supplier_cities = one_of(&suppliers, "s_city", cities);
    let category_12 = is(&parts, "p_category", "MFGR#12");
    let category_14 = is(&parts, "p_category", "MFGR#14");
    let brands = keep(&parts, |row| {
        ("MFGR#2221"..="MFGR#2228").contains(&text(&parts, "p_brand1", row))
    });
    let brand = is(&parts, "p_brand1", "MFGR#2239");
    let makers = one_of(&parts, "p_mfgr", ["MFGR#1", "MFGR#2"]);

    // Year, month and week by date key.
    let mut calendar = vec![(0, 0, 0); 100_000];
    for row in 0..date.num_rows() {
        let key = numbers(&date, "d_datekey")[row] - 19_900_000;
        calendar[key as usize] = (
            numbers(&date, "d_year")[row],
            numbers(&date, "d_yearmonthnum")[row],
            numbers(&date, "d_weeknuminyear")[row],
        );
    }

    let mut matches = [0; 13];
    for facts in generator.table(SsbTable::Lineorder).partition(0, 1) {
        let column = |name| numbers(&facts, name);
        let (days, discounts) = (column("lo_orderdate"), column("lo_discount"));
        let quantities = column("lo_quantity");
        let (custkeys, suppkeys) = (column("lo_custkey"), column("lo_suppkey"));
        let partkeys = column("lo_partkey");
        for row in 0..facts.num_rows() {
            let (year, month, week) = calendar[(days[row] - 19_900_000) as usize];
            let (discount, quantity) = (discounts[row], quantities[row]);
            let [c, s, p] = [custkeys, suppkeys, partkeys].map(|keys| keys[row] as usize);
            let some = (26..=35).contains(&quantity);
            let early = (1992..=1997).contains(&year);
            let late = year == 1997 || year == 1998;
            let kept = [
                year == 1993 && (1..=3).contains(&discount) && quantity < 25,
                month == 199_401 && (4..=6).contains(&discount) && some,
                year == 1994 && week == 6 && (5..=7).contains(&discount) && some,
                category_12[p] && supplier_america[s],
                brands[p] && supplier_asia[s],
                brand[p] && supplier_europe[s],
                customer_asia[c] && supplier_asia[s] && early,
                customer_nation[c] && supplier_nation[s] && early,
                customer_cities[c] && supplier_cities[s] && early,
                customer_cities[c] && supplier_cities[s] && month == 199_712,
                customer_america[c] && supplier_america[s] && makers[p],
                customer_america[c] && supplier_america[s] && makers[p] && late,
                customer_america[c] && supplier_nation[s] && category_14[p] && late,
            ];
            for (count, kept) in matches.iter_mut().zip(kept) {
                *count += u64::from(kept);
            }
        }
    }
    matches
}
