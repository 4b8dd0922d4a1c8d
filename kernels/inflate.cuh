// What the parts of the inflater share: its records in device memory, and the reading of deflate's symbols (RFC 1951). It
// is given one zlib stream, as of a PNG, or several behind one another, as of a TIFF's strips, which make equally many bytes but
// for the last. Words: a *block* is deflate's; a *part* is a stretch of a block's symbols, which one block of
// threads decodes; a *lane* is the stretch of a part that one thread decodes. Places in the streams are bits, counted
// from the first byte of the first, least significant bit first.
//
// A lane starts to decode somewhat before its stretch, at any bit: a Huffman code soon falls into step with itself, so
// that it arrives at a true symbol. That is checked: each lane must start where the one before stopped. (Klein and
// Wiseman, "Parallel Huffman decoding with applications to JPEG files", 2003; Weißenborn and Schmidt, "Massively
// parallel Huffman decoding on GPUs", 2018.)
#pragma once
#include "common.cuh"

constexpr u32 LITLENS = 288, DISTS = 32, LONGEST = 15;
constexpr u32 PACKED_LENGTHS = (LITLENS + DISTS) / 8; // words of four bits a code length

// The head of a block with a code of its own, and its code lengths.
struct Codes {
    u32 head, data;                // where its header and its symbols begin
    u32 litlens, all;              // how many lengths are of literals and lengths, and how many there are with the distances
    u32 lengths[PACKED_LENGTHS];   // four bits each, the first lowest; behind the last undefined
};

enum : u32 { FIRST = 1, ENDED = 2, UNSETTLED = 4, BAD = 8, LAST = 16 }; // host: of a part, see below
struct alignas(16) Part {
    u32 head;         // of its block
    u32 begin, limit; // it has the symbols that begin in [begin, limit)
    u32 codes;        // index of its block's codes
    u32 start;        // its first symbol; before it is counted: 0 unless that is known
    u32 stop;         // behind its last symbol
    u32 bytes;        // that its symbols make
    u32 found;        // matches among them; in the upper half whether it is its block's FIRST part, whether its block ENDED
                      // in it, whether its lanes are UNSETTLED, whether a BAD symbol was met, whether its block is its
                      // stream's LAST
};

// The first symbol of a lane, and what the part's symbols before it make.
struct Lane {
    u32 start, bytes, matches;
};

// Where a part's bytes and matches belong.
struct alignas(16) Place {
    u32 part, at, matches;
    u32 first; // the byte that the first of its stream is
};

struct alignas(8) Match {
    u32 at;
    u16 len, distance; // 32768 is 0
};
static_assert(sizeof(Codes) == 176 && sizeof(Part) == 32 && sizeof(Lane) == 12 && sizeof(Match) == 8, "the host knows");

// Words of the report, which is zero at first.
enum : u32 { CODES_FOUND, PARTS_MADE, WRONG, USED, END, LARGEST, MATCHES, FILTERS, HITS_FOUND = 13, LIKELY_FOUND, REPORT = 16 }; // host
enum : u32 { CROWDED = 1, TOO_FAR = 2, NO_FILTER = 4, NO_COLOUR = 8, OTHER_CRC = 16, UNCHAINED = 32, BAD_LZW = 64 }; // host: bits of WRONG
// Once it is known how the parts follow one another: how many are USED, the bit behind a single stream's END, the bytes of
// the LARGEST, and how many MATCHES there are.
// FILTERS and the five words from it on count the rows of each filter. Behind the report are two sums of 64 bits for each stream.

// The sum of the values of all threads before this one; `all` becomes that of all threads. `shared` holds a value a
// warp, and is free again after the next barrier.
template <u32 THREADS> static __device__ __forceinline__ u32 scan_threads(u32 value, u32 *shared, u32 &all) {
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
    for (u32 w = 0; w < THREADS / 32; w++) {
        if (w < threadIdx.x / 32) earlier += shared[w];
        all += shared[w];
    }
    return earlier + sum - value;
}

// The 32 bits of `words` from bit `at` on.
static __device__ __forceinline__ u32 bits_at(const u32 *words, u32 at) {
    return __funnelshift_r(words[at / 32], words[at / 32 + 1], at % 32);
}
