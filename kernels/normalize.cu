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
        src, samples,
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

// The constants of one channel. The paper computes (p − min)·factor + 0.5 in f32 and truncates, which is wrong by one
// for some samples. Here the factor (hi − lo)/d is the sum of two floats, `factor + rest`:
// v = x·(hi − lo)/d + 1/2 is a multiple of 1/(2d) > 2⁻¹⁷; the computed value differs by less than 2⁻²⁴ from v + 2⁻¹⁸,
// hence it lies in [v, v + 2⁻¹⁷): never below v, and never at the next integer unless v reaches it.
// Rounding towards zero to 24 bits, then to an integer, keeps the floor.
// Tested for every d and x with hi − lo = 65535.
struct Scaling {
    float bias;   // −(2²³ + min)
    float d;      // max − min
    float factor; // (hi − lo)/d, rounded
    float rest;   // (hi − lo)/d − factor
    float base;   // 2²³ + lo
};
constexpr float TWO_23 = 8388608.0f;
constexpr float HALF = 0.5f + 1.0f / 262144.0f;

// The constants that map every p to itself: for alpha, and for channels with d = 0.
static __device__ __forceinline__ Scaling identity() {
    return {-TWO_23, (float)FULL<T>, 1.0f, 0.0f, TWO_23};
}

static __device__ __forceinline__ Scaling scaling(u32 channel, const u32 *ranges, bool per_channel, u32 lo, u32 hi) {
    if (channel >= COLOURS) return identity();
    u32 min = ranges[2 * channel], rest = ranges[2 * channel + 1];
    if (!per_channel)
#pragma unroll
        for (u32 c = 0; c < COLOURS; c++) {
            min = ::min(min, ranges[2 * c]);
            rest = ::min(rest, ranges[2 * c + 1]);
        }
    const u32 max = FULL<T> - rest;
    if (max <= min) return identity();
    const float d = max - min, span = hi - lo, factor = __fdiv_rn(span, d);
    return {-(TWO_23 + min), d, factor, __fdiv_rn(__fmaf_rn(-factor, d, span), d), TWO_23 + lo};
}

// A sample in the low bits of the float 2²³ + p: no conversion instruction is needed on load or store.
static __device__ __forceinline__ u32 scale_one(u32 lifted, const Scaling &k) {
    const float x = fminf(fmaxf(__uint_as_float(lifted) + k.bias, 0.0f), k.d);
    const float v = __fmaf_rz(x, k.factor, __fmaf_rn(x, k.rest, HALF));
    return __float_as_uint(__fadd_rz(v, k.base));
}
constexpr u32 LIFT = 0x4b000000; // the bits of 2²³

// All samples of a word; k[i mod C] belongs to sample i of the vector, `first` is the word's first sample.
static __device__ __forceinline__ u32 scale_word(u32 word, u32 first, const Scaling *k) {
    u32 out[PER_WORD<T>];
#pragma unroll
    for (u32 e = 0; e < PER_WORD<T>; e++) {
        const u32 select = sizeof(T) == 2 ? (e ? 0x7632 : 0x7610) : 0x7640 | e;
        out[e] = scale_one(__byte_perm(word, LIFT, select), k[(first + e) % C]);
    }
    if (sizeof(T) == 2) return __byte_perm(out[0], out[1], 0x5410);
    return __byte_perm(__byte_perm(out[0], out[1], 0x0040), __byte_perm(out[2 % PER_WORD<T>], out[3 % PER_WORD<T>], 0x0040), 0x5410);
}

// lengths: src[samples], dst[samples], ranges[2 * CHANNELS]
// requires: samples % CHANNELS == 0, grid.blocks == ceil(samples * sizeof(T), 4096)
// in place: src = dst
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
