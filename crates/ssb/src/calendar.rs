//! The calendar of the benchmark: days counted from 1992-01-01.

/// A day of the proleptic Gregorian calendar.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) struct Day {
    pub(crate) year: i32,
    /// 1 to 12.
    pub(crate) month: i32,
    /// 1 to 31.
    pub(crate) day: i32,
    /// 1 to 366.
    pub(crate) day_of_year: i32,
    /// 0 is Sunday.
    pub(crate) weekday: i32,
}

const FIRST_YEAR: i32 = 1992;
/// 1992-01-01 was a Wednesday.
const FIRST_WEEKDAY: i32 = 3;

impl Day {
    /// The day `offset` days after 1992-01-01.
    pub(crate) fn at(offset: i32) -> Self {
        let (mut year, mut rest) = (FIRST_YEAR, offset);
        while rest >= days_in_year(year) {
            rest -= days_in_year(year);
            year += 1;
        }
        let day_of_year = rest + 1;
        let mut month = 1;
        while rest >= days_in_month(year, month) {
            rest -= days_in_month(year, month);
            month += 1;
        }
        Self {
            year,
            month,
            day: rest + 1,
            day_of_year,
            weekday: (FIRST_WEEKDAY + offset) % 7,
        }
    }

    /// The date key: `yyyymmdd` as a number.
    pub(crate) fn key(self) -> i32 {
        self.year * 10_000 + self.month * 100 + self.day
    }

    pub(crate) fn is_last_of_month(self) -> bool {
        self.day == days_in_month(self.year, self.month)
    }
}

fn is_leap(year: i32) -> bool {
    year % 4 == 0 && (year % 100 != 0 || year % 400 == 0)
}

fn days_in_year(year: i32) -> i32 {
    365 + i32::from(is_leap(year))
}

fn days_in_month(year: i32, month: i32) -> i32 {
    match month {
        2 => 28 + i32::from(is_leap(year)),
        4 | 6 | 9 | 11 => 30,
        _ => 31,
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn known_days() {
        assert_eq!(Day::at(0).key(), 19_920_101);
        assert_eq!(Day::at(59).key(), 19_920_229);
        assert_eq!(Day::at(366).key(), 19_930_101);
        // The last order of the benchmark: a Sunday.
        assert_eq!(
            (Day::at(2_405).key(), Day::at(2_405).weekday),
            (19_980_802, 0)
        );
        assert_eq!(Day::at(2_556).key(), 19_981_231);
        assert_eq!(Day::at(2_556).day_of_year, 365);
        assert!(Day::at(59).is_last_of_month() && !Day::at(58).is_last_of_month());
    }
}
