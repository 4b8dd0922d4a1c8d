// Shared by the kernels: types, the walk over an image in 16-byte vectors, and warp reductions.
// No standard header: the kernels are compiled by NVRTC, which has none.
#pragma once

typedef unsigned char u8;
typedef unsigned short u16;
typedef unsigned int u32;
typedef unsigned long long u64;

// The name of an entry point: ENTRY(minmax) is minmax_u16_c1 in the form u16_c1 (see build.py).
#define JOIN_EXPANDED(name, form) name##_##form
#define JOIN(name, form) JOIN_EXPANDED(name, form)
#define ENTRY(name) JOIN(name, FORM)

// For a parameter that is passed by value and has an address without being copied: `const IN_PLACE Type name`.
#if __CUDA_ARCH__ >= 700
#define IN_PLACE __grid_constant__
#else
#define IN_PLACE
#endif

// Threads of every block of every production kernel; the host launches with exactly this many.
constexpr u32 BLOCK = 256; // host
constexpr u32 WARPS = BLOCK / 32; // host
constexpr u32 ALL = 0xffffffffu;

// Samples of type T in one 16-byte vector, and in one 4-byte word.
template <class T> constexpr u32 PER_VECTOR = 16 / sizeof(T);
template <class T> constexpr u32 PER_WORD = 4 / sizeof(T);
// The largest sample.
template <class T> constexpr u32 FULL = (T)~0u;

static __device__ __forceinline__ bool aligned16(const void *p) { return ((u64)p & 15) == 0; }

// Sample `e` (0 = lowest address) of a word of packed samples.
template <class T> static __device__ __forceinline__ u32 sample(u32 word, u32 e) {
    return sizeof(T) == 4 ? word : sizeof(T) == 2 ? (e ? word >> 16 : word & 0xffff) : (word >> 8 * e) & 0xff;
}

// The smaller and the larger of two pairs of 16-bit numbers: one instruction from compute capability 9.0 on. For older
// GPUs, a 32-bit comparison already selects the right upper half, because the upper half outweighs the lower.
#if __CUDA_ARCH__ >= 900
static __device__ __forceinline__ u32 min2(u32 a, u32 b) { return __vminu2(a, b); }
static __device__ __forceinline__ u32 max2(u32 a, u32 b) { return __vmaxu2(a, b); }
#else
static __device__ __forceinline__ u32 min2(u32 a, u32 b) {
    return (min(a, b) & 0xffff0000u) | min(a & 0xffff, b & 0xffff);
}
static __device__ __forceinline__ u32 max2(u32 a, u32 b) {
    return (max(a, b) & 0xffff0000u) | max(a & 0xffff, b & 0xffff);
}
#endif

// The index of a block, and the number of blocks that share its work: those of the grid or, in a set, those of its page.
// A kernel passes Turn{blockIdx.x, gridDim.x} to its functions, so that they also work in a set.
struct Turn {
    u32 block, blocks;
};

// A set: the arguments of several pages, which one launch processes. Page p has the blocks first[p] … first[p + 1] − 1 of the
// grid. launch.py makes the kernels that have it as their parameter (see there).
template <class Arguments, u32 MOST> struct Set {
    u32 pages, first[MOST + 1];
    alignas(8) Arguments arguments[MOST];
};

// The page that has a block.
template <class Arguments, u32 MOST>
static __device__ __forceinline__ u32 page_of(const Set<Arguments, MOST> &set, u32 block) {
    u32 page = 0;
    for (u32 end = set.pages; end - page > 1;) {
        const u32 middle = (page + end) / 2;
        if (set.first[middle] <= block) page = middle;
        else end = middle;
    }
    return page;
}

// Walks over `n` samples with all blocks. A block takes tiles of BLOCK·U vectors of 16 bytes, `turn.blocks` tiles apart; a
// thread's U loads of a tile are in flight together.
//   take(u, v)       vector u (0 … U−1) of the thread's tile: vector number u·BLOCK + threadIdx.x of the tile
//   tile_done()      after each tile
//   single(i, s)     sample i by itself: the last n mod PER_VECTOR samples, or all if `src` is not 16-byte aligned
template <u32 U, class T, class Take, class Done, class Single>
static __device__ __forceinline__ void walk(Turn turn, const T *src, u64 n, Take take, Done tile_done, Single single) {
    const uint4 *vector = (const uint4 *)src;
    const u64 vectors = aligned16(src) ? n / PER_VECTOR<T> : 0;
    for (u64 tile = (u64)turn.block * (BLOCK * U); tile < vectors; tile += (u64)turn.blocks * (BLOCK * U)) {
        if (tile + BLOCK * U <= vectors) {
            uint4 v[U];
#pragma unroll
            for (u32 u = 0; u < U; u++) v[u] = vector[tile + u * BLOCK + threadIdx.x];
#pragma unroll
            for (u32 u = 0; u < U; u++) take(u, v[u]);
        } else {
#pragma unroll
            for (u32 u = 0; u < U; u++) {
                u64 i = tile + u * BLOCK + threadIdx.x;
                if (i < vectors) take(u, vector[i]);
            }
        }
        tile_done();
    }
    u64 i = vectors * PER_VECTOR<T> + (u64)turn.block * BLOCK + threadIdx.x;
    for (; i < n; i += (u64)turn.blocks * BLOCK) single(i, (u32)src[i]);
}

// Combines `value` over the block; the result is right in thread 0 only. `shared` holds WARPS values.
template <class V, class Combine>
static __device__ __forceinline__ V reduce_block(V value, V *shared, V neutral, Combine combine) {
#pragma unroll
    for (u32 d = 16; d; d /= 2) value = combine(value, __shfl_down_sync(ALL, value, d));
    if (threadIdx.x % 32 == 0) shared[threadIdx.x / 32] = value;
    __syncthreads();
    if (threadIdx.x < 32) {
        value = threadIdx.x < WARPS ? shared[threadIdx.x] : neutral;
#pragma unroll
        for (u32 d = WARPS / 2; d; d /= 2) value = combine(value, __shfl_down_sync(ALL, value, d));
    }
    return value;
}
