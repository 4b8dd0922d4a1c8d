// Project: one image from many of the same shape, sample by sample (src/ops/project.rs has the definition).
//
//   add_{u8,u16}(const T *src, u64 samples, u32 *sums)        sums[i] += src[i]; at most 65535 images fit 32 bits
//   lower_{u8,u16}(const T *src, u64 samples, T *least)       least[i] = min(least[i], src[i])
//   raise_{u8,u16}(const T *src, u64 samples, T *greatest)    greatest[i] = max(greatest[i], src[i])
//       One image joins those before it: zero the sums and the greatest samples first, and set every bit of the least.
//   median_{u8,u16}(const T *src, u64 samples, u32 images, T *dst)
//       src holds `images` images of `samples` samples, one behind the other; 1 ≤ images ≤ 65535. dst[i] is the middle
//       of the samples i, or of an even number floor((a + b)/2 + 1/2), a and b being the two in the middle.
// Grid: any; best ceil(samples / 2048) blocks of 256, or ceil(samples / 256) for median. All pointers are 16-byte
// aligned; dst, sums, least and greatest overlap nothing else.
//
// Two numbers, for b bytes of image. add: reads b and the sums, writes the sums: 5 b of 16 bits. lower, raise: read 2 b,
// write b. median: reads each of its images 17 times, or 9 times for 8 bits.
//
// forms: SAMPLE=u8,u16 named {SAMPLE}
#include "common.cuh"

typedef SAMPLE T;
constexpr u32 BITS = 8 * sizeof(T);

// A thread takes 4 samples at a time, so that the 16 bytes of their sums lie beside those of its neighbours.
// lengths: src[samples], sums[samples]
extern "C" __global__ void __launch_bounds__(BLOCK) ENTRY(add)(const T *src, u64 samples, u32 *sums) {
    constexpr u32 QUADS = 2, WORDS = 4 / PER_WORD<T>; // quads in flight for each thread; words in one
    struct __align__(4 * WORDS) Quad { u32 word[WORDS]; };
    const u64 quads = samples / 4;
    for (u64 tile = (u64)blockIdx.x * (BLOCK * QUADS); tile < quads; tile += (u64)gridDim.x * (BLOCK * QUADS)) {
        Quad in[QUADS];
        uint4 sum[QUADS];
#pragma unroll
        for (u32 q = 0; q < QUADS; q++) {
            const u64 i = tile + q * BLOCK + threadIdx.x;
            if (i < quads) in[q] = ((const Quad *)src)[i], sum[q] = ((const uint4 *)sums)[i];
        }
#pragma unroll
        for (u32 q = 0; q < QUADS; q++) {
            const u64 i = tile + q * BLOCK + threadIdx.x;
            const auto value = [&](u32 e) { return sample<T>(in[q].word[e / PER_WORD<T>], e % PER_WORD<T>); };
            sum[q].x += value(0), sum[q].y += value(1), sum[q].z += value(2), sum[q].w += value(3);
            if (i < quads) ((uint4 *)sums)[i] = sum[q];
        }
    }
    const u64 thread = (u64)blockIdx.x * BLOCK + threadIdx.x, threads = (u64)gridDim.x * BLOCK;
    for (u64 i = quads * 4 + thread; i < samples; i += threads) sums[i] += src[i];
}

// Every sample of two words combined.
template <class Combine> static __device__ __forceinline__ u32 combined(u32 a, u32 b, Combine combine) {
    u32 out = 0;
#pragma unroll
    for (u32 e = 0; e < PER_WORD<T>; e++) out |= combine(sample<T>(a, e), sample<T>(b, e)) << BITS * e;
    return out;
}

template <class Combine>
static __device__ __forceinline__ void fold(const T *src, u64 samples, T *known, Combine combine) {
    const u64 thread = (u64)blockIdx.x * BLOCK + threadIdx.x, threads = (u64)gridDim.x * BLOCK;
    const u64 vectors = samples / PER_VECTOR<T>;
    for (u64 v = thread; v < vectors; v += threads) {
        const uint4 in = ((const uint4 *)src)[v];
        uint4 all = ((const uint4 *)known)[v];
        all.x = combined(all.x, in.x, combine), all.y = combined(all.y, in.y, combine);
        all.z = combined(all.z, in.z, combine), all.w = combined(all.w, in.w, combine);
        ((uint4 *)known)[v] = all;
    }
    for (u64 i = vectors * PER_VECTOR<T> + thread; i < samples; i += threads)
        known[i] = (T)combine((u32)known[i], (u32)src[i]);
}

// lengths: src[samples], least[samples]
extern "C" __global__ void __launch_bounds__(BLOCK) ENTRY(lower)(const T *src, u64 samples, T *least) {
    fold(src, samples, least, [](u32 a, u32 b) { return a < b ? a : b; });
}

// lengths: src[samples], greatest[samples]
extern "C" __global__ void __launch_bounds__(BLOCK) ENTRY(raise)(const T *src, u64 samples, T *greatest) {
    fold(src, samples, greatest, [](u32 a, u32 b) { return a < b ? b : a; });
}

// A thread finds the medians of its samples bit by bit: the sample of rank k, counted from 0, is the largest number that
// at most k samples are below.
// lengths: src[images * samples], dst[samples]
// requires: images >= 1, images <= 65535
extern "C" __global__ void __launch_bounds__(BLOCK) ENTRY(median)(const T *src, u64 samples, u32 images, T *dst) {
    const u64 threads = (u64)gridDim.x * BLOCK;
    const u32 rank = (images - 1) / 2;
    for (u64 i = (u64)blockIdx.x * BLOCK + threadIdx.x; i < samples; i += threads) {
        u32 low = 0;
        for (u32 bit = BITS; bit-- > 0;) {
            const u32 candidate = low | 1u << bit;
            u32 below = 0;
            for (u32 k = 0; k < images; k++) below += (u32)src[k * samples + i] < candidate;
            if (below <= rank) low = candidate;
        }
        u32 high = low;
        if (images % 2 == 0) {
            u32 at_most = 0, above = FULL<T>;
            for (u32 k = 0; k < images; k++) {
                const u32 s = src[k * samples + i];
                if (s <= low) at_most++;
                else if (s < above) above = s;
            }
            if (at_most < rank + 2) high = above;
        }
        dst[i] = (T)((low + high + 1) / 2);
    }
}
