//! Times as integers, and the one way they are written.

use std::fmt;

/// Seconds since 1970-01-01 UTC; 32 bits reach the year 2106.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash, PartialOrd, Ord, Default)]
pub struct UnixSeconds(pub u32);

/// Milliseconds since 1970-01-01 UTC, for the service's own events.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash, PartialOrd, Ord, Default)]
pub struct UnixMillis(pub u64);

/// The wall clock, passed in so that a run can be repeated. Waiting is `tokio::time`'s.
pub trait Clock: fmt::Debug + Send + Sync + 'static {
    fn now(&self) -> UnixMillis;
}

impl UnixMillis {
    pub fn seconds(self) -> UnixSeconds {
        UnixSeconds(u32::try_from(self.0 / 1000).unwrap_or(u32::MAX))
    }

    pub fn since(self, earlier: Self) -> std::time::Duration {
        std::time::Duration::from_millis(self.0.saturating_sub(earlier.0))
    }
}

impl UnixSeconds {
    /// ISO 8601 to the second with the offset written out: `2026-11-21T07:05:51+00:00`.
    pub fn text(self) -> [u8; 25] {
        *TimeText::default().of(self)
    }
}

/// Texts of times, one after another: neighbours mostly share a date, which is formatted once.
#[derive(Debug, Default)]
pub struct TimeText {
    day: Option<u32>,
    text: [u8; 25],
}

impl TimeText {
    /// As [`UnixSeconds::text`].
    pub fn of(&mut self, time: UnixSeconds) -> &[u8; 25] {
        let (day, second) = (time.0 / 86_400, time.0 % 86_400);
        if self.day != Some(day) {
            self.day = Some(day);
            self.text = *b"yyyy-mm-ddThh:mm:ss+00:00";
            let (year, month, of_month) = civil(day);
            self.put(0, [year / 100, year % 100]);
            self.put(5, [month]);
            self.put(8, [of_month]);
        }
        self.put(11, [second / 3600]);
        self.put(14, [second / 60 % 60]);
        self.put(17, [second % 60]);
        &self.text
    }

    /// Writes numbers below 100 by two digits each.
    fn put<const N: usize>(&mut self, at: usize, numbers: [u32; N]) {
        let places = self.text.get_mut(at..).unwrap_or_default().chunks_exact_mut(2);
        for (to, number) in places.zip(numbers) {
            to.copy_from_slice(
                &[number / 10, number % 10].map(|d| b'0' + u8::try_from(d).unwrap_or_default()),
            );
        }
    }
}

/// As [`UnixSeconds::text`].
impl fmt::Display for UnixSeconds {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(std::str::from_utf8(&self.text()).map_err(|_| fmt::Error)?)
    }
}

/// Year, month and day of a day number, by eras of 400 years that begin in March
/// (Howard Hinnant, "chrono-Compatible Low-Level Date Algorithms").
fn civil(days: u32) -> (u32, u32, u32) {
    let shifted = days + 719_468;
    let (era, day_of_era) = (shifted / 146_097, shifted % 146_097);
    let year_of_era =
        (day_of_era - day_of_era / 1_460 + day_of_era / 36_524 - day_of_era / 146_096) / 365;
    let day_of_year = day_of_era - (365 * year_of_era + year_of_era / 4 - year_of_era / 100);
    let shifted_month = (5 * day_of_year + 2) / 153;
    let day = day_of_year - (153 * shifted_month + 2) / 5 + 1;
    let month = if shifted_month < 10 { shifted_month + 3 } else { shifted_month - 9 };
    (era * 400 + year_of_era + u32::from(month <= 2), month, day)
}

#[cfg(test)]
mod tests {
    use super::*;
    use proptest::prelude::*;

    proptest! {
        #[test]
        fn writes_what_the_calendar_library_writes(second in any::<u32>()) {
            let expected = jiff::Timestamp::from_second(i64::from(second)).unwrap();
            let text = expected.strftime("%Y-%m-%dT%H:%M:%S+00:00").to_string();
            prop_assert_eq!(UnixSeconds(second).to_string(), text);
        }

        /// Independent of the text that was written before.
        #[test]
        fn writes_neighbours_as_it_writes_each_alone(
            first in any::<u32>(),
            steps in proptest::collection::vec(-200_000_i32..200_000, 1..20),
        ) {
            let mut texts = TimeText::default();
            for time in steps.into_iter().map(|step| UnixSeconds(first.saturating_add_signed(step))) {
                prop_assert_eq!(texts.of(time), &time.text());
            }
        }
    }
}
