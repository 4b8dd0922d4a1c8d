// Shared by the papers' kernels: the loop of "CUDA: performance aspects of typical tasks" (2011), and the
// one-dimensional walk of one element a thread.
#pragma once
#include "common.cuh"

// The paper's loop: the data are `pieces` pieces of `piece` elements. A block takes pieces blockIdx.x, blockIdx.x +
// gridDim.x, …; inside a piece a thread takes elements threadIdx.x, threadIdx.x + blockDim.x, …, so that neighbours in
// a warp access neighbours in memory, one element an access.
//   visit(j, i)   element i of piece j
template <class Visit> static __device__ __forceinline__ void each(u32 pieces, u32 piece, Visit visit) {
    for (u32 j = blockIdx.x; j < pieces; j += gridDim.x)
        for (u32 i = threadIdx.x; i < piece; i += blockDim.x) visit(j, i);
}

// This thread's number in the grid, and the grid's threads.
static __device__ __forceinline__ u32 number() { return blockIdx.x * blockDim.x + threadIdx.x; }
static __device__ __forceinline__ u32 everyone() { return gridDim.x * blockDim.x; }

// Loads that are kept in the L1 and the L2, and in the L2 alone.
static __device__ __forceinline__ u32 load_l1(const u32 *p) {
    u32 word;
    asm volatile("ld.global.ca.u32 %0, [%1];" : "=r"(word) : "l"(p));
    return word;
}
static __device__ __forceinline__ u32 load_l2(const u32 *p) {
    u32 word;
    asm volatile("ld.global.cg.u32 %0, [%1];" : "=r"(word) : "l"(p));
    return word;
}

// The word at column x and row y of a texture object of words, without a filter.
static __device__ __forceinline__ u32 fetch(u64 texture, u32 x, u32 y) {
    u32 word;
    asm volatile("{ .reg .u32 g, b, a; tex.2d.v4.u32.s32 {%0, g, b, a}, [%1, {%2, %3}]; }"
                 : "=r"(word)
                 : "l"(texture), "r"(x), "r"(y));
    return word;
}
