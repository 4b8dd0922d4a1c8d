// The seven sums of 32-bit integers, modulo 2³², of "GPGPU optimisation by the example of a sum" (after Mark Harris).
// Each block adds its part in shared memory and stores one partial sum; a further launch adds the partial sums, until
// one is left, so that any length works.
//
//   step_{1…7}(const u32 *in, u32 *partial, u32 n)
//   1  interleaved addressing: a thread works when its index is a multiple of 2·stride, so that every warp diverges
//   2  interleaved addressing, the first threads work: whole warps drop out, but they meet in the same banks
//   3  sequential addressing: neighbours add neighbours, no bank twice
//   4  half the blocks: the first addition is made while loading
//   5  the last 32 threads need no barrier of the block: unrolled. Threads of a warp are scheduled independently since
//      Volta, hence the barriers of the warp, between a step's reads and its writes too
//   6  the block's size is known to the compiler: no loop is left (in 1 to 5 it is read from the launch)
//   7  several elements a thread, added in a register before the tree
// Six more, which the text does not have:
//   8  the tree inside a warp by shuffles: a barrier of the block only between its warps
//   9  16 bytes a load
//   10 a warp is added by one instruction (redux.sync, from compute capability 8.0 on; shuffles before)
//   step_{11,12,13}(const u32 *in, u32 *partial, u32 *arrived, u32 n)
//   11 one launch: the block that ends last adds the partial sums. *arrived is 0 before the first launch, and after each
//   12 the data come to shared memory by bulk copies, whose arrival a barrier in shared memory counts (from compute
//      capability 9.0 on; 11 before)
//   13 the blocks of a cluster add their sums in the shared memory of one of them, by clusters of at most 16 that divide
//      the grid: only as many blocks arrive as there are clusters (from compute capability 9.0 on; 11 before)
//   step_6_{32,64,128,512,1024}(…)   step 6 is a template of the block's size: its other sizes
// Blocks of 256, or of the size in the name; grid: 1–3 ceil(n/256), 4–6 ceil(n/(2·block)), from 7 on any.
#include "papers/barriers.cuh"
#include "papers/papers.cuh"

constexpr u32 THREADS = 256;

// Loads one element a thread, or two that are a block's length apart; zero past the end.
static __device__ __forceinline__ u32 one(const u32 *in, u32 n) {
    const u32 i = number();
    return i < n ? in[i] : 0;
}
static __device__ __forceinline__ u32 two(const u32 *in, u32 n, u32 threads) {
    const u32 i = blockIdx.x * threads * 2 + threadIdx.x;
    return (i < n ? in[i] : 0) + (i + threads < n ? in[i + threads] : 0);
}

// family: Step
// lengths: in[n], partial[grid.blocks]
// requires: grid.block <= 1024
extern "C" __global__ void step_1(const u32 *in, u32 *partial, u32 n) {
    __shared__ u32 s[THREADS];
    const u32 t = threadIdx.x;
    s[t] = one(in, n);
    __syncthreads();
    for (u32 stride = 1; stride < blockDim.x; stride *= 2) {
        if (t % (2 * stride) == 0) s[t] += s[t + stride];
        __syncthreads();
    }
    if (t == 0) partial[blockIdx.x] = s[0];
}

extern "C" __global__ void step_2(const u32 *in, u32 *partial, u32 n) {
    __shared__ u32 s[THREADS];
    const u32 t = threadIdx.x;
    s[t] = one(in, n);
    __syncthreads();
    for (u32 stride = 1; stride < blockDim.x; stride *= 2) {
        const u32 i = 2 * stride * t;
        if (i < blockDim.x) s[i] += s[i + stride];
        __syncthreads();
    }
    if (t == 0) partial[blockIdx.x] = s[0];
}

extern "C" __global__ void step_3(const u32 *in, u32 *partial, u32 n) {
    __shared__ u32 s[THREADS];
    const u32 t = threadIdx.x;
    s[t] = one(in, n);
    __syncthreads();
    for (u32 stride = blockDim.x / 2; stride > 0; stride /= 2) {
        if (t < stride) s[t] += s[t + stride];
        __syncthreads();
    }
    if (t == 0) partial[blockIdx.x] = s[0];
}

extern "C" __global__ void step_4(const u32 *in, u32 *partial, u32 n) {
    __shared__ u32 s[THREADS];
    const u32 t = threadIdx.x;
    s[t] = two(in, n, blockDim.x);
    __syncthreads();
    for (u32 stride = blockDim.x / 2; stride > 0; stride /= 2) {
        if (t < stride) s[t] += s[t + stride];
        __syncthreads();
    }
    if (t == 0) partial[blockIdx.x] = s[0];
}

// Adds s[0 … 63] to s[0], with the first warp.
static __device__ __forceinline__ void last_warp(u32 *s, u32 t) {
    u32 sum = s[t] + s[t + 32];
#pragma unroll
    for (u32 stride = 16; stride > 0; stride /= 2) {
        __syncwarp();
        s[t] = sum;
        __syncwarp();
        sum += s[t + stride]; // lanes from `stride` on add values that no lane reads
    }
    __syncwarp();
    if (t == 0) s[0] = sum;
}

extern "C" __global__ void step_5(const u32 *in, u32 *partial, u32 n) {
    __shared__ u32 s[THREADS];
    const u32 t = threadIdx.x;
    s[t] = two(in, n, blockDim.x);
    __syncthreads();
    for (u32 stride = blockDim.x / 2; stride > 32; stride /= 2) {
        if (t < stride) s[t] += s[t + stride];
        __syncthreads();
    }
    if (t < 32) last_warp(s, t);
    if (t == 0) partial[blockIdx.x] = s[0];
}

template <u32 SIZE> static __device__ __forceinline__ void unrolled(u32 *s, u32 t, u32 *partial) {
#pragma unroll
    for (u32 stride = SIZE / 2; stride > 32; stride /= 2) {
        if (t < stride) s[t] += s[t + stride];
        __syncthreads();
    }
    if (t < 32) last_warp(s, t);
    if (t == 0) partial[blockIdx.x] = s[0];
}

template <u32 SIZE> static __device__ __forceinline__ void fixed(const u32 *in, u32 *partial, u32 n) {
    __shared__ u32 s[SIZE < 64 ? 64 : SIZE];
    if (SIZE < 64) s[threadIdx.x + 32] = 0; // last_warp adds 64 values
    s[threadIdx.x] = two(in, n, SIZE);
    __syncthreads();
    unrolled<SIZE>(s, threadIdx.x, partial);
}

#define STEP_6(NAME, SIZE)                                                                                       \
    extern "C" __global__ void __launch_bounds__(SIZE) NAME(const u32 *in, u32 *partial, u32 n) {                \
        fixed<SIZE>(in, partial, n);                                                                             \
    }
STEP_6(step_6, THREADS)
STEP_6(step_6_32, 32)
STEP_6(step_6_64, 64)
STEP_6(step_6_128, 128)
STEP_6(step_6_512, 512)
STEP_6(step_6_1024, 1024)

extern "C" __global__ void __launch_bounds__(THREADS) step_7(const u32 *in, u32 *partial, u32 n) {
    __shared__ u32 s[THREADS];
    u32 sum = 0;
    for (u64 i = (u64)blockIdx.x * THREADS * 2 + threadIdx.x; i < n; i += (u64)gridDim.x * THREADS * 2)
        sum += in[i] + (i + THREADS < n ? in[i + THREADS] : 0);
    s[threadIdx.x] = sum;
    __syncthreads();
    unrolled<THREADS>(s, threadIdx.x, partial);
}

// The sum of the values of a warp, in its first lane at least.
static __device__ __forceinline__ u32 by_shuffles(u32 value) {
#pragma unroll
    for (u32 d = 16; d; d /= 2) value += __shfl_down_sync(ALL, value, d);
    return value;
}
static __device__ __forceinline__ u32 by_redux(u32 value) {
#if __CUDA_ARCH__ >= 800
    return __reduce_add_sync(ALL, value);
#else
    return by_shuffles(value);
#endif
}

// The sum of the values of a block of THREADS, in thread 0. `s` holds a value for each warp.
template <class Warp> static __device__ __forceinline__ u32 of_block(u32 value, u32 *s, Warp warp) {
    value = warp(value);
    if (threadIdx.x % 32 == 0) s[threadIdx.x / 32] = value;
    __syncthreads();
    return threadIdx.x < 32 ? warp(threadIdx.x < THREADS / 32 ? s[threadIdx.x] : 0) : 0;
}

// A thread's part of n words, 16 bytes a load.
static __device__ __forceinline__ u32 by_vectors(const u32 *in, u32 n) {
    u32 sum = 0;
    for (u64 i = number(); i < n / 4; i += everyone()) {
        const uint4 v = ((const uint4 *)in)[i];
        sum += v.x + v.y + v.z + v.w;
    }
    if (number() < n % 4) sum += in[n - 1 - number()];
    return sum;
}

extern "C" __global__ void __launch_bounds__(THREADS) step_8(const u32 *in, u32 *partial, u32 n) {
    __shared__ u32 s[THREADS / 32];
    u32 sum = 0;
    for (u64 i = (u64)blockIdx.x * THREADS * 2 + threadIdx.x; i < n; i += (u64)gridDim.x * THREADS * 2)
        sum += in[i] + (i + THREADS < n ? in[i + THREADS] : 0);
    sum = of_block(sum, s, by_shuffles);
    if (threadIdx.x == 0) partial[blockIdx.x] = sum;
}
extern "C" __global__ void __launch_bounds__(THREADS) step_9(const u32 *in, u32 *partial, u32 n) {
    __shared__ u32 s[THREADS / 32];
    const u32 sum = of_block(by_vectors(in, n), s, by_shuffles);
    if (threadIdx.x == 0) partial[blockIdx.x] = sum;
}
extern "C" __global__ void __launch_bounds__(THREADS) step_10(const u32 *in, u32 *partial, u32 n) {
    __shared__ u32 s[THREADS / 32];
    const u32 sum = of_block(by_vectors(in, n), s, by_redux);
    if (threadIdx.x == 0) partial[blockIdx.x] = sum;
}

// Stores the block's sum of the threads' sums, as that of number `block` among `blocks`; of these, the last one to arrive adds
// them all to partial[0].
static __device__ __forceinline__ void fold(u32 sum, u32 *partial, u32 *arrived, u32 block, u32 blocks) {
    __shared__ u32 s[2][THREADS / 32];
    __shared__ bool last;
    sum = of_block(sum, s[0], by_redux);
    if (threadIdx.x == 0) {
        partial[block] = sum;
        __threadfence();
        last = atomicInc(arrived, blocks - 1) == blocks - 1; // wraps to 0 for the next launch
        __threadfence();
    }
    __syncthreads();
    if (!last) return;
    u32 all = 0;
    for (u32 i = threadIdx.x; i < blocks; i += THREADS) all += load_l2(partial + i);
    // The barrier in it comes after all reads of partial[0].
    all = of_block(all, s[1], by_redux);
    if (threadIdx.x == 0) partial[0] = all;
}

// family: Folded
// lengths: in[n], partial[grid.blocks], arrived[1]
// requires: grid.block == THREADS
extern "C" __global__ void __launch_bounds__(THREADS) step_11(const u32 *in, u32 *partial, u32 *arrived, u32 n) {
    fold(by_vectors(in, n), partial, arrived, blockIdx.x, gridDim.x);
}

#if __CUDA_ARCH__ >= 900
constexpr u32 STAGES = 4, STAGE = 4 * THREADS; // words of a stage: 16 bytes a thread

// One thread orders a stage: so many bytes to come, and their copy.
static __device__ __forceinline__ void order(u32 *stage, u64 *barrier, const u32 *from) {
    expect(barrier, 4 * STAGE);
    asm volatile("cp.async.bulk.shared::cluster.global.mbarrier::complete_tx::bytes [%0], [%1], %2, [%3];" ::"r"(
                     address(stage)),
                 "l"(from), "r"(4 * STAGE), "r"(address(barrier))
                 : "memory");
}

static __device__ __forceinline__ u32 by_bulk_copies(const u32 *in, u32 n) {
    __shared__ alignas(128) u32 stage[STAGES][STAGE];
    __shared__ u64 barrier[STAGES];
    const u32 t = threadIdx.x, stages = n / STAGE;
    // The block's stages are blockIdx.x, blockIdx.x + gridDim.x, …
    const u32 mine = stages > blockIdx.x ? (stages - blockIdx.x - 1) / gridDim.x + 1 : 0;
    auto from = [&](u32 k) { return in + (u64)(blockIdx.x + k * gridDim.x) * STAGE; };
    if (t == 0) {
        prepare(barrier);
        for (u32 k = 0; k < min(mine, STAGES); k++) order(stage[k], &barrier[k], from(k));
    }
    __syncthreads();
    u32 sum = 0;
    for (u32 k = 0; k < mine; k++) {
        const u32 s = k % STAGES;
        await(&barrier[s], k / STAGES % 2);
        const uint4 v = ((const uint4 *)stage[s])[t];
        sum += v.x + v.y + v.z + v.w;
        __syncthreads(); // all have read the stage before it is filled again
        if (t == 0 && k + STAGES < mine) order(stage[s], &barrier[s], from(k + STAGES));
    }
    for (u64 i = (u64)stages * STAGE + number(); i < n; i += everyone()) sum += in[i];
    return sum;
}
#else
static __device__ __forceinline__ u32 by_bulk_copies(const u32 *in, u32 n) { return by_vectors(in, n); }
#endif

extern "C" __global__ void __launch_bounds__(THREADS) step_12(const u32 *in, u32 *partial, u32 *arrived, u32 n) {
    fold(by_bulk_copies(in, n), partial, arrived, blockIdx.x, gridDim.x);
}

#if __CUDA_ARCH__ >= 900
// The blocks of this block's cluster, and its number among them.
static __device__ __forceinline__ u32 cluster_blocks() {
    u32 count;
    asm volatile("mov.u32 %0, %%cluster_nctarank;" : "=r"(count));
    return count;
}
static __device__ __forceinline__ u32 cluster_rank() {
    u32 rank;
    asm volatile("mov.u32 %0, %%cluster_ctarank;" : "=r"(rank));
    return rank;
}
// A barrier of the cluster: what its threads wrote before they arrived is there for those that have waited.
static __device__ __forceinline__ void cluster_arrive() { asm volatile("barrier.cluster.arrive;" ::: "memory"); }
static __device__ __forceinline__ void cluster_wait() { asm volatile("barrier.cluster.wait;" ::: "memory"); }

static __device__ __forceinline__ void fold_cluster(const u32 *in, u32 *partial, u32 *arrived, u32 n) {
    __shared__ u32 s[THREADS / 32], sums[16];
    const u32 blocks = cluster_blocks();
    cluster_arrive();
    const u32 sum = of_block(by_vectors(in, n), s, by_redux);
    cluster_wait(); // the first block runs, and has its memory
    if (threadIdx.x == 0) {
        u32 first;
        asm volatile("mapa.shared::cluster.u32 %0, %1, 0;" : "=r"(first) : "r"(address(&sums[cluster_rank()])));
        asm volatile("st.shared::cluster.u32 [%0], %1;" ::"r"(first), "r"(sum) : "memory");
    }
    cluster_arrive();
    cluster_wait(); // the first block has all sums
    if (cluster_rank() == 0)
        fold(threadIdx.x < blocks ? sums[threadIdx.x] : 0, partial, arrived, blockIdx.x / blocks, gridDim.x / blocks);
}
#else
static __device__ __forceinline__ void fold_cluster(const u32 *in, u32 *partial, u32 *arrived, u32 n) {
    fold(by_vectors(in, n), partial, arrived, blockIdx.x, gridDim.x);
}
#endif

extern "C" __global__ void __launch_bounds__(THREADS) step_13(const u32 *in, u32 *partial, u32 *arrived, u32 n) {
    fold_cluster(in, partial, arrived, n);
}
