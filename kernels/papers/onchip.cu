// The memories on the chip: bank conflicts, and constant and texture caches of "Transposing a matrix" (Kalgin and Baldin);
// the latencies of all kinds of memory, of "GPGPU optimisation by the example of a sum".
//
//   banks(u32 stride, u32 turns, u32 *sums)       each lane reads words of shared memory, `stride` words from its
//       neighbour's: shared memory has 32 banks of 4 bytes. Sums as everywhere: one a thread
//   constant_same(u32 turns, u32 *sums)           a warp reads one word of constant memory at a time
//   constant_lanes(u32 turns, u32 *sums)          each lane reads another
//   global_lanes(const u32 *table, u32 turns, u32 *sums)    the same from device memory, which the L1 keeps
//   chase_{l1,l2}(const u32 *next, u32 steps, u32 *position)
//       One thread, launched alone, goes from word to word, each the index of the next: a step takes the latency of one load. *position is
//       where it begins, and afterwards where it ended.
//   chase_shared(…)                               1024 words in shared memory; a block of any size, of which thread 0 walks
//   chase_local(…)                                1024 words in the thread's own local memory
//   chase_constant(u32 steps, u32 *position)      the table of 256 words in constant memory, a ring too
//   chase_texture(u64 texture, u32 steps, u32 *position)      the words of a texture object with rows of 64
//   chase_registers(u32 factor, u32 steps, u32 *position)     no load: a step is a multiply-add of registers that waits for
//       the one before it
#include "papers/papers.cuh"

// TABLE[i] = (77·i + 97) mod 256: goes through all 256 words, since 77 − 1 is a multiple of 4 and 97 is odd.
#define AT(i) ((77 * (i) + 97) & 255)
#define AT4(i) AT(i), AT(i + 1), AT(i + 2), AT(i + 3)
#define AT16(i) AT4(i), AT4(i + 4), AT4(i + 8), AT4(i + 12)
#define AT64(i) AT16(i), AT16(i + 16), AT16(i + 32), AT16(i + 48)
__constant__ u32 TABLE[256] = {AT64(0), AT64(64), AT64(128), AT64(192)};

constexpr u32 RING = 1024;
constexpr u32 ROW = 8; // words that a lane reads in a turn

// lengths: sums[grid.threads]
extern "C" __global__ void banks(u32 stride, u32 turns, u32 *sums) {
    __shared__ volatile u32 s[RING + ROW];
    for (u32 i = threadIdx.x; i < RING + ROW; i += blockDim.x) s[i] = i * 0x9e3779b1u;
    __syncthreads();
    const u32 x = threadIdx.x % 32 * stride % RING;
    u32 sum = 0;
    for (u32 turn = 0; turn < turns; turn++) {
#pragma unroll
        for (u32 k = 0; k < ROW; k++) sum += s[x + k];
    }
    sums[number()] = sum;
}

// family: Constant
// lengths: sums[grid.threads]
extern "C" __global__ void constant_same(u32 turns, u32 *sums) {
    u32 sum = 0;
    for (u32 turn = 0; turn < turns; turn++) sum += TABLE[turn & 255];
    sums[number()] = sum;
}

extern "C" __global__ void constant_lanes(u32 turns, u32 *sums) {
    u32 sum = 0;
    for (u32 turn = 0; turn < turns; turn++) sum += TABLE[(turn + threadIdx.x % 32 * 8) & 255];
    sums[number()] = sum;
}

// lengths: table[256], sums[grid.threads]
extern "C" __global__ void global_lanes(const u32 *table, u32 turns, u32 *sums) {
    u32 sum = 0;
    for (u32 turn = 0; turn < turns; turn++) sum += load_l1(table + ((turn + threadIdx.x % 32 * 8) & 255));
    sums[number()] = sum;
}

template <class Load> static __device__ __forceinline__ void chase(u32 steps, u32 *position, Load load) {
    u32 at = *position;
#pragma unroll 8
    for (u32 k = 0; k < steps; k++) at = load(at);
    *position = at;
}

// family: Chase
// lengths: next[..], position[1]
// trusts: next and position, whose words are numbers of words of next; chase_shared and chase_local read the first RING of them
extern "C" __global__ void chase_l2(const u32 *next, u32 steps, u32 *position) {
    chase(steps, position, [=](u32 at) { return load_l2(next + at); });
}
extern "C" __global__ void chase_l1(const u32 *next, u32 steps, u32 *position) {
    chase(steps, position, [=](u32 at) { return load_l1(next + at); });
}
extern "C" __global__ void chase_shared(const u32 *next, u32 steps, u32 *position) {
    __shared__ u32 ring[RING];
    for (u32 i = threadIdx.x; i < RING; i += blockDim.x) ring[i] = next[i];
    __syncthreads();
    if (threadIdx.x == 0) chase(steps, position, [&](u32 at) { return ring[at]; });
}
extern "C" __global__ void chase_local(const u32 *next, u32 steps, u32 *position) {
    u32 ring[RING];
#pragma unroll 1
    for (u32 i = 0; i < RING; i++) ring[i] = next[i];
    chase(steps, position, [&](u32 at) { return ring[at]; });
}
// lengths: position[1]
// trusts: texture and position: a texture object with rows of 64 words, which are numbers of its words, as is the position
extern "C" __global__ void chase_texture(u64 texture, u32 steps, u32 *position) {
    chase(steps, position, [=](u32 at) { return fetch(texture, at % 64, at / 64); });
}
// lengths: position[1]
extern "C" __global__ void chase_registers(u32 factor, u32 steps, u32 *position) {
    chase(steps, position, [=](u32 at) { return at * factor + 1; });
}
// lengths: position[1]
// trusts: position, which is below 256
extern "C" __global__ void chase_constant(u32 steps, u32 *position) {
    chase(steps, position, [=](u32 at) { return TABLE[at]; });
}
