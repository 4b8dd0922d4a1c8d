// Orient: LXF's variant 3 (a shared-memory tile whose rows are padded) carried to the eight symmetries of the
// square, to pixels of B = 1, 2, 3, 4, 6 and 8 bytes, and to any width and height.
//
//   transpose_b{1,2,3,4,6,8}(const u8 *src, u8 *dst, u64 width, u64 height, u32 reverse_x, u32 reverse_y)
//       dst is `height` wide and `width` high: dst(row r, column c) = src(row c, column r), where reverse_x
//       counts src's columns, reverse_y its rows, from the end.
//       transpose 0,0 · rotate 90 (clockwise) 0,1 · rotate 270 1,0 · transverse 1,1
//       Grid: ceil(width / TX) · ceil((height + 3) / TY) blocks of 256, or any other number.
//   flip_b{1,2,3,4,6,8}(const u8 *src, u8 *dst, u64 width, u64 height, u32 reverse_x, u32 reverse_y)
//       dst(row r, column c) = src(row r, column c), with columns or rows counted from the end.
//       flip horizontal 1,0 · flip vertical 0,1 · rotate 180: 1,1, or faster 1,0 on width·height × 1 pixels
//       Grid: height · ceil((width·B + 3) / 8192) blocks of 256, or any other number (at most 2³¹ − 1).
// width and height are src's. Rows are contiguous, without padding. dst must not overlap src. Both start at a
// multiple of 8 bytes. src is read in whole words: its allocation must reach up to the next multiple of 4 bytes.
//
// Two numbers, for b bytes of image: reads b and writes b; no arithmetic on pixels. The rest is addresses.
#include "common.cuh"

// A pixel of B bytes is UNITS units of one machine type; memory is read and written in words of at least 4 bytes.
template <u32 B> struct Pixel;
template <> struct Pixel<1> { typedef u8 Unit; typedef u32 Word; };
template <> struct Pixel<2> { typedef u16 Unit; typedef u32 Word; };
template <> struct Pixel<3> { typedef u8 Unit; typedef u32 Word; };
template <> struct Pixel<4> { typedef u32 Unit; typedef u32 Word; };
template <> struct Pixel<6> { typedef u16 Unit; typedef u32 Word; };
template <> struct Pixel<8> { typedef u64 Unit; typedef u64 Word; };

// A word out of its units, given one by one from the lowest address up.
template <class Word, class Unit, class Get> static __device__ __forceinline__ Word gather(Get get) {
    Word word = get(0);
#pragma unroll
    for (u32 e = 1; e < sizeof(Word) / sizeof(Unit); e++) word |= (Word)get(e) << (8 * sizeof(Unit) * e % (8 * sizeof(Word)));
    return word;
}

// Bytes from `row` on to the word boundary below it.
template <class Word> static __device__ __forceinline__ u32 skew_of(const u8 *row) { return (u64)row % sizeof(Word); }

// The word at `p`, which need not be aligned; `end` is where the image row ends.
template <class Word, bool ALIGNED> static __device__ __forceinline__ Word load_word(const u8 *p, const u8 *end) {
    if constexpr (ALIGNED) return *(const Word *)p;
    else {
        const u32 skew = skew_of<Word>(p);
        const u32 *q = (const u32 *)(p - skew);
        const u32 low = q[0], high = skew && (const u8 *)(q + 1) < end ? q[1] : 0;
        return __funnelshift_r(low, high, 8 * skew);
    }
}

// One tile of the transposition: TX columns and TY rows of src.
template <u32 B, u32 TX, u32 TY> struct Tile {
    typedef typename Pixel<B>::Unit Unit;
    typedef typename Pixel<B>::Word Word;
    static constexpr u32 UNITS = B / sizeof(Unit);           // units of a pixel
    static constexpr u32 PER = sizeof(Word) / sizeof(Unit);  // units of a word
    // Where rows of dst do not start at a word, each row of the tile in dst begins up to HALO pixels early,
    // so that all stores are whole words: the tile needs HALO more rows of src.
    static constexpr u32 HALO = (PER - 1 + UNITS - 1) / UNITS;
    static constexpr u32 ROWS = TY + HALO;
    static constexpr u32 ROW = TX * B;                       // bytes
    static constexpr u32 ROW_WORDS = ROW / sizeof(Word), COLUMN_WORDS = TY * B / sizeof(Word);
    // Padding of one word after the rows whose samples a dst word takes together: a warp that stores one row
    // of dst reads down a column of the tile, and meets another bank with each word.
    static constexpr u32 GROUP = UNITS == 1 ? PER : 1;
    static constexpr u32 BYTES = (ROWS + GROUP - 1) / GROUP * (GROUP * ROW + sizeof(Word));
    static_assert(ROW % sizeof(Word) == 0 && TY * B % sizeof(Word) == 0, "whole words");
    static_assert(TY * ROW_WORDS % BLOCK == 0 && TX * COLUMN_WORDS % BLOCK == 0, "whole rounds");

    static __device__ __forceinline__ u32 row(u32 j) { return j / GROUP * (GROUP * ROW + sizeof(Word)) + j % GROUP * ROW; }
};

template <u32 B, u32 TX, u32 TY, bool ALIGNED>
static __device__ __forceinline__ void transpose_tiles(const u8 *src, u8 *dst, u64 width, u64 height, bool reverse_x,
                                                       bool reverse_y, u8 *shared) {
    typedef Tile<B, TX, TY> L;
    typedef typename L::Word Word;
    typedef typename L::Unit Unit;
    const u64 src_pitch = width * B, dst_pitch = height * B;
    const u32 halo = ALIGNED ? 0 : L::HALO;
    const u32 across = (width + TX - 1) / TX, down = (height + halo + TY - 1) / TY;
    for (u32 tile = blockIdx.x; tile < across * down; tile += gridDim.x) {
        const u64 x0 = (u64)(tile % across) * TX, y0 = (u64)(tile / across) * TY;
        const u32 columns = min((u64)TX, width - x0);

        // Rows y0 − halo … y0 + TY − 1 of the picture that dst transposes, into the tile.
        auto load = [&](u32 j, u32 k) -> Word { // word k of tile row j
            const u64 y = y0 + j - L::HALO;     // above row 0 wraps round, and is no row either
            if (y >= height || k * sizeof(Word) >= columns * B) return 0;
            const u8 *begin = src + (reverse_y ? height - 1 - y : y) * src_pitch;
            return load_word<Word, ALIGNED>(begin + x0 * B + k * sizeof(Word), begin + src_pitch);
        };
        auto keep = [&](u32 j, u32 k, Word word) { *(Word *)(shared + L::row(j) + k * sizeof(Word)) = word; };
        constexpr u32 LOADS = TY * L::ROW_WORDS / BLOCK;
        Word word[LOADS];
#pragma unroll
        for (u32 i = 0; i < LOADS; i++) {
            const u32 at = i * BLOCK + threadIdx.x;
            word[i] = load(L::HALO + at / L::ROW_WORDS, at % L::ROW_WORDS);
        }
        if constexpr (!ALIGNED)
            for (u32 at = threadIdx.x; at < L::HALO * L::ROW_WORDS; at += BLOCK)
                keep(at / L::ROW_WORDS, at % L::ROW_WORDS, load(at / L::ROW_WORDS, at % L::ROW_WORDS));
#pragma unroll
        for (u32 i = 0; i < LOADS; i++) {
            const u32 at = i * BLOCK + threadIdx.x;
            keep(L::HALO + at / L::ROW_WORDS, at % L::ROW_WORDS, word[i]);
        }
        __syncthreads();

        // Columns of the tile into rows of dst, words at a time.
        const u64 left = (height - y0) * L::UNITS; // units of a dst row from column y0 on; 0 or "negative" in the halo's tile
        const long long after = (long long)left;
#pragma unroll
        for (u32 i = 0; i < TX * L::COLUMN_WORDS / BLOCK; i++) {
            const u32 at = i * BLOCK + threadIdx.x, x = at / L::COLUMN_WORDS, k = at % L::COLUMN_WORDS;
            if (x >= columns) continue;
            u8 *begin = dst + (reverse_x ? width - 1 - (x0 + x) : x0 + x) * dst_pitch + y0 * B;
            const u32 early = ALIGNED ? 0 : skew_of<Word>(begin) / sizeof(Unit);
            const int unit = (int)(k * L::PER) - (int)early; // first unit of the word, from column y0
            auto get = [&](u32 e) -> Unit {
                const u32 u = unit + e + L::HALO * L::UNITS;
                return *(const Unit *)(shared + L::row(u / L::UNITS) + x * B + u % L::UNITS * sizeof(Unit));
            };
            Unit *out = (Unit *)begin + unit;
            if ((unit >= 0 || y0 > 0) && unit + (int)L::PER <= after) *(Word *)out = gather<Word, Unit>(get);
            else
#pragma unroll
                for (u32 e = 0; e < L::PER; e++)
                    if ((unit + (int)e >= 0 || y0 > 0) && unit + (int)e < after) out[e] = get(e);
        }
        __syncthreads();
    }
}

template <u32 B, u32 TX, u32 TY>
static __device__ __forceinline__ void transpose(const u8 *src, u8 *dst, u64 width, u64 height, bool reverse_x, bool reverse_y) {
    typedef Tile<B, TX, TY> L;
    __shared__ __align__(16) u8 shared[L::BYTES];
    if (L::HALO == 0 || (width * B | height * B) % sizeof(typename L::Word) == 0)
        transpose_tiles<B, TX, TY, true>(src, dst, width, height, reverse_x, reverse_y, shared);
    else if constexpr (L::HALO > 0)
        transpose_tiles<B, TX, TY, false>(src, dst, width, height, reverse_x, reverse_y, shared);
}

// Flips move pieces of rows: dst's words of a piece are put together from the units of src's piece in shared memory.
template <u32 B>
static __device__ __forceinline__ void flip(const u8 *src, u8 *dst, u64 width, u64 height, bool reverse_x, bool reverse_y) {
    typedef typename Pixel<B>::Unit Unit;
    typedef typename Pixel<B>::Word Word;
    constexpr u32 UNITS = B / sizeof(Unit), PER = sizeof(Word) / sizeof(Unit);
    constexpr u32 WORDS = 8192 / sizeof(Word); // of a piece
    __shared__ Word shared[WORDS + 4];         // a piece may begin and end within a pixel and within a word
    const u64 pitch = width * B;
    const u64 pieces = (pitch + sizeof(Word) - sizeof(Unit) + WORDS * sizeof(Word) - 1) / (WORDS * sizeof(Word)); // of a row
    for (u64 at = blockIdx.x; at < pieces * height; at += gridDim.x) {
        const u64 r = pieces == 1 ? at : at / pieces, piece = at - r * pieces;
        u8 *row = dst + r * pitch;
        const u8 *from = src + (reverse_y ? height - 1 - r : r) * pitch;
        // Units of the dst row, counted from its first: this piece's words begin at `first`, which is before
        // the row where the row does not start at a word.
        const long long first = (long long)(piece * WORDS * PER) - skew_of<Word>(row) / sizeof(Unit);
        const long long last = min(first + (long long)(WORDS * PER), (long long)(width * UNITS)); // past the end
        if (last <= 0 || first >= last) continue;
        const u64 p0 = (first > 0 ? first : 0) / UNITS, p1 = (last - 1) / UNITS; // its first and last pixel
        const u8 *begin = from + (reverse_x ? width - 1 - p1 : p0) * B, *end = begin + (p1 - p0 + 1) * B;
        const u32 skew = skew_of<Word>(begin);
        const Word *in = (const Word *)(begin - skew);
        const u32 words = (end - (const u8 *)in + sizeof(Word) - 1) / sizeof(Word);
        __syncthreads();
        if (words >= WORDS) {
            Word word[WORDS / BLOCK];
#pragma unroll
            for (u32 i = 0; i < WORDS / BLOCK; i++) word[i] = in[i * BLOCK + threadIdx.x];
#pragma unroll
            for (u32 i = 0; i < WORDS / BLOCK; i++) shared[i * BLOCK + threadIdx.x] = word[i];
            if (WORDS + threadIdx.x < words) shared[WORDS + threadIdx.x] = in[WORDS + threadIdx.x];
        } else
            for (u32 k = threadIdx.x; k < words; k += BLOCK) shared[k] = in[k];
        __syncthreads();

        const Unit *pixels = (const Unit *)((const u8 *)shared + skew);
        const u32 pixel_last = p1 - p0;
        const int before = (int)((long long)(p0 * UNITS) - first); // units of the piece before pixel p0's first: may be < 0
        const u32 count = last - first;
        const u32 invalid = first < 0 ? (u32)-first : 0; // units before the row
        auto get = [&](u32 u) -> Unit { // unit u of the piece
            const u32 v = (int)u - before;
            return pixels[reverse_x ? (pixel_last - v / UNITS) * UNITS + v % UNITS : v];
        };
#pragma unroll 8
        for (u32 k = threadIdx.x; k < WORDS; k += BLOCK) {
            const u32 u = k * PER;
            if (u >= count) break;
            Unit *out = (Unit *)row + (first + u);
            if (u >= invalid && u + PER <= count) *(Word *)out = gather<Word, Unit>([&](u32 e) { return get(u + e); });
            else
                for (u32 e = 0; e < PER; e++)
                    if (u + e >= invalid && u + e < count) out[e] = get(u + e);
        }
    }
}

// Tiles of 8 KiB to 24 KiB whose rows are 64 bytes or more on both sides.
#define ENTRIES(B, TX, TY)                                                                                             \
    extern "C" __global__ void __launch_bounds__(BLOCK)                                                                \
        transpose_b##B(const u8 *src, u8 *dst, u64 width, u64 height, u32 reverse_x, u32 reverse_y) {                  \
        transpose<B, TX, TY>(src, dst, width, height, reverse_x, reverse_y);                                           \
    }                                                                                                                  \
    extern "C" __global__ void __launch_bounds__(BLOCK)                                                                \
        flip_b##B(const u8 *src, u8 *dst, u64 width, u64 height, u32 reverse_x, u32 reverse_y) {                       \
        flip<B>(src, dst, width, height, reverse_x, reverse_y);                                                        \
    }
ENTRIES(1, 64, 128)
ENTRIES(2, 64, 64)
ENTRIES(3, 64, 64)
ENTRIES(4, 32, 32)
ENTRIES(6, 64, 64)
ENTRIES(8, 32, 32)
