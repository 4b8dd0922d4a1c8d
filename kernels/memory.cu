// Copies and sets bytes.
//
//   move(const u8 *src, u8 *dst, u64 bytes)
//       Copies `bytes` bytes. Either side may be page-locked memory of the host, which the GPU reaches over PCIe. The
//       two sides do not overlap.
//   fill_bytes(u8 *dst, u64 bytes, u32 byte)
//       Sets `bytes` bytes to the lowest byte of `byte`.
// Grid of both: any number of blocks of 256 threads. Pointers may have any alignment; `move` is slower if one of them is not
// 16-byte aligned, and slowest if one is not 4-byte aligned.
//
// Two numbers, for b bytes: move reads b and writes b, fill_bytes writes b; no arithmetic.
#include "common.cuh"

constexpr u32 LOADS = 4; // in flight for each thread

// Copies `bytes` bytes in elements of type E, and the rest of them byte by byte.
template <class E> static __device__ __forceinline__ void move_as(Turn turn, const u8 *src, u8 *dst, u64 bytes) {
    const E *from = (const E *)src;
    E *to = (E *)dst;
    const u64 count = bytes / sizeof(E), thread = (u64)turn.block * BLOCK + threadIdx.x;
    for (u64 tile = (u64)turn.block * (BLOCK * LOADS); tile < count; tile += (u64)turn.blocks * (BLOCK * LOADS)) {
        const u64 first = tile + threadIdx.x;
        E e[LOADS];
#pragma unroll
        for (u32 u = 0; u < LOADS; u++)
            if (first + u * BLOCK < count) e[u] = from[first + u * BLOCK];
#pragma unroll
        for (u32 u = 0; u < LOADS; u++)
            if (first + u * BLOCK < count) to[first + u * BLOCK] = e[u];
    }
    const u64 i = count * sizeof(E) + thread;
    if (i < bytes) dst[i] = src[i];
}

// lengths: src[bytes], dst[bytes]
// in sets
extern "C" __global__ void __launch_bounds__(BLOCK) move(const u8 *src, u8 *dst, u64 bytes) {
    const Turn turn{blockIdx.x, gridDim.x};
    const u32 together = (u32)(u64)src | (u32)(u64)dst;
    if (together % 16 == 0) move_as<uint4>(turn, src, dst, bytes);
    else if (together % 4 == 0) move_as<u32>(turn, src, dst, bytes);
    else move_as<u8>(turn, src, dst, bytes);
}

// lengths: dst[bytes]
// in sets
extern "C" __global__ void __launch_bounds__(BLOCK) fill_bytes(u8 *dst, u64 bytes, u32 byte) {
    const u64 thread = (u64)blockIdx.x * BLOCK + threadIdx.x, threads = (u64)gridDim.x * BLOCK;
    const u32 four = __byte_perm(byte, 0, 0);
    // The bytes before the first whole vector, the vectors, and the bytes after them.
    const u64 ahead = min((u64)(16 - (u32)(u64)dst % 16) % 16, bytes), vectors = (bytes - ahead) / 16;
    uint4 *to = (uint4 *)(dst + ahead);
    for (u64 v = thread; v < vectors; v += threads) to[v] = make_uint4(four, four, four, four);
    if (thread < ahead) dst[thread] = (u8)byte;
    const u64 i = ahead + vectors * 16 + thread;
    if (i < bytes) dst[i] = (u8)byte;
}
