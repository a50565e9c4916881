//! Types of columns, and values that are met again and again.

use crate::Random;

#[derive(Clone, Copy, PartialEq, Eq)]
pub enum Type {
    Small,
    Int,
    Big,
    Unsigned,
    Real,
    Double,
    Money,
    Huge,
    Text,
    Date,
    Timestamp,
    Boolean,
}

pub const TYPES: [Type; 12] = [
    Type::Small,
    Type::Int,
    Type::Big,
    Type::Unsigned,
    Type::Real,
    Type::Double,
    Type::Money,
    Type::Huge,
    Type::Text,
    Type::Date,
    Type::Timestamp,
    Type::Boolean,
];

impl Type {
    pub fn sql(self) -> &'static str {
        match self {
            Type::Small => "SMALLINT",
            Type::Int => "INTEGER",
            Type::Big => "BIGINT",
            Type::Unsigned => "UBIGINT",
            Type::Real => "REAL",
            Type::Double => "DOUBLE",
            Type::Money => "DECIMAL(9, 2)",
            Type::Huge => "DECIMAL(30, 3)",
            Type::Text => "VARCHAR",
            Type::Date => "DATE",
            Type::Timestamp => "TIMESTAMP",
            Type::Boolean => "BOOLEAN",
        }
    }

    /// What a column is sorted by. Zeros of both signs are equal, and either may come first.
    pub fn compared(self, column: &str) -> String {
        match self {
            Type::Real | Type::Double => format!("({column} + 0)"),
            _ => column.to_owned(),
        }
    }

    /// A value, from few enough that some are met again, the ends of the type among them.
    pub fn value(self, random: &mut Random) -> String {
        let is_special = random.one_in(12);
        let number = random.below(250) as i64 - 40;
        match self {
            Type::Small if is_special => random.pick(&["-32768", "32767"]).to_string(),
            Type::Int if is_special => random.pick(&["-2147483648", "2147483647"]).to_string(),
            Type::Big if is_special => random
                .pick(&["-9223372036854775808", "9223372036854775807", "4294967296"])
                .to_string(),
            Type::Unsigned if is_special => random
                .pick(&["0", "18446744073709551615", "9223372036854775808"])
                .to_string(),
            Type::Real | Type::Double if is_special => {
                let value = random.pick(&["NaN", "inf", "-inf", "-0.0", "0.0"]);
                format!("'{value}'::{}", self.sql())
            }
            Type::Money if is_special => random.pick(&["9999999.99", "-9999999.99"]).to_string(),
            Type::Huge if is_special => random
                .pick(&[
                    "999999999999999999999999999.999",
                    "-999999999999999999999999999.999",
                    "9223372036854775.808",
                ])
                .to_string(),
            Type::Small | Type::Int | Type::Big => number.to_string(),
            Type::Unsigned => random.below(200).to_string(),
            Type::Real | Type::Double => format!("({number} / 4.0)::{}", self.sql()),
            Type::Money => format!("{number}.25"),
            Type::Huge => format!("{number}.125"),
            Type::Text => format!("'{}'", text(random)),
            Type::Date => format!("DATE '2020-01-01' + {number}"),
            Type::Timestamp => {
                format!(
                    "TIMESTAMP '2020-01-01 10:00:00.{:06}'",
                    random.below(200) * 5
                )
            }
            Type::Boolean => random.pick(&["TRUE", "FALSE"]).to_string(),
        }
    }
}

pub fn text(random: &mut Random) -> String {
    let number = random.below(60);
    match random.below(12) {
        0 => String::new(),
        1 => random
            .pick(&["%", "_", "ab%", "ab_c", "ab\\c", " ", "ab ", "AB", "''"])
            .to_string(),
        2 => random
            .pick(&["ä", "äb", "日本", "日本語", "😀", "z\u{0301}", "\u{10ffff}"])
            .to_string(),
        // Behind the bytes that an index looks at.
        3 if random.one_in(8) => format!("{}{}", "long".repeat(300), number % 3),
        4..8 => format!("ab{number}"),
        8 => format!("ab{}", "c".repeat(number as usize % 5)),
        _ => format!("common beginning {number:03}"),
    }
}
