// Normalize: the two passes of "CUDA: performance aspects of typical tasks" (habr.com post 119435, 2011), min and max
// together and then the scale with its "+ 0.5" rounding, made exact.
//
//   minmax_{u8,u16}_c{1,2,3,4}(const T *src, u64 samples, u32 *ranges)
//       Folds min and max of each of the C interleaved channels into `ranges`:
//       ranges[2c] = min of channel c, ranges[2c + 1] = full − max of channel c (full = 255 or 65535).
//       On entry every word is 0xffffffff (one memset of 8 words) or a fold of other samples.
//       Grid: any; best min(ceil(samples·sizeof(T) / 16384), 4·multiprocessors) blocks of 256.
//   scale_{u8,u16}_c{1,2,3,4}(const T *src, T *dst, u64 samples, const u32 *ranges,
//                             u32 per_channel, u32 lo, u32 hi)
//       out = lo + floor(x·(hi − lo)/d + 1/2), x = clamp(p, min, max) − min, d = max − min, 0 ≤ lo ≤ hi ≤ full.
//       per_channel ≠ 0: each colour channel has its own range; 0: one range over all colour channels.
//       The last of 2 or 4 channels is alpha: it never counts, and is copied. Where d = 0 samples are copied.
//       For a range that the user gives, write `ranges` and skip minmax. dst may equal src.
//       Grid: exactly ceil(samples·sizeof(T) / 4096) blocks of 256.
//       May be launched with programmatic stream serialization right after minmax: it waits for the ranges itself.
// `samples` counts all channels and is a multiple of C. Pointers that are not 16-byte aligned work, slower.
//
// Two numbers, for b bytes of image. minmax: reads b; 1 instruction a sample. scale: reads b, writes b;
// 9 instructions a sample, where 38 fit in the time that a H100 takes to move one u16 sample in and out.
//
// forms: SAMPLE=u8,u16 CHANNELS=1,2,3,4 named {SAMPLE}_c{CHANNELS}
#include "common.cuh"

typedef SAMPLE T;
constexpr u32 C = CHANNELS;
constexpr u32 COLOURS = C - (C + 1) % 2; // the last of 2 or 4 is alpha

// 16-byte vectors in flight for each thread in pass 1: a multiple of 3 for 3 channels, see below.
constexpr u32 MINMAX_VECTORS = C == 3 ? 3 : 4;

// lengths: src[samples], ranges[2 * CHANNELS]
// requires: samples % CHANNELS == 0
// in sets
extern "C" __global__ void __launch_bounds__(BLOCK) ENTRY(minmax)(const T *src, u64 samples, u32 *ranges) {
    // Samples are compared as packed pairs. Words P apart hold the same channels, so P accumulators are enough, and the
    // channel of a lane matters only at the end. (For 3 channels: BLOCK mod 3 = 1, hence word j of vector u has class
    // (u + j) mod 3, counted from the thread's own first word.)
    constexpr u32 P = C == 3 ? 3 : C * sizeof(T) == 8 ? 2 : 1;
    // A pair holds the samples in its upper bytes: for bytes, one pair for the odd samples and, shifted, one for the
    // even.
    constexpr u32 SHIFTS = sizeof(T) == 1 ? 2 : 1;
    static_assert(BLOCK % 3 == 1, "the classes of 3 channels rest on it");
    u32 low[P][SHIFTS], high[P][SHIFTS];
#pragma unroll
    for (u32 k = 0; k < P; k++)
#pragma unroll
        for (u32 s = 0; s < SHIFTS; s++) low[k][s] = ALL, high[k][s] = 0;
    // For each channel, min in the lower half and 65535 − max in the upper: one packed minimum folds both.
    u32 range[C];
#pragma unroll
    for (u32 c = 0; c < C; c++) range[c] = ALL;
    auto fold = [&](u32 channel, u32 min, u32 max) {
#pragma unroll
        for (u32 c = 0; c < C; c++)
            if (c == channel) range[c] = min2(range[c], min | (0xffff - max) << 16);
    };

    walk<MINMAX_VECTORS>(
        Turn{blockIdx.x, gridDim.x}, src, samples,
        [&](u32 u, uint4 v) {
            const u32 word[4] = {v.x, v.y, v.z, v.w};
#pragma unroll
            for (u32 j = 0; j < 4; j++)
#pragma unroll
                for (u32 s = 0; s < SHIFTS; s++) {
                    u32 k = (u + j) % P;
                    if (P == 2) k = j % P;
                    low[k][s] = min2(low[k][s], word[j] << 8 * s);
                    high[k][s] = max2(high[k][s], word[j] << 8 * s);
                }
        },
        [] {}, [&](u64 i, u32 s) { fold(i % C, s, s); });

    // A thread without vectors still holds low > high, which must not enter the channels.
    if (low[0][0] != ALL || high[0][0] != 0)
#pragma unroll
        for (u32 k = 0; k < P; k++)
#pragma unroll
            for (u32 e = 0; e < PER_WORD<T>; e++) {
                const u32 s = sizeof(T) == 1 ? 1 - e % 2 : 0, lane = sizeof(T) == 1 ? e | 1 : e;
                fold(((4 * threadIdx.x + k) * PER_WORD<T> + e) % C, sample<T>(low[k][s], lane),
                     sample<T>(high[k][s], lane));
            }

    __shared__ u32 shared[C][WARPS];
#pragma unroll
    for (u32 c = 0; c < C; c++) {
        u32 all = reduce_block(range[c], shared[c], ALL, min2);
        if (threadIdx.x == 0 && all != ALL) {
            atomicMin(&ranges[2 * c], all & 0xffff);
            atomicMin(&ranges[2 * c + 1], (all >> 16) - (0xffff - FULL<T>));
        }
    }
}

#include "scaling.cuh"

// lengths: src[samples], dst[samples], ranges[2 * CHANNELS]
// requires: samples % CHANNELS == 0, grid.blocks == ceil(samples * sizeof(T), 4096)
// in place: src = dst
// in sets
extern "C" __global__ void __launch_bounds__(BLOCK)
    ENTRY(scale)(const T *src, T *dst, u64 samples, const u32 *ranges, u32 per_channel, u32 lo, u32 hi) {
    // Last block first: pass 1 left the end of the image in the L2 cache.
    const u64 block = gridDim.x - 1 - blockIdx.x;
    const u64 vector = block * BLOCK + threadIdx.x;
    const bool whole = aligned16(src) && aligned16(dst) && (vector + 1) * PER_VECTOR<T> <= samples;
    uint4 v = {};
    if (whole) v = ((const uint4 *)src)[vector]; // in flight while the constants are derived

    __shared__ Scaling channel[C];
    if (threadIdx.x < C) {
#if __CUDA_ARCH__ >= 900
        asm volatile("griddepcontrol.wait;" ::: "memory"); // waits for the end of pass 1; no effect after an ordinary launch
#endif
        channel[threadIdx.x] = scaling(threadIdx.x, ranges, per_channel, lo, hi);
    }
    __syncthreads();

    if (whole) {
        const u32 phase = C == 3 ? (u32)(block % 3 + threadIdx.x) * PER_VECTOR<T> % 3 : 0; // BLOCK mod 3 = 1
        Scaling k[C];
#pragma unroll
        for (u32 c = 0; c < C; c++) k[c] = channel[(phase + c) % C];
        v.x = scale_word(v.x, 0 * PER_WORD<T>, k);
        v.y = scale_word(v.y, 1 * PER_WORD<T>, k);
        v.z = scale_word(v.z, 2 * PER_WORD<T>, k);
        v.w = scale_word(v.w, 3 * PER_WORD<T>, k);
        ((uint4 *)dst)[vector] = v;
    } else if (aligned16(src) && aligned16(dst)) { // the one vector that is cut by the image's end
        for (u64 i = vector * PER_VECTOR<T>; i < samples; i++) dst[i] = (T)scale_one(LIFT | src[i], channel[i % C]);
    } else {
        u64 i = block * (BLOCK * PER_VECTOR<T>) + threadIdx.x;
        for (u32 k = 0; k < PER_VECTOR<T> && i < samples; k++, i += BLOCK)
            dst[i] = (T)scale_one(LIFT | src[i], channel[i % C]);
    }
}
