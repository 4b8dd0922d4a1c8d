// The transposition of an n × n matrix of floats of "Transposing a matrix" (Kalgin and Baldin, Linux Format Russia),
// B[j][i] = A[i][j], one element a thread. i comes from x, j from y.
//
//   naive(const float *a, float *b, u32 n)        variant 1 as listed: neighbours in x write neighbours and read a row
//       apart; which of the two is scattered depends on the shape of the block alone
//   mirrored(const float *a, float *b, u32 n)     variant 1 as the text's formulas for memory transactions have it, with x
//       and y exchanged: neighbours in x read neighbours, and a block one thread wide makes the writes coalesce
//   tile_16, tile_32(…)      variant 2: a square goes through shared memory, so that both accesses are along rows; but a
//       warp reads a column of the square, whose elements lie in the same few banks
//   padded_16, padded_32(…)  variant 3: the square's rows are one element longer, so that a column's elements lie in
//       different banks
//   async_32(…)              today: a block copies four padded squares of 32 to shared memory, all at once and without
//       registers (cp.async, from compute capability 8.0 on), and stores each when it has arrived; blocks of 32 × 8, one
//       for 128 × 32 elements
//   tma_32(TensorMap a, float *b, u32 n)    today: as async_32, but one thread orders the copy of each square (a tensor map,
//       from compute capability 9.0 on). Instead of padding, the copy exchanges the 16-byte parts of each row: a warp that
//       reads 16 bytes of each row meets no bank twice
// Blocks: naive and mirrored any; variants 2 and 3 16 × 16 or 32 × 32, one a square. Any n.
#include "papers/barriers.cuh"
#include "papers/papers.cuh"

// family: Transposition
// lengths: a[n * n], b[n * n]
extern "C" __global__ void naive(const float *a, float *b, u32 n) {
    const u32 i = blockIdx.x * blockDim.x + threadIdx.x, j = blockIdx.y * blockDim.y + threadIdx.y;
    if (i < n && j < n) b[(u64)j * n + i] = a[(u64)i * n + j];
}

extern "C" __global__ void mirrored(const float *a, float *b, u32 n) {
    const u32 j = blockIdx.x * blockDim.x + threadIdx.x, i = blockIdx.y * blockDim.y + threadIdx.y;
    if (i < n && j < n) b[(u64)j * n + i] = a[(u64)i * n + j];
}

template <u32 SIDE, u32 PITCH> static __device__ __forceinline__ void through_tile(const float *a, float *b, u32 n) {
    __shared__ float square[SIDE][PITCH];
    const u32 x = threadIdx.x, y = threadIdx.y, left = blockIdx.x * SIDE, top = blockIdx.y * SIDE;
    if (left + x < n && top + y < n) square[y][x] = a[(u64)(top + y) * n + left + x];
    __syncthreads();
    if (top + x < n && left + y < n) b[(u64)(left + y) * n + top + x] = square[x][y];
}

extern "C" __global__ void tile_16(const float *a, float *b, u32 n) { through_tile<16, 16>(a, b, n); }
extern "C" __global__ void tile_32(const float *a, float *b, u32 n) { through_tile<32, 32>(a, b, n); }
extern "C" __global__ void padded_16(const float *a, float *b, u32 n) { through_tile<16, 17>(a, b, n); }
extern "C" __global__ void padded_32(const float *a, float *b, u32 n) { through_tile<32, 33>(a, b, n); }

// Copies an element to shared memory without waiting for it.
static __device__ __forceinline__ void copy_async(float *shared, const float *from) {
#if __CUDA_ARCH__ >= 800
    asm volatile("cp.async.ca.shared.global [%0], [%1], 4;" ::"r"(address(shared)), "l"(from)
                 : "memory");
#else
    *shared = *from;
#endif
}
// The copies of a thread since the last call are a group.
static __device__ __forceinline__ void close_group() {
#if __CUDA_ARCH__ >= 800
    asm volatile("cp.async.commit_group;" ::: "memory");
#endif
}
// Waits until at most LEFT groups of each thread are under way.
template <u32 LEFT> static __device__ __forceinline__ void await() {
#if __CUDA_ARCH__ >= 800
    asm volatile("cp.async.wait_group %0;" ::"n"(LEFT) : "memory");
#endif
    __syncthreads();
}

constexpr u32 SIDE = 32, SQUARES = 4, ROWS = 8; // of a square, squares of a block, rows of threads

extern "C" __global__ void __launch_bounds__(SIDE *ROWS) async_32(const float *a, float *b, u32 n) {
    __shared__ float square[SQUARES][SIDE][SIDE + 1];
    const u32 x = threadIdx.x, top = blockIdx.y * SIDE;
    auto left = [](u32 s) { return (blockIdx.x * SQUARES + s) * SIDE; };
#pragma unroll
    for (u32 s = 0; s < SQUARES; s++) {
#pragma unroll
        for (u32 k = 0; k < SIDE; k += ROWS) {
            const u32 y = threadIdx.y + k;
            if (left(s) + x < n && top + y < n) copy_async(&square[s][y][x], a + (u64)(top + y) * n + left(s) + x);
        }
        close_group();
    }
    auto store = [&](u32 s) {
#pragma unroll
        for (u32 k = 0; k < SIDE; k += ROWS) {
            const u32 y = threadIdx.y + k;
            if (top + x < n && left(s) + y < n) b[(u64)(left(s) + y) * n + top + x] = square[s][x][y];
        }
    };
    await<3>(), store(0);
    await<2>(), store(1);
    await<1>(), store(2);
    await<0>(), store(3);
}

// What the driver has encoded of a matrix: its place, its size, and the square that a copy moves.
struct alignas(64) TensorMap {
    u64 opaque[16];
};

// lengths: b[n * n]
// requires: grid.block == SIDE * ROWS
extern "C" __global__ void __launch_bounds__(SIDE *ROWS) tma_32(const IN_PLACE TensorMap a, float *b, u32 n) {
#if __CUDA_ARCH__ >= 900
    constexpr u32 PARTS = SIDE / 4; // of 16 bytes, in a row of a square
    // The exchange of parts follows the address: of row y, part p is at p ^ y % 8.
    __shared__ alignas(1024) float4 square[SQUARES][SIDE * PARTS];
    __shared__ u64 barrier[SQUARES];
    const u32 x = threadIdx.x, part = threadIdx.y, top = blockIdx.y * SIDE;
    auto left = [](u32 s) { return (blockIdx.x * SQUARES + s) * SIDE; };
    if (x == 0 && part == 0) {
        prepare(barrier);
        for (u32 s = 0; s < SQUARES && left(s) < n; s++) {
            expect(&barrier[s], sizeof square[s]); // also of what lies outside of the matrix, which is 0
            asm volatile("cp.async.bulk.tensor.2d.shared::cluster.global.tile.mbarrier::complete_tx::bytes [%0], [%1, {%2, %3}], "
                         "[%4];" ::"r"(address(square[s])),
                         "l"(&a), "r"(left(s)), "r"(top), "r"(address(&barrier[s]))
                         : "memory");
        }
    }
    __syncthreads();
    for (u32 s = 0; s < SQUARES && left(s) < n; s++) {
        await(&barrier[s], 0);
        const float4 v = square[s][x * PARTS + (part ^ x % 8)];
        const float column[4] = {v.x, v.y, v.z, v.w};
#pragma unroll
        for (u32 k = 0; k < 4; k++) {
            const u32 i = left(s) + 4 * part + k;
            if (top + x < n && i < n) b[(u64)i * n + top + x] = column[k];
        }
    }
#endif
}
