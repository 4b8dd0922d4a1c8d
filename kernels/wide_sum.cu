// Exact sums of images of 32 bits (src/ops/wide/sum.rs has the definition): step 7 of "GPGPU optimisation by the example of
// a sum" (after Mark Harris), with sums that lose nothing.
//
//   sum_c{1,2,3,4}(const u32 *src, u64 samples, u32 is_real, u32 nan, u64 *totals)
//       Adds the exact total of each of the C interleaved channels to `totals`; zero them first. Of channel c the two words
//       at totals + 2·(254·c + e) are low and high: (low + 2^32·high)·2^e is part of the channel's sum, high having a sign,
//       in units of 2^-149 where is_real ≠ 0: floating point, where the key `nan` stands for what is no finite number. Of
//       integers e is 0. The word behind those of all channels counts what is no finite number.
//       Grid: any; best min(ceil(samples / 4096), 4·multiprocessors) blocks of 256, of which each takes less than 2^40
//       samples. `samples` counts all channels and is a multiple of C. A pointer that is not 16-byte aligned works, slower.
//
// Two numbers, for n samples: reads 4 n; of floating point, 1 addition of doubles and 1 conversion to them a sample.
//
// forms: CHANNELS=1,2,3,4 named c{CHANNELS}
#include "wide.cuh"

constexpr u32 C = CHANNELS;
// 16-byte vectors in flight for each thread: a multiple of 3 for 3 channels, as in wide_extremes.cu.
constexpr u32 VECTORS = C == 3 ? 3 : 4;
// The exponents of numbers: m·2^(e − 149) with m < 2^24.
constexpr u32 EXPONENTS = 254; // host
// A thread adds numbers in doubles while their exponents are at most so far apart: its samples of a tile, 16 at most, are
// whole numbers of the least step that have 24 + SPREAD bits, and so every sum of them is exact.
constexpr u32 SPREAD = 20;
// Tiles whose sums, of 24 + SPREAD + 4 bits, 64 bits hold.
constexpr u32 TILES = 1 << 14;

// A total of 2^32·high + low for each channel and exponent.
struct Totals {
    u64 word[C][EXPONENTS][2];
};

static __device__ void add(Totals &totals, u32 channel, u32 exponent, long long sum) {
    u64 *const word = totals.word[channel][exponent];
    atomicAdd(&word[0], (u64)sum & ALL);
    atomicAdd(&word[1], (u64)(sum >> 32));
}

// The exponent of a number with these bits.
static __device__ __forceinline__ u32 exponent_of(u32 magnitude) { return max(magnitude >> 23, 1u) - 1; }

// lengths: src[samples], totals[2 * EXPONENTS * CHANNELS + 1]
// requires: samples % CHANNELS == 0
extern "C" __global__ void __launch_bounds__(BLOCK)
    ENTRY(sum)(const u32 *src, u64 samples, u32 is_real, u32 nan, u64 *totals) {
    static_assert(BLOCK % 3 == 1, "the classes of 3 channels rest on it");
    __shared__ Totals shared;
    __shared__ u32 counts[WARPS];
    u64 *const words = &shared.word[0][0][0];
    for (u32 i = threadIdx.x; i < C * EXPONENTS * 2; i += BLOCK) words[i] = 0;
    __syncthreads();

    // Class k holds every C-th sample, counted from the thread's own first.
    const auto channel = [&](u32 k) { return C == 3 ? (threadIdx.x + k) % C : k; };
    long long sum[C]; // in units of `base`
    double part[C];   // of the tile
    u32 base = 0, tiles = 0, odd = 0;
    double scale = __longlong_as_double((1023ll + 149) << 52); // 2^(149 − base)
#pragma unroll
    for (u32 k = 0; k < C; k++) sum[k] = 0, part[k] = 0;

    const auto settle = [&] { // the tile's sums, exactly
#pragma unroll
        for (u32 k = 0; k < C; k++) sum[k] += __double2ll_rn(part[k] * scale), part[k] = 0;
    };
    const auto flush = [&] {
#pragma unroll
        for (u32 k = 0; k < C; k++)
            if (sum[k]) add(shared, channel(k), base, sum[k]), sum[k] = 0;
        tiles = 0;
    };
    const auto finite = [&](u32 key) {
        const bool is = key - LEAST <= SPAN;
        odd += !is;
        return bits(is ? key : nan);
    };
    const auto alone = [&](u32 c, u32 b) {
        const u32 magnitude = b & 0x7fffffff, fraction = b & 0x7fffff;
        const long long mantissa = fraction | (magnitude >> 23 ? 1u << 23 : 0);
        add(shared, c, exponent_of(magnitude), b >> 31 ? -mantissa : mantissa);
    };

    walk<VECTORS>(
        Turn{blockIdx.x, gridDim.x}, src, samples,
        [&](u32 u, uint4 v) {
            u32 word[4] = {v.x, v.y, v.z, v.w};
            if (!is_real) {
#pragma unroll
                for (u32 j = 0; j < 4; j++) sum[C == 3 ? (u + j) % C : j % C] += word[j];
                return;
            }
            u32 least = ALL, most = 0; // the smallest magnitude but 0, less 1, and the largest
#pragma unroll
            for (u32 j = 0; j < 4; j++) {
                word[j] = finite(word[j]);
                const u32 magnitude = word[j] & 0x7fffffff;
                least = min(least, magnitude - 1), most = max(most, magnitude);
            }
            if (!most) return; // zeros
            const u32 low = exponent_of(least + 1), high = exponent_of(most);
            if (low < base || high > base + SPREAD) {
                settle();
                if (high - low > SPREAD) {
#pragma unroll
                    for (u32 j = 0; j < 4; j++) alone(channel(C == 3 ? (u + j) % C : j % C), word[j]);
                    return;
                }
                flush();
                base = max((low + high) / 2, SPREAD / 2) - SPREAD / 2;
                scale = __longlong_as_double((1023ll + 149 - base) << 52);
            }
#pragma unroll
            for (u32 j = 0; j < 4; j++) part[C == 3 ? (u + j) % C : j % C] += (double)__uint_as_float(word[j]);
        },
        [&] {
            if (is_real) settle();
            if (++tiles == TILES) flush();
        },
        [&](u64 i, u32 s) {
            if (is_real) alone(i % C, finite(s));
            else add(shared, i % C, 0, s);
        });

    // The threads of a warp mostly have one base: their sums are added up before they meet in shared memory.
    const bool alike = __all_sync(ALL, base == __shfl_sync(ALL, base, 0));
    if (alike) {
#pragma unroll
        for (u32 c = 0; c < C; c++) {
            long long own = 0;
#pragma unroll
            for (u32 k = 0; k < C; k++) own = channel(k) == c ? sum[k] : own;
            // Halves, since the sum of 32 may have 5 bits more.
            long long low = (u32)own, high = own >> 32;
#pragma unroll
            for (u32 d = 16; d; d /= 2) {
                low += __shfl_down_sync(ALL, low, d);
                high += __shfl_down_sync(ALL, high, d);
            }
            if (threadIdx.x % 32 == 0) {
                u64 *const word = shared.word[c][base];
                atomicAdd(&word[0], (u64)low), atomicAdd(&word[1], (u64)high);
            }
        }
    } else flush();
    __syncthreads();
    for (u32 i = threadIdx.x; i < C * EXPONENTS * 2; i += BLOCK)
        if (words[i]) atomicAdd(&totals[i], words[i]);
    const u32 all = reduce_block(odd, counts, 0u, [](u32 a, u32 b) { return a + b; });
    if (threadIdx.x == 0 && all) atomicAdd(&totals[C * EXPONENTS * 2], (u64)all);
}
