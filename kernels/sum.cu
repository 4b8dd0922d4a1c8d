// Sum: step 7 of "GPGPU optimisation by the example of a sum" (after Mark Harris; several elements a thread, then a
// tree), extended to 16-byte loads, warps and 64 bits.
//
//   sum_{u8,u16}_c{1,2,3,4}(const T *src, u64 samples, u64 *totals)
//       Adds the exact total of each of the C interleaved channels to totals[0 … C−1]; zero them first.
//       `samples` counts all channels and is a multiple of C.
//   sum_u32(const u32 *src, u64 samples, u64 *totals)
// As above for 32-bit elements: the paper's own task, in one launch.
// Grid: any; best min(ceil(bytes / 16384), 4·multiprocessors) blocks of 256.
// Pointers that are not 16-byte aligned work, slower. Min and max come from `minmax` in normalize.cu.
//
// Two numbers, for b bytes: reads b; at most 2 instructions a sample.
//
// forms: SAMPLE=u8,u16 CHANNELS=1,2,3,4 named {SAMPLE}_c{CHANNELS}
// forms: SAMPLE=u32 CHANNELS=1 named {SAMPLE}
#include "common.cuh"

typedef SAMPLE T;
constexpr u32 C = CHANNELS;
constexpr u32 SUM_VECTORS = C == 3 ? 3 : 4; // in flight for each thread

// Class k holds every C-th sample, counted from the thread's own first; its channel is found at the end. A tile adds at
// most 64 samples of 8 bits or 32 of 16 bits to a class, so that 32 bits suffice, and one 64-bit addition is made for
// each tile.
template <u32 BYTES> struct Part { typedef u32 Type; };
template <> struct Part<4> { typedef u64 Type; };

// lengths: src[samples], totals[CHANNELS]
// requires: samples % CHANNELS == 0
// in sets
extern "C" __global__ void __launch_bounds__(BLOCK) ENTRY(sum)(const T *src, u64 samples, u64 *totals) {
    static_assert(BLOCK % 3 == 1, "the classes of 3 channels rest on it");
    typename Part<sizeof(T)>::Type part[C];
    u64 wide[C], total[C];
#pragma unroll
    for (u32 c = 0; c < C; c++) part[c] = 0, wide[c] = 0, total[c] = 0;

    walk<SUM_VECTORS>(
        Turn{blockIdx.x, gridDim.x}, src, samples,
        [&](u32 u, uint4 v) {
            const u32 word[4] = {v.x, v.y, v.z, v.w};
#pragma unroll
            for (u32 j = 0; j < 4; j++)
#pragma unroll
                for (u32 e = 0; e < PER_WORD<T>; e++)
                    part[(u * PER_VECTOR<T> + j * PER_WORD<T> + e) % C] += sample<T>(word[j], e);
        },
        [&] {
#pragma unroll
            for (u32 c = 0; c < C; c++) wide[c] += part[c], part[c] = 0;
        },
        [&](u64 i, u32 s) {
#pragma unroll
            for (u32 c = 0; c < C; c++) total[c] += i % C == c ? s : 0;
        });

    __shared__ u64 shared[C][WARPS];
#pragma unroll
    for (u32 c = 0; c < C; c++) {
#pragma unroll
        for (u32 k = 0; k < C; k++)
            if ((threadIdx.x * PER_VECTOR<T> + k) % C == c) total[c] += wide[k];
        u64 all = reduce_block(total[c], shared[c], (u64)0, [](u64 a, u64 b) { return a + b; });
        if (threadIdx.x == 0) atomicAdd(&totals[c], all);
    }
}
