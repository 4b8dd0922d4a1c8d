// Shared by the three parts of the PNG encoder: its records in device memory and their layout. Together the parts make
// PNG's deflate data from an image in device memory, bit for bit as src/formats/png/encode.rs and src/deflate/compress
// do. The terms of these files (segment, window, group, run, weight, sample) are used here without repeating their
// definitions.
//
// Arguments of all kernels: `row` bytes of a row, `height`, `rows` of a segment. The filtered bytes of segment s begin
// at filtered + s·stride; the stride and the address are multiples of 16. `blocks` is the number of deflate blocks of a
// full segment: ceil(bytes / 128 KiB).
#pragma once
#include "common.cuh"

struct Segment {
    u64 sum, weighted; // of its filtered bytes d[i], i < n: Σ d[i], and Σ (n − i)·d[i], each term modulo 65521
    u64 filters;       // of its first row, and of the others in the next byte
    u64 matches;       // the match estimate: whether matches could pay
    u64 bytes;         // of its deflate data
};

enum : u32 { NONE = 0, SUB = 1, UP = 2, PAETH = 4 }; // filter bytes
enum : u32 { LITERALS, RUNS, STORED };               // kinds of deflate block

constexpr u32 LITLEN = 286, END = 256, LIMIT = 14, CODE_LENGTHS = 19;
constexpr u32 DEFLATE_BLOCK = 128 << 10; // host
constexpr u32 STORED_BLOCK = 65535;
constexpr u32 GROUPS = DEFLATE_BLOCK / 8;
constexpr u32 MASK = GROUPS / 32;
// The longest header: 17 + 19·3 bits, and 287 code lengths of at most 7 bits each.
constexpr u32 HEADER = 68;

struct Block {
    u64 start; // first bit in the segment's data
    u32 kind;
    u32 header_bits, bits; // of its header, and of the whole block; unused for a stored one
    u32 header[HEADER];
    u32 weights[LITLEN + 2]; // for the codes
    u32 counts[LITLEN + 2];  // how often each symbol really occurs
    u32 codes[LITLEN + 2];   // length << 16 | bits
    u32 zero[MASK];          // for each group, whether it is zero
    u32 unused;
};
static_assert(sizeof(Segment) == 5 * 8 && sizeof(Block) == 5800, "the host knows these sizes");

// Rows and filtered bytes of a segment.
struct Cut {
    u32 first, rows, len;
};
static __device__ __forceinline__ Cut cut(u32 segment, u32 row, u32 height, u32 rows) {
    const u32 first = segment * rows, own = min(rows, height - first);
    return {first, own, own * (row + 1)};
}

// The zero groups of a deflate block, and the extent of zero runs across the words of the mask.
struct Zeros {
    u32 mask[MASK];
    u16 before[MASK]; // the beginning of the run that continues at the word's first group
    u16 after[MASK];  // the end of the run that continues after the word's last group
};

// Computes the rest from the mask, which must be visible to all threads.
static __device__ void reach(Zeros &zeros) {
    for (u32 word = threadIdx.x; word < MASK; word += BLOCK) {
        u32 from = word, to = word + 1;
        while (from > 0 && zeros.mask[from - 1] == ALL) from--;
        while (to < MASK && zeros.mask[to] == ALL) to++;
        zeros.before[word] = from == 0 ? 0 : 32 * from - __clz(~zeros.mask[from - 1]);
        zeros.after[word] = to == MASK ? GROUPS : 32 * to + __ffs(~zeros.mask[to]) - 1;
    }
}

// The symbols that begin in a zero group where runs are coded: emit(symbol, value of its extra bits).
template <class Emit> static __device__ __forceinline__ void run_symbols(const Zeros &zeros, u32 group, Emit emit) {
    const u32 word = group / 32, mask = ~zeros.mask[word];
    const u32 below = mask & ((1u << group % 32) - 1), above = mask & ~((2u << group % 32) - 1);
    const u32 begin = below ? 32 * word + 32 - __clz(below) : zeros.before[word];
    const u32 end = above ? 32 * word + __ffs(above) - 1 : zeros.after[word];
    const u32 at = 8 * (group - begin), run = 8 * (end - begin) - 1; // bytes before this group; behind the literal
    const u32 full = run / 258, rest = run % 258;
    if (at == 0) emit(0, 0);
    const u32 match = at == 0 ? 0 : (at + 256) / 258; // the first match that begins here or later, at 1 + 258·match
    if (1 + 258 * match < at + 8) {
        if (match < full) emit(285, 0);
        else if (match == full && rest >= 3) {
            const u32 over = rest - 3, extra = over < 8 ? 0 : 29 - __clz(over);
            emit(257 + 4 * extra + (over >> extra), over & ((1u << extra) - 1));
        }
    }
    if (group + 1 == end && rest < 3)
        for (u32 i = 0; i < rest; i++) emit(0, 0);
}

static __device__ __forceinline__ u32 extra_bits(u32 symbol) {
    return symbol >= 265 && symbol < 285 ? (symbol - 261) / 4 : 0;
}

// The position of deflate block number `block`: its segment's index, its first byte in the segment, and its length, 0 if there is
// none.
struct Piece {
    u32 segment, from, len;
    bool last;
};
static __device__ __forceinline__ Piece piece(u32 block, u32 blocks, u32 row, u32 height, u32 rows) {
    const u32 index = block / blocks, from = block % blocks * DEFLATE_BLOCK;
    const u32 len = cut(index, row, height, rows).len;
    return {index, from, from < len ? min(DEFLATE_BLOCK, len - from) : 0, from + DEFLATE_BLOCK >= len};
}

// The sum of the values of all preceding threads; `all` becomes the sum of all threads. `shared` holds WARPS values.
static __device__ __forceinline__ u32 scan_block(u32 value, u32 *shared, u32 &all) {
    const u32 lane = threadIdx.x % 32;
    u32 sum = value;
#pragma unroll
    for (u32 d = 1; d < 32; d *= 2) {
        const u32 before = __shfl_up_sync(ALL, sum, d);
        if (lane >= d) sum += before;
    }
    if (lane == 31) shared[threadIdx.x / 32] = sum;
    __syncthreads();
    u32 earlier = 0;
    all = 0;
#pragma unroll
    for (u32 w = 0; w < WARPS; w++) {
        if (w < threadIdx.x / 32) earlier += shared[w];
        all += shared[w];
    }
    return earlier + sum - value;
}

// Writes bits from bit `at` on, where all are 0.
static __device__ __forceinline__ void put_bits(u32 *words, u32 at, u32 bits) {
    const u64 shifted = (u64)bits << at % 32;
    atomicOr(&words[at / 32], (u32)shifted);
    if (shifted >> 32) atomicOr(&words[at / 32 + 1], (u32)(shifted >> 32));
}

// Sorts SIZE keys, a power of two, in ascending order (Batcher's bitonic sort), with all threads.
template <u32 SIZE> static __device__ void sort(u32 *keys) {
#pragma unroll 1
    for (u32 size = 2; size <= SIZE; size *= 2)
#pragma unroll 1
        for (u32 apart = size / 2; apart; apart /= 2) {
            __syncthreads();
#pragma unroll 1
            for (u32 i = threadIdx.x; i < SIZE / 2; i += BLOCK) {
                const u32 a = 2 * i - (i & (apart - 1)), b = a + apart;
                const u32 low = min(keys[a], keys[b]), high = max(keys[a], keys[b]);
                const bool up = (a & size) == 0;
                keys[a] = up ? low : high;
                keys[b] = up ? high : low;
            }
        }
    __syncthreads();
}
