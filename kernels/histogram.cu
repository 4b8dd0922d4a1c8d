// Histogram: how often each value occurs in each channel, exactly.
//
//   histogram_{u8,u16}_c{1,2,3,4}(const T *src, u64 samples, u64 *bins)
//       Adds the counts of channel c's values to bins[c·(FULL + 1) …]; zero them first.
//       `samples` counts all channels and is a multiple of C.
// Grid: any; best min(ceil(bytes / 16384), 4·multiprocessors) blocks of 256.
//
// Two numbers, for b bytes: reads b; one atomic addition in shared memory for each run of equal samples, or one in
// global memory if two values compete for a slot.
//
// Each block counts in shared memory, in slots that belong to the value that came first: the few thousand values of a
// usual image stay there, and a background of one value does not serialise on one word of memory.
//
// forms: SAMPLE=u8,u16 CHANNELS=1,2,3,4 named {SAMPLE}_c{CHANNELS}
#include "common.cuh"

typedef SAMPLE T;
constexpr u32 C = CHANNELS;
constexpr u32 VECTORS = C == 3 ? 3 : 4; // in flight for each thread
constexpr u32 SLOTS = 4096;
constexpr u32 NOBODY = ~0u;

struct Slots {
    u32 owner[SLOTS], count[SLOTS];

    // Not inlined: the driver would compile 64 copies of it in a thread's tile, which takes longer than the image.
    __device__ __noinline__ void add(u32 key, u32 n, u64 *bins) {
        const u32 slot = (key ^ key >> 12) % SLOTS;
        u32 own = *(volatile u32 *)&owner[slot];
        if (own == NOBODY) own = atomicCAS(&owner[slot], NOBODY, key);
        if (own == key || own == NOBODY) atomicAdd(&count[slot], n);
        else atomicAdd(&bins[key], (u64)n);
    }
};

// Outside the kernel, so that the kernel of sets has the same: `add` then knows its address.
static __shared__ Slots slots;

// lengths: src[samples], bins[CHANNELS * (sizeof(T) == 1 ? 256 : 65536)]
// requires: samples % CHANNELS == 0
// in sets
extern "C" __global__ void __launch_bounds__(BLOCK) ENTRY(histogram)(const T *src, u64 samples, u64 *bins) {
    static_assert(BLOCK % 3 == 1, "the classes of 3 channels rest on it");
    for (u32 i = threadIdx.x; i < SLOTS; i += BLOCK) slots.owner[i] = NOBODY, slots.count[i] = 0;
    __syncthreads();

    walk<VECTORS>(
        Turn{blockIdx.x, gridDim.x}, src, samples,
        [&](u32 u, uint4 v) {
            const u32 word[4] = {v.x, v.y, v.z, v.w};
            u32 key[C], run[C];
#pragma unroll
            for (u32 k = 0; k < C; k++) run[k] = 0, key[k] = 0;
#pragma unroll
            for (u32 e = 0; e < PER_VECTOR<T>; e++) {
                const u32 k = (u * PER_VECTOR<T> + e) % C;
                const u32 channel = (threadIdx.x * PER_VECTOR<T> + k) % C;
                const u32 now = channel * (FULL<T> + 1) + sample<T>(word[e / PER_WORD<T>], e % PER_WORD<T>);
                if (run[k] && key[k] != now) slots.add(key[k], run[k], bins), run[k] = 0;
                key[k] = now, run[k]++;
            }
#pragma unroll
            for (u32 k = 0; k < C; k++)
                if (run[k]) slots.add(key[k], run[k], bins);
        },
        [] {}, [&](u64 i, u32 s) { slots.add((u32)(i % C) * (FULL<T> + 1) + s, 1, bins); });

    __syncthreads();
    for (u32 i = threadIdx.x; i < SLOTS; i += BLOCK)
        if (slots.count[i]) atomicAdd(&bins[slots.owner[i]], (u64)slots.count[i]);
}
