// Counts samples of 32 bits by their upper or by their lower halves, from which percentiles are selected
// (src/ops/wide/select.rs).
//
//   count(const u32 *src, u64 samples, u32 channels, u32 first, u32 counted, u32 least, u32 span, u32 upper, u64 *bins)
//       Of the samples of channels first … first + counted − 1 that lie in least … least + span (0 and 0xffffffff for
//       all), adds to bins[s >> 16] one for each sample s, or where upper < 65536, to bins[s & 0xffff] one for each whose
//       upper half is `upper`. Zero the 65536 bins first.
//       Grid: any; best min(ceil(samples / 4096), 4·multiprocessors) blocks of 256.
//
// Two numbers, for b bytes of image: reads b; one atomic addition a sample, or one a warp where its samples are alike.
#include "common.cuh"

constexpr u32 NONE = 0x10000;

// lengths: src[samples], bins[65536]
// requires: channels >= 1
extern "C" __global__ void __launch_bounds__(BLOCK)
    count(const u32 *src, u64 samples, u32 channels, u32 first, u32 counted, u32 least, u32 span, u32 upper, u64 *bins) {
    const auto bin_of = [&](u32 s, u32 channel) {
        const bool counts = s - least <= span && channel - first < counted && (upper == NONE || s >> 16 == upper);
        return !counts ? NONE : upper == NONE ? s >> 16 : s & 0xffff;
    };
    const u64 thread = (u64)blockIdx.x * BLOCK + threadIdx.x, threads = (u64)gridDim.x * BLOCK;
    const u64 vectors = aligned16(src) ? samples / 4 : 0;
    for (u64 v = thread; v < vectors; v += threads) {
        const uint4 in = ((const uint4 *)src)[v];
        const u32 word[4] = {in.x, in.y, in.z, in.w};
        u32 channel = (u32)(v * 4 % channels);
#pragma unroll
        for (u32 e = 0; e < 4; e++) {
            const u32 bin = bin_of(word[e], channel), here = __activemask();
            channel = channel + 1 == channels ? 0 : channel + 1;
            // Of flat areas, whose additions would wait for each other, a warp adds one number.
            const u32 leader = __ffs(here) - 1;
            if (__all_sync(here, bin == __shfl_sync(here, bin, leader))) {
                if (bin != NONE && threadIdx.x % 32 == leader) atomicAdd(&bins[bin], (u64)__popc(here));
            } else if (bin != NONE) atomicAdd(&bins[bin], 1ull);
            __syncwarp(here);
        }
    }
    for (u64 i = vectors * 4 + thread; i < samples; i += threads) {
        const u32 bin = bin_of(src[i], (u32)(i % channels));
        if (bin != NONE) atomicAdd(&bins[bin], 1ull);
    }
}
