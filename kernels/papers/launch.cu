// The empty kernel of "CUDA: performance aspects of typical tasks" (2011), the long kernel for the asynchronous calls
// of "Methods of effective organisation of parallel computing on GPUs", and the comparison that checks every other
// kernel.
//
//   empty()                                         any launch
//   spin(u64 nanoseconds)                           1 thread: keeps the stream busy that long
//   differing(const u32 *a, const u32 *b, u64 n, u64 *count)
//       Adds to *count how many of n words differ. Any launch.
#include "papers/papers.cuh"

extern "C" __global__ void empty() {}

static __device__ __forceinline__ u64 now() {
    u64 time;
    asm volatile("mov.u64 %0, %%globaltimer;" : "=l"(time));
    return time;
}

extern "C" __global__ void spin(u64 nanoseconds) {
    for (const u64 start = now(); now() - start < nanoseconds;) {
    }
}

// lengths: a[n], b[n], count[1]
extern "C" __global__ void differing(const u32 *a, const u32 *b, u64 n, u64 *count) {
    u32 found = 0;
    for (u64 i = number(); i < n; i += everyone()) found += a[i] != b[i];
    for (u32 d = 16; d; d /= 2) found += __shfl_down_sync(ALL, found, d);
    if (threadIdx.x % 32 == 0 && found) atomicAdd(count, (u64)found);
}
