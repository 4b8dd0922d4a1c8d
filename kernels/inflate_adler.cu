// Inflater, last part: the checksums of what was inflated.
//
//   inflate_adler(const u8 *bytes, u64 count, u64 each, u32 tiles, u32 *report)
//       Of each stream's n bytes d: Σ d[i] and Σ (n − i)·d[i] for its Adler-32 (RFC 1950, section 8.2), in terms of at most 2³²
//       each, into its two sums behind the report. A stream makes `each` bytes, the last the rest of `count`. Grid: `tiles`
//       blocks of 256 a stream, each for TILE bytes.
// Behind the bytes there are 4 more.
//
// Two numbers, for b bytes: reads b; some 10 instructions for four of them.
#include "inflate.cuh"

constexpr u32 TILE = 16 << 10; // host

// lengths: bytes[count + 8], report[REPORT + 4 * ceil(grid.blocks, tiles)]
// requires: tiles >= 1
// in sets
extern "C" __global__ void __launch_bounds__(BLOCK)
    inflate_adler(const u8 *bytes, u64 count, u64 each, u32 tiles, u32 *report) {
    constexpr u32 BASE = 65521;
    __shared__ u32 parts[2][WARPS];
    if (report[WRONG]) return;
    const u32 stream = blockIdx.x / tiles;
    const u64 first = stream * each, start = first + (u64)(blockIdx.x % tiles) * TILE, end = min(first + each, count);
    if (start >= end) return;
    const u32 len = min((u64)TILE, end - start);
    u32 sum = 0, weighted = 0; // the weight of a byte is how many follow it in the tile, and itself
    for (u32 i = 4 * threadIdx.x; i < len; i += 4 * BLOCK) {
        const u64 at = start + i;
        const u32 *words = (const u32 *)bytes + at / 4;
        const u32 word = __funnelshift_r(words[0], words[1], at % 4 * 8);
#pragma unroll
        for (u32 e = 0; e < 4; e++) {
            const u32 byte = i + e < len ? word >> 8 * e & 0xff : 0;
            sum += byte;
            weighted += (len - i - e) * byte;
        }
    }
    const auto plus = [](u32 a, u32 b) { return a + b; };
    sum = reduce_block(sum, parts[0], 0u, plus);
    weighted = reduce_block(weighted % BASE, parts[1], 0u, plus);
    if (threadIdx.x == 0) {
        u64 *sums = (u64 *)(report + REPORT) + 2 * stream;
        atomicAdd(sums, (u64)sum);
        atomicAdd(sums + 1, weighted % BASE + (end - start - len) % BASE * (sum % BASE) % BASE);
    }
}
