//! `CREATE TABLE` statements.

use crate::table::SsbTable;
use arrow_schema::DataType;
use std::fmt::Write;

/// The definition of one table.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct TableDefinition {
    /// Which table.
    pub table: SsbTable,
    /// The statement, in standard SQL, without a semicolon at its end.
    pub sql: String,
}

/// The definitions of the five tables, dimensions first.
///
/// The dimensions carry their primary key, on which the star joins rest. The fact table does not: no query of the
/// benchmark looks a line up, and its index would be as large as the columns the queries read.
pub fn ddl() -> Vec<TableDefinition> {
    SsbTable::ALL
        .into_iter()
        .map(|table| TableDefinition {
            table,
            sql: create_table(table),
        })
        .collect()
}

fn create_table(table: SsbTable) -> String {
    let mut sql = format!("create table {table} (");
    for (at, (name, data_type)) in table.columns().iter().enumerate() {
        let separator = if at == 0 { "" } else { "," };
        write!(
            sql,
            "{separator}\n  {name} {} not null",
            sql_type(data_type)
        )
        .expect("writing to a string cannot fail");
    }
    if table != SsbTable::Lineorder {
        write!(sql, ",\n  primary key ({})", table.primary_key().join(", "))
            .expect("writing to a string cannot fail");
    }
    sql.push_str("\n)");
    sql
}

fn sql_type(data_type: &DataType) -> &'static str {
    match data_type {
        DataType::Int32 => "integer",
        DataType::Int64 => "bigint",
        DataType::Utf8 => "varchar",
        other => unreachable!("the benchmark has no column of type {other}"),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_supplier_table_reads_as_written_by_hand() {
        let definition = &ddl()[2];
        assert_eq!(definition.table, SsbTable::Supplier);
        assert_eq!(
            definition.sql,
            "create table supplier (\n  s_suppkey integer not null,\n  s_name varchar not null,\n  \
             s_address varchar not null,\n  s_city varchar not null,\n  s_nation varchar not null,\n  \
             s_region varchar not null,\n  s_phone varchar not null,\n  primary key (s_suppkey)\n)"
        );
    }
}
