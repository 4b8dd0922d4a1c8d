// The smallest and the largest sample of images of 32 bits (src/ops/wide/extremes.rs), the first of the two passes of
// `normalize`: "CUDA: performance aspects of typical tasks" (habr.com post 119435, 2011).
//
//   extremes_c{1,2,3,4}(const u32 *src, u64 samples, u32 least, u32 span, u32 *ranges)
//       Samples outside least … least + span are no finite numbers and only counted (0 and 0xffffffff for integers).
//       Folds the others of each of the C interleaved channels into `ranges`: ranges[2c] = min, ranges[2c + 1] = ~max of
//       channel c. The u64 at ranges + 8 counts those that are none, from 2^64 − 1 on.
//       On entry every byte of these 40 is 0xff (one memset), or they are a fold of other samples.
//       Grid: any; best min(ceil(samples / 4096), 4·multiprocessors) blocks of 256.
// `samples` counts all channels and is a multiple of C. A pointer that is not 16-byte aligned works, slower.
//
// Two numbers, for b bytes of image: reads b; 6 instructions a sample.
//
// forms: CHANNELS=1,2,3,4 named c{CHANNELS}
#include "common.cuh"

constexpr u32 C = CHANNELS;
// 16-byte vectors in flight for each thread: a multiple of 3 for 3 channels, see below.
constexpr u32 VECTORS = C == 3 ? 3 : 4;

// lengths: src[samples], ranges[10]
// requires: samples % CHANNELS == 0
extern "C" __global__ void __launch_bounds__(BLOCK)
    ENTRY(extremes)(const u32 *src, u64 samples, u32 least, u32 span, u32 *ranges) {
    // A class of every C-th sample for each channel. (For 3 channels: BLOCK mod 3 = 1, hence word j of vector u has class
    // (u + j) mod 3, counted from the thread's own first word.)
    static_assert(BLOCK % 3 == 1, "the classes of 3 channels rest on it");
    u32 low[C], high[C], odd = 0;
#pragma unroll
    for (u32 c = 0; c < C; c++) low[c] = ALL, high[c] = 0;
    const auto take = [&](u32 sample, u32 &low, u32 &high) {
        const bool finite = sample - least <= span;
        odd += !finite;
        low = min(low, finite ? sample : ALL);
        high = max(high, finite ? sample : 0);
    };
    u32 range[C][2];
#pragma unroll
    for (u32 c = 0; c < C; c++) range[c][0] = range[c][1] = ALL;
    const auto fold = [&](u32 channel, u32 low, u32 high) {
#pragma unroll
        for (u32 c = 0; c < C; c++)
            if (c == channel) range[c][0] = min(range[c][0], low), range[c][1] = min(range[c][1], ~high);
    };
    walk<VECTORS>(
        Turn{blockIdx.x, gridDim.x}, src, samples,
        [&](u32 u, uint4 v) {
            const u32 word[4] = {v.x, v.y, v.z, v.w};
#pragma unroll
            for (u32 j = 0; j < 4; j++) {
                const u32 k = C == 3 ? (u + j) % C : j % C;
                take(word[j], low[k], high[k]);
            }
        },
        [] {},
        [&](u64 i, u32 s) {
            u32 low = ALL, high = 0;
            take(s, low, high);
            fold(i % C, low, high);
        });
#pragma unroll
    for (u32 k = 0; k < C; k++) fold(C == 3 ? (threadIdx.x + k) % C : k, low[k], high[k]);

    __shared__ u32 shared[C][2][WARPS], counts[WARPS];
    const auto less = [](u32 a, u32 b) { return min(a, b); };
#pragma unroll
    for (u32 c = 0; c < C; c++)
#pragma unroll
        for (u32 end = 0; end < 2; end++) {
            const u32 all = reduce_block(range[c][end], shared[c][end], ALL, less);
            if (threadIdx.x == 0) atomicMin(&ranges[2 * c + end], all);
        }
    const u32 all = reduce_block(odd, counts, 0u, [](u32 a, u32 b) { return a + b; });
    if (threadIdx.x == 0 && all) atomicAdd((u64 *)(ranges + 8), (u64)all);
}
