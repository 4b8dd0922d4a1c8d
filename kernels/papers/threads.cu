// How threads share the work: divergence inside a warp and between warps and uneven load, and arithmetic per byte loaded,
// of "Transposing a matrix" (Kalgin and Baldin).
//
//   work(u32 *out, u32 mode, u32 rounds)
//       Thread t computes from t, `rounds` times, and stores out[t]. Modes: 0 all threads the same way; 1 odd warps of a
//       block another way, as long; 2 odd lanes of each warp the other way; 3 lanes of a warp work unequally long, lane l
//       2·rounds·l/31; 4 warps of a block work unequally long, warp w of n 2·rounds·w/(n − 1); 5 blocks work unequally long, block b of n 2·rounds·b/(n − 1).
//   fma_{1,2,4 … 256}(const uint4 *data, u64 n, float a, float b, u32 *sums)
//       Each word's lower 16 bits are made a float, x → x·a + b that many times, and summed: so many times two operations
//       for four bytes. With a = b = 1 every step is exact, and 1 is added each time.
//   fma_double_256(…)     the same in double precision
// Any launch of whole warps; work 4 at least two warps a block, work 5 two blocks.
#include "papers/papers.cuh"

// The two ways; each a few dependent integer instructions.
static __device__ __forceinline__ u32 one_way(u32 x) { return x * 1664525 + 1013904223; }
static __device__ __forceinline__ u32 other_way(u32 x) { return x * 22695477 ^ 0x2545f491; }

// lengths: out[grid.threads]
extern "C" __global__ void work(u32 *out, u32 mode, u32 rounds) {
    const u32 lane = threadIdx.x % 32, warp = threadIdx.x / 32, warps = blockDim.x / 32;
    const bool other = mode == 1 ? warp & 1 : mode == 2 ? lane & 1 : false;
    const u32 mine = mode == 3   ? 2 * rounds * lane / 31
                     : mode == 4 ? 2 * rounds * warp / (warps - 1)
                     : mode == 5 ? 2 * rounds * blockIdx.x / (gridDim.x - 1)
                                 : rounds;
    u32 x = number();
    if (other) {
#pragma unroll 1
        for (u32 k = 0; k < mine; k++) x = other_way(x);
    } else {
#pragma unroll 1
        for (u32 k = 0; k < mine; k++) x = one_way(x);
    }
    out[number()] = x;
}

// 2²³ + x as a float has x in its lower bits: no conversion, and steps of 1 are exact up to 2²⁴.
constexpr u32 BIAS = 0x4b000000;

template <u32 TIMES> static __device__ __forceinline__ u32 advanced(u32 word, float a, float b) {
    float x = __uint_as_float(BIAS | (word & 0xffff));
#pragma unroll
    for (u32 k = 0; k < TIMES; k++) x = __fmaf_rn(x, a, b);
    return __float_as_uint(x) - BIAS;
}

#define FMA(TIMES)                                                                                               \
    extern "C" __global__ void __launch_bounds__(BLOCK)                                                          \
        fma_##TIMES(const uint4 *data, u64 n, float a, float b, u32 *sums) {                                     \
        u32 sum = 0;                                                                                             \
        for (u64 i = number(); i < n; i += everyone()) {                                                         \
            const uint4 v = data[i];                                                                             \
            sum += advanced<TIMES>(v.x, a, b) + advanced<TIMES>(v.y, a, b) + advanced<TIMES>(v.z, a, b) +        \
                   advanced<TIMES>(v.w, a, b);                                                                   \
        }                                                                                                        \
        sums[number()] = sum;                                                                                    \
    }
// family: Fma
// lengths: data[n], sums[grid.threads]
FMA(1)
FMA(2)
FMA(4)
FMA(8)
FMA(16)
FMA(32)
FMA(64)
FMA(128)
FMA(256)

template <u32 TIMES> static __device__ __forceinline__ u32 advanced_double(u32 word, double a, double b) {
    double x = word & 0xffff;
#pragma unroll
    for (u32 k = 0; k < TIMES; k++) x = __fma_rn(x, a, b);
    return (u32)x;
}

extern "C" __global__ void __launch_bounds__(BLOCK)
    fma_double_256(const uint4 *data, u64 n, float a, float b, u32 *sums) {
    u32 sum = 0;
    for (u64 i = number(); i < n; i += everyone()) {
        const uint4 v = data[i];
        sum += advanced_double<256>(v.x, a, b) + advanced_double<256>(v.y, a, b) + advanced_double<256>(v.z, a, b) +
               advanced_double<256>(v.w, a, b);
    }
    sums[number()] = sum;
}
