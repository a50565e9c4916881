//! What customers and suppliers have in common: a name with a number, an address, a city in a nation in a region
//! and a phone number of that nation.

use crate::random::Stream;
use crate::table::SsbTable;
use crate::words::{NATIONS, REGIONS};
use arrow_array::{ArrayRef, Int32Array, StringArray};
use std::fmt::Write;
use std::ops::Range;
use std::sync::Arc;

/// An address has 10 to 24 random characters of this alphabet.
const ALPHABET: &[u8; 64] = b"0123456789abcdefghijklmnopqrstuvwxyz ABCDEFGHIJKLMNOPQRSTUVWXYZ,";
const ADDRESS_LENGTH: (i32, i32) = (10, 24);

/// Cities are the nation's name cut or padded to nine characters and a digit: ten per nation.
const CITY_PREFIX: usize = 9;

pub(crate) struct Addresses {
    address_length: Stream,
    address: Stream,
    nation: Stream,
    city: Stream,
    phone: Stream,
}

impl Addresses {
    pub(crate) fn new(seed: u64, table: SsbTable) -> Self {
        let stream = |column| Stream::new(seed, table, column);
        Self {
            address_length: stream(0),
            address: stream(1),
            nation: stream(2),
            city: stream(3),
            phone: stream(4),
        }
    }

    /// Key, name, address, city, nation, region and phone of `rows`. Keys count from one.
    pub(crate) fn columns(&self, title: &str, rows: Range<u64>) -> Vec<ArrayRef> {
        let nation = |row| NATIONS[self.nation_of(row)];
        let text = |of: &dyn Fn(u64) -> String| -> ArrayRef {
            Arc::new(StringArray::from_iter_values(rows.clone().map(of)))
        };
        let name = |of: &dyn Fn(u64) -> &'static str| -> ArrayRef {
            Arc::new(StringArray::from_iter_values(rows.clone().map(of)))
        };
        vec![
            Arc::new(Int32Array::from_iter_values(
                rows.clone().map(|row| row as i32 + 1),
            )),
            text(&|row| format!("{title}#{:09}", row + 1)),
            text(&|row| self.address_of(row)),
            text(&|row| {
                format!(
                    "{:<width$.width$}{}",
                    nation(row).0,
                    self.city.below(row, 10),
                    width = CITY_PREFIX
                )
            }),
            name(&|row| nation(row).0),
            name(&|row| REGIONS[nation(row).1]),
            text(&|row| self.phone_of(row)),
        ]
    }

    fn nation_of(&self, row: u64) -> usize {
        self.nation.below(row, NATIONS.len() as u64) as usize
    }

    fn address_of(&self, row: u64) -> String {
        let (shortest, longest) = ADDRESS_LENGTH;
        let length = self.address_length.between(row, shortest, longest) as usize;
        let mut address = String::with_capacity(length);
        // Six bits a character, ten characters from each random number, four numbers reserved per row.
        let mut bits = 0;
        for at in 0..length {
            if at % 10 == 0 {
                bits = self.address.bits(row * 4 + at as u64 / 10);
            }
            address.push(ALPHABET[bits as usize & 63].into());
            bits >>= 6;
        }
        address
    }

    fn phone_of(&self, row: u64) -> String {
        let part = |at, low, high| self.phone.between(row * 4 + at, low, high);
        let mut phone = String::with_capacity(15);
        write!(
            phone,
            "{:02}-{:03}-{:03}-{:04}",
            self.nation_of(row) + 10,
            part(0, 100, 999),
            part(1, 100, 999),
            part(2, 1000, 9999)
        )
        .expect("writing to a string cannot fail");
        phone
    }
}
