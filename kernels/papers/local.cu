// The local memory of "Transposing a matrix" (Kalgin and Baldin): a thread loads N neighbours of its own into an array l[N],
// then sums them weighted by position, Σ (k + 1)·l[k], and stores one result.
//
//   registers_{4,16,64}(const u32 *src, u32 *dst, u64 threads)      the loops are unrolled, so that the array is registers
//   spilled_{4,16,64,256}(const u32 *src, u32 *dst, u64 threads)    the loops are not: the array is indexed at run time and
//       lies in local memory, which is device memory
//   roomy_64, tight_64(const u32 *src, u32 *dst, u64 threads)       64 values that must be held at once, each combined with the
//       exclusive-or of all: with as many registers as they need, and with at most 32, so that the compiler spills them
// `src` has N words for each thread, thread after thread.
#include "papers/papers.cuh"

template <u32 N> static __device__ __forceinline__ void unrolled(const u32 *src, u32 *dst, u64 threads) {
    const u64 t = number();
    if (t >= threads) return;
    u32 l[N], sum = 0;
#pragma unroll
    for (u32 k = 0; k < N; k++) l[k] = src[t * N + k];
#pragma unroll
    for (u32 k = 0; k < N; k++) sum += (k + 1) * l[k];
    dst[t] = sum;
}

template <u32 N> static __device__ __forceinline__ void spilled(const u32 *src, u32 *dst, u64 threads) {
    const u64 t = number();
    if (t >= threads) return;
    u32 l[N], sum = 0;
#pragma unroll 1
    for (u32 k = 0; k < N; k++) l[k] = src[t * N + k];
#pragma unroll 1
    for (u32 k = 0; k < N; k++) sum += (k + 1) * l[k];
    dst[t] = sum;
}

#define REGISTERS(N)                                                                                             \
    extern "C" __global__ void registers_##N(const u32 *src, u32 *dst, u64 threads) { unrolled<N>(src, dst, threads); }
#define SPILLED(N)                                                                                               \
    extern "C" __global__ void spilled_##N(const u32 *src, u32 *dst, u64 threads) { spilled<N>(src, dst, threads); }
// family: Local
// lengths: src[N * threads], dst[threads]
REGISTERS(4)
REGISTERS(16)
REGISTERS(64)
SPILLED(4)
SPILLED(16)
SPILLED(64)
SPILLED(256)

template <u32 N> static __device__ __forceinline__ void held(const u32 *src, u32 *dst, u64 threads) {
    const u64 t = number();
    if (t >= threads) return;
    u32 l[N], all = 0, sum = 0;
#pragma unroll
    for (u32 k = 0; k < N; k++) all ^= l[k] = load_l1(src + t * N + k); // volatile: loaded once
#pragma unroll
    for (u32 k = 0; k < N; k++) sum += (k + 1) * (l[k] ^ all);
    dst[t] = sum;
}

extern "C" __global__ void __launch_bounds__(128) roomy_64(const u32 *src, u32 *dst, u64 threads) {
    held<64>(src, dst, threads);
}
extern "C" __global__ void __launch_bounds__(1024, 2) tight_64(const u32 *src, u32 *dst, u64 threads) {
    held<64>(src, dst, threads);
}
