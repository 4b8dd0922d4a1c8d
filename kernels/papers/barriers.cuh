// Barriers in shared memory that count the bytes of copies to it (from compute capability 9.0 on).
#pragma once
#include "common.cuh"

// The address of shared memory as instructions have it.
static __device__ __forceinline__ u32 address(const void *shared) { return (u32)__cvta_generic_to_shared(shared); }

#if __CUDA_ARCH__ >= 900
// One thread prepares the barriers, and only then starts copies; the others wait for it before they wait for copies.
template <u32 COUNT> static __device__ __forceinline__ void prepare(u64 (&barriers)[COUNT]) {
    for (u64 &barrier : barriers) asm volatile("mbarrier.init.shared.b64 [%0], 1;" ::"r"(address(&barrier)) : "memory");
    asm volatile("fence.proxy.async;" ::: "memory");
}
// The thread that prepared a barrier says how many bytes are to come.
static __device__ __forceinline__ void expect(u64 *barrier, u32 bytes) {
    asm volatile("mbarrier.arrive.expect_tx.shared.b64 _, [%0], %1;" ::"r"(address(barrier)), "r"(bytes) : "memory");
}
// Waits until the bytes of a phase have come: of the first 0, then 1, and so on in turns.
static __device__ __forceinline__ void await(u64 *barrier, u32 phase) {
    u32 done = 0;
    while (!done)
        asm volatile("{ .reg .pred p; mbarrier.try_wait.parity.shared.b64 p, [%1], %2; selp.u32 %0, 1, 0, p; }"
                     : "=r"(done)
                     : "r"(address(barrier)), "r"(phase)
                     : "memory");
}
#endif
