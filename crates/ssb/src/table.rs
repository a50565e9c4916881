//! The five tables and their schemas.

use arrow_schema::DataType::{self, Int32, Int64, Utf8};
use arrow_schema::{Field, Schema, SchemaRef};
use std::fmt;
use std::str::FromStr;
use std::sync::Arc;

/// A table of the benchmark.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub enum SsbTable {
    /// The days, 17 columns.
    Date,
    /// The customers, 8 columns.
    Customer,
    /// The suppliers, 7 columns.
    Supplier,
    /// The parts, 9 columns.
    Part,
    /// The fact table: one row per line of an order, 17 columns.
    Lineorder,
}

/// A name that is none of the five tables'.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
#[error(
    "'{0}' is not a table of the Star Schema Benchmark (date, customer, supplier, part, lineorder)"
)]
pub struct UnknownTable(pub String);

impl SsbTable {
    /// All tables, the dimensions first and the fact table last: the order in which to load them.
    pub const ALL: [SsbTable; 5] = [
        SsbTable::Date,
        SsbTable::Customer,
        SsbTable::Supplier,
        SsbTable::Part,
        SsbTable::Lineorder,
    ];

    /// The name as the queries write it.
    pub fn name(self) -> &'static str {
        match self {
            SsbTable::Date => "date",
            SsbTable::Customer => "customer",
            SsbTable::Supplier => "supplier",
            SsbTable::Part => "part",
            SsbTable::Lineorder => "lineorder",
        }
    }

    /// The columns that identify a row.
    pub fn primary_key(self) -> &'static [&'static str] {
        match self {
            SsbTable::Date => &["d_datekey"],
            SsbTable::Customer => &["c_custkey"],
            SsbTable::Supplier => &["s_suppkey"],
            SsbTable::Part => &["p_partkey"],
            SsbTable::Lineorder => &["lo_orderkey", "lo_linenumber"],
        }
    }

    /// The schema, no column nullable. 32 bits wherever the values of scale 1,000 fit; money is in cents.
    pub fn schema(self) -> SchemaRef {
        let fields = self
            .columns()
            .iter()
            .map(|(name, data_type)| Field::new(*name, data_type.clone(), false));
        Arc::new(Schema::new(fields.collect::<Vec<_>>()))
    }

    pub(crate) fn columns(self) -> &'static [(&'static str, DataType)] {
        match self {
            SsbTable::Date => &[
                ("d_datekey", Int32),
                ("d_date", Utf8),
                ("d_dayofweek", Utf8),
                ("d_month", Utf8),
                ("d_year", Int32),
                ("d_yearmonthnum", Int32),
                ("d_yearmonth", Utf8),
                ("d_daynuminweek", Int32),
                ("d_daynuminmonth", Int32),
                ("d_daynuminyear", Int32),
                ("d_monthnuminyear", Int32),
                ("d_weeknuminyear", Int32),
                ("d_sellingseason", Utf8),
                ("d_lastdayinweekfl", Int32),
                ("d_lastdayinmonthfl", Int32),
                ("d_holidayfl", Int32),
                ("d_weekdayfl", Int32),
            ],
            SsbTable::Customer => &[
                ("c_custkey", Int32),
                ("c_name", Utf8),
                ("c_address", Utf8),
                ("c_city", Utf8),
                ("c_nation", Utf8),
                ("c_region", Utf8),
                ("c_phone", Utf8),
                ("c_mktsegment", Utf8),
            ],
            SsbTable::Supplier => &[
                ("s_suppkey", Int32),
                ("s_name", Utf8),
                ("s_address", Utf8),
                ("s_city", Utf8),
                ("s_nation", Utf8),
                ("s_region", Utf8),
                ("s_phone", Utf8),
            ],
            SsbTable::Part => &[
                ("p_partkey", Int32),
                ("p_name", Utf8),
                ("p_mfgr", Utf8),
                ("p_category", Utf8),
                ("p_brand1", Utf8),
                ("p_color", Utf8),
                ("p_type", Utf8),
                ("p_size", Int32),
                ("p_container", Utf8),
            ],
            SsbTable::Lineorder => &[
                ("lo_orderkey", Int64),
                ("lo_linenumber", Int32),
                ("lo_custkey", Int32),
                ("lo_partkey", Int32),
                ("lo_suppkey", Int32),
                ("lo_orderdate", Int32),
                ("lo_orderpriority", Utf8),
                ("lo_shippriority", Utf8),
                ("lo_quantity", Int32),
                ("lo_extendedprice", Int32),
                ("lo_ordtotalprice", Int32),
                ("lo_discount", Int32),
                ("lo_revenue", Int32),
                ("lo_supplycost", Int32),
                ("lo_tax", Int32),
                ("lo_commitdate", Int32),
                ("lo_shipmode", Utf8),
            ],
        }
    }
}

impl fmt::Display for SsbTable {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.pad(self.name())
    }
}

impl FromStr for SsbTable {
    type Err = UnknownTable;

    fn from_str(name: &str) -> Result<Self, UnknownTable> {
        SsbTable::ALL
            .into_iter()
            .find(|table| table.name().eq_ignore_ascii_case(name))
            .ok_or_else(|| UnknownTable(name.to_owned()))
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn schemas_have_the_published_widths_and_keys() {
        let widths = SsbTable::ALL.map(|table| table.schema().fields().len());
        assert_eq!(widths, [17, 8, 7, 9, 17]);
        for table in SsbTable::ALL {
            assert_eq!(table.name().parse(), Ok(table));
            for key in table.primary_key() {
                assert!(table.schema().index_of(key).is_ok(), "{table}.{key}");
            }
        }
    }
}
