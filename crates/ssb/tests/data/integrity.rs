//! What holds in the data at every scale: cardinalities, keys, hierarchies, arithmetic.

use crate::tables::{collect, numbers, text, texts};
use arrow_array::cast::AsArray;
use arrow_array::types::Int64Type;
use eris_ssb::{Generator, Scale, SsbTable};
use std::collections::{HashMap, HashSet};

fn generator(scale: f64) -> Generator {
    Generator::new(Scale::new(scale).unwrap())
}

#[test]
fn cardinalities() {
    let small = generator(0.01);
    assert_eq!(
        SsbTable::ALL.map(|table| small.rows(table))[..4],
        [2_556, 300, 20, 2_000]
    );
    // Orders have four lines on average with a standard deviation of two.
    for (scale, published) in [(1.0, 6_001_215_i64), (10.0, 59_986_052)] {
        let rows = generator(scale).rows(SsbTable::Lineorder) as i64;
        let five_sigma = (5.0 * 2.0 * (2.0 * 1_500_000.0 * scale).sqrt()) as i64;
        assert!((rows - published).abs() < five_sigma, "{rows} at {scale}");
    }
}

#[test]
fn every_foreign_key_exists() {
    let generator = generator(0.02);
    let days: HashSet<i32> = numbers(&collect(&generator, SsbTable::Date, 1), "d_datekey")
        .iter()
        .copied()
        .collect();
    assert_eq!(days.len(), 2_556);
    let facts = collect(&generator, SsbTable::Lineorder, 1);
    for column in ["lo_orderdate", "lo_commitdate"] {
        for key in numbers(&facts, column) {
            assert!(days.contains(key), "{column} {key}");
        }
    }
    let dimensions = [
        (SsbTable::Customer, "c_custkey", "lo_custkey"),
        (SsbTable::Supplier, "s_suppkey", "lo_suppkey"),
        (SsbTable::Part, "p_partkey", "lo_partkey"),
    ];
    for (table, key, reference) in dimensions {
        let keys = collect(&generator, table, 1);
        let keys = numbers(&keys, key);
        assert!(keys.iter().copied().eq(1..=keys.len() as i32), "{key}");
        let used: HashSet<i32> = numbers(&facts, reference).iter().copied().collect();
        assert!(
            used.iter().all(|key| (1..=keys.len() as i32).contains(key)),
            "{reference}"
        );
        if table == SsbTable::Customer {
            assert!(used.iter().all(|key| key % 3 != 0), "idle customers");
        } else {
            assert_eq!(used.len(), keys.len(), "{reference} reaches every row");
        }
    }
}

#[test]
fn orders_are_consistent() {
    let facts = collect(&generator(0.01), SsbTable::Lineorder, 1);
    let order_keys = facts.column(0).as_primitive::<Int64Type>().values();
    let column = |name| numbers(&facts, name);
    let (lines, totals) = (column("lo_linenumber"), column("lo_ordtotalprice"));
    let (extended, discount) = (column("lo_extendedprice"), column("lo_discount"));
    let (revenue, tax) = (column("lo_revenue"), column("lo_tax"));
    let (cost, quantity) = (column("lo_supplycost"), column("lo_quantity"));
    let shared = ["lo_custkey", "lo_orderdate"].map(column);
    let mut begin = 0;
    while begin < facts.num_rows() {
        let key = order_keys[begin];
        let end = begin
            + order_keys[begin..]
                .iter()
                .take_while(|k| **k == key)
                .count();
        assert!(
            key & 31 < 8,
            "order key {key} is one of the eight used of 32"
        );
        assert!(end == facts.num_rows() || order_keys[end] > key);
        assert!(
            lines[begin..end]
                .iter()
                .copied()
                .eq(1..=(end - begin) as i32)
        );
        let total: i32 = (begin..end)
            .map(|row| revenue[row] * (100 + tax[row]) / 100)
            .sum();
        for row in begin..end {
            assert_eq!(totals[row], total);
            assert!(shared.iter().all(|column| column[row] == column[begin]));
            assert_eq!(
                i64::from(revenue[row]),
                i64::from(extended[row]) * i64::from(100 - discount[row]) / 100
            );
            assert_eq!(extended[row] % quantity[row], 0);
            assert_eq!(cost[row], extended[row] / quantity[row] * 6 / 10);
            assert_eq!(text(&facts, "lo_shippriority", row), "0");
        }
        begin = end;
    }
    let within = |name, low, high| {
        let values = column(name);
        assert_eq!(values.iter().min(), Some(&low), "{name}");
        assert_eq!(values.iter().max(), Some(&high), "{name}");
    };
    within("lo_linenumber", 1, 7);
    within("lo_quantity", 1, 50);
    within("lo_discount", 0, 10);
    within("lo_tax", 0, 8);
    within("lo_orderdate", 19_920_101, 19_980_802);
    assert_eq!(distinct(&facts, "lo_shipmode"), 7);
    assert_eq!(distinct(&facts, "lo_orderpriority"), 5);
}

#[test]
fn hierarchies_hold() {
    let generator = generator(1.0);
    let customers = collect(&generator, SsbTable::Customer, 1);
    let suppliers = collect(&generator, SsbTable::Supplier, 1);
    let parts = collect(&generator, SsbTable::Part, 1);
    for (table, levels, counts) in [
        (&customers, ["c_city", "c_nation", "c_region"], [250, 25, 5]),
        (&suppliers, ["s_city", "s_nation", "s_region"], [250, 25, 5]),
        (&parts, ["p_brand1", "p_category", "p_mfgr"], [1_000, 25, 5]),
    ] {
        assert_eq!(levels.map(|level| distinct(table, level)), counts);
        for pair in levels.windows(2) {
            let mut parent_of = HashMap::new();
            for (child, parent) in texts(table, pair[0]).iter().zip(texts(table, pair[1])) {
                let known = parent_of.entry(child).or_insert(parent);
                assert_eq!(*known, parent, "{} of {child:?}", pair[1]);
            }
        }
    }
    assert_eq!(distinct(&customers, "c_mktsegment"), 5);
    assert_eq!(distinct(&parts, "p_color"), 92);
    assert_eq!(distinct(&parts, "p_type"), 150);
    assert_eq!(distinct(&parts, "p_container"), 40);
    for row in 0..customers.num_rows() {
        let (city, nation) = (
            text(&customers, "c_city", row),
            text(&customers, "c_nation", row),
        );
        assert_eq!(city.len(), 10);
        assert!(format!("{nation:<9}").starts_with(&city[..9]), "{city}");
        let address = text(&customers, "c_address", row);
        assert!((10..=24).contains(&address.len()), "{address}");
        let phone = text(&customers, "c_phone", row);
        assert_eq!(phone.len(), 15, "{phone}");
    }
    // A nation has one country code.
    let codes: HashSet<_> = (0..customers.num_rows())
        .map(|row| {
            (
                text(&customers, "c_nation", row),
                &text(&customers, "c_phone", row)[..2],
            )
        })
        .collect();
    assert_eq!(codes.len(), 25);
}

#[test]
fn the_calendar_is_right() {
    let date = collect(&generator(0.001), SsbTable::Date, 1);
    let row = |key| {
        numbers(&date, "d_datekey")
            .iter()
            .position(|k| *k == key)
            .unwrap()
    };
    let flags = [
        "d_lastdayinweekfl",
        "d_lastdayinmonthfl",
        "d_holidayfl",
        "d_weekdayfl",
    ];
    let flags = |row: usize| flags.map(|flag| numbers(&date, flag)[row]);

    let first = row(19_920_101);
    assert_eq!(first, 0);
    assert_eq!(text(&date, "d_date", first), "January 1, 1992");
    assert_eq!(text(&date, "d_dayofweek", first), "Wednesday");
    assert_eq!(text(&date, "d_sellingseason", first), "Winter");
    assert_eq!(flags(first), [0, 0, 1, 1]);

    let leap = row(19_960_229);
    assert_eq!(text(&date, "d_dayofweek", leap), "Thursday");
    assert_eq!(text(&date, "d_yearmonth", leap), "Feb1996");
    assert_eq!(numbers(&date, "d_yearmonthnum")[leap], 199_602);
    assert_eq!(numbers(&date, "d_daynuminyear")[leap], 60);
    assert_eq!(flags(leap), [0, 1, 0, 1]);

    let saturday = row(19_980_801);
    assert_eq!(numbers(&date, "d_daynuminweek")[saturday], 7);
    assert_eq!(flags(saturday), [1, 0, 0, 0]);

    let weeks = numbers(&date, "d_weeknuminyear");
    assert_eq!(
        (weeks.iter().min(), weeks.iter().max()),
        (Some(&1), Some(&53))
    );
    let week_6 = (0..date.num_rows())
        .filter(|row| weeks[*row] == 6 && numbers(&date, "d_year")[*row] == 1994);
    assert_eq!(week_6.count(), 7);
    assert_eq!(distinct(&date, "d_yearmonth"), 84);
}

fn distinct(batch: &arrow_array::RecordBatch, column: &str) -> usize {
    texts(batch, column).iter().collect::<HashSet<_>>().len()
}
