// Both passes of normalize in one cooperative launch: every thread keeps its part of the image in registers, as far as they
// go, and the rest comes again from the L2 cache. No paper has it.
//
//   fused(const u16 *src, u16 *dst, u64 vectors, u32 *state, u32 lo, u32 hi)
//       normalize of one channel: minimum and maximum of 8·vectors samples, a barrier of the grid, then the scale of
//       `normalize.cu` to lo … hi. `vectors` counts 16-byte vectors. All blocks must be on the GPU at once, or the barrier is
//       never passed: a cooperative launch.
//       state[0] counts the blocks that have arrived at the barrier, over all launches, which must have the same number of
//       blocks. Launch k folds into state[1 + 2(k mod 2)] and the next word, and leaves the other two ready for the next
//       launch. On entry to the first: 0, then 0xffffffff four times.
#include "papers/papers.cuh"

typedef u16 T;
constexpr u32 C = 1;
constexpr u32 COLOURS = 1;
#include "scaling.cuh"

constexpr u32 KEPT = 8; // vectors that a thread keeps

static __device__ __forceinline__ u32 arrivals(const u32 *state) {
    u32 count;
#if __CUDA_ARCH__ >= 700
    asm volatile("ld.acquire.gpu.u32 %0, [%1];" : "=r"(count) : "l"(state) : "memory");
#else
    count = *(const volatile u32 *)state;
    __threadfence();
#endif
    return count;
}

// lengths: src[vectors * 8], dst[vectors * 8], state[5]
// requires: grid.block == BLOCK, lo <= hi
// trusts: state, as the launches before have left it, and that the launch is cooperative
extern "C" __global__ void __launch_bounds__(BLOCK, 4)
    fused(const u16 *src, u16 *dst, u64 vectors, u32 *state, u32 lo, u32 hi) {
    const uint4 *from = (const uint4 *)src;
    const u64 step = everyone(), first = number();
    uint4 kept[KEPT];
    u32 low = ALL, high = 0;
    auto take = [&](uint4 v) {
        low = min2(min2(low, v.x), min2(min2(v.y, v.z), v.w));
        high = max2(max2(high, v.x), max2(max2(v.y, v.z), v.w));
    };
#pragma unroll
    for (u32 k = 0; k < KEPT; k++)
        if (first + k * step < vectors) kept[k] = from[first + k * step];
#pragma unroll
    for (u32 k = 0; k < KEPT; k++)
        if (first + k * step < vectors) take(kept[k]);
    for (u64 i = first + KEPT * step; i < vectors; i += step) take(from[i]);

    __shared__ u32 folded[WARPS];
    __shared__ Scaling scale;
    // The minimum and 65535 − maximum in the halves of one word: one packed minimum folds both.
    u32 range = min(low & 0xffff, low >> 16) | (0xffff - max(high & 0xffff, high >> 16)) << 16;
    range = reduce_block(range, folded, ALL, min2);
    if (threadIdx.x == 0) {
        // The count of a launch begins at a multiple of the blocks, and reaches the next when all have arrived.
        const u32 launch = arrivals(state) / gridDim.x;
        u32 *own = state + 1 + 2 * (launch % 2), *next = state + 1 + 2 * ((launch + 1) % 2);
        atomicMin(&own[0], range & 0xffff);
        atomicMin(&own[1], range >> 16);
        __threadfence();
        atomicAdd(state, 1);
        while (arrivals(state) < (launch + 1) * gridDim.x) {
        }
        if (blockIdx.x == 0) next[0] = ALL, next[1] = ALL;
        const u32 ranges[2] = {load_l2(&own[0]), load_l2(&own[1])};
        scale = scaling(0, ranges, false, lo, hi);
    }
    __syncthreads();
    const Scaling constants = scale;
    auto scaled = [&](uint4 v) {
        v.x = scale_word(v.x, 0, &constants), v.y = scale_word(v.y, 2, &constants);
        v.z = scale_word(v.z, 4, &constants), v.w = scale_word(v.w, 6, &constants);
        return v;
    };
#pragma unroll
    for (u32 k = 0; k < KEPT; k++)
        if (first + k * step < vectors) ((uint4 *)dst)[first + k * step] = scaled(kept[k]);
    for (u64 i = first + KEPT * step; i < vectors; i += step) ((uint4 *)dst)[i] = scaled(from[i]);
}
