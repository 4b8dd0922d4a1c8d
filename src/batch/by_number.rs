//! The order of files: by name, with numbers as numbers.

use crate::os::system;
use std::cmp::Ordering;
use std::ffi::OsStr;

/// The order of two names in which numbers count as numbers: `IM2` comes before `IM10`. Names whose numbers differ only in leading
/// zeros are in the order of their bytes.
pub fn by_number(one: &OsStr, other: &OsStr) -> Ordering {
    let (one, other) = (system::bytes_of(one), system::bytes_of(other));
    let (mut a, mut b) = (one, other);
    while let ([first, ..], [second, ..]) = (a, b) {
        let order = if first.is_ascii_digit() && second.is_ascii_digit() {
            let (x, y) = (take_number(&mut a), take_number(&mut b));
            x.len().cmp(&y.len()).then_with(|| x.cmp(y))
        } else {
            (a, b) = (&a[1..], &b[1..]);
            first.cmp(second)
        };
        if order.is_ne() {
            return order;
        }
    }
    a.len().cmp(&b.len()).then_with(|| one.cmp(other))
}

/// Takes the digits at the start of a name, and returns them without leading zeros.
fn take_number<'a>(name: &mut &'a [u8]) -> &'a [u8] {
    let digits = name.iter().take_while(|byte| byte.is_ascii_digit());
    let (number, rest) = name.split_at(digits.count());
    *name = rest;
    let zeros = number.iter().take_while(|&&digit| digit == b'0');
    &number[zeros.count()..]
}

#[cfg(test)]
mod tests {
    use super::by_number;
    use std::ffi::OsStr;

    #[test]
    fn slice_10_came_before_slice_2() {
        let expected = [
            "IM",
            "IM01",
            "IM1",
            "IM2",
            "IM10",
            "IM10a",
            "IM11",
            "IM100",
            "IMa",
            "a1b2",
            "a1b10",
            "a01b11",
            "a2b1",
            "x18446744073709551616",
            "x18446744073709551617",
        ];
        let mut names = expected;
        names.reverse();
        names.sort_by(|one, other| by_number(OsStr::new(one), OsStr::new(other)));
        assert_eq!(names, expected);
    }
}
