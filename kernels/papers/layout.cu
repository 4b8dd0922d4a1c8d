// Layouts of data in memory: rows, records, columns, indices, scattered lines and cache preference of "Methods of
// effective organisation of parallel computing on GPUs" (lecture notes; NOTES), and the local memory of "Transposing a
// matrix" (Kalgin and Baldin; LXF). Every thread that reads stores the sum of the values that it read in sums[its
// number in the grid].
//
//   rows(const u32 *data, u32 rows, u32 width, u32 pitch, u32 *sums)
//       A block takes whole rows, a thread a column: rows of 120 words begin at a 128-byte line only if they are padded.
//   records(u32 *abc, u64 n)                      array of structures: c = a + b in records of three words; a warp's
//       loads of one field stretch over three times the lines
//   arrays(const u32 *a, const u32 *b, u32 *c, u64 n)                  structure of arrays: the same, each field dense
//   gather(const u32 *data, const u32 *index, u32 *out, u64 n)         out[i] = data[index[i]]: A[i][j] through an index
//       array; the second read goes where the first says
//   down_columns(const u32 *data, u32 lines, u32 length, u32 *sums)    a thread sums one row of a row-major matrix: a warp
//       goes down a column, a row apart from lane to lane
//   along_rows(const u32 *data, u32 lines, u32 length, u32 *sums)      the same sums from the transposed store: a warp
//       reads neighbours
//   scattered_{l1,l2}(const u32 *data, u32 groups, u32 lines, u32 *sums)
//       A warp reads 32 words out of `lines` different 128-byte lines, the same number from each; loads kept in the L1
//       and the L2, or in the L2 alone.
//   window(const u32 *data, u32 words, u32 turns, u32 *sums)           a block reads its own `words` (a power of two),
//       `turns` times: fast as long as its window stays in the L1
//   local_{4,16,64,256}(const u32 *src, u32 *dst, u64 threads)         LXF: a thread loads N neighbours of its own into an
//       array, then sums them weighted by position: Σ (k + 1)·l[k]. A small array becomes registers; a large one, its
//       loops not unrolled, is indexed at run time and lies in local memory, which is device memory
#include "papers/papers.cuh"

extern "C" __global__ void rows(const u32 *data, u32 rows, u32 width, u32 pitch, u32 *sums) {
    u32 sum = 0;
    if (threadIdx.x < width)
        for (u32 r = blockIdx.x; r < rows; r += gridDim.x) sum += data[(u64)r * pitch + threadIdx.x];
    sums[number()] = sum;
}

extern "C" __global__ void records(u32 *abc, u64 n) {
    for (u64 i = number(); i < n; i += everyone()) abc[3 * i + 2] = abc[3 * i] + abc[3 * i + 1];
}

extern "C" __global__ void arrays(const u32 *a, const u32 *b, u32 *c, u64 n) {
    for (u64 i = number(); i < n; i += everyone()) c[i] = a[i] + b[i];
}

extern "C" __global__ void gather(const u32 *data, const u32 *index, u32 *out, u64 n) {
    for (u64 i = number(); i < n; i += everyone()) out[i] = data[index[i]];
}

extern "C" __global__ void down_columns(const u32 *data, u32 lines, u32 length, u32 *sums) {
    const u32 line = number();
    if (line >= lines) return;
    u32 sum = 0;
    for (u32 k = 0; k < length; k++) sum += data[(u64)line * length + k];
    sums[line] = sum;
}

extern "C" __global__ void along_rows(const u32 *data, u32 lines, u32 length, u32 *sums) {
    const u32 line = number();
    if (line >= lines) return;
    u32 sum = 0;
    for (u32 k = 0; k < length; k++) sum += data[(u64)k * lines + line];
    sums[line] = sum;
}

static __device__ __forceinline__ u32 load_l1(const u32 *p) {
    u32 word;
    asm volatile("ld.global.ca.u32 %0, [%1];" : "=r"(word) : "l"(p));
    return word;
}
static __device__ __forceinline__ u32 load_l2(const u32 *p) {
    u32 word;
    asm volatile("ld.global.cg.u32 %0, [%1];" : "=r"(word) : "l"(p));
    return word;
}

template <class Load> static __device__ __forceinline__ void scattered(u32 groups, u32 lines, u32 *sums, Load load) {
    const u32 lane = threadIdx.x % 32, warps = everyone() / 32;
    u32 sum = 0;
    for (u32 group = number() / 32; group < groups; group += warps)
        sum += load(((u64)group * lines + lane % lines) * 32 + lane / lines);
    sums[number()] = sum;
}

extern "C" __global__ void scattered_l1(const u32 *data, u32 groups, u32 lines, u32 *sums) {
    scattered(groups, lines, sums, [=](u64 i) { return load_l1(data + i); });
}

extern "C" __global__ void scattered_l2(const u32 *data, u32 groups, u32 lines, u32 *sums) {
    scattered(groups, lines, sums, [=](u64 i) { return load_l2(data + i); });
}

extern "C" __global__ void window(const u32 *data, u32 words, u32 turns, u32 *sums) {
    const u32 *own = data + (u64)blockIdx.x * words;
    u32 sum = 0;
    for (u32 turn = 0; turn < turns; turn++)
        for (u32 i = threadIdx.x; i < words; i += blockDim.x) sum += load_l1(own + ((i + 32 * turn) & (words - 1)));
    sums[number()] = sum;
}

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

extern "C" __global__ void local_4(const u32 *src, u32 *dst, u64 threads) { unrolled<4>(src, dst, threads); }
extern "C" __global__ void local_16(const u32 *src, u32 *dst, u64 threads) { unrolled<16>(src, dst, threads); }
extern "C" __global__ void local_64(const u32 *src, u32 *dst, u64 threads) { spilled<64>(src, dst, threads); }
extern "C" __global__ void local_256(const u32 *src, u32 *dst, u64 threads) { spilled<256>(src, dst, threads); }
