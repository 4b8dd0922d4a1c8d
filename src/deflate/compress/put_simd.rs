//! Huffman codes of 64 bytes at a time, looked up and joined in AVX-512 registers: 1.5 × the plain
//! loop, which makes the whole encoder 1.3 × as fast on noisy images.

use super::bit_writer::BitWriter;
#[cfg(target_arch = "x86_64")]
use crate::image::simd::{Level, level};

/// Appends the codes of groups of 8 bytes, from the first on, and returns how many groups that were:
/// all but a rest of fewer than 8, or none if the processor lacks the instructions. `planes` has each
/// literal's length, at most 14, and the low and high byte of its code.
pub fn put_literals(groups: &[[u8; 8]], planes: &[[u8; 256]; 3], out: &mut BitWriter) -> usize {
    #[cfg(target_arch = "x86_64")]
    if groups.len() >= 8 && level() == Level::Avx512 && is_x86_feature_detected!("avx512vbmi") {
        let blocks = groups.as_chunks::<8>().0;
        // SAFETY: the processor has the level's features and VBMI, for which the function is compiled.
        unsafe { x86::put(blocks, planes, out) };
        return 8 * blocks.len();
    }
    let _ = (groups, planes, out);
    0
}

#[cfg(target_arch = "x86_64")]
mod x86 {
    use super::BitWriter;
    use std::arch::x86_64::*;

    /// The eight numbers of 64 bits in a register.
    fn lanes(vector: __m512i) -> [u64; 8] {
        bytemuck::cast(vector)
    }

    fn vector(bytes: [u8; 64]) -> __m512i {
        bytemuck::cast(bytes)
    }

    /// A table of 256 bytes in four registers.
    type Plane = [__m512i; 4];

    fn plane(bytes: &[u8; 256]) -> Plane {
        let quarters = bytes.as_chunks::<64>().0;
        std::array::from_fn(|quarter| vector(quarters[quarter]))
    }

    /// The table's byte for each byte of `at`; `upper` has a bit for each that is 128 or more.
    #[inline]
    #[target_feature(enable = "avx512vbmi,avx512bw,avx512f,bmi2")]
    fn look_up(plane: &Plane, at: __m512i, upper: __mmask64) -> __m512i {
        let low = _mm512_permutex2var_epi8(plane[0], at, plane[1]);
        let high = _mm512_permutex2var_epi8(plane[2], at, plane[3]);
        _mm512_mask_blend_epi8(upper, low, high)
    }

    #[target_feature(enable = "avx512vbmi,avx512bw,avx512f,bmi2")]
    pub fn put(blocks: &[[[u8; 8]; 8]], planes: &[[u8; 256]; 3], out: &mut BitWriter) {
        let planes = [plane(&planes[0]), plane(&planes[1]), plane(&planes[2])];
        let byte = _mm512_set1_epi32(0xff);
        let half = _mm512_set1_epi32(0xffff);
        let low_bytes = _mm512_set1_epi16(0xff);
        let word = _mm512_set1_epi64(0xffff_ffff);
        let full = _mm512_set1_epi64(56);
        let mut out = out.packer();
        for block in blocks {
            let mut bytes = [0; 64];
            bytes.copy_from_slice(block.as_flattened());
            let at = vector(bytes);
            let upper = _mm512_movepi8_mask(at);
            let [len, low, high] = [
                look_up(&planes[0], at, upper),
                look_up(&planes[1], at, upper),
                look_up(&planes[2], at, upper),
            ];
            // Codes of 16 bits, of even and of odd bytes.
            let even =
                _mm512_mask_blend_epi8(0xaaaa_aaaa_aaaa_aaaa, low, _mm512_slli_epi16::<8>(high));
            let odd =
                _mm512_mask_blend_epi8(0xaaaa_aaaa_aaaa_aaaa, _mm512_srli_epi16::<8>(low), high);
            // In each 32 bits, the four codes become two pairs of up to 28 bits.
            let first = _mm512_or_si512(
                _mm512_and_si512(even, half),
                _mm512_sllv_epi32(_mm512_and_si512(odd, half), _mm512_and_si512(len, byte)),
            );
            let third_len = _mm512_and_si512(_mm512_srli_epi32::<16>(len), byte);
            let second = _mm512_or_si512(
                _mm512_srli_epi32::<16>(even),
                _mm512_sllv_epi32(_mm512_srli_epi32::<16>(odd), third_len),
            );
            // Lengths of the pairs in each 16 bits.
            let pair_len = _mm512_add_epi16(
                _mm512_and_si512(len, low_bytes),
                _mm512_srli_epi16::<8>(len),
            );
            let first_len = _mm512_and_si512(pair_len, half);
            let four_len = _mm512_add_epi32(first_len, _mm512_srli_epi32::<16>(pair_len));
            // In each 64 bits, the pairs become two fours of up to 56 bits.
            let four_a = _mm512_or_si512(
                _mm512_and_si512(first, word),
                _mm512_sllv_epi64(
                    _mm512_and_si512(second, word),
                    _mm512_and_si512(first_len, word),
                ),
            );
            let four_b = _mm512_or_si512(
                _mm512_srli_epi64::<32>(first),
                _mm512_sllv_epi64(
                    _mm512_srli_epi64::<32>(second),
                    _mm512_srli_epi64::<32>(first_len),
                ),
            );
            let len_a = _mm512_and_si512(four_len, word);
            let len_b = _mm512_srli_epi64::<32>(four_len);
            let len = _mm512_add_epi64(len_a, len_b);
            if _mm512_cmpgt_epu64_mask(len, full) == 0 {
                let eight = _mm512_or_si512(four_a, _mm512_sllv_epi64(four_b, len_a));
                out.put_eight(lanes(eight), lanes(len));
            } else {
                let (a, b) = (lanes(four_a), lanes(four_b));
                let (len_a, len_b) = (lanes(len_a), lanes(len_b));
                for i in 0..8 {
                    out.put(a[i], len_a[i] as u32);
                    out.put(b[i], len_b[i] as u32);
                }
            }
        }
    }
}
