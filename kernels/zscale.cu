// Zscale: the samples from which `--range zscale` computes the range (src/ops/normalize/zscale.rs).
//
//   pick_{u8,u16}(const T *src, u64 samples, T *picked, u64 count, u64 stride, u32 channels, u32 colours)
//       picked[k] = the colour sample with the number k·stride. Numbers count colour samples, without alpha: of every `channels`
//       samples, the first `colours`. Grid: any; best ceil(count / 256) blocks of 256.
//
// It reads one sector of memory for each of about a thousand samples.
//
// forms: SAMPLE=u8,u16 named {SAMPLE}
#include "common.cuh"

typedef SAMPLE T;

// lengths: src[samples], picked[count]
// requires: channels >= 1, colours >= 1
extern "C" __global__ void __launch_bounds__(BLOCK)
    ENTRY(pick)(const T *src, u64 samples, T *picked, u64 count, u64 stride, u32 channels, u32 colours) {
    for (u64 k = (u64)blockIdx.x * BLOCK + threadIdx.x; k < count; k += (u64)gridDim.x * BLOCK) {
        const u64 number = k * stride, i = number / colours * channels + number % colours;
        if (i < samples) picked[k] = src[i];
    }
}
