// Flip: the symmetries that keep rows as rows, for pixels of B = 1, 2, 3, 4, 6 and 8 bytes and images of any size.
//
//   flip_b{1,2,3,4,6,8}(const u8 *src, u8 *dst, u64 width, u64 height, u32 reverse_x, u32 reverse_y)
//       dst(row r, column c) = src(row r, column c), where reverse_x counts src's columns, and reverse_y its rows,
//       from the end.
//       flip horizontal 1,0 · flip vertical 0,1 · rotate 180: 1,0 on the same pixels as width·height × 1
//       Grid: height · ceil((width·B + 14) / 8192) blocks of 256, at most 2³¹ − 1, or any other number.
// Rows are contiguous, without padding. dst must not overlap src. Both start at a multiple of 8 bytes. src is read in
// whole words: its allocation must reach up to the next multiple of 4 bytes.
//
// Two numbers, for b bytes of image: reads b and writes b; no arithmetic on pixels. The rest is addresses.
//
// forms: PIXEL=1,2,3,4,6,8 named b{PIXEL}
#include "pixel.cuh"

// A pixel is UNITS units of one machine type. Memory is read and written in words, which hold PER units.
constexpr u32 B = PIXEL;
typedef Types<B == 3 ? 1 : B == 6 ? 2 : B>::Unit Unit;
typedef Types<B == 3 ? 1 : B == 6 ? 2 : B>::Word Word;
constexpr u32 UNITS = B / sizeof(Unit), PER = sizeof(Word) / sizeof(Unit), WORD = sizeof(Word);

// Rows are processed in pieces of up to PIECE words: the piece of src is copied to shared memory, and the words of dst
// are assembled from there. A thread has up to EACH + 1 loads in flight; the additional one is for pieces that exceed
// whole rounds.
template <u32 EACH>
static __device__ __forceinline__ void flip_pieces(Turn turn, const u8 *src, u8 *dst, u64 width, u64 height,
                                                   bool reverse_x, bool reverse_y, Word *shared) {
    constexpr u32 PIECE = EACH * BLOCK + 64;
    const u64 pitch = width * B, row_words = (pitch + 2 * WORD - 2) / WORD; // or one less, by the row's alignment
    const u64 pieces = (row_words + PIECE - 1) / PIECE;                     // of a row, of equal size up to a sector
    const u32 piece = ((row_words + pieces - 1) / pieces + 7) / 8 * 8;
    for (u64 at = turn.block; at < pieces * height; at += turn.blocks) {
        const u64 r = pieces == 1 ? at : at / pieces;
        Unit *row = (Unit *)(dst + r * pitch);
        const u8 *from = src + (reverse_y ? height - 1 - r : r) * pitch;
        // Units of the row of dst from `first` on, which lies before the row's beginning if that does not start a word.
        const long long first = (long long)((at - r * pieces) * piece * PER) - (u64)row % WORD / sizeof(Unit);
        const long long begin = max(first, 0ll), end = min(first + piece * PER, (long long)(width * UNITS));
        if (begin >= end) continue;
        // The pixels of these units, and the words of src that hold them.
        const u64 p0 = begin / UNITS, p1 = (end - 1) / UNITS;
        const u8 *in = from + (reverse_x ? width - 1 - p1 : p0) * B;
        const u32 skew = (u64)in % WORD, words = (skew + (p1 - p0 + 1) * B + WORD - 1) / WORD;
        const Word *in_words = (const Word *)(in - skew);
        Word w[EACH + 1];
#pragma unroll
        for (u32 i = 0; i <= EACH; i++) w[i] = in_words[min(i * BLOCK + threadIdx.x, words - 1)];
        __syncthreads(); // the previous piece is stored
#pragma unroll
        for (u32 i = 0; i <= EACH; i++) shared[i * BLOCK + threadIdx.x] = w[i];
        __syncthreads();

        const Unit *pixels = (const Unit *)((const u8 *)shared + skew);
        const u32 past = p1 - p0, before = p0 * UNITS - first; // may wrap below 0: only sums with it are used
        auto get = [&](u32 unit) -> Word {                     // of the piece of dst
            const u32 v = unit - before;
            return pixels[reverse_x ? (past - v / UNITS) * UNITS + v % UNITS : v];
        };
        const u32 from_unit = begin - first, to_unit = end - first;
#pragma unroll
        for (u32 i = 0; i <= EACH; i++) {
            const u32 unit = (i * BLOCK + threadIdx.x) * PER;
            if (i == EACH && unit >= to_unit) break;
            Unit *out = row + (first + unit);
            if (unit >= from_unit && unit + PER <= to_unit) {
                Word word = get(unit);
#pragma unroll
                for (u32 e = 1; e < PER; e++) word |= get(unit + e) << 8 * sizeof(Unit) * e % (8 * WORD);
                *(Word *)out = word;
            } else
#pragma unroll 1
                for (u32 e = 0; e < PER; e++)
                    if (unit + e >= from_unit && unit + e < to_unit) out[e] = get(unit + e);
        }
    }
}

// lengths: src[width * height * PIXEL], dst[width * height * PIXEL]
// in sets: __launch_bounds__(BLOCK, 4)
extern "C" __global__ void __launch_bounds__(BLOCK)
    ENTRY(flip)(const u8 *src, u8 *dst, u64 width, u64 height, u32 reverse_x, u32 reverse_y) {
    constexpr u32 LARGE = 8192 / (WORD * BLOCK), SMALL = LARGE / 4;
    __shared__ Word shared[(LARGE + 1) * BLOCK];
    const Turn turn{blockIdx.x, gridDim.x};
    if (width * B > 2048) flip_pieces<LARGE>(turn, src, dst, width, height, reverse_x, reverse_y, shared);
    else flip_pieces<SMALL>(turn, src, dst, width, height, reverse_x, reverse_y, shared);
}
