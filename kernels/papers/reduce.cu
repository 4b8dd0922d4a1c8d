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
//   step_6_{32,64,128,512,1024}(…)   step 6 is a template of the block's size: its other sizes
// Blocks of 256, or of the size in the name; grid: 1–3 ceil(n/256), 4–6 ceil(n/(2·block)), 7 any.
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
