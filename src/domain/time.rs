//! Times as integers, and the one way they are written.

use std::fmt;

use jiff::Timestamp;
use jiff::tz::Offset;

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
            // Every 32-bit second is a valid timestamp.
            let timestamp = Timestamp::from_second(i64::from(time.0)).unwrap_or_default();
            let date = Offset::UTC.to_datetime(timestamp);
            let year = u32::from(date.year().unsigned_abs());
            self.put(0, [year / 100, year % 100]);
            self.put(5, [date.month().unsigned_abs().into()]);
            self.put(8, [date.day().unsigned_abs().into()]);
        }
        self.put(11, [second / 3600]);
        self.put(14, [second / 60 % 60]);
        self.put(17, [second % 60]);
        &self.text
    }

    /// Writes numbers below 100, two digits each.
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

#[cfg(test)]
mod tests {
    use super::*;
    use proptest::prelude::*;

    /// Expected by Python's `datetime`: the code and the next test share one calendar.
    #[test]
    fn days_at_leap_years_and_at_both_ends_are_right() {
        for (second, text) in [
            (0, "1970-01-01T00:00:00+00:00"),
            (951_782_399, "2000-02-28T23:59:59+00:00"),
            (951_782_400, "2000-02-29T00:00:00+00:00"),
            (4_107_542_399, "2100-02-28T23:59:59+00:00"),
            (4_107_542_400, "2100-03-01T00:00:00+00:00"),
            (u32::MAX, "2106-02-07T06:28:15+00:00"),
        ] {
            assert_eq!(UnixSeconds(second).to_string(), text);
        }
    }

    proptest! {
        #[test]
        fn writes_what_the_calendar_library_writes(second in any::<u32>()) {
            let expected = Timestamp::from_second(i64::from(second)).unwrap();
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
