// Debayer: the RGB image of a Bayer mosaic (src/ops/debayer.rs has the definition).
//
//   debayer_{u8,u16}(const T *src, T *dst, u64 width, u64 height, u32 red_x, u32 red_y, u32 malvar)
//       red_x and red_y are the column and the row, 0 or 1, of the red pixel among the upper left 2×2. malvar ≠ 0: the kernels
//       of Malvar, He and Cutler; 0: means of the neighbours. dst must not overlap src.
//       Grid: any; best ceil(width / 64)·ceil(height / 16) blocks of 256.
//
// For n pixels of s bytes: reads s·n from memory, and a third more from the caches for the edges of tiles; writes 3·s·n.
//
// forms: SAMPLE=u8,u16 named {SAMPLE}
#include "common.cuh"

typedef SAMPLE T;

// A block computes tiles of WIDE × HIGH pixels, and loads EDGE more on each side. Each thread of a warp computes two neighbouring
// pixels of a row. One of the two is green, and it is the same one in all threads, so they all compute the same weighted sums.
constexpr u32 WIDE = 64, HIGH = 16; // host
constexpr u32 EDGE = 2, PITCH = WIDE + 2 * EDGE;

// An index that may lie outside of 0 … n − 1, mirrored at the border without repeating it; n is at least 2.
static __device__ __forceinline__ u64 mirrored(long long i, u64 n) {
    if (i >= 0 && i < (long long)n) return i;
    const long long period = 2 * ((long long)n - 1), m = (i % period + period) % period;
    return m < period - m ? m : period - m;
}

static __device__ __forceinline__ u32 rounded(int sixteenths) {
    return min(max((sixteenths + 8) >> 4, 0), (int)FULL<T>);
}

// lengths: src[width * height], dst[3 * width * height]
// requires: width >= 2, height >= 2
extern "C" __global__ void __launch_bounds__(BLOCK)
    ENTRY(debayer)(const T *src, T *dst, u64 width, u64 height, u32 red_x, u32 red_y, u32 malvar) {
    __shared__ T tile[(HIGH + 2 * EDGE) * PITCH];
    __shared__ T results[WARPS][3 * WIDE];
    const u32 lane = threadIdx.x % 32, warp = threadIdx.x / 32;
    const u64 across = (width + WIDE - 1) / WIDE, tiles = across * ((height + HIGH - 1) / HIGH);
    for (u64 at = blockIdx.x; at < tiles; at += gridDim.x) {
        const u64 left = at % across * WIDE, top = at / across * HIGH;
        const u32 columns = (u32)min((u64)WIDE, width - left), rows = (u32)min((u64)HIGH, height - top);
        __syncthreads(); // the previous tile has been read
        for (u32 y = warp; y < rows + 2 * EDGE; y += WARPS) {
            const T *row = src + mirrored((long long)(top + y) - EDGE, height) * width;
            for (u32 x = lane; x < columns + 2 * EDGE; x += 32)
                tile[y * PITCH + x] = row[mirrored((long long)(left + x) - EDGE, width)];
        }
        __syncthreads();
        for (u32 y = warp; y < rows; y += WARPS) {
            // The colour that the row sees beside green, and whether its first pixel is green. Tiles begin at even places.
            const u32 own = (y & 1) == red_y ? 0 : 2, opposite = 2 - own;
            const u32 green = ((y & 1) == red_y) == (red_x == 0) ? 1 : 0; // which of a thread's two pixels
            const T *window = &tile[y * PITCH + 2 * lane];
            const auto p = [&](u32 x, u32 dy, u32 dx) -> int { return window[dy * PITCH + x + dx]; };
            T *pixels = &results[warp][6 * lane];
            if (2 * lane < columns) {
                const auto sums = [&](u32 x, bool is_green) {
                    const int centre = p(x, 2, 2), above = p(x, 1, 2) + p(x, 3, 2), beside = p(x, 2, 1) + p(x, 2, 3);
                    const int diagonal = p(x, 1, 1) + p(x, 1, 3) + p(x, 3, 1) + p(x, 3, 3);
                    int far_above = 0, far_beside = 0;
                    if (malvar) far_above = p(x, 0, 2) + p(x, 4, 2), far_beside = p(x, 2, 0) + p(x, 2, 4);
                    T *pixel = pixels + 3 * x;
                    if (is_green) {
                        const int both = malvar ? 10 * centre - 2 * diagonal : 0;
                        pixel[1] = (T)centre;
                        pixel[own] = (T)rounded(8 * beside + both - 2 * far_beside + far_above);
                        pixel[opposite] = (T)rounded(8 * above + both - 2 * far_above + far_beside);
                    } else {
                        const int far = far_above + far_beside;
                        pixel[own] = (T)centre;
                        pixel[1] = (T)rounded(4 * (above + beside) + (malvar ? 8 * centre : 0) - 2 * far);
                        pixel[opposite] = (T)rounded(4 * diagonal + (malvar ? 12 * centre : 0) - 3 * far);
                    }
                };
                sums(0, green == 0);
                // In the last column of an odd width, the second pixel's samples are not in the tile.
                if (2 * lane + 1 < columns) sums(1, green == 1);
            }
            __syncwarp();
            T *row = dst + 3 * ((top + y) * width + left);
            for (u32 i = lane; i < 3 * columns; i += 32) row[i] = results[warp][i];
            __syncwarp();
        }
    }
}
