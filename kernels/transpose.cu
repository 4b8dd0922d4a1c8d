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
//   TX     124  126  124   64   62   32
//   TY     224  112   64   64   64   64
//   Grid: ceil(width / TX) · ceil((height + 32) / TY) blocks of 256, or any other number; some find no tile left.
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
// sector. Such tiles have these pixels more, where they still fill the turns of all warps, or are lower.
constexpr u32 SECTOR = 32;
constexpr u32 HALO = ((SECTOR - sizeof(Unit) + B - 1) / B + PER - 1) / PER * PER;
template <bool HALOED> constexpr u32 HEIGHT = !HALOED ? TILE_Y : B <= 2 ? TILE_Y - HALO : B == 3 ? 96 : TILE_Y;
template <bool HALOED> constexpr u32 ROWS = HEIGHT<HALOED> + (HALOED ? HALO : 0);
static_assert(TILE_X % (PER * 32) == 0 && HEIGHT<false> * B % SECTOR == 0 && HEIGHT<true> * B % SECTOR == 0,
              "whole warps and sectors");

// Unit `lane` of a word, and PER of these combined to a word; all lanes are constants.
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
template <bool HALOED> struct Tile {
    static constexpr u32 TW = ROWS<HALOED> * B / WORD, PITCH = PER * TW | 1;
    static constexpr u32 WORDS = TILE_X / PER * PITCH + 1; // one more, since loads of word pairs may look past the end
    static constexpr __device__ __forceinline__ u32 at(u32 x) { return x / PER * PITCH + x % PER * TW; }
};

// The part of src that a tile takes.
struct Part {
    const u8 *in;            // the first pixel of the tile's first row, which may lie outside of src
    u64 step;                // bytes from one of the tile's rows to the next
    u32 columns;             // that src has
    u32 first_row, last_row; // of the tile's rows, those that src has
};

// Loads a tile and transposes it. A warp takes PER rows at a time, and a thread blocks of PER × PER pixels, which it
// transposes in registers; BATCH of these are in flight. Rows that src does not have are copies of the nearest one.
//   SKEWED  rows of src need not start at words: a lane shifts its words, for which the next lane lends it its first
//           one, so that the last lane has no pixels of its own
//   WHOLE   src has all rows of the tile, and all words of the lanes
template <bool HALOED, bool SKEWED, bool WHOLE>
static __device__ __forceinline__ void load_tile(const Part &part, Word *tile) {
    typedef Tile<HALOED> L;
    constexpr u32 GROUPS = ROWS<HALOED> / PER, TURNS = (GROUPS + WARPS - 1) / WARPS, ACROSS = TILE_X / PER / 32;
    constexpr u32 BLOCK_BYTES = WORD * PER * UNITS * ACROSS, IN_FLIGHT = B == 1 ? 64 : 128; // bytes of a thread
    constexpr u32 MOST = IN_FLIGHT > BLOCK_BYTES ? IN_FLIGHT / BLOCK_BYTES : 1;
    constexpr u32 BATCHES = (TURNS + MOST - 1) / MOST, BATCH = (TURNS + BATCHES - 1) / BATCHES;
    const u32 warp = threadIdx.x / 32, lane = threadIdx.x % 32;
    const u8 *in = part.in + lane * UNITS * WORD;
    const int end = (int)(part.columns * B) - (int)(lane * UNITS * WORD); // of a row, in bytes from the lane's first
#pragma unroll 1
    for (u32 first = warp; first < GROUPS; first += BATCH * WARPS) {
        auto has = [&](u32 i) { return GROUPS % (BATCH * WARPS) == 0 || first + i * WARPS < GROUPS; };
        Word w[BATCH][ACROSS][PER][UNITS];
        u32 skew[BATCH][PER];
        const u8 *whole = in + first * PER * part.step;
#pragma unroll
        for (u32 i = 0; i < BATCH; i++)
#pragma unroll
            for (u32 e = 0; e < PER; e++) {
                const u32 nearest = min(max((first + i * WARPS) * PER + e, part.first_row), part.last_row);
                const u8 *row = WHOLE ? whole + (i * WARPS * PER + e) * part.step : in + nearest * part.step;
                skew[i][e] = SKEWED ? (u64)row % WORD : 0;
                const Word *q = (const Word *)(row - skew[i][e]);
#pragma unroll
                for (u32 a = 0; a < ACROSS; a++)
#pragma unroll
                    for (u32 n = 0; n < UNITS; n++) {
                        // The last lane only lends its first word; else, a word is read that begins before the end.
                        const bool lender = SKEWED && a == ACROSS - 1 && lane == 31;
                        const int at = (a * 32 * UNITS + n) * WORD;
                        const bool wanted = WHOLE ? n == 0 || !lender : at < end + (int)skew[i][e];
                        w[i][a][e][n] = has(i) && wanted ? q[a * 32 * UNITS + n] : 0;
                    }
            }
        if constexpr (SKEWED)
#pragma unroll
            for (u32 i = 0; i < BATCH; i++)
#pragma unroll
                for (u32 e = 0; e < PER; e++)
#pragma unroll
                    for (u32 a = 0; a < ACROSS; a++) {
                        Word v[UNITS + 1];
#pragma unroll
                        for (u32 n = 0; n < UNITS; n++) v[n] = w[i][a][e][n];
                        // Lane 0 lends to lane 31, whose next word is the first of the next ACROSS.
                        const Word lent = a + 1 < ACROSS && lane == 0 ? w[i][a + 1 < ACROSS ? a + 1 : a][e][0] : v[0];
                        v[UNITS] = __shfl_sync(ALL, lent, lane + 1);
#pragma unroll
                        for (u32 n = 0; n < UNITS; n++) w[i][a][e][n] = __funnelshift_r(v[n], v[n + 1], 8 * skew[i][e]);
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
}

// Copies a row of the tile, whose words are at `from`, to a row of dst, with one warp: whole words from the start of a
// sector on, which is `early` bytes before `row`, the row's byte in the tile's first column that is no halo.
//   WHOLE   the row of dst has all these bytes; else, it has the `left` ones from `row` on, and of those before, none if
//           it is `at_start`
template <bool HALOED, bool WHOLE>
static __device__ __forceinline__ void store_row(const Word *from, u8 *row, bool at_start, int left) {
    constexpr u32 OUT = HEIGHT<HALOED> * B / WORD;
    const u32 lane = threadIdx.x % 32, early = HALOED ? (u64)row % SECTOR : 0, skip = (HALOED ? HALO * B : 0) - early;
    const Word *t = from + skip / WORD + lane;
    Word *to = (Word *)(row - early) + lane;
    const int begin = at_start ? early : 0, end = early + left; // in bytes from the sector on
#pragma unroll
    for (u32 k = 0; k < OUT; k += 32) {
        if (OUT % 32 && k + lane >= OUT) break;
        Word word = t[k];
        if constexpr (HALOED && PER > 1) word = __funnelshift_r(word, t[k + 1], 8 * skip); // by `skip` modulo WORD bytes
        int byte = (k + lane) * WORD;
        if (WHOLE || (byte >= begin && byte + (int)WORD <= end)) to[k] = word;
        else
#pragma unroll 1
            for (u32 e = 0; e < PER; e++, byte += sizeof(Unit), word >>= 8 * sizeof(Unit) % (8 * WORD))
                if (byte >= begin && byte < end) ((Unit *)(to + k))[e] = word;
    }
}

// HALOED: rows of dst need not start at sectors. SKEWED: rows of src need not start at words.
template <bool HALOED, bool SKEWED>
static __device__ __forceinline__ void transpose_tiles(Turn turn, const u8 *src, u8 *dst, u64 width, u64 height,
                                                       bool reverse_x, bool reverse_y, Word *tile) {
    constexpr u32 halo = HALOED ? HALO : 0, high = HEIGHT<HALOED>, wide = SKEWED ? TILE_X - PER : TILE_X;
    const u32 warp = threadIdx.x / 32;
    const u64 src_pitch = width * B, dst_pitch = height * B;
    const u64 src_step = reverse_y ? -src_pitch : src_pitch, dst_step = reverse_x ? -dst_pitch : dst_pitch;
    const u32 across = (width + wide - 1) / wide, down = (height + halo + high - 1) / high;
    for (u32 number = turn.block; number < across * down; number += turn.blocks) {
        // Tiles that are neighbours in dst have consecutive numbers: they may share cache lines, which are then written
        // together.
        const u64 x0 = (u64)(number / down) * wide, y0 = (u64)(number % down) * high;

        // Row j of the tile is row y0 − halo + j of src, or of src upside down.
        Part part;
        part.in = src + (reverse_y ? height - 1 : 0) * src_pitch + (y0 - halo) * src_step + x0 * B;
        part.step = src_step;
        part.columns = min((u64)wide, width - x0);
        part.first_row = y0 ? 0 : halo;
        part.last_row = min((u64)ROWS<HALOED>, height + halo - y0) - 1;
        const bool all_rows = part.first_row == 0 && part.last_row == ROWS<HALOED> - 1;
        if (all_rows && x0 + wide + SKEWED <= width) load_tile<HALOED, SKEWED, true>(part, tile);
        else load_tile<HALOED, SKEWED, false>(part, tile);
        __syncthreads();

        constexpr u32 FROM_STEP = Tile<HALOED>::at(WARPS);
        const u64 row_step = WARPS * dst_step;
        const Word *from = tile + Tile<HALOED>::at(warp);
        u8 *row = dst + (reverse_x ? width - 1 - x0 : x0) * dst_pitch + y0 * B + warp * dst_step;
        const int left = (long long)min((u64)1 << 30, (height + halo - y0) * B) - (int)(halo * B);
        if (part.columns == wide && (y0 || !HALOED) && left >= (int)(high * B)) {
#pragma unroll 8
            for (u32 i = 0; i < wide / WARPS; i++, from += FROM_STEP, row += row_step)
                store_row<HALOED, true>(from, row, false, left);
            if constexpr (wide % WARPS != 0)
                if (warp < wide % WARPS) store_row<HALOED, true>(from, row, false, left);
        } else
#pragma unroll 1
            for (u32 x = warp; x < part.columns; x += WARPS, from += FROM_STEP, row += row_step)
                store_row<HALOED, false>(from, row, y0 == 0, left);
        __syncthreads();
    }
}

// lengths: src[width * height * PIXEL], dst[width * height * PIXEL]
// in sets
extern "C" __global__ void __launch_bounds__(BLOCK, B == 2 ? 3 : 4)
    ENTRY(transpose)(const u8 *src, u8 *dst, u64 width, u64 height, u32 reverse_x, u32 reverse_y) {
    constexpr u32 PLAIN = Tile<false>::WORDS, WITH_HALO = Tile<true>::WORDS;
    constexpr bool BY_UNITS = PER > 1; // rows of whole words cannot be skewed
    __shared__ Word tile[PLAIN > WITH_HALO ? PLAIN : WITH_HALO];
    const Turn turn{blockIdx.x, gridDim.x};
    const bool haloed = height * B % SECTOR || (u64)dst % SECTOR, skewed = width * B % WORD;
    if (haloed && skewed) transpose_tiles<true, BY_UNITS>(turn, src, dst, width, height, reverse_x, reverse_y, tile);
    else if (haloed) transpose_tiles<true, false>(turn, src, dst, width, height, reverse_x, reverse_y, tile);
    else if (skewed) transpose_tiles<false, BY_UNITS>(turn, src, dst, width, height, reverse_x, reverse_y, tile);
    else transpose_tiles<false, false>(turn, src, dst, width, height, reverse_x, reverse_y, tile);
}
