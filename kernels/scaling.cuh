// The exact scale of normalize.cu, for samples of type T in C interleaved channels, of which the first COLOURS are colours:
// the file that includes this one defines these three.
#pragma once
#include "common.cuh"

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
