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
// Blocks: naive and mirrored any; the others 16 × 16 or 32 × 32, one a square. Any n.
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
