// Lut: the colours of grey samples, by a table of 256 colours (src/ops/lut.rs has the definition).
//
//   lut_{u8,u16}(const T *src, u64 samples, u8 *dst, const u8 *table)
//       dst[3·i …] = table[3·index …], where the index is the sample, or the upper byte of one of 16 bits.
//   interpolated_{u8,u16}(const T *src, u64 samples, u16 *dst, const u8 *table)
//       With p the sample in 16 bits, i = ⌊p/257⌋ and r = p mod 257: dst[3·i …] = (257 − r)·T[i] + r·T[i + 1].
//       Pointers are 16-byte aligned. Grid: any; best ceil(samples / 4096) blocks of 256.
//
// Two numbers, for n samples of s bytes and results of t bytes: reads s·n, writes 3·t·n; a load from shared memory for each
// sample, or two.
//
// forms: SAMPLE=u8,u16 named {SAMPLE}
#include "common.cuh"

typedef SAMPLE T;
constexpr u32 COLOURS = 256;

struct Colour {
    u32 part[3];
};

// Writes the colours of all samples; `colour` gives that of one. Four pixels are 12 units of `U`, in 3·sizeof(U) words.
template <class U, class Look>
static __device__ __forceinline__ void look_up(Turn turn, const T *src, u64 samples, U *dst, const Look &colour) {
    const u64 thread = (u64)turn.block * BLOCK + threadIdx.x, threads = (u64)turn.blocks * BLOCK;
    constexpr u32 WORDS = 3 * sizeof(U), PER = 4 / sizeof(U);
    const u64 groups = samples / 4;
    for (u64 g = thread; g < groups; g += threads) {
        u32 in[sizeof(T)];
        if constexpr (sizeof(T) == 1) in[0] = ((const u32 *)src)[g];
        else {
            const uint2 pair = ((const uint2 *)src)[g];
            in[0] = pair.x, in[1] = pair.y;
        }
        u32 out[WORDS] = {};
#pragma unroll
        for (u32 e = 0; e < 4; e++) {
            const Colour k = colour(sample<T>(in[e / PER_WORD<T>], e % PER_WORD<T>));
#pragma unroll
            for (u32 c = 0; c < 3; c++) out[(3 * e + c) / PER] |= k.part[c] << 8 * sizeof(U) * ((3 * e + c) % PER);
        }
#pragma unroll
        for (u32 w = 0; w < WORDS; w++) ((u32 *)dst)[g * WORDS + w] = out[w];
    }
    for (u64 i = groups * 4 + thread; i < samples; i += threads) {
        const Colour k = colour(src[i]);
#pragma unroll
        for (u32 c = 0; c < 3; c++) dst[3 * i + c] = (U)k.part[c];
    }
}

// The table as a word for each colour, in shared memory.
static __device__ __forceinline__ void load(const u8 *table, u32 *shared) {
    for (u32 i = threadIdx.x; i < COLOURS; i += BLOCK)
        shared[i] = table[3 * i] | table[3 * i + 1] << 8 | table[3 * i + 2] << 16;
    __syncthreads();
}

// lengths: src[samples], dst[3 * samples], table[768]
// in sets
extern "C" __global__ void __launch_bounds__(BLOCK) ENTRY(lut)(const T *src, u64 samples, u8 *dst, const u8 *table) {
    __shared__ u32 colours[COLOURS];
    load(table, colours);
    look_up(Turn{blockIdx.x, gridDim.x}, src, samples, dst, [&](u32 p) -> Colour {
        const u32 k = colours[p >> 8 * (sizeof(T) - 1)];
        return {{k & 0xff, k >> 8 & 0xff, k >> 16}};
    });
}

// lengths: src[samples], dst[3 * samples], table[768]
// in sets
extern "C" __global__ void __launch_bounds__(BLOCK)
    ENTRY(interpolated)(const T *src, u64 samples, u16 *dst, const u8 *table) {
    __shared__ u32 colours[COLOURS];
    load(table, colours);
    look_up(Turn{blockIdx.x, gridDim.x}, src, samples, dst, [&](u32 p) -> Colour {
        const u32 wide = sizeof(T) == 1 ? 257 * p : p, i = wide / 257, r = wide % 257;
        const u32 from = colours[i], to = colours[min(i + 1, COLOURS - 1)];
        Colour k;
#pragma unroll
        for (u32 c = 0; c < 3; c++) k.part[c] = (257 - r) * (from >> 8 * c & 0xff) + r * (to >> 8 * c & 0xff);
        return k;
    });
}
