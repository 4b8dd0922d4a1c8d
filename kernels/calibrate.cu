// Calibrate: subtracts a dark frame and divides by a flat field, sample by sample, exactly rounded (src/ops/calibrate.rs
// has the definition, and the proof that doubles compute it exactly).
//
//   calibrate_{u8,u16}_c{1,2,3,4}(T *image, u64 samples, const T *dark, const T *flat, const Factor *factors,
//                                 u32 has_dark, u32 has_flat, int zero, int offset, u64 *clamped)
//       In place. `flat` holds max(f − d, 1); dark and flat have `samples` samples each, and are not read where has_dark or
//       has_flat is 0: `zero` and 1 stand for theirs. One Factor for each channel, of m, the mean of f − d. The last of 2 or
//       4 channels is alpha and stays. Adds to *clamped the number of results that the sample type cannot hold. Grid: any; best ceil(samples / 2048) blocks of 256. All pointers are 16-byte aligned.
//   hot_{u8,u16}_c{1,2,3,4}(const T *src, T *dst, u64 width, u64 height, u32 threshold)
//       dst = the median of the up to 8 neighbours of a sample that exceeds it by more than `threshold`, else the sample.
//       Of an even number of neighbours the median is floor((a + b)/2 + 1/2). Alpha stays. dst must not overlap src.
//       Grid: any; best ceil(samples / 256) blocks of 256.
//
// Two numbers, for b bytes of image. calibrate: reads 3 b, writes b; some 25 instructions a sample, of which one is a reciprocal.
// hot: reads b, most of it 9 times from the caches, and writes b.
//
// forms: SAMPLE=u8,u16 CHANNELS=1,2,3,4 named {SAMPLE}_c{CHANNELS}
#include "common.cuh"

typedef SAMPLE T;
constexpr u32 C = CHANNELS;
constexpr u32 COLOURS = C - (C + 1) % 2; // the last of 2 or 4 is alpha

// What a flat field with the mean m multiplies by.
struct Factor {
    double whole, up, down; // the whole part of 2m, and its rest rounded up and rounded down
    float high, low;        // m = high + low, within 2^-48 of m
};

// One sample p with its dark d and its q = max(f − d, 1), by the definition. Counts it if it is clamped.
static __device__ __noinline__ u32 exactly(u32 p, u32 d, u32 q, const Factor &factor, double shift, u32 &clamped) {
    const int x = (int)p - (int)d;
    const double twice = x * factor.whole + floor(x * (x < 0 ? factor.down : factor.up)); // floor(2·x·m)
    const double value = floor((twice + q) / (2.0 * q)) + shift, bounded = fmin(fmax(value, 0.0), (double)FULL<T>);
    clamped += value != bounded;
    return (u32)bounded;
}

// Single precision has a whole number below 2^23 in the low bits of 2^23 + it.
constexpr float WHOLE = 8388608.0f;
// 2^23 + sample `e` of a word.
static __device__ __forceinline__ float above(u32 word, u32 e) {
    const u32 places = sizeof(T) == 1 ? 0x7650 + e : e ? 0x7632 : 0x7610;
    return __uint_as_float(__byte_perm(word, __float_as_uint(WHOLE), places));
}

// A word of samples, each in the low bits of a part.
static __device__ __forceinline__ u32 packed(const u32 (&parts)[PER_WORD<T>]) {
    if constexpr (sizeof(T) == 2) return __byte_perm(parts[0], parts[1], 0x5410);
    else return __byte_perm(__byte_perm(parts[0], parts[1], 0x0040), __byte_perm(parts[2], parts[3], 0x0040), 0x5410);
}

// Quotients beyond this saturate: the shift of those that are computed in single precision has at most half of it.
constexpr float MOST = 1048576.0f;
// How near to a half a quotient is decided by `exactly`. Below MOST, the error of the difference of a quotient from the
// whole number near it is less than 2^-21.
constexpr float NEAR = 1.0f / (1 << 18);
// A sum with it is rounded to a whole number, and its difference from the sum is that number.
constexpr float ROUND = 1.5f * WHOLE;

// Doubles alone would do on the GPUs of data centres; most others have one unit for doubles beside 32 or 64 for single precision.
// x·m/q, rounded to a whole number; `farthest` is at least how far one that was rounded was from its whole number.
static __device__ __forceinline__ float nearly(float x, float q, float high, float low, float &farthest) {
    // x·m as a pair.
    const float head = __fmul_rn(x, high), tail = __fmaf_rn(x, low, __fmaf_rn(x, high, -head));
    float inverse;
    asm("rcp.approx.ftz.f32 %0, %1;" : "=f"(inverse) : "f"(q));
    // A whole number within 1 of the quotient, then what is left of the quotient, from what is left of the product.
    const float near = __fadd_rn(__fadd_rn(__fmul_rn(head, inverse), ROUND), -ROUND);
    const float rest = __fmul_rn(__fadd_rn(__fmaf_rn(-near, q, head), tail), inverse);
    const float more = __fadd_rn(__fadd_rn(rest, ROUND), -ROUND);
    farthest = fmaxf(farthest, fabsf(__fadd_rn(rest, -more)));
    return __fadd_rn(near, more);
}

// lengths: image[samples], dark[has_dark == 0 ? 0 : samples], flat[has_flat == 0 ? 0 : samples], factors[CHANNELS], clamped[1]
// requires: samples % CHANNELS == 0
extern "C" __global__ void __launch_bounds__(BLOCK)
    ENTRY(calibrate)(T *image, u64 samples, const T *dark, const T *flat, const Factor *factors, u32 has_dark,
                     u32 has_flat, int zero, int offset, u64 *clamped) {
    const float shift = (float)zero + (float)offset;
    const bool small = fabsf(shift) < MOST / 2;
    const u64 thread = (u64)blockIdx.x * BLOCK + threadIdx.x, threads = (u64)gridDim.x * BLOCK;
    const u64 vectors = samples / PER_VECTOR<T>;
    // A word of samples filled with one value.
    const u32 repeat = sizeof(T) == 1 ? 0x01010101u : 0x00010001u, no_dark = (u32)zero * repeat;
    u32 own = 0; // samples that this thread clamps
    const auto one = [&](u64 i) {
        const u32 channel = (u32)(i % C), d = has_dark ? dark[i] : zero, q = has_flat ? flat[i] : 1;
        if (channel < COLOURS) image[i] = (T)exactly(image[i], d, q, factors[channel], (double)zero + offset, own);
    };
    for (u64 v = thread; v < vectors; v += threads) {
        const uint4 p4 = ((const uint4 *)image)[v];
        uint4 d4 = {no_dark, no_dark, no_dark, no_dark}, q4 = {repeat, repeat, repeat, repeat};
        if (has_dark) d4 = ((const uint4 *)dark)[v];
        if (has_flat) q4 = ((const uint4 *)flat)[v];
        // The factors of the vector's first samples; those that follow repeat them.
        const u32 first = PER_VECTOR<T> % C == 0 ? 0 : (u32)(v * PER_VECTOR<T> % C);
        float high[C], low[C];
#pragma unroll
        for (u32 c = 0; c < C; c++) {
            high[c] = factors[(first + c) % C].high;
            low[c] = factors[(first + c) % C].low;
        }
        const u32 p[4] = {p4.x, p4.y, p4.z, p4.w}, d[4] = {d4.x, d4.y, d4.z, d4.w}, q[4] = {q4.x, q4.y, q4.z, q4.w};
        u32 out[4];
        float farthest = 0.0f;
        u32 beyond = 0;
#pragma unroll
        for (u32 word = 0; word < 4; word++) {
            u32 parts[PER_WORD<T>];
#pragma unroll
            for (u32 place = 0; place < PER_WORD<T>; place++) {
                const u32 channel = (word * PER_WORD<T> + place) % C;
                const float s = above(p[word], place);
                parts[place] = __float_as_uint(s);
                // Where no channel is alpha, any may be the first.
                if (COLOURS == C || channel < COLOURS) {
                    const float x = s - above(d[word], place), y = above(q[word], place) - WHOLE;
                    const float value = nearly(x, y, high[channel], low[channel], farthest);
                    const float bounded = fminf(fmaxf(value, -shift), FULL<T> - shift);
                    beyond += value != bounded;
                    parts[place] = __float_as_uint(bounded + (WHOLE + shift));
                }
            }
            out[word] = packed(parts);
        }
        if (small && farthest <= 0.5f - NEAR) {
            ((uint4 *)image)[v] = {out[0], out[1], out[2], out[3]};
            own += beyond;
        } else {
#pragma unroll 1
            for (u64 i = v * PER_VECTOR<T>; i < (v + 1) * PER_VECTOR<T>; i++) one(i);
        }
    }
    for (u64 i = vectors * PER_VECTOR<T> + thread; i < samples; i += threads) one(i);
    if (__any_sync(ALL, own)) {
#pragma unroll
        for (u32 d = 16; d; d /= 2) own += __shfl_down_sync(ALL, own, d);
        if (threadIdx.x % 32 == 0) atomicAdd(clamped, (u64)own);
    }
}

// lengths: src[width * height * CHANNELS], dst[width * height * CHANNELS]
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
