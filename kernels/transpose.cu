// Transpose: variant 3 of "Transposing a matrix" (Kalgin and Baldin, Linux Format Russia; a shared-memory tile with
// padded rows), extended to the four symmetries that exchange rows and columns, to pixels of B = 1, 2, 3, 4, 6 and 8
// bytes, and to images of any size.
//
//   transpose_b{1,2,3,4,6,8}(const u8 *src, u8 *dst, u64 width, u64 height, u32 reverse_x, u32 reverse_y)
//       width and height are src's; dst is `height` wide and `width` high:
//       dst(row r, column c) = src(row c, column r), where reverse_x counts src's columns, and reverse_y its rows,
//       from the end.
//       transpose 0,0 · rotate 90 (clockwise) 0,1 · rotate 270 1,0 · transverse 1,1
//   B        1    2    3    4    6    8
//   TX     128  128  128   64   64   32
//   TY     256  128   64   64   64   64
//   Grid: ceil(width / TX) · ceil((height + 32) / TY) blocks of 256, or any other number.
// Rows are contiguous, without padding. dst must not overlap src. Both start at a multiple of 8 bytes (of 32 for full
// speed). src is read in whole words: its allocation must reach up to the next multiple of 4 bytes.
//
// Two numbers, for b bytes of image: reads b and writes b; 1 to 3 byte permutations a word. The rest is addresses.
//
// forms: PIXEL=1,2,3,4,6,8 named b{PIXEL}
#include "pixel.cuh"

// A pixel is UNITS units of one machine type. Memory is read and written in words, which hold PER units.
constexpr u32 B = PIXEL;
typedef Types<B == 3 ? 1 : B == 6 ? 2 : B>::Unit Unit;
typedef Types<B == 3 ? 1 : B == 6 ? 2 : B>::Word Word;
constexpr u32 UNITS = B / sizeof(Unit), PER = sizeof(Word) / sizeof(Unit), WORD = sizeof(Word);

constexpr u32 TILE_X = B <= 3 ? 128 : B == 8 ? 32 : 64, TILE_Y = B == 1 ? 256 : B == 2 ? 128 : 64;
// DRAM is written in sectors of 32 bytes, and a sector that two tiles each write in part has to be read first. If rows
// of dst do not start at sectors, the tile's rows in dst therefore begin up to HALO pixels early, at the start of a
// sector.
constexpr u32 SECTOR = 32;
constexpr u32 HALO = ((SECTOR - sizeof(Unit) + B - 1) / B + PER - 1) / PER * PER;
static_assert(TILE_X % (PER * 32) == 0 && TILE_Y * B % SECTOR == 0, "whole warps and sectors");

// Unit `n` of PER rows of words, and PER units combined to a word; all indices are constants.
struct Ref { Word word; u32 lane; };
template <class Get> static __device__ __forceinline__ Word gather(Get get) {
    if constexpr (PER == 1) return get(0).word;
    else if constexpr (PER == 2) {
        const Ref a = get(0), b = get(1);
        return __byte_perm(a.word, b.word, (a.lane ? 0x32 : 0x10) | (b.lane ? 0x7600 : 0x5400));
    } else {
        const Ref a = get(0), b = get(1), c = get(2), d = get(3);
        return __byte_perm(__byte_perm(a.word, b.word, a.lane | (4 + b.lane) << 4),
                           __byte_perm(c.word, d.word, c.lane | (4 + d.lane) << 4), 0x5410);
    }
}

// The transposed tile: a row of TW words for each of its columns. PER columns make a group. One word of padding after
// each group moves the words that a warp stores together (the same rows of 32 groups) to different banks.
template <u32 ROWS> struct Tile {
    static constexpr u32 TW = ROWS * B / WORD, PITCH = PER * TW | 1;
    static constexpr u32 WORDS = TILE_X / PER * PITCH + 1; // one more, since loads of word pairs may look past the end
    static __device__ __forceinline__ u32 at(u32 x) { return x / PER * PITCH + x % PER * TW; }
};

// ALIGNED: rows of src start at words and rows of dst at sectors.
template <bool ALIGNED>
static __device__ __forceinline__ void transpose_tiles(const u8 *src, u8 *dst, u64 width, u64 height, bool reverse_x,
                                                       bool reverse_y, Word *tile) {
    constexpr u32 halo = ALIGNED ? 0 : HALO, rows = TILE_Y + halo;
    typedef Tile<rows> L;
    const u32 warp = threadIdx.x / 32, lane = threadIdx.x % 32;
    const u64 src_pitch = width * B, dst_pitch = height * B;
    const u64 src_step = reverse_y ? -src_pitch : src_pitch, dst_step = reverse_x ? -dst_pitch : dst_pitch;
    const u32 across = (width + TILE_X - 1) / TILE_X, down = (height + halo + TILE_Y - 1) / TILE_Y;
    for (u32 number = blockIdx.x; number < across * down; number += gridDim.x) {
        // Tiles that are neighbours in dst have consecutive numbers: they may share cache lines, which are then written
        // together.
        const u64 x0 = (u64)(number / down) * TILE_X, y0 = (u64)(number % down) * TILE_Y;
        const u32 columns = min((u64)TILE_X, width - x0);

        // Row j of the tile is row y0 − halo + j of src, or of src upside down; if src has no such row, the nearest row
        // is used. A warp takes PER rows at a time, and a thread blocks of PER × PER pixels, which it transposes in
        // registers; BATCH of these are in flight.
        const u8 *in = src + (reverse_y ? height - 1 : 0) * src_pitch + (y0 - halo) * src_step + x0 * B + lane * UNITS * WORD;
        const u32 first_row = ALIGNED || y0 >= HALO ? 0 : HALO - y0, last_row = min((u64)rows, height + halo - y0) - 1;
        constexpr u32 GROUPS = rows / PER, TURNS = (GROUPS + WARPS - 1) / WARPS, ACROSS = TILE_X / PER / 32;
        constexpr u32 MOST = 64 / (WORD * PER * UNITS * ACROSS) ? 64 / (WORD * PER * UNITS * ACROSS) : 1; // 64 bytes a thread
        constexpr u32 BATCHES = (TURNS + MOST - 1) / MOST, BATCH = (TURNS + BATCHES - 1) / BATCHES;
#pragma unroll 1
        for (u32 first = warp; first < GROUPS; first += BATCH * WARPS) {
            auto has = [&](u32 i) { return GROUPS % (BATCH * WARPS) == 0 || first + i * WARPS < GROUPS; };
            Word w[BATCH][ACROSS][PER][UNITS];
#pragma unroll
            for (u32 i = 0; i < BATCH; i++)
#pragma unroll
                for (u32 e = 0; e < PER; e++) {
                    const u8 *row = in + min(max((first + i * WARPS) * PER + e, first_row), last_row) * src_step;
                    const int skew = ALIGNED ? 0 : (u64)row % WORD;
                    const Word *q = (const Word *)(row - skew);
#pragma unroll
                    for (u32 a = 0; a < ACROSS; a++) {
                        // Word n of q is read if it begins before the end of the tile's last pixel in this row.
                        Word v[UNITS + 1];
#pragma unroll
                        for (u32 n = 0; n <= UNITS; n++) {
                            int before = (int)(((a * 32 + lane) * UNITS + n) * WORD) - (int)(columns * B);
                            if (n == UNITS) before = max(before, 0); // the additional word is for skewed rows only
                            v[n] = has(i) && before < skew ? q[a * 32 * UNITS + n] : 0;
                        }
#pragma unroll
                        for (u32 n = 0; n < UNITS; n++)
                            if constexpr (ALIGNED || WORD == 8) w[i][a][e][n] = v[n];
                            else w[i][a][e][n] = __funnelshift_r(v[n], v[n + 1], 8 * skew);
                    }
                }
#pragma unroll
            for (u32 i = 0; i < BATCH; i++) {
                const u32 group = first + i * WARPS;
                if (!has(i)) break;
#pragma unroll
                for (u32 a = 0; a < ACROSS; a++)
#pragma unroll
                    for (u32 m = 0; m < PER; m++)
#pragma unroll
                        for (u32 u = 0; u < UNITS; u++)
                            tile[(a * 32 + lane) * L::PITCH + m * L::TW + group * UNITS + u] = gather([&](u32 l) -> Ref {
                                const u32 e = (u * PER + l) / UNITS, n = m * UNITS + (u * PER + l) % UNITS;
                                return {w[i][a][e][n / PER], n % PER};
                            });
            }
        }
        __syncthreads();

        // Copies rows of the tile to rows of dst, one row for each warp: whole words from the start of a sector on,
        // `early` bytes before column y0.
        u8 *out = dst + (reverse_x ? width - 1 - x0 : x0) * dst_pitch + y0 * B;
        const int left = (long long)min((u64)1 << 30, (height + halo - y0) * B) - (int)(halo * B); // bytes from column y0 on
        constexpr u32 OUT = TILE_Y * B / WORD;
        auto store_row = [&](u32 x, bool whole) {
            u8 *row = out + x * dst_step;
            const u32 early = ALIGNED ? 0 : (u64)row % SECTOR, from = halo * B - early;
            const int begin = y0 ? 0 : early, end = early + left; // the range of bytes in this row, from the sector on
            const Word *t = tile + L::at(x) + from / WORD + lane;
            Word *to = (Word *)(row - early) + lane;
#pragma unroll
            for (u32 k = 0; k < OUT; k += 32) {
                if (OUT % 32 && k + lane >= OUT) break;
                Word word = t[k];
                if constexpr (!ALIGNED && PER > 1) word = __funnelshift_r(word, t[k + 1], from % WORD * 8);
                int byte = (k + lane) * WORD;
                if (whole || (byte >= begin && byte + (int)WORD <= end)) to[k] = word;
                else
#pragma unroll 1
                    for (u32 e = 0; e < PER; e++, byte += sizeof(Unit), word >>= 8 * sizeof(Unit) % (8 * WORD))
                        if (byte >= begin && byte < end) ((Unit *)(to + k))[e] = word;
            }
        };
        if (columns == TILE_X && (ALIGNED || y0) && left >= (int)(TILE_Y * B))
#pragma unroll 8
            for (u32 i = 0; i < TILE_X / WARPS; i++) store_row(warp + i * WARPS, true);
        else
#pragma unroll 1
            for (u32 x = warp; x < columns; x += WARPS) store_row(x, false);
        __syncthreads();
    }
}

extern "C" __global__ void __launch_bounds__(BLOCK, B <= 2 ? 3 : 4)
    ENTRY(transpose)(const u8 *src, u8 *dst, u64 width, u64 height, u32 reverse_x, u32 reverse_y) {
    __shared__ Word tile[Tile<TILE_Y + HALO>::WORDS];
    if (width * B % WORD == 0 && height * B % SECTOR == 0 && (u64)dst % SECTOR == 0)
        transpose_tiles<true>(src, dst, width, height, reverse_x, reverse_y, tile);
    else
        transpose_tiles<false>(src, dst, width, height, reverse_x, reverse_y, tile);
}
