//! Adler-32 checksums of data that are inflated or deflated in chunks.

/// The Adler-32 (RFC 1950, section 8.2) of two consecutive strings, from that of each and the length
/// of the second: sums of the bytes, and of those sums, modulo 65521.
pub fn combine(first: u32, second: u32, len: usize) -> u32 {
    const BASE: u64 = 65521;
    let parts = |sum: u32| (u64::from(sum & 0xFFFF), u64::from(sum >> 16));
    let ((a, a_sums), (b, b_sums)) = (parts(first), parts(second));
    // The second string starts from a instead of 1, which each of its sums contains.
    let surplus = a + BASE - 1;
    let sum = (b + surplus) % BASE;
    let sums = (a_sums + b_sums + len as u64 % BASE * (surplus % BASE)) % BASE;
    (sums << 16 | sum) as u32
}
