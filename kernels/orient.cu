// Orient: LXF's variant 3 (a shared-memory tile whose rows are padded) carried to the eight symmetries of the
// square, to pixels of B = 1, 2, 3, 4, 6 and 8 bytes, and to any width and height.
//
//   transpose_b{1,2,3,4,6,8}(const u8 *src, u8 *dst, u64 width, u64 height, u32 reverse_x, u32 reverse_y)
//       dst is `height` wide and `width` high: dst(row r, column c) = src(row c, column r), where reverse_x
//       counts src's columns, and reverse_y its rows, from the end.
//       transpose 0,0 · rotate 90 (clockwise) 0,1 · rotate 270 1,0 · transverse 1,1
//       Grid: ceil(width / TX) · ceil((height + 3) / TY) blocks, or any other number.
//   flip_b{1,2,3,4,6,8}(const u8 *src, u8 *dst, u64 width, u64 height, u32 reverse_x, u32 reverse_y)
//       dst(row r, column c) = src(row r, column c), with columns or rows counted from the end.
//       flip horizontal 1,0 · flip vertical 0,1 · rotate 180: 1,0 on an image of width·height × 1 pixels
//       Grid: height · ceil((width·B + 7) / 8192) blocks, at most 2³¹ − 1, or any other number.
//   B             1   2   3   4   6   8
//   TX           64  64  64  32  64  32
//   TY          128  64  64  32  64  32
//   threads     256 256 192 256 192 256     of a block, in both kernels
// width and height are src's. Rows are contiguous, without padding. dst must not overlap src. Both start at a
// multiple of 8 bytes. src is read in whole words: its allocation must reach up to the next multiple of 4 bytes.
//
// Two numbers, for b bytes of image: reads b and writes b; no arithmetic on pixels. The rest is addresses.
//
// forms: PIXEL=1,2,3,4,6,8 named b{PIXEL}
#include "common.cuh"

constexpr u32 B = PIXEL;
// A pixel is UNITS units of one machine type; memory is read and written in words, which hold PER units.
template <u32 bytes> struct Types;
template <> struct Types<1> { typedef u8 Unit; typedef u32 Word; };
template <> struct Types<2> { typedef u16 Unit; typedef u32 Word; };
template <> struct Types<4> { typedef u32 Unit; typedef u32 Word; };
template <> struct Types<8> { typedef u64 Unit; typedef u64 Word; };
typedef Types<B == 3 ? 1 : B == 6 ? 2 : B>::Unit Unit;
typedef Types<B == 3 ? 1 : B == 6 ? 2 : B>::Word Word;
constexpr u32 UNITS = B / sizeof(Unit), PER = sizeof(Word) / sizeof(Unit), WORD = sizeof(Word);

// The tile. Its rows are 32, 48 or 96 words, and a round of all threads is whole rows, of src and of dst.
#ifndef TILE_X
constexpr u32 TILE_X = B == 4 || B == 8 ? 32 : 64, TILE_Y = B == 1 ? 128 : TILE_X;
#endif
constexpr u32 THREADS = UNITS == 1 ? 256 : 192;
constexpr u32 ROW = TILE_X * B, ROW_WORDS = ROW / WORD, COLUMN_WORDS = TILE_Y * B / WORD;
constexpr u32 LOAD_ROWS = THREADS / ROW_WORDS, STORE_ROWS = THREADS / COLUMN_WORDS; // of a round
static_assert(THREADS % ROW_WORDS == 0 && TILE_Y % LOAD_ROWS == 0, "whole rounds of loads");
static_assert(THREADS % COLUMN_WORDS == 0 && TILE_X % STORE_ROWS == 0, "whole rounds of stores");
// Where rows do not start at words, the tile's rows in dst begin up to HALO pixels early, so that its stores are
// whole words; for that it needs HALO more rows of src.
constexpr u32 HALO = (PER - 1 + UNITS - 1) / UNITS;
// One word of padding after the rows that a word of dst is taken from: the threads that store a row of dst, and so
// go down a column of the tile, each meet another bank.
constexpr u32 GROUP = UNITS == 1 ? PER : 1;
constexpr u32 TILE_BYTES = (TILE_Y + HALO + GROUP - 1) / GROUP * (GROUP * ROW + WORD);
static __device__ __forceinline__ u32 tile_row(u32 j) { return j / GROUP * (GROUP * ROW + WORD) + j % GROUP * ROW; }

static __device__ __forceinline__ u32 skew_of(const void *p) { return (u64)p % WORD; } // bytes past a word's start

// The word at `p`; where that is not at a word's start, out of two. Of the second nothing is needed from `end` on.
template <bool ALIGNED> static __device__ __forceinline__ Word load_word(const u8 *p, const u8 *end) {
    if (ALIGNED || WORD == 8) return *(const Word *)p;
    const u32 skew = skew_of(p);
    const u32 *q = (const u32 *)(p - skew);
    return __funnelshift_r(q[0], skew && (const u8 *)(q + 1) < end ? q[1] : 0, 8 * skew);
}

// A word out of its units, from the lowest address up.
template <class Get> static __device__ __forceinline__ Word gather(Get get) {
    Word word = get(0);
#pragma unroll
    for (u32 e = 1; e < PER; e++) word |= (Word)get(e) << 8 * sizeof(Unit) * e % (8 * WORD);
    return word;
}

// Stores word-aligned units `first` … `first` + PER − 1 of a row whose units are 0 … `count` − 1.
template <class Get> static __device__ __forceinline__ void store_within(Unit *row, long long first, long long count, Get get) {
#pragma unroll
    for (u32 e = 0; e < PER; e++)
        if (first + e >= 0 && first + e < count) row[first + e] = get(e);
}

template <bool ALIGNED>
static __device__ __forceinline__ void transpose_tiles(const u8 *src, u8 *dst, u64 width, u64 height, bool reverse_x,
                                                       bool reverse_y, u8 *tile) {
    constexpr u32 halo = ALIGNED ? 0 : HALO;
    const u64 src_pitch = width * B, dst_pitch = height * B;
    const long long src_step = reverse_y ? -src_pitch : src_pitch, dst_step = reverse_x ? -dst_pitch : dst_pitch;
    const u32 across = (width + TILE_X - 1) / TILE_X, down = (height + halo + TILE_Y - 1) / TILE_Y;
    const u32 load_row = threadIdx.x / ROW_WORDS, load_word_ = threadIdx.x % ROW_WORDS;
    const u32 store_row = threadIdx.x / COLUMN_WORDS, store_word = threadIdx.x % COLUMN_WORDS;
    for (u32 at = blockIdx.x; at < across * down; at += gridDim.x) {
        const u64 x0 = (u64)(at % across) * TILE_X, y0 = (u64)(at / across) * TILE_Y;
        const u32 columns = min((u64)TILE_X, width - x0);
        const bool inside = columns == TILE_X && y0 + TILE_Y <= height && (ALIGNED || y0 > 0);
        // The tile holds rows y0 − halo … of the picture whose transpose dst is: src, or src upside down.
        const u8 *in = src + (reverse_y ? height - 1 : 0) * src_pitch + x0 * B;
        u8 *out = dst + (reverse_x ? width - 1 - x0 : x0) * dst_pitch + y0 * B;

        if (inside) {
            const u8 *p = in + (long long)(y0 + load_row) * src_step + load_word_ * WORD;
            Word word[TILE_Y / LOAD_ROWS];
#pragma unroll
            for (u32 i = 0; i < TILE_Y / LOAD_ROWS; i++) word[i] = load_word<ALIGNED>(p + i * LOAD_ROWS * src_step, (const u8 *)~0ull);
            if constexpr (halo > 0)
                for (u32 j = load_row; j < halo; j += LOAD_ROWS)
                    *(Word *)(tile + tile_row(j) + load_word_ * WORD) =
                        load_word<ALIGNED>(p + ((int)(j - load_row) - (int)halo) * src_step, (const u8 *)~0ull);
#pragma unroll
            for (u32 i = 0; i < TILE_Y / LOAD_ROWS; i++)
                *(Word *)(tile + tile_row(halo + load_row + i * LOAD_ROWS) + load_word_ * WORD) = word[i];
        } else
            for (u32 j = load_row; j < TILE_Y + halo; j += LOAD_ROWS) {
                const u64 y = y0 + j - halo; // above row 0 this wraps round, and is no row either
                if (y >= height || load_word_ * WORD >= columns * B) continue;
                const u8 *row = in + (long long)y * src_step;
                *(Word *)(tile + tile_row(j) + load_word_ * WORD) = load_word<ALIGNED>(row + load_word_ * WORD, row + columns * B);
            }
        __syncthreads();

        auto get = [&](u32 x, u32 unit) -> Unit { // of column x of the tile, counted from the halo's first
            return *(const Unit *)(tile + tile_row(unit / UNITS) + x * B + unit % UNITS * sizeof(Unit));
        };
        if (inside) {
            u8 *q = out + store_row * dst_step + store_word * WORD;
#pragma unroll
            for (u32 i = 0; i < TILE_X / STORE_ROWS; i++, q += STORE_ROWS * dst_step) {
                const u32 skew = ALIGNED ? 0 : skew_of(q), unit = store_word * PER + halo * UNITS - skew / sizeof(Unit);
                *(Word *)(q - skew) = gather([&](u32 e) { return get(store_row + i * STORE_ROWS, unit + e); });
            }
        } else
            for (u32 x = store_row; x < columns; x += STORE_ROWS) {
                u8 *row = out + x * dst_step;
                const long long first = (long long)(store_word * PER) - (ALIGNED ? 0 : skew_of(row)) / sizeof(Unit);
                store_within((Unit *)(row - y0 * B), y0 * UNITS + first, height * UNITS, [&](u32 e) { return get(x, first + halo * UNITS + e); });
            }
        __syncthreads();
    }
}

extern "C" __global__ void __launch_bounds__(THREADS)
    ENTRY(transpose)(const u8 *src, u8 *dst, u64 width, u64 height, u32 reverse_x, u32 reverse_y) {
    __shared__ __align__(16) u8 tile[TILE_BYTES];
    if (HALO == 0 || (width * B | height * B) % WORD == 0)
        transpose_tiles<true>(src, dst, width, height, reverse_x, reverse_y, tile);
    else if (HALO > 0)
        transpose_tiles<false>(src, dst, width, height, reverse_x, reverse_y, tile);
}

// Flips move pieces of rows: src's piece goes into shared memory, and dst's words are put together from there.
constexpr u32 PIECE = 8192 / WORD; // words of dst
extern "C" __global__ void __launch_bounds__(THREADS)
    ENTRY(flip)(const u8 *src, u8 *dst, u64 width, u64 height, u32 reverse_x, u32 reverse_y) {
    __shared__ Word shared[PIECE + 4]; // a piece may begin and end within a pixel and within a word
    const u64 pitch = width * B, pieces = (pitch + WORD - 1 + PIECE * WORD - 1) / (PIECE * WORD); // of a row
    for (u64 at = blockIdx.x; at < pieces * height; at += gridDim.x) {
        const u64 r = pieces == 1 ? at : at / pieces;
        Unit *row = (Unit *)(dst + r * pitch);
        const u8 *from = src + (reverse_y ? height - 1 - r : r) * pitch;
        // Units of dst's row from `first` on, before the row's own first where that does not start a word.
        const long long first = (long long)((at - r * pieces) * PIECE * PER) - skew_of(row) / sizeof(Unit);
        const long long begin = max(first, 0ll), end = min(first + PIECE * PER, (long long)(width * UNITS));
        if (begin >= end) continue;
        // The pixels that these units belong to, and the words that hold them in src.
        const u64 p0 = begin / UNITS, p1 = (end - 1) / UNITS;
        const u8 *in = from + (reverse_x ? width - 1 - p1 : p0) * B;
        const u32 skew = skew_of(in), words = (skew + (p1 - p0 + 1) * B + WORD - 1) / WORD;
        const Word *in_words = (const Word *)(in - skew);
        __syncthreads(); // the piece before is stored
#pragma unroll 8
        for (u32 k = threadIdx.x; k < words; k += THREADS) shared[k] = in_words[k];
        __syncthreads();

        const Unit *pixels = (const Unit *)((const u8 *)shared + skew);
        const u32 past = p1 - p0, before = p0 * UNITS - first; // may be "negative": only sums with it are used
        auto get = [&](u32 unit) -> Unit {                     // of dst's piece
            const u32 v = unit - before;
            return pixels[reverse_x ? (past - v / UNITS) * UNITS + v % UNITS : v];
        };
        if (begin == first && end == first + PIECE * PER) {
            Word *out = (Word *)(row + first);
#pragma unroll 4
            for (u32 k = threadIdx.x; k < PIECE; k += THREADS) out[k] = gather([&](u32 e) { return get(k * PER + e); });
        } else
            for (u32 k = threadIdx.x; k < PIECE && first + k * PER < end; k += THREADS)
                store_within(row, first + k * PER, end, [&](u32 e) { return get(k * PER + e); });
    }
}
