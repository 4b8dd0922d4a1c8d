//! Adler-32 checksums (RFC 1950, section 8.2) of data that are inflated or deflated in parts.

/// The modulus of both sums.
const MODULUS: u64 = 65521;

/// The Adler-32 of two consecutive strings, from that of each and the length of the second: sums of the
/// bytes, and of those sums, modulo 65521.
pub fn combine(first: u32, second: u32, len: usize) -> u32 {
    let parts = |sum: u32| (u64::from(sum & 0xFFFF), u64::from(sum >> 16));
    let ((a, a_sums), (b, b_sums)) = (parts(first), parts(second));
    // The second string starts from a instead of 1, which each of its sums contains.
    let surplus = a + MODULUS - 1;
    let sum = (b + surplus) % MODULUS;
    let sums = (a_sums + b_sums + len as u64 % MODULUS * (surplus % MODULUS)) % MODULUS;
    (sums << 16 | sum) as u32
}

/// The Adler-32 of `len` bytes, from the sum of the bytes and the sum of their running sums.
pub fn from_sums(len: usize, bytes: u64, running: u64) -> u32 {
    let low = (1 + bytes) % MODULUS;
    let high = (len as u64 + running) % MODULUS;
    (high << 16 | low) as u32
}
