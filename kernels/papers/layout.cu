// Layouts of data in memory: rows, records, columns, indices, pointers, scattered lines and cache preference of "Methods of
// effective organisation of parallel computing on GPUs" (lecture notes). Every thread that reads stores the sum of the
// values that it read in sums[its number in the grid].
//
//   rows(const u32 *data, u32 rows, u32 width, u32 pitch, u32 *sums)
//       A block takes whole rows, a thread a column: rows of 120 words begin at a 128-byte line only if they are padded.
//   records(u32 *abc, u64 n)                      array of structures: c = a + b in records of three words; a warp's
//       loads of one field stretch over three times the lines
//   arrays(const u32 *a, const u32 *b, u32 *c, u64 n)                  structure of arrays: the same, each field dense
//   gather(const u32 *data, const u32 *index, u32 *out, u64 n)         out[i] = data[index[i]]: A[i][j] through an index
//       array; the second read goes where the first says
//   column(const u32 *data, u32 rows, u32 width, u32 column, u32 *sums)
//       A warp goes down one column of a row-major matrix: each lane reads one word, a row apart from its neighbour's.
//   column_transposed(…)                          the same column of the transposed store: a warp reads neighbours
//   point(const u32 *data, u64 pitch, u32 rows, u32 step, u64 *table)  makes table[r], the address of row (r·step) mod
//       rows; rows is a power of two, step odd; `pitch` in words
//   pointer_rows(const u64 *table, u32 rows, u32 *sums)                A[i][j] through a pointer for each row of 32 words:
//       a warp reads a row
//   direct_rows(const u32 *data, u32 rows, u32 *sums)                  the same without pointers
//   pointer_column(const u64 *table, u32 rows, u32 column, u32 *sums)  a warp goes down a column, each lane through its
//       row's pointer: the second read is scattered
//   scattered_{l1,l2}(const u32 *data, u32 groups, u32 lines, u32 *sums)
//       A warp reads 32 words out of `lines` different 128-byte lines, the same number from each; loads kept in the L1
//       and the L2, or in the L2 alone.
//   window(const u32 *data, u32 words, u32 turns, u32 *sums)           a block reads its own `words` (a power of two),
//       `turns` times: fast as long as its window stays in the L1
#include "papers/papers.cuh"

// lengths: data[(rows - 1) * pitch + min(width, grid.block)], sums[grid.threads]
extern "C" __global__ void rows(const u32 *data, u32 rows, u32 width, u32 pitch, u32 *sums) {
    u32 sum = 0;
    if (threadIdx.x < width)
        for (u32 r = blockIdx.x; r < rows; r += gridDim.x) sum += data[(u64)r * pitch + threadIdx.x];
    sums[number()] = sum;
}

// lengths: abc[3 * n]
extern "C" __global__ void records(u32 *abc, u64 n) {
    for (u64 i = number(); i < n; i += everyone()) abc[3 * i + 2] = abc[3 * i] + abc[3 * i + 1];
}

// lengths: a[n], b[n], c[n]
extern "C" __global__ void arrays(const u32 *a, const u32 *b, u32 *c, u64 n) {
    for (u64 i = number(); i < n; i += everyone()) c[i] = a[i] + b[i];
}

// lengths: data[..], index[n], out[n]
// trusts: index, each of whose words is the number of a word of data
extern "C" __global__ void gather(const u32 *data, const u32 *index, u32 *out, u64 n) {
    for (u64 i = number(); i < n; i += everyone()) out[i] = data[index[i]];
}

// family: Column
// lengths: data[rows * width], sums[grid.threads]
// requires: column < width
extern "C" __global__ void column(const u32 *data, u32 rows, u32 width, u32 column, u32 *sums) {
    u32 sum = 0;
    for (u32 i = number(); i < rows; i += everyone()) sum += data[(u64)i * width + column];
    sums[number()] = sum;
}

extern "C" __global__ void column_transposed(const u32 *data, u32 rows, u32 width, u32 column, u32 *sums) {
    u32 sum = 0;
    for (u32 i = number(); i < rows; i += everyone()) sum += data[(u64)column * rows + i];
    sums[number()] = sum;
}

// lengths: data[pitch * rows], table[rows]
extern "C" __global__ void point(const u32 *data, u64 pitch, u32 rows, u32 step, u64 *table) {
    for (u32 r = number(); r < rows; r += everyone()) table[r] = (u64)(data + pitch * (r * step & (rows - 1)));
}

// lengths: table[rows], sums[grid.threads]
// trusts: table, as `point` leaves it for rows of 32 words
extern "C" __global__ void pointer_rows(const u64 *table, u32 rows, u32 *sums) {
    u32 sum = 0;
    for (u32 r = number() / 32; r < rows; r += everyone() / 32) sum += ((const u32 *)table[r])[threadIdx.x % 32];
    sums[number()] = sum;
}

// lengths: data[rows * 32], sums[grid.threads]
extern "C" __global__ void direct_rows(const u32 *data, u32 rows, u32 *sums) {
    u32 sum = 0;
    for (u32 r = number() / 32; r < rows; r += everyone() / 32) sum += data[(u64)r * 32 + threadIdx.x % 32];
    sums[number()] = sum;
}

// lengths: table[rows], sums[grid.threads]
// trusts: table, as `point` leaves it for rows of more than `column` words
extern "C" __global__ void pointer_column(const u64 *table, u32 rows, u32 column, u32 *sums) {
    u32 sum = 0;
    for (u32 r = number(); r < rows; r += everyone()) sum += ((const u32 *)table[r])[column];
    sums[number()] = sum;
}

template <class Load> static __device__ __forceinline__ void scattered(u32 groups, u32 lines, u32 *sums, Load load) {
    const u32 lane = threadIdx.x % 32, warps = everyone() / 32;
    u32 sum = 0;
    for (u32 group = number() / 32; group < groups; group += warps)
        sum += load(((u64)group * lines + lane % lines) * 32 + lane / lines);
    sums[number()] = sum;
}

// family: Scattered
// lengths: data[groups * lines * 32], sums[grid.threads]
// requires: lines >= 1, lines <= 32
extern "C" __global__ void scattered_l1(const u32 *data, u32 groups, u32 lines, u32 *sums) {
    scattered(groups, lines, sums, [=](u64 i) { return load_l1(data + i); });
}

extern "C" __global__ void scattered_l2(const u32 *data, u32 groups, u32 lines, u32 *sums) {
    scattered(groups, lines, sums, [=](u64 i) { return load_l2(data + i); });
}

// lengths: data[grid.blocks * words], sums[grid.threads]
// requires: words >= 1
extern "C" __global__ void window(const u32 *data, u32 words, u32 turns, u32 *sums) {
    const u32 *own = data + (u64)blockIdx.x * words;
    u32 sum = 0;
    for (u32 turn = 0; turn < turns; turn++)
        for (u32 i = threadIdx.x; i < words; i += blockDim.x) sum += load_l1(own + ((i + 32 * turn) & (words - 1)));
    sums[number()] = sum;
}
