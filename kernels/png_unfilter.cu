// PNG decoder, last part: filters undone (PNG specification, section 9). One form for each distance in bytes from a sample to
// the one that its filter refers to.
// forms: PIXEL=1,2,3,4,6,8 named b{PIXEL}
//
//   png_flat(const u8 *bytes, u32 row, u32 height, u32 swap, const u8 *filters, u8 *image, const u32 *report)
//       Images whose rows all have the filters None and Sub: a row does not need the one above. Grid: a block of 256 for
//       8 rows; a warp a row.
//   png_wave(the same, u32 width, u32 *progress)
//       All other images. A band of up to 32 rows is one block's, a lane a row, SKEW pixels behind the row above, a
//       warp each byte of the pixel. A band waits for its upper one, but where it begins with a row that does not
//       need it. `progress` is zero before: a word, and one a band. Grid: ceil(height / SPARSE).
// row: bytes of a row without its filter; width: pixels of PIXEL bytes. swap: 1 for samples of 16 bits, whose bytes change
// places, else 0. Behind the last row there are 32 bytes more.
//
// Two numbers, for b bytes of image: both read b and write b. The longest way through a wave is `width` pixels and
// (SKEW + 4·TILE / 32) for each row; for a pixel a lane takes some 20 instructions, 4 of which depend on the pixel before.
#include "inflate.cuh"

enum : u32 { NONE, SUB, UP, AVERAGE, PAETH };

static __device__ __forceinline__ bool is_flat(const u32 *report) {
    return report[FILTERS + UP] + report[FILTERS + AVERAGE] + report[FILTERS + PAETH] == 0;
}

// Four sums of bytes.
static __device__ __forceinline__ u32 add4(u32 a, u32 b) {
    return ((a & 0x7f7f7f7f) + (b & 0x7f7f7f7f)) ^ ((a ^ b) & 0x80808080);
}

// lengths: bytes[height * (row + 1) + 32], filters[height], image[row * height], report[REPORT]
// requires: swap <= 1
// in sets
extern "C" __global__ void __launch_bounds__(BLOCK)
    ENTRY(png_flat)(const u8 *__restrict__ bytes, u32 row, u32 height, u32 swap, const u8 *filters, u8 *image, const u32 *report) {
    constexpr u32 OWN = PIXEL % 3 == 0 ? 24 : 16; // bytes of a lane
    constexpr u32 WORDS = (PIXEL + 3) / 4;        // of a pixel
    constexpr u32 STEP = 32 * OWN;
    __shared__ u32 memory[WARPS][STEP / 4];
    if (report[WRONG] || !is_flat(report)) return;
    const u32 lane = threadIdx.x % 32, warp = threadIdx.x / 32;
    const u32 y = blockIdx.x * WARPS + warp;
    if (y >= height) return;
    const bool sub = filters[y] == SUB;
    const u64 source = y * (row + 1ull) + 1;
    u8 *to = image + (u64)y * row;
    const bool aligned = row % 8 == 0;
    u32 carry[WORDS] = {};
    for (u32 start = 0; start < row; start += STEP) {
        const u32 x = start + lane * OWN;
        u32 own[OWN / 4];
        if (x < row) {
            const u64 at = source + x;
            const u32 *words = (const u32 *)bytes + at / 4;
            u32 low = words[0];
#pragma unroll
            for (u32 k = 0; k < OWN / 4; k++) {
                const u32 high = words[k + 1];
                own[k] = __funnelshift_r(low, high, at % 4 * 8);
                low = high;
            }
        } else {
#pragma unroll
            for (u32 k = 0; k < OWN / 4; k++) own[k] = 0;
        }
        if (sub) {
            // The sum of all pixels up to each, in its first words; those above a pixel's bytes come to nothing.
            u32 sum[WORDS] = {};
#pragma unroll
            for (u32 p = 0; p < OWN; p += PIXEL) {
                u32 pixel[WORDS] = {};
#pragma unroll
                for (u32 c = 0; c < PIXEL; c++) pixel[c / 4] |= (own[(p + c) / 4] >> 8 * ((p + c) % 4) & 0xff) << 8 * (c % 4);
#pragma unroll
                for (u32 k = 0; k < WORDS; k++) sum[k] = add4(sum[k], pixel[k]);
#pragma unroll
                for (u32 c = 0; c < PIXEL; c++) {
                    const u32 shift = 8 * ((p + c) % 4);
                    own[(p + c) / 4] = (own[(p + c) / 4] & ~(0xffu << shift)) | (sum[c / 4] >> 8 * (c % 4) & 0xff) << shift;
                }
            }
            u32 before[WORDS];
#pragma unroll
            for (u32 k = 0; k < WORDS; k++) {
                u32 all = sum[k];
#pragma unroll
                for (u32 d = 1; d < 32; d *= 2) {
                    const u32 other = __shfl_up_sync(ALL, all, d);
                    if (lane >= d) all = add4(all, other);
                }
                before[k] = __shfl_up_sync(ALL, all, 1);
                before[k] = add4(lane ? before[k] : 0, carry[k]);
                carry[k] = add4(carry[k], __shfl_sync(ALL, all, 31));
            }
#pragma unroll
            for (u32 k = 0; k < OWN / 4; k++) {
                u32 add = 0;
#pragma unroll
                for (u32 e = 0; e < 4; e++) add |= (before[(4 * k + e) % PIXEL / 4] >> 8 * ((4 * k + e) % PIXEL % 4) & 0xff) << 8 * e;
                own[k] = add4(own[k], add);
            }
        }
        if (swap) {
#pragma unroll
            for (u32 k = 0; k < OWN / 4; k++) own[k] = __byte_perm(own[k], 0, 0x2301);
        }
        if (aligned && x + OWN <= row) {
            uint2 *pairs = (uint2 *)(to + x);
#pragma unroll
            for (u32 k = 0; k < OWN / 8; k++) pairs[k] = make_uint2(own[2 * k], own[2 * k + 1]);
        } else if (aligned) {
#pragma unroll
            for (u32 k = 0; k < OWN / 8; k++)
                if (x + 8 * k < row) *(uint2 *)(to + x + 8 * k) = make_uint2(own[2 * k], own[2 * k + 1]);
        } else {
            __syncwarp();
#pragma unroll
            for (u32 k = 0; k < OWN / 4; k++) memory[warp][lane * OWN / 4 + k] = own[k];
            __syncwarp();
            const u8 *staged = (const u8 *)memory[warp];
            for (u32 k = lane; k < min(STEP, row - start); k += 32) to[start + k] = staged[k];
        }
    }
}

constexpr u32 TILE = 32, SKEW = 4;          // pixels
constexpr u32 DENSE = 32, SPARSE = 24;      // host: rows of a band, where few or many rows need none above
constexpr u32 MOVERS = 4, MOVED = 32 / MOVERS; // warps that load and store rows, and rows of each
constexpr u32 THREADS = 32 * (PIXEL + MOVERS + 1); // one more warp has the row above
constexpr u32 TILE_BYTES = TILE * PIXEL;
constexpr u32 PITCH = TILE_BYTES + 4;       // words an odd number apart

// What a lane's filter makes of the pixels around: see `Prepared`.
struct Kind {
    bool paeth, average;
    u32 up, within; // masks: whether the pixel above counts; of how many values beside Paeth's that one is the prediction
};

enum : u32 { ALL_PAETH, NO_AVERAGE, ANY };

// What is known of a byte before its left neighbour is: it has its filtered value, b above and c above left.
//
// Paeth's choice is the left one, a, unless a lies strictly between b and 3c − 2b; then it is b or c, whichever is on
// a's side of the middle, (3c − b) / 2, which itself is b's. The other filters are special cases: of Sub and Average
// the choice is always a, of None and Up never.
struct Prepared {
    u32 filtered, above;       // for a's sake
    u32 base, within;          // a is not chosen if a − base < within;
    int half;                  // then it is `upper` from here on, below it `lower`, both with the filtered value
    u32 upper, lower;
};

template <u32 MODE> static __device__ __forceinline__ Prepared prepare(u32 filtered, u32 b, u32 c, const Kind &kind) {
    const bool paeth = MODE == ALL_PAETH || kind.paeth;
    const int twice = 3 * (int)c - (int)b, other = twice - (int)b;
    const u32 above = MODE == ALL_PAETH ? b : b & kind.up, corner = paeth ? c : above;
    return {filtered,
            b,
            paeth ? (u32)min((int)b, other) + 1 : 0,
            paeth ? (u32)max(abs(other - (int)b), 1) - 1 : kind.within,
            (twice + 1 + (b < c)) >> 1,
            (max(above, corner) + filtered) & 0xff,
            (min(above, corner) + filtered) & 0xff};
}

template <u32 MODE> static __device__ __forceinline__ u32 undo(const Prepared &known, u32 a, const Kind &kind) {
    u32 left = a + known.filtered;
    if (MODE == ANY) left = (kind.average ? (a + known.above) / 2 : a) + known.filtered;
    const u32 inner = (int)a >= known.half ? known.upper : known.lower;
    return a - known.base < known.within ? inner : left & 0xff;
}

// Undoes the filters of a lane's bytes of a tile, SKEW at a time. What is above them the lane before has made in its
// last SKEW, so that all but the way from byte to byte can go on at once. `last`: the last SKEW bytes; `corner`: what
// was above the last of them.
template <u32 MODE>
static __device__ __forceinline__ void
undo_tile(u8 *tile, const u8 *top, u32 lane, const Kind &kind, u32 (&last)[SKEW], u32 &corner) {
#pragma unroll 2
    for (u32 first = 0; first < TILE; first += SKEW) {
        Prepared known[SKEW];
        u32 a = last[SKEW - 1];
#pragma unroll
        for (u32 i = 0; i < SKEW; i++) {
            const u32 shifted = __shfl_up_sync(ALL, last[i], 1);
            const u32 above = lane ? shifted : top[(first + i) * PIXEL];
            known[i] = prepare<MODE>(tile[(first + i) * PIXEL], above, corner, kind);
            corner = above;
        }
#pragma unroll
        for (u32 i = 0; i < SKEW; i++) last[i] = a = undo<MODE>(known[i], a, kind);
#pragma unroll
        for (u32 i = 0; i < SKEW; i++) tile[(first + i) * PIXEL] = last[i];
    }
}

// lengths: bytes[height * (row + 1) + 32], filters[height], image[row * height], report[REPORT],
//     progress[1 + ceil(height, SPARSE)]
// requires: swap <= 1, width * PIXEL <= row
// in sets: __launch_bounds__(THREADS, PIXEL == 1 ? 4 : PIXEL == 2 ? 3 : PIXEL == 3 ? 2 : 1)
extern "C" __global__ void __launch_bounds__(THREADS)
    ENTRY(png_wave)(const u8 *__restrict__ bytes, u32 row, u32 height, u32 swap, const u8 *__restrict__ filters, u8 *image,
                    const u32 *report, u32 width, volatile u32 *progress) {
    __shared__ u8 tiles[3][32 * PITCH], aboves[3][TILE_BYTES];
    __shared__ u32 ticket;
    if (report[WRONG] || is_flat(report)) return;
    // Blocks begin in the order of their bands, so that none waits for one that has not begun.
    if (threadIdx.x == 0) ticket = atomicAdd((u32 *)progress, 1);
    __syncthreads();
    const u32 lane = threadIdx.x % 32, warp = threadIdx.x / 32, band = ticket;
    volatile u32 *done = progress + 1;
    const bool sparse = (report[FILTERS + NONE] + report[FILTERS + SUB]) >= height / 8;
    const auto starts_anew = [&](u32 y) { return filters[y] <= SUB; };
    // Bands begin where a row needs none above, if one is near.
    const auto begin = [&](u32 band) {
        if (!sparse) return min(band * DENSE, height);
        const u32 y = min(band * SPARSE, height);
        const bool fits = lane <= DENSE - SPARSE && y + lane < height && band > 0;
        const u32 mask = __ballot_sync(ALL, fits && starts_anew(y + lane));
        return mask ? y + __ffs(mask) - 1 : y;
    };
    const u32 top = begin(band), rows = begin(band + 1) - top;
    if (rows == 0 || top >= height) return;
    const u32 last = rows - 1;
    const bool alone = top == 0 || starts_anew(top);
    const u32 count = (width + last * SKEW + TILE - 1) / TILE;
    const u32 filter = lane < rows ? filters[top + lane] : PAETH;
    const Kind kind = {filter == PAETH, filter == AVERAGE, filter == UP || filter == PAETH ? ALL : 0, filter == NONE || filter == UP ? ALL : 0};
    const bool all_paeth = __all_sync(ALL, kind.paeth), any_average = __any_sync(ALL, kind.average);
    u32 made[SKEW] = {}, corner = 0;
    // Pixel x of row y is pixel x + SKEW·y of the tiles. In a step one tile comes from memory, the one before goes to shared
    // memory, the one before that is worked on, and the one before that is stored: no step waits for memory but for
    // what the band above has done.
    u8 loaded[MOVED * PIXEL];
    u32 known = alone ? ALL : 0; // pixels of the row above that are done
    for (u32 step = 0; step < count + 3; step++) {
        const bool loads = step < count, arrives = step >= 1 && step < count + 1, works = step >= 2 && step < count + 2;
        if (warp < PIXEL) {
            if (works) {
                u8 *tile = tiles[(step - 2) % 3] + lane * PITCH + warp;
                const u8 *above = aboves[(step - 2) % 3] + warp;
                if (all_paeth) undo_tile<ALL_PAETH>(tile, above, lane, kind, made, corner);
                else if (any_average) undo_tile<ANY>(tile, above, lane, kind, made, corner);
                else undo_tile<NO_AVERAGE>(tile, above, lane, kind, made, corner);
            }
        } else if (warp < PIXEL + MOVERS) {
            const u32 mover = warp - PIXEL, own = mover * MOVED;
            // Byte k of row r of a tile is this byte of the image's row, if it is one.
            const auto column = [&](u32 tile, u32 r, u32 k) {
                return ((int)(tile * TILE) - (int)(SKEW * (own + r))) * (int)PIXEL + (int)(lane + 32 * k);
            };
            if (arrives) {
                u8 *tile = tiles[(step - 1) % 3];
#pragma unroll
                for (u32 r = 0; r < MOVED; r++)
#pragma unroll
                    for (u32 k = 0; k < PIXEL; k++) tile[(own + r) * PITCH + lane + 32 * k] = loaded[r * PIXEL + k];
            }
            if (loads) {
#pragma unroll
                for (u32 r = 0; r < MOVED; r++) {
                    const u8 *source = bytes + (top + own + r) * (row + 1ull) + 1;
#pragma unroll
                    for (u32 k = 0; k < PIXEL; k++) {
                        const int x = column(step, r, k);
                        loaded[r * PIXEL + k] = own + r < rows && x >= 0 && x < (int)row ? source[x] : 0;
                    }
                }
            }
            if (step >= 3) {
                const u8 *tile = tiles[(step - 3) % 3];
#pragma unroll
                for (u32 r = 0; r < MOVED; r++) {
                    u8 *to = image + (u64)(top + own + r) * row;
#pragma unroll
                    for (u32 k = 0; k < PIXEL; k++) {
                        const int x = column(step - 3, r, k);
                        if (own + r < rows && x >= 0 && x < (int)row) to[x ^ swap] = tile[(own + r) * PITCH + lane + 32 * k];
                    }
                }
                if (last / MOVED == mover) {
                    __threadfence();
                    __syncwarp();
                    const int pixels = (int)((step - 2) * TILE) - (int)(SKEW * last);
                    if (lane == 0 && pixels > 0) done[band] = min((u32)pixels, width);
                }
            }
        } else {
            if (arrives)
#pragma unroll
                for (u32 k = 0; k < PIXEL; k++) aboves[(step - 1) % 3][lane + 32 * k] = loaded[k];
            if (loads) {
                const u32 wanted = min((step + 1) * TILE, width);
                while (known < wanted) known = done[band - 1];
                __syncwarp();
                __threadfence();
                const volatile u8 *source = image + (u64)(top - 1) * row;
#pragma unroll
                for (u32 k = 0; k < PIXEL; k++) {
                    const u32 x = step * TILE_BYTES + lane + 32 * k;
                    loaded[k] = !alone && x < row ? source[x ^ swap] : 0;
                }
            }
        }
        __syncthreads();
    }
}
