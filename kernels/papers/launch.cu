// The empty kernel of "CUDA: performance aspects of typical tasks" (2011), the long kernel for the asynchronous calls
// of "Methods of effective organisation of parallel computing on GPUs", and the comparison that checks every other
// kernel.
//
//   empty()                                         any launch
//   mark(u32 *marks, u32 i)                         any launch: stores i in marks[i]. It may start with programmatic stream
//                                                   serialization, while the launch before it ends
//   spin(u64 nanoseconds)                           1 thread: keeps the stream busy that long
//   differing(const u32 *a, const u32 *b, u64 n, u64 *count)
//       Adds to *count how many of n words differ. Any launch.
#include "papers/papers.cuh"

extern "C" __global__ void empty() {}

// lengths: marks[i + 1]
extern "C" __global__ void mark(u32 *marks, u32 i) {
#if __CUDA_ARCH__ >= 900
    asm volatile("griddepcontrol.launch_dependents;" ::: "memory"); // the next launch may start
    asm volatile("griddepcontrol.wait;" ::: "memory");              // the one before has ended
#endif
    if (number() == 0) marks[i] = i;
}

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
