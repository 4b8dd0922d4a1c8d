// Fit: makes an image smaller by the exact average of the area that each new pixel covers (src/ops/fit.rs has the
// definition).
//
//   fit_{u8,u16}(const T *src, u64 width, u64 height, u64 channels, T *dst, u64 new_width, u64 new_height, u32 lanes)
//       dst[new pixel] = floor(Σ a·b·src/(width·height) + 1/2), a and b being the steps that an old and a new pixel share.
//       1 ≤ new_width ≤ width, 1 ≤ new_height ≤ height, width·height < 2^47. dst must not overlap src. `lanes`, a power of
//       two up to 32, threads work on one sample of the result, best as many as it covers columns.
//       Grid: any; best ceil(new_width·new_height·channels·lanes / 256) blocks of 256.
//
// Two numbers, for b bytes of image: reads b, but for rows and columns that two new pixels share, and writes the result;
// 4 instructions a sample.
//
// forms: SAMPLE=u8,u16 named {SAMPLE}
#include "common.cuh"

typedef SAMPLE T;

// The steps that old place `at`, of `width` steps, shares with the new place from step `begin` to step `end`.
static __device__ __forceinline__ u64 shared_steps(u64 at, u64 width, u64 begin, u64 end) {
    const u64 first = at * width, last = first + width;
    return (last < end ? last : end) - (first > begin ? first : begin);
}

// lengths: src[width * height * channels], dst[new_width * new_height * channels]
// requires: channels >= 1, new_width >= 1, new_width <= width, new_height >= 1, new_height <= height, lanes >= 1,
//     32 % lanes == 0
extern "C" __global__ void __launch_bounds__(BLOCK)
    ENTRY(fit)(const T *src, u64 width, u64 height, u64 channels, T *dst, u64 new_width, u64 new_height, u32 lanes) {
    const u64 samples = new_width * new_height * channels, row = width * channels, all = width * height;
    const u32 lane = threadIdx.x % lanes;
    const u64 groups = (u64)gridDim.x * (BLOCK / lanes);
    // Every thread of a warp stays for the last round, in which some of them add up nothing.
    for (u64 round = (u64)blockIdx.x * (BLOCK / lanes); round < samples; round += groups) {
        const u64 out = round + threadIdx.x / lanes;
        u64 total = 0;
        if (out < samples) {
            const u64 pixel = out / channels, column = pixel % new_width, line = pixel / new_width;
            const u64 left = column * width, right = left + width, top = line * height, bottom = top + height;
            const u64 last_x = (right - 1) / new_width, first_y = top / new_height, last_y = (bottom - 1) / new_height;
            const u64 above = shared_steps(first_y, new_height, top, bottom);
            const u64 below = shared_steps(last_y, new_height, top, bottom);
            for (u64 x = left / new_width + lane; x <= last_x; x += lanes) {
                const T *const s = src + x * channels + out % channels;
                // The rows between the first and the last are covered as a whole.
                u64 between = 0, sum = above * s[first_y * row];
#pragma unroll 4
                for (u64 y = first_y + 1; y < last_y; y++) between += s[y * row];
                if (last_y > first_y) sum += below * s[last_y * row];
                total += (sum + new_height * between) * shared_steps(x, new_width, left, right);
            }
        }
        for (u32 d = lanes / 2; d; d /= 2) total += __shfl_down_sync(ALL, total, d, lanes);
        if (lane == 0 && out < samples) dst[out] = (T)((2 * total + all) / (2 * all));
    }
}
