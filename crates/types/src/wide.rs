//! Values of 16 bytes as numbers: what they are to whoever stores them, and in constants of fragments.

/// Flips the top bit: maps `u128` to `i128`, and back, keeping the order.
const SIGN: u128 = 1 << 127;

/// The number that stands for a UUID: its bytes, the first one highest, with the top bit flipped. The order of bytes is
/// that of the numbers.
pub const fn wide_of_uuid(uuid: [u8; 16]) -> i128 {
    (u128::from_be_bytes(uuid) ^ SIGN) as i128
}

/// The UUID that a number stands for; the inverse of [`wide_of_uuid`].
pub const fn uuid_of_wide(number: i128) -> [u8; 16] {
    (number as u128 ^ SIGN).to_be_bytes()
}

/// The number that stands for an interval: its months, days and nanoseconds, each in two's complement. The order of the
/// numbers means nothing.
pub const fn wide_of_interval(months: i32, days: i32, nanoseconds: i64) -> i128 {
    let (months, days) = (months as u32 as u128, days as u32 as u128);
    (months << 96 | days << 64 | nanoseconds as u64 as u128) as i128
}

/// Months, days and nanoseconds of the interval that a number stands for; the inverse of [`wide_of_interval`].
pub const fn interval_of_wide(number: i128) -> (i32, i32, i64) {
    ((number >> 96) as i32, (number >> 64) as i32, number as i64)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn uuids_are_numbers_in_the_order_of_their_bytes() {
        let uuids = [[0; 16], [0x7f; 16], [0x80; 16], [0xff; 16]];
        let numbers = uuids.map(wide_of_uuid);
        assert!(numbers.is_sorted());
        assert_eq!((numbers[0], numbers[3]), (i128::MIN, i128::MAX));
        assert_eq!(numbers.map(uuid_of_wide), uuids);
    }

    #[test]
    fn intervals_are_numbers() {
        for interval in [
            (0, 0, 0),
            (-1, 2, -3),
            (i32::MIN, -1, i64::MAX),
            (7, i32::MAX, i64::MIN),
        ] {
            let (months, days, nanoseconds) = interval;
            let number = wide_of_interval(months, days, nanoseconds);
            assert_eq!(interval_of_wide(number), interval);
        }
    }
}
