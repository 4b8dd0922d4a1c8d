// The CRCs of PNG chunks, both ways (PNG specification, third edition, section 5.5), and of gzip members, and the data of
// IDAT chunks in one piece.
//
//   png_join(const u8 *file, const Stretch *stretches, u32 count, u8 *stream, u32 len, u32 room, u32 *sums)
//       Copies the data of chunks to a stream of `len` bytes, fills it to `room` with zeros, and takes each stretch of a
//       chunk's kind and data into its sum. A sum that was the complement of the CRC that the file states is
//       zero afterwards. Grid: ceil(count / 8) blocks of 256.
//   png_agree(const u32 *sums, u32 count, u32 *report)
//       Whether all of them are zero. Grid: ceil(count / 256) blocks of 256.
//   png_crc(const u8 *bytes, const Stretch *stretches, u32 count, u32 *sums)
//       Takes each stretch of some bytes into their sum, which is zero before, and the complement of their
//       CRC afterwards. Grid: ceil(count / 8) blocks of 256.
//   inflate_crc(the same, const u32 *report)
//       The same for inflated bytes, of gzip members. Nothing if the report has a fault: then not all bytes are there.
//
// A CRC is a polynomial's remainder, so stretches are summed up apart: each one's remainder, times x to the power of the
// bits behind it. Inside a stretch each lane of a warp does the same with every 32nd word.
//
// Two numbers, for b bytes: both read b, join writes b; four table lookups a word, and some 150 instructions a
// stretch for each bit of what is behind it.
#include "inflate.cuh"

constexpr u32 ROW = 128; // host: bytes that a warp takes at a time

// Bytes of a chunk that a warp sums up.
struct Stretch {
    u32 at, len; // in the file; any number of bytes
    u32 behind;  // bytes of the chunk that follow
    u32 sum;     // index
    u32 to;      // in the stream: its first byte that is copied
    u32 first;   // whether it is the chunk's first: at least 4 bytes, which png_join does not copy
};
static_assert(sizeof(Stretch) == 24, "the host knows");

// A remainder has the coefficient of x^0 in its highest bit. The product of two.
static __device__ constexpr u32 times(u32 a, u32 b) {
    u32 product = 0;
#pragma unroll 4
    for (u32 i = 0; i < 32; i++) {
        product ^= (int)(a << i) < 0 ? b : 0;
        b = b >> 1 ^ (b & 1 ? 0xedb88320u : 0); // times x
    }
    return product;
}

// Remainders that the compiler works out.
struct Powers {
    u32 squares[35]; // x to the power of 2^k
    u32 lanes[32];   // what stands in a lane's word, times this, is the sum of its row
    u32 row[32];     // what follows a register of one bit when a whole row has passed
};
static __device__ constexpr Powers powers() {
    Powers made{};
    made.squares[0] = 1u << 30;
    for (u32 k = 1; k < 35; k++) made.squares[k] = times(made.squares[k - 1], made.squares[k - 1]);
    u32 word = 1u << 31;
    for (u32 lane = 32; lane-- > 0;) made.lanes[lane] = word = times(word, made.squares[5]);
    for (u32 bit = 0; bit < 32; bit++) made.row[bit] = times(1u << bit, word);
    return made;
}
static __constant__ Powers POWERS = powers();

// What follows a register when a whole row has passed, for each value of each of its bytes.
static __device__ __forceinline__ void fill(u32 (*after)[256]) {
#pragma unroll
    for (u32 k = 0; k < 4; k++) {
        u32 sum = 0;
#pragma unroll
        for (u32 bit = 0; bit < 8; bit++) sum ^= threadIdx.x >> bit & 1 ? POWERS.row[8 * k + bit] : 0;
        after[k][threadIdx.x] = sum;
    }
    __syncthreads();
}

// The warp's sum of a stretch, in all lanes. `copy(i, byte)` gets each byte, or `copy_word(i, word)` four from i on.
template <class Copy, class CopyWord>
static __device__ __forceinline__ u32 sum_up(const u8 *bytes, const Stretch &s, const u32 (*after)[256], Copy copy,
                                             CopyWord copy_word) {
    const u32 lane = threadIdx.x % 32;
    const u32 rows = (s.len + ROW - 1) / ROW;
    const u32 *words = (const u32 *)bytes;
    u32 sum = 0;
    // The last row ends with the stretch; zeros before its beginning change nothing.
    int i = (int)s.len - (int)(rows * ROW) + (int)(4 * lane);
#pragma unroll 4
    for (u32 row = 0; row < rows; row++, i += ROW) {
        u32 word = 0;
        if (i >= 4) {
            const u32 at = s.at + i, shift = at % 4;
            const u32 low = words[at / 4];
            word = shift ? __funnelshift_r(low, words[at / 4 + 1], 8 * shift) : low;
            copy_word(i, word);
        } else {
#pragma unroll
            for (int e = 0; e < 4; e++) {
                if (i + e < 0) continue;
                u32 byte = bytes[s.at + i + e];
                copy(i + e, byte);
                // The register of a CRC begins with ones.
                if (s.first && i + e < 4) byte ^= 0xff;
                word |= byte << 8 * e;
            }
        }
        sum = after[0][sum & 0xff] ^ after[1][sum >> 8 & 0xff] ^ after[2][sum >> 16 & 0xff] ^ after[3][sum >> 24] ^ word;
    }
    sum = times(sum, POWERS.lanes[lane]);
#pragma unroll
    for (u32 d = 16; d; d /= 2) sum ^= __shfl_xor_sync(ALL, sum, d);
    for (u32 bits = s.behind, k = 3; bits; bits /= 2, k++)
        if (bits & 1) sum = times(sum, POWERS.squares[k]);
    return sum;
}

// lengths: file[..], stretches[count], stream[room], sums[..]
// requires: len <= room, room <= len + 256
// trusts: stretches, which lie inside the file and the stream, and whose sums there are
// in sets
extern "C" __global__ void __launch_bounds__(BLOCK)
    png_join(const u8 *file, const Stretch *stretches, u32 count, u8 *stream, u32 len, u32 room, u32 *sums) {
    __shared__ u32 after[4][256];
    fill(after);
    const u32 index = blockIdx.x * WARPS + threadIdx.x / 32;
    if (blockIdx.x == 0 && threadIdx.x < room - len) stream[len + threadIdx.x] = 0;
    if (index >= count) return;
    const Stretch s = stretches[index];
    const int skipped = s.first ? 4 : 0;
    u8 *to = stream + s.to;
    const auto copy = [&](int i, u32 byte) {
        if (i >= skipped) to[i - skipped] = byte;
    };
    const u32 sum = sum_up(file, s, after, copy, [&](int i, u32 word) {
        u8 *at = to + (i - skipped);
        if ((u64)at % 4 == 0) *(u32 *)at = word;
        else
            for (u32 e = 0; e < 4; e++) at[e] = word >> 8 * e;
    });
    if (threadIdx.x % 32 == 0) atomicXor(&sums[s.sum], sum);
}

// lengths: sums[count], report[REPORT]
// in sets
extern "C" __global__ void __launch_bounds__(BLOCK) png_agree(const u32 *sums, u32 count, u32 *report) {
    const u32 i = blockIdx.x * BLOCK + threadIdx.x;
    if (i < count && sums[i]) atomicOr(&report[WRONG], OTHER_CRC);
}

static __device__ __forceinline__ void add_crc(u32 block, const u8 *bytes, const Stretch *stretches, u32 count, u32 *sums) {
    __shared__ u32 after[4][256];
    fill(after);
    const u32 index = block * WARPS + threadIdx.x / 32;
    if (index >= count) return;
    const Stretch s = stretches[index];
    const u32 sum = sum_up(bytes, s, after, [](int, u32) {}, [](int, u32) {});
    if (threadIdx.x % 32 == 0) atomicXor(&sums[s.sum], sum);
}

// lengths: bytes[..], stretches[count], sums[..]
// trusts: stretches, which lie inside the bytes, and whose sums there are
// in sets
extern "C" __global__ void __launch_bounds__(BLOCK)
    png_crc(const u8 *bytes, const Stretch *stretches, u32 count, u32 *sums) {
    add_crc(blockIdx.x, bytes, stretches, count, sums);
}

// lengths: bytes[..], stretches[count], sums[..], report[REPORT]
// trusts: stretches, which lie inside the bytes, and whose sums there are
// in sets
extern "C" __global__ void __launch_bounds__(BLOCK)
    inflate_crc(const u8 *bytes, const Stretch *stretches, u32 count, u32 *sums, const u32 *report) {
    if (report[WRONG]) return;
    add_crc(blockIdx.x, bytes, stretches, count, sums);
}
