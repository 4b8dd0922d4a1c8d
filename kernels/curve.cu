// Curve: replaces each sample by the entry of its channel's table (src/ops/normalize/curve_tables.rs).
//
//   curve_{u8,u16}(T *image, u64 samples, const T *tables, u32 channels)
//       In place: image[i] = tables[(i mod channels)·(FULL + 1) + image[i]]. Pointers are 16-byte aligned.
//       Grid: any; best ceil(bytes / 4096) blocks of 256.
//
// Two numbers, for b bytes of image: reads b and writes b, and loads an entry of a table for each sample. A table for 16 bits has
// 128 KiB and fits in the level-1 cache of recent GPUs; the tables of all channels fit in the level-2 cache.
//
// forms: SAMPLE=u8,u16 named {SAMPLE}
#include "common.cuh"

typedef SAMPLE T;

// lengths: image[samples], tables[channels * (sizeof(T) == 1 ? 256 : 65536)]
// requires: channels >= 1
extern "C" __global__ void __launch_bounds__(BLOCK) ENTRY(curve)(T *image, u64 samples, const T *tables, u32 channels) {
    const u64 thread = (u64)blockIdx.x * BLOCK + threadIdx.x, threads = (u64)gridDim.x * BLOCK;
    const auto result = [&](u32 channel, u32 value) -> u32 { return __ldg(&tables[channel * (FULL<T> + 1) + value]); };
    const u64 vectors = samples / PER_VECTOR<T>;
    for (u64 v = thread; v < vectors; v += threads) {
        const uint4 in = ((const uint4 *)image)[v];
        const u32 word[4] = {in.x, in.y, in.z, in.w};
        u32 out[4] = {0, 0, 0, 0}, channel = channels == 1 ? 0 : (u32)(v * PER_VECTOR<T> % channels);
#pragma unroll
        for (u32 e = 0; e < PER_VECTOR<T>; e++) {
            const u32 place = e % PER_WORD<T>;
            out[e / PER_WORD<T>] |= result(channel, sample<T>(word[e / PER_WORD<T>], place)) << 8 * sizeof(T) * place;
            channel = channel + 1 == channels ? 0 : channel + 1;
        }
        ((uint4 *)image)[v] = {out[0], out[1], out[2], out[3]};
    }
    for (u64 i = vectors * PER_VECTOR<T> + thread; i < samples; i += threads)
        image[i] = (T)result((u32)(i % channels), image[i]);
}
