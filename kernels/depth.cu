// Depth: 16-bit samples become 8 bits (src/ops/depth.rs has the definition).
//
//   narrow(const u16 *src, u64 samples, u8 *dst, u32 channels, u32 kept)
//       dst[i] = src[i] in the channels whose bit is set in `kept`, whose samples are 255 at most, else
//       floor(src[i]·255/65535 + 1/2). Pointers are 16-byte aligned; dst does not overlap src.
//       Grid: any; best ceil(samples / 2048) blocks of 256.
//
// Two numbers, for n samples: reads 2 n, writes n; 6 instructions a sample.
#include "common.cuh"

// lengths: src[samples], dst[samples]
// requires: channels >= 1
// in sets
extern "C" __global__ void __launch_bounds__(BLOCK)
    narrow(const u16 *src, u64 samples, u8 *dst, u32 channels, u32 kept) {
    const u64 thread = (u64)blockIdx.x * BLOCK + threadIdx.x, threads = (u64)gridDim.x * BLOCK;
    // (2·v·255 + 65535)/(2·65535) = (v + 128)/257, since 257 is odd.
    const auto narrowed = [&](u32 v, u32 channel) { return kept >> channel & 1 ? v : (v + 128) / 257; };
    const u64 vectors = samples / 8;
    for (u64 v = thread; v < vectors; v += threads) {
        const uint4 in = ((const uint4 *)src)[v];
        const u32 word[4] = {in.x, in.y, in.z, in.w};
        u32 out[2] = {0, 0}, channel = (u32)(v * 8 % channels);
#pragma unroll
        for (u32 e = 0; e < 8; e++) {
            out[e / 4] |= narrowed(sample<u16>(word[e / 2], e % 2), channel) << 8 * (e % 4);
            channel = channel + 1 == channels ? 0 : channel + 1;
        }
        ((uint2 *)dst)[v] = {out[0], out[1]};
    }
    for (u64 i = vectors * 8 + thread; i < samples; i += threads) dst[i] = (u8)narrowed(src[i], (u32)(i % channels));
}
