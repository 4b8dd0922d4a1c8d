// TIFF decoder, last part: samples from inflated strips or tiles. One form for each number of bytes of a sample.
// forms: SAMPLE=1,2,4 named s{SAMPLE}
//
//   tiff_rows(const u8 *bytes, u32 width, u32 height, u32 channels, u32 chunk_width, u32 chunk_height, u32 differences,
//             u32 swap, u32 kind, Sample *image, const u32 *report)
//       The rows of an image from those of its chunks, which lie behind one another from left to right and then down: tiles, all
//       of one size, or strips as wide as the image, of which the last ends with it. differences: 1 where a sample is stored
//       as its difference from that of the same channel one pixel to the left (TIFF 6.0, section 14). swap: 1 where the first
//       byte of a sample is the highest. kind: 0 for numbers without a sign, 1 with one, 2 for floating point. Grid: a warp
//       for each row of each chunk, 8 a block of 256.
//
// Two numbers, for b bytes of image: reads b and writes b; for OWN differences a lane takes some 40 instructions, ten
// of which are shuffles that depend on one another.
#include "inflate.cuh"

template <u32 BYTES> struct Unsigned;
template <> struct Unsigned<1> { using type = u8; };
template <> struct Unsigned<2> { using type = u16; };
template <> struct Unsigned<4> { using type = u32; };
using Sample = Unsigned<SAMPLE>::type;

constexpr u32 OWN = 4; // pixels of a lane
constexpr u32 TOP = 1u << (8 * SAMPLE - 1);

// A sample of the file in the order of the machine's bytes.
static __device__ __forceinline__ u32 read(Sample stored, u32 swap) {
    if (SAMPLE == 1 || !swap) return stored;
    return __byte_perm(stored, 0, SAMPLE == 2 ? 0x4401 : 0x0123);
}

// A sample as it is in memory: its order is that of numbers without a sign.
static __device__ __forceinline__ Sample ordered(u32 sample, u32 kind) {
    if (kind == 0) return sample;
    return kind == 2 && (sample & TOP) ? ~sample : sample ^ TOP;
}

// lengths: bytes[((ceil(width, chunk_width) - 1) * ceil(height,
//     chunk_height) * chunk_height + height) * chunk_width * channels * SAMPLE], image[width * height * channels],
//     report[REPORT]
// requires: chunk_width >= 1, chunk_height >= 1, channels >= 1
// in sets
extern "C" __global__ void __launch_bounds__(BLOCK)
    ENTRY(tiff_rows)(const u8 *__restrict__ bytes, u32 width, u32 height, u32 channels, u32 chunk_width, u32 chunk_height,
                     u32 differences, u32 swap, u32 kind, Sample *__restrict__ image, const u32 *report) {
    if (report[WRONG]) return;
    const u32 lane = threadIdx.x % 32, row = blockIdx.x * WARPS + threadIdx.x / 32;
    const u32 across = (width + chunk_width - 1) / chunk_width, chunk = row / chunk_height;
    const u32 x = chunk % across * chunk_width, y = chunk / across * chunk_height + row % chunk_height;
    if (y >= height) return;
    const u32 count = min(chunk_width, width - x);
    const Sample *from = (const Sample *)bytes + (u64)row * chunk_width * channels;
    Sample *to = image + ((u64)y * width + x) * channels;
    if (!differences) {
        for (u32 i = lane; i < count * channels; i += 32) to[i] = ordered(read(from[i], swap), kind);
        return;
    }
    for (u32 c = 0; c < channels; c++) {
        u32 carry = 0;
        for (u32 start = 0; start < count; start += 32 * OWN) {
            const u32 first = start + lane * OWN;
            u32 own[OWN], sum = 0;
#pragma unroll
            for (u32 k = 0; k < OWN; k++) {
                sum += first + k < count ? read(from[(first + k) * channels + c], swap) : 0;
                own[k] = sum;
            }
#pragma unroll
            for (u32 d = 1; d < 32; d *= 2) {
                const u32 before = __shfl_up_sync(ALL, sum, d);
                if (lane >= d) sum += before;
            }
            const u32 before = carry + sum - own[OWN - 1];
#pragma unroll
            for (u32 k = 0; k < OWN; k++)
                if (first + k < count) to[(first + k) * channels + c] = ordered(before + own[k], kind);
            carry += __shfl_sync(ALL, sum, 31);
        }
    }
}
