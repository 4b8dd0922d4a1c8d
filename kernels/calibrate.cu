// Calibrate: subtracts a dark frame and divides by a flat field, sample by sample, exactly rounded (src/ops/calibrate.rs
// has the definition, and the proof that doubles compute it exactly).
//
//   calibrate_{u8,u16}_c{1,2,3,4}(T *image, u64 samples, const T *dark, const T *flat, const double *factors,
//                                 u32 has_dark, u32 has_flat, int zero, int offset)
//       In place. `flat` holds max(f − d, 1); dark and flat have `samples` samples each, and are not read where has_dark or
//       has_flat is 0: `zero` and 1 stand for theirs. factors[3c …] of channel c: the whole part of 2m, and its rest
//       rounded up and rounded down, m being the mean of f − d. The last of 2 or 4 channels is alpha and stays.
//       Grid: any; best ceil(samples / 2048) blocks of 256. All pointers are 16-byte aligned.
//   hot_{u8,u16}_c{1,2,3,4}(const T *src, T *dst, u64 width, u64 height, u32 threshold)
//       dst = the median of the up to 8 neighbours of a sample that exceeds it by more than `threshold`, else the sample.
//       Of an even number of neighbours the median is floor((a + b)/2 + 1/2). Alpha stays. dst must not overlap src.
//       Grid: any; best ceil(samples / 256) blocks of 256.
//
// Two numbers, for b bytes of image. calibrate: reads 3 b, writes b; 2 conversions and 1 division of doubles a sample.
// hot: reads b, most of it 9 times from the caches, and writes b.
//
// forms: SAMPLE=u8,u16 CHANNELS=1,2,3,4 named {SAMPLE}_c{CHANNELS}
#include "common.cuh"

typedef SAMPLE T;
constexpr u32 C = CHANNELS;
constexpr u32 COLOURS = C - (C + 1) % 2; // the last of 2 or 4 is alpha

// One sample p with its dark d and its q = max(f − d, 1).
static __device__ __forceinline__ u32 calibrated(u32 p, u32 d, u32 q, const double *factor, double shift) {
    const int x = (int)p - (int)d;
    const double twice = x * factor[0] + floor(x * factor[x < 0 ? 2 : 1]); // floor(2·x·m)
    const double value = floor((twice + q) / (2.0 * q)) + shift;
    return (u32)fmin(fmax(value, 0.0), (double)FULL<T>);
}

extern "C" __global__ void __launch_bounds__(BLOCK)
    ENTRY(calibrate)(T *image, u64 samples, const T *dark, const T *flat, const double *factors, u32 has_dark,
                     u32 has_flat, int zero, int offset) {
    __shared__ double factor[C][3];
    if (threadIdx.x < 3 * C) factor[threadIdx.x / 3][threadIdx.x % 3] = factors[threadIdx.x];
    __syncthreads();
    const double shift = (double)zero + offset;
    const u64 thread = (u64)blockIdx.x * BLOCK + threadIdx.x, threads = (u64)gridDim.x * BLOCK;
    const u64 vectors = samples / PER_VECTOR<T>;
    // A word of samples filled with one value.
    const u32 repeat = sizeof(T) == 1 ? 0x01010101u : 0x00010001u, no_dark = (u32)zero * repeat;
    for (u64 v = thread; v < vectors; v += threads) {
        const uint4 p4 = ((const uint4 *)image)[v];
        uint4 d4 = {no_dark, no_dark, no_dark, no_dark}, q4 = {repeat, repeat, repeat, repeat};
        if (has_dark) d4 = ((const uint4 *)dark)[v];
        if (has_flat) q4 = ((const uint4 *)flat)[v];
        const u32 p[4] = {p4.x, p4.y, p4.z, p4.w}, d[4] = {d4.x, d4.y, d4.z, d4.w}, q[4] = {q4.x, q4.y, q4.z, q4.w};
        const u32 first = (u32)(v * PER_VECTOR<T> % C);
        u32 out[4] = {};
#pragma unroll
        for (u32 e = 0; e < PER_VECTOR<T>; e++) {
            const u32 word = e / PER_WORD<T>, place = e % PER_WORD<T>, channel = (first + e) % C;
            u32 s = sample<T>(p[word], place);
            if (channel < COLOURS)
                s = calibrated(s, sample<T>(d[word], place), sample<T>(q[word], place), factor[channel], shift);
            out[word] |= s << 8 * sizeof(T) * place;
        }
        ((uint4 *)image)[v] = {out[0], out[1], out[2], out[3]};
    }
    for (u64 i = vectors * PER_VECTOR<T> + thread; i < samples; i += threads) {
        const u32 channel = (u32)(i % C), d = has_dark ? dark[i] : zero, q = has_flat ? flat[i] : 1;
        if (channel < COLOURS) image[i] = (T)calibrated(image[i], d, q, factor[channel], shift);
    }
}

extern "C" __global__ void __launch_bounds__(BLOCK)
    ENTRY(hot)(const T *src, T *dst, u64 width, u64 height, u32 threshold) {
    const u64 samples = width * height * C, threads = (u64)gridDim.x * BLOCK, row = width * C;
    for (u64 i = (u64)blockIdx.x * BLOCK + threadIdx.x; i < samples; i += threads) {
        const u64 y = i / row, x = i % row / C;
        const u32 s = src[i];
        // The neighbours in order; a place outside the image is larger than any sample, and so at the end.
        u32 near[8];
#pragma unroll
        for (u32 k = 0; k < 8; k++) {
            const u32 place = k < 4 ? k : k + 1; // of 3 × 3, without the middle
            const int dx = (int)(place % 3) - 1, dy = (int)(place / 3) - 1;
            const bool inside = (dx >= 0 || x > 0) && (dx <= 0 || x + 1 < width) && (dy >= 0 || y > 0) &&
                                (dy <= 0 || y + 1 < height);
            near[k] = inside ? (u32)src[(long long)i + dy * (long long)row + dx * (long long)C] : ALL;
        }
#pragma unroll
        for (u32 round = 0; round < 8; round++)
#pragma unroll
            for (u32 k = round % 2; k + 1 < 8; k += 2) {
                const u32 a = near[k], b = near[k + 1];
                near[k] = a < b ? a : b, near[k + 1] = a < b ? b : a;
            }
        u32 count = 0;
#pragma unroll
        for (u32 k = 0; k < 8; k++) count += near[k] != ALL;
        u32 low = 0, high = 0;
#pragma unroll
        for (u32 k = 0; k < 8; k++) {
            if (count > 0 && k == (count - 1) / 2) low = near[k];
            if (k == count / 2) high = near[k];
        }
        const u32 middle = (low + high + 1) / 2;
        const bool hot = count > 0 && i % C < COLOURS && s > middle && s - middle > threshold;
        dst[i] = (T)(hot ? middle : s);
    }
}
