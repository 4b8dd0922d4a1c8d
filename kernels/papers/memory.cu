// The memory kernels of "CUDA: performance aspects of typical tasks" (2011), the occupancy sweep of "Methods of effective
// organisation of parallel computing on GPUs" (lecture notes), and versions with wide accesses. Every thread that reads
// stores the sum of the values that it read in sums[its number in the grid], so that no load can be optimised away.
//
//   read(const u16 *data, u32 pieces, u32 piece, u32 *sums)           2011: every element loaded
//   copy(const u16 *src, u16 *dst, u32 pieces, u32 piece)             2011: … and stored
//   read_scattered(const u16 *data, u32 pieces, u32 piece, u32 *sums, u32 factor)
//       2011: arbitrary access, without an index: element k·factor modulo the number of elements, a power of two; an odd
//       factor visits each element once
//   double_index(const u16 *data, u32 pieces, u32 piece, u32 *sums, const u32 *index)
//       2011: data[index[j] + i], where j is the element and i the number of its piece: an index is loaded for every
//       element. `index` is as long as the data; index[j] + i is below their length, modulo 2³²
//   triple_index(…, const u32 *index, const u32 *order)               2011: data[index[order[j]] + i]; order[j] is below
//       the length of `index`
//   read_words(const u32 *data, u64 n, u32 *sums)                     lecture notes: one 4-byte load a turn and thread;
//       bandwidth then follows from how many threads the launch keeps resident
//   read_wide(const uint4 *data, u64 n, u32 *sums)                    today: 16 bytes an access, 4 accesses under way
//   copy_wide(const uint4 *src, uint4 *dst, u64 n)                    today: one 16-byte access a thread; exact grid
//   write_wide(uint4 *dst, u64 n, u32 word)                           stores alone; exact grid
//   read_last(const u16 *data, u32 pieces, u32 piece, u32 *sums)      the loop of `read`, but each thread stores only the
//       last value that it read: a compiler of today loads only this one
//   read_permuted(const u32 *data, u64 n, u32 *sums)                  `read_words` with the lanes of a warp permuted inside
//       their segment of 128 bytes
//   copy_by_{2,4,8,16}(const uint4 *src, uint4 *dst, u64 n)           the same loop and grid with accesses of so many bytes
//   read_on(const uint4 *data, u64 n, u32 most, u32 *next, u32 *sums) the blocks on multiprocessors 0 … most − 1 read
//       chunk after chunk, whose numbers they take from *next (0 on entry); the other blocks end at once
//   read_texture(u64 texture, u32 width, u32 height, u32 *sums)       every texel of a texture object of words fetched, row
//       after row
#include "papers/papers.cuh"

// family: Read
// lengths: data[pieces * piece], sums[grid.threads]
extern "C" __global__ void read(const u16 *data, u32 pieces, u32 piece, u32 *sums) {
    u32 sum = 0;
    each(pieces, piece, [&](u32 j, u32 i) { sum += data[(u64)j * piece + i]; });
    sums[number()] = sum;
}

extern "C" __global__ void read_last(const u16 *data, u32 pieces, u32 piece, u32 *sums) {
    u32 last = 0;
    each(pieces, piece, [&](u32 j, u32 i) { last = data[(u64)j * piece + i]; });
    sums[number()] = last;
}

// lengths: src[pieces * piece], dst[pieces * piece]
extern "C" __global__ void copy(const u16 *src, u16 *dst, u32 pieces, u32 piece) {
    each(pieces, piece, [&](u32 j, u32 i) { dst[(u64)j * piece + i] = src[(u64)j * piece + i]; });
}

// lengths: data[pieces * piece], sums[grid.threads]
extern "C" __global__ void read_scattered(const u16 *data, u32 pieces, u32 piece, u32 *sums, u32 factor) {
    u32 sum = 0, last = pieces * piece - 1;
    each(pieces, piece, [&](u32 j, u32 i) { sum += data[(j * piece + i) * factor & last]; });
    sums[number()] = sum;
}

// lengths: data[..], sums[grid.threads], index[pieces * piece]
// trusts: index: each word and the number of a piece give the number of an element of data
extern "C" __global__ void double_index(const u16 *data, u32 pieces, u32 piece, u32 *sums, const u32 *index) {
    u32 sum = 0;
    each(pieces, piece, [&](u32 i, u32 k) { sum += data[index[i * piece + k] + i]; });
    sums[number()] = sum;
}

// lengths: data[..], sums[grid.threads], index[..], order[pieces * piece]
// trusts: order and index: each word of order is the number of a word of index,
//     which with the number of a piece gives that of an element
extern "C" __global__ void triple_index(const u16 *data, u32 pieces, u32 piece, u32 *sums, const u32 *index,
                                        const u32 *order) {
    u32 sum = 0;
    each(pieces, piece, [&](u32 i, u32 k) { sum += data[index[order[i * piece + k]] + i]; });
    sums[number()] = sum;
}

// family: ReadWords
// lengths: data[n], sums[grid.threads]
extern "C" __global__ void read_words(const u32 *data, u64 n, u32 *sums) {
    u32 sum = 0;
#pragma unroll 1
    for (u64 i = number(); i < n; i += everyone()) sum += data[i];
    sums[number()] = sum;
}

extern "C" __global__ void read_permuted(const u32 *data, u64 n, u32 *sums) {
    u32 sum = 0;
#pragma unroll 1
    for (u64 i = number(); i < n; i += everyone()) {
        // 13 is odd, so that each lane takes another word of the segment.
        const u64 k = i - i % 32 + i % 32 * 13 % 32;
        if (k < n) sum += data[k];
    }
    sums[number()] = sum;
}

static __device__ __forceinline__ u32 add(uint4 v) { return v.x + v.y + v.z + v.w; }

// lengths: data[n], sums[grid.threads]
extern "C" __global__ void __launch_bounds__(BLOCK) read_wide(const uint4 *data, u64 n, u32 *sums) {
    u32 sum = 0;
    const u64 step = everyone();
    u64 i = number();
    for (; i + 3 * step < n; i += 4 * step) {
        const uint4 a = data[i], b = data[i + step], c = data[i + 2 * step], d = data[i + 3 * step];
        sum += add(a) + add(b) + add(c) + add(d);
    }
    for (; i < n; i += step) sum += add(data[i]);
    sums[number()] = sum;
}

// lengths: src[n], dst[n]
extern "C" __global__ void __launch_bounds__(BLOCK) copy_wide(const uint4 *src, uint4 *dst, u64 n) {
    const u64 i = (u64)blockIdx.x * BLOCK + threadIdx.x;
    if (i < n) dst[i] = src[i];
}

// lengths: dst[n]
extern "C" __global__ void __launch_bounds__(BLOCK) write_wide(uint4 *dst, u64 n, u32 word) {
    const u64 i = (u64)blockIdx.x * BLOCK + threadIdx.x;
    if (i < n) dst[i] = make_uint4(word, word, word, word);
}

template <class Unit> static __device__ __forceinline__ void copied(const uint4 *src, uint4 *dst, u64 n) {
    const u64 units = n * (sizeof(uint4) / sizeof(Unit));
#pragma unroll 1
    for (u64 i = number(); i < units; i += everyone()) ((Unit *)dst)[i] = ((const Unit *)src)[i];
}

// family: CopyBy
// lengths: src[n], dst[n]
extern "C" __global__ void copy_by_2(const uint4 *src, uint4 *dst, u64 n) { copied<u16>(src, dst, n); }
extern "C" __global__ void copy_by_4(const uint4 *src, uint4 *dst, u64 n) { copied<u32>(src, dst, n); }
extern "C" __global__ void copy_by_8(const uint4 *src, uint4 *dst, u64 n) { copied<u64>(src, dst, n); }
extern "C" __global__ void copy_by_16(const uint4 *src, uint4 *dst, u64 n) { copied<uint4>(src, dst, n); }

constexpr u32 CHUNK = 2048; // vectors that a block takes at a time

// lengths: data[n], next[1], sums[grid.threads]
extern "C" __global__ void __launch_bounds__(1024)
    read_on(const uint4 *data, u64 n, u32 most, u32 *next, u32 *sums) {
    __shared__ u32 taken;
    u32 sum = 0, multiprocessor;
    asm volatile("mov.u32 %0, %%smid;" : "=r"(multiprocessor));
    while (multiprocessor < most) {
        if (threadIdx.x == 0) taken = atomicAdd(next, 1);
        __syncthreads();
        const u64 first = (u64)taken * CHUNK;
        __syncthreads();
        if (first >= n) break;
        for (u64 i = first + threadIdx.x; i < min(first + CHUNK, n); i += blockDim.x) sum += add(data[i]);
    }
    sums[number()] = sum;
}

// lengths: sums[grid.threads]
// trusts: texture, a texture object of width × height words
extern "C" __global__ void read_texture(u64 texture, u32 width, u32 height, u32 *sums) {
    u32 sum = 0;
    for (u32 y = blockIdx.x; y < height; y += gridDim.x)
        for (u32 x = threadIdx.x; x < width; x += blockDim.x) sum += fetch(texture, x, y);
    sums[number()] = sum;
}
