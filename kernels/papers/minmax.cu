// Minimum and maximum in one pass, from "CUDA: performance aspects of typical tasks" (2011), and later methods.
//
//   serial(const u16 *data, u32 pieces, u32 piece, u32 *range)
//       The paper's: each thread keeps its own minimum and maximum in shared memory; after a barrier thread 0 goes through
//       the block's minima and thread 1 through its maxima, one by one, and folds them into range[0] and range[1]. The
//       paper folds without atomics, so that blocks overwrite each other's result; here the last step is atomicMin and
//       atomicMax, and nothing else is changed. `volatile` keeps the values in shared memory: a compiler of today would
//       hold them in registers until the barrier.
//   minimum, maximum(…)   one of the two alone, in the same way
//   registers(…)   `serial` as a compiler of today makes it: each thread's own values in registers until the barrier
//   tree(…)        registers, and the serial scan replaced by a tree: half the threads at each step
//   warp(…)        registers, and the tree replaced by shuffles: no shared memory, one atomic a warp
//   nested_{1,2,3,4,8}(…)
//       `serial` with an `if` inside an `if`, to that depth, on bits of each element, before it is compared: the paper's
//       experiment to slow the kernel down. nested(p, depth) is defined at the function.
// range[0] is 0xffffffff and range[1] is 0 on entry. At most 1024 threads, and whole warps.
#include "papers/papers.cuh"

constexpr u32 MOST = 1024;

// What thread 0 and thread 1 do after the barrier.
static __device__ __forceinline__ void fold_low(const volatile u16 *low, u32 *range) {
    u32 all = low[0];
    for (u32 t = 1; t < blockDim.x; t++) all = min(all, (u32)low[t]);
    atomicMin(&range[0], all);
}
static __device__ __forceinline__ void fold_high(const volatile u16 *high, u32 *range) {
    u32 all = high[0];
    for (u32 t = 1; t < blockDim.x; t++) all = max(all, (u32)high[t]);
    atomicMax(&range[1], all);
}

template <bool LOW, bool HIGH, class Change>
static __device__ __forceinline__ void in_shared(const u16 *data, u32 pieces, u32 piece, u32 *range, Change change) {
    __shared__ volatile u16 low[MOST], high[MOST];
    const u32 t = threadIdx.x;
    if (LOW) low[t] = 0xffff;
    if (HIGH) high[t] = 0;
    each(pieces, piece, [&](u32 j, u32 i) {
        const u16 p = change(data[(u64)j * piece + i]);
        if (LOW && p < low[t]) low[t] = p;
        if (HIGH && p > high[t]) high[t] = p;
    });
    __syncthreads();
    if (LOW && t == 0) fold_low(low, range);
    if (HIGH && t == 1 % blockDim.x) fold_high(high, range);
}

// family: Minmax
// lengths: data[pieces * piece], range[2]
// requires: grid.block <= MOST
extern "C" __global__ void serial(const u16 *data, u32 pieces, u32 piece, u32 *range) {
    in_shared<true, true>(data, pieces, piece, range, [](u16 p) { return p; });
}
extern "C" __global__ void minimum(const u16 *data, u32 pieces, u32 piece, u32 *range) {
    in_shared<true, false>(data, pieces, piece, range, [](u16 p) { return p; });
}
extern "C" __global__ void maximum(const u16 *data, u32 pieces, u32 piece, u32 *range) {
    in_shared<false, true>(data, pieces, piece, range, [](u16 p) { return p; });
}

extern "C" __global__ void registers(const u16 *data, u32 pieces, u32 piece, u32 *range) {
    __shared__ u16 low[MOST], high[MOST];
    u32 lowest = 0xffff, highest = 0;
    each(pieces, piece, [&](u32 j, u32 i) {
        const u32 p = data[(u64)j * piece + i];
        lowest = min(lowest, p), highest = max(highest, p);
    });
    low[threadIdx.x] = lowest, high[threadIdx.x] = highest;
    __syncthreads();
    if (threadIdx.x == 0) fold_low(low, range);
    if (threadIdx.x == 1 % blockDim.x) fold_high(high, range);
}

extern "C" __global__ void tree(const u16 *data, u32 pieces, u32 piece, u32 *range) {
    __shared__ u32 low[MOST], high[MOST];
    u32 lowest = 0xffff, highest = 0;
    each(pieces, piece, [&](u32 j, u32 i) {
        const u32 p = data[(u64)j * piece + i];
        lowest = min(lowest, p), highest = max(highest, p);
    });
    low[threadIdx.x] = lowest, high[threadIdx.x] = highest;
    __syncthreads();
    // Any number of threads: the upper part of the remaining values folds onto the lower.
    for (u32 left = blockDim.x; left > 1; left = (left + 1) / 2) {
        const u32 other = threadIdx.x + (left + 1) / 2;
        if (other < left) {
            low[threadIdx.x] = min(low[threadIdx.x], low[other]);
            high[threadIdx.x] = max(high[threadIdx.x], high[other]);
        }
        __syncthreads();
    }
    if (threadIdx.x == 0) atomicMin(&range[0], low[0]), atomicMax(&range[1], high[0]);
}

extern "C" __global__ void warp(const u16 *data, u32 pieces, u32 piece, u32 *range) {
    u32 lowest = 0xffff, highest = 0;
    each(pieces, piece, [&](u32 j, u32 i) {
        const u32 p = data[(u64)j * piece + i];
        lowest = min(lowest, p), highest = max(highest, p);
    });
    for (u32 d = 16; d; d /= 2) {
        lowest = min(lowest, __shfl_down_sync(ALL, lowest, d));
        highest = max(highest, __shfl_down_sync(ALL, highest, d));
    }
    if (threadIdx.x % 32 == 0) atomicMin(&range[0], lowest), atomicMax(&range[1], highest);
}

// nested(p, 0) = p; with the lowest bit of p >> depth set, nested(3p + depth, depth − 1), else p ^ depth: half of the
// values at each level go on to the next, and each level has a path of its own. In 16 bits. The empty statement of assembly
// keeps the branch: without it the compiler computes both ways and selects.
template <u32 DEPTH> static __device__ __forceinline__ u16 nested(u16 p) {
    if constexpr (DEPTH == 0) return p;
    else if (p >> DEPTH & 1) {
        asm volatile("");
        return nested<DEPTH - 1>((u16)(3 * p + DEPTH));
    } else return p ^ DEPTH;
}

#define NESTED(DEPTH)                                                                                            \
    extern "C" __global__ void nested_##DEPTH(const u16 *data, u32 pieces, u32 piece, u32 *range) {              \
        in_shared<true, true>(data, pieces, piece, range, [](u16 p) { return nested<DEPTH>(p); });               \
    }
NESTED(1)
NESTED(2)
NESTED(3)
NESTED(4)
NESTED(8)
