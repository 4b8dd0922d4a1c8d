// The second pass of `normalize` for samples of 32 bits, whose results have 16 or 8. Floating-point samples are keys that sort as the
// numbers do: the bits, all flipped if the number is negative, else the top one. src/ops/wide/scale.rs has the definition,
// and the proof that doubles compute it but for samples near a half.
//
//   stretch_{u8,u16}_c{1,2,3,4}(const u32 *src, T *dst, u64 samples, const Scaling *scales, u32 is_real, u32 nan)
//       One Scaling for each channel. is_real ≠ 0: floating point, where the key `nan` stands for what is no finite number.
//       Grid: exactly ceil(samples / 4096) blocks of 256. src must be 16-byte aligned, and dst aligned to 4 samples.
//
// Two numbers, for n samples: reads 4 n, writes sizeof(T)·n; of floating point, 2 operations of doubles and 1 conversion to
// them a sample.
//
// forms: SAMPLE=u8,u16 CHANNELS=1,2,3,4 named {SAMPLE}_c{CHANNELS}
#include "wide.cuh"

typedef SAMPLE T;
constexpr u32 C = CHANNELS;
constexpr u32 VECTORS = 4; // of 4 samples, in flight for each thread

// The scale of one channel.
struct Scaling {
    double least;    // the value of min; of integers, d = max − min
    double factor;   // (hi − lo)/d; of integers, 1/d
    double span;     // hi − lo
    u32 min, max;    // samples
    u32 lo, hi;      // results
};

// How near to a whole number y must be for exact arithmetic to decide: 2^-33.
constexpr double NEAR = 1.0 / (1ull << 33);

// A whole number of 2^-149, at least 0, in 384 bits, the lowest first. Its loops are not unrolled: they run rarely, and
// registers for them would be taken from all threads.
struct Fixed {
    u32 limb[12];
};

// Adds the number with a key, or its negative, modulo 2^384.
static __device__ void add(Fixed &sum, u32 key, bool negative) {
    const u32 b = bits(key), exponent = b >> 23 & 0xff;
    const u32 mantissa = (b & 0x7fffff) | (exponent ? 1u << 23 : 0), shift = exponent ? exponent - 1 : 0;
    const u64 wide = (u64)mantissa << shift % 32;
    const u32 low = shift / 32, flip = (negative != (b >> 31 != 0)) ? ALL : 0;
    u64 carry = flip & 1; // two's complement
#pragma unroll 1
    for (u32 i = 0; i < 12; i++) {
        const u32 part = i == low ? (u32)wide : i == low + 1 ? (u32)(wide >> 32) : 0;
        carry += (u64)sum.limb[i] + (part ^ flip);
        sum.limb[i] = (u32)carry;
        carry >>= 32;
    }
}

static __device__ void multiply(Fixed &number, u32 factor) {
    u64 carry = 0;
#pragma unroll 1
    for (u32 i = 0; i < 12; i++) {
        carry += (u64)number.limb[i] * factor;
        number.limb[i] = (u32)carry;
        carry >>= 32;
    }
}

// Whether the result of a floating-point sample in min … max is `k` or more, for k above lo: (2(k − lo) − 1)·d ≤ 2(hi − lo)·x.
static __device__ bool reaches(u32 sample, u32 k, const Scaling &scale) {
    Fixed d = {}, x = {};
    add(d, scale.max, false), add(d, scale.min, true), multiply(d, 2 * (k - scale.lo) - 1);
    add(x, sample, false), add(x, scale.min, true), multiply(x, 2 * (scale.hi - scale.lo));
#pragma unroll 1
    for (int i = 11; i >= 0; i--)
        if (d.limb[i] != x.limb[i]) return d.limb[i] < x.limb[i];
    return true;
}

// y, the exact quotient and a half, within 2^-34.
static __device__ __forceinline__ double lifted(u32 sample, const Scaling &scale) {
    return fma((double)__uint_as_float(bits(sample)) - scale.least, scale.factor, 0.5);
}

static __device__ __forceinline__ u32 clamped(u32 sample, const Scaling &scale) {
    return min(max(sample, scale.min), scale.max);
}

// Of floating point; `near` becomes true where exact arithmetic must decide. Doubles from 2^32 on have steps of 2^-20: the
// quotient and a half, rounded down to such a step, has its whole part above the lowest 20 bits, and is near to a whole
// number where these are all 0 or all 1.
static __device__ __forceinline__ u32 real(u32 sample, const Scaling &scale, u32 nan, bool &near) {
    const u32 key = clamped(sample - LEAST > SPAN ? nan : sample, scale);
    const double down = __fma_rd((double)__uint_as_float(bits(key)) - scale.least, scale.factor, 4294967296.5);
    const u32 low = __double2loint(down);
    near |= (low + 1 & 0xfffff) < 2;
    return scale.lo + __funnelshift_r(low, __double2hiint(down), 20);
}

// The same of a sample that is near: by doubles, and where they do not tell, by exact arithmetic, which has two results to
// choose from.
static __device__ __noinline__ u32 decided(u32 sample, const Scaling &scale, u32 nan) {
    const u32 s = clamped(sample - LEAST > SPAN ? nan : sample, scale);
    const double y = lifted(s, scale), least = floor(y - NEAR);
    const u32 low = scale.lo + (u32)least;
    if (y + NEAR < least + 1.0) return low;
    return low + (low < scale.hi && reaches(s, low + 1, scale));
}

// Doubles have a whole number below 2^32 in the low half of 2^52 + it.
constexpr double TWO_52 = 4503599627370496.0;

// Of integers: the quotient of floor((x·(hi − lo) + floor(d/2))/d) is off by one at most before its remainder is known.
static __device__ __forceinline__ u32 integer(u32 sample, const Scaling &scale) {
    const u32 x = clamped(sample, scale) - scale.min, half = (scale.max - scale.min) / 2;
    const auto number = [](u32 whole) { return __hiloint2double(0x43300000, whole) - TWO_52; };
    const double n = fma(number(x), scale.span, number(half)), d = scale.least;
    const double down = __dadd_rd(n * scale.factor, TWO_52), rest = fma(-(down - TWO_52), d, n);
    return scale.lo + __double2loint(down) + (rest >= d) - (rest < 0.0);
}

// Five blocks to a multiprocessor: with the registers that fewer would leave it, a thread waits longer for memory.
// lengths: src[samples], dst[samples], scales[CHANNELS]
// requires: samples % CHANNELS == 0, grid.blocks == ceil(samples, 4096)
extern "C" __global__ void __launch_bounds__(BLOCK, 5)
    ENTRY(stretch)(const u32 *src, T *dst, u64 samples, const Scaling *scales, u32 is_real, u32 nan) {
    __shared__ Scaling channel[C];
    if (threadIdx.x < C) channel[threadIdx.x] = scales[threadIdx.x];
    const u64 vectors = samples / 4, first = (u64)blockIdx.x * (BLOCK * VECTORS) + threadIdx.x;
    uint4 v[VECTORS] = {};
#pragma unroll
    for (u32 u = 0; u < VECTORS; u++)
        if (first + u * BLOCK < vectors) v[u] = ((const uint4 *)src)[first + u * BLOCK];
    __syncthreads();
    const auto one = [&](u64 i) {
        const Scaling &scale = channel[i % C];
        dst[i] = (T)(is_real ? decided(src[i], scale, nan) : integer(src[i], scale));
    };
#pragma unroll
    for (u32 u = 0; u < VECTORS; u++) {
        const u64 vector = first + u * BLOCK;
        if (vector >= vectors) break;
        const u32 word[4] = {v[u].x, v[u].y, v[u].z, v[u].w}, phase = C == 3 ? (u32)(vector % 3) : 0;
        u32 out[4];
        bool near = false;
#pragma unroll
        for (u32 j = 0; j < 4; j++) {
            const Scaling &scale = channel[(phase + j) % C];
            out[j] = is_real ? real(word[j], scale, nan, near) : integer(word[j], scale);
        }
        if (near)
#pragma unroll 1
            for (u64 i = 4 * vector; i < 4 * vector + 4; i++) one(i);
        else if (sizeof(T) == 2)
            ((uint2 *)dst)[vector] = {out[0] | out[1] << 16, out[2] | out[3] << 16};
        else
            ((u32 *)dst)[vector] = out[0] | out[1] << 8 | out[2] << 16 | out[3] << 24;
    }
    // The samples that no vector holds.
    const u64 rest = 4 * vectors + threadIdx.x;
    if (blockIdx.x == 0 && rest < samples) one(rest);
}
