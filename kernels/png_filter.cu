// PNG, first part: an image's filtered bytes, and their checksums and match estimates.
//
//   png_choose(const u8 *image, u32 row, u32 height, u32 rows, u32 pixel, u32 swap, Segment *segments)
//       The filters of each segment. Grid: a block of 256 a segment.
//   png_filter(the same, u8 *filtered, u64 stride, u32 tiles)
//       The filtered bytes, up to 3 zeros behind those of a segment, and their sums for Adler-32.
//       Grid: segments·tiles blocks of 256, tiles = ceil(bytes of a segment / TILE).
//   png_estimate(row, height, rows, const u8 *filtered, stride, Segment *segments)
//       The match estimate: whether matches could pay. Grid: a block of 256 a segment.
// pixel: bytes of a pixel. swap: 1 for samples of 16 bits, else 0. `segments` is zero before png_choose.
//
// Two numbers, for b bytes of image: filter reads b and writes b; some 20 instructions a byte.
#include "png.cuh"

// Byte x of row y, filtered: `at` points to it in an image of `row` bytes a row, whose samples are not swapped.
static __device__ __forceinline__ u32 filtered_byte(u32 filter, const u8 *at, u32 x, u32 row, u32 pixel) {
    const bool inner = x >= pixel;
    const u32 now = at[0];
    if (filter == NONE) return now;
    const int left = inner && filter != UP ? at[-(long long)pixel] : 0;
    if (filter == SUB) return (now - left) & 0xff;
    const int above = at[-(long long)row];
    if (filter == UP) return (now - above) & 0xff;
    const int corner = inner ? at[-(long long)row - pixel] : 0;
    const int near_a = abs(above - corner), near_b = abs(left - corner), near_c = abs(left + above - 2 * corner);
    const int b_or_c = near_b <= near_c ? above : corner;
    return (now - (near_a <= near_b && near_a <= near_c ? left : b_or_c)) & 0xff;
}

// lengths: image[row * height], segments[grid.blocks]
// requires: rows >= 1, grid.blocks == ceil(height, rows), pixel >= 1, pixel <= row, swap <= 1
// in sets
extern "C" __global__ void __launch_bounds__(BLOCK)
    png_choose(const u8 *image, u32 row, u32 height, u32 rows, u32 pixel, u32 swap, Segment *segments) {
    constexpr u32 WINDOWS = 8, WINDOW = 1024;
    const u32 FILTERS[4] = {NONE, SUB, UP, PAETH};
    __shared__ u32 counts[4][256], parts[4][WARPS];
    const Cut segment = cut(blockIdx.x, row, height, rows);
    const bool lone = segment.rows == 1;
    const u32 width = max(min(WINDOW, row) / pixel * pixel, pixel);
    for (u32 f = 0; f < 4; f++) counts[f][threadIdx.x] = 0;
    __syncthreads();
    for (u32 i = threadIdx.x; i < WINDOWS * width; i += BLOCK) {
        const u32 k = i / width;
        const u32 y = segment.first + !lone + k * (segment.rows - 1) / WINDOWS;
        const u32 x = ((u32)((u64)k * (row - width) / (WINDOWS - 1)) / pixel * pixel + i % width) ^ swap;
        const u8 *at = image + (u64)y * row + x;
#pragma unroll
        for (u32 f = 0; f < 4; f++)
            if (f < 2 || !lone) atomicAdd(&counts[f][filtered_byte(FILTERS[f], at, x, row, pixel)], 1);
    }
    __syncthreads();
    const auto bits = [](u32 count) {
        const u32 whole = 31 - __clz(max(count, 1));
        return count * (whole << 8 | ((count << 8 >> whole) & 0xff));
    };
    u32 cost[4];
#pragma unroll
    for (u32 f = 0; f < 4; f++) {
        const u32 sum = reduce_block(bits(counts[f][threadIdx.x]), parts[f], 0u, [](u32 a, u32 b) { return a + b; });
        const u32 all = bits(WINDOWS * width);
        cost[f] = all > sum ? all - sum : 0;
    }
    if (threadIdx.x == 0) {
        const u32 none = cost[0], sub = cost[1], up = cost[2], paeth = cost[3], flat = min(none, sub);
        const u32 left = sub < none ? SUB : NONE;
        u32 others = UP;
        if (paeth < flat && paeth < up - up / 16) others = PAETH;
        else if (flat < up - up / 64) others = left;
        segments[blockIdx.x].filters = left | others << 8;
    }
}

constexpr u32 TILE = 8192; // host: filtered bytes of a block of threads

// lengths: image[row * height], segments[grid.blocks / tiles], filtered[grid.blocks / tiles * stride]
// requires: rows >= 1, tiles >= 1, grid.blocks == ceil(height, rows) * tiles, min(rows,
//     height) * (row + 1) <= stride, stride % 16 == 0, swap <= 1
// in sets
extern "C" __global__ void __launch_bounds__(BLOCK)
    png_filter(const u8 *image, u32 row, u32 height, u32 rows, u32 pixel, u32 swap, Segment *segments, u8 *filtered,
               u64 stride, u32 tiles) {
    constexpr u32 BASE = 65521; // the modulus of Adler-32
    const u32 index = blockIdx.x / tiles;
    const Cut segment = cut(index, row, height, rows);
    const u32 start = blockIdx.x % tiles * TILE;
    if (start >= segment.len) return;
    const u32 filters = (u32)segments[index].filters;
    const u32 first_filter = filters & 0xff, other_filter = filters >> 8;
    u32 sum = 0, weighted = 0;
#pragma unroll 2
    for (u32 u = 0; u < TILE / (4 * BLOCK); u++) {
        const u32 from = start + (u * BLOCK + threadIdx.x) * 4;
        if (from >= segment.len) break;
        u32 y = from / (row + 1), x = from % (row + 1);
        u32 word = 0, four = 0, later = 0; // the bytes, their sum, the sum of i·d[i]
#pragma unroll
        for (u32 e = 0; e < 4; e++) {
            if (from + e >= segment.len) break;
            const u32 filter = y == 0 ? first_filter : other_filter;
            u32 byte = filter;
            if (x > 0) {
                const u32 source = (x - 1) ^ swap;
                byte = filtered_byte(filter, image + (u64)(segment.first + y) * row + source, source, row, pixel);
            }
            word |= byte << 8 * e;
            four += byte;
            later += e * byte;
            if (++x > row) x = 0, y++;
        }
        *(u32 *)(filtered + index * stride + from) = word;
        sum += four;
        // Adding BASE makes it positive; eight of these terms stay below 2³².
        weighted += ((segment.len - from) % BASE + BASE) * four - later;
    }
    __shared__ u32 parts[2][WARPS];
    const auto plus = [](u32 a, u32 b) { return a + b; };
    sum = reduce_block(sum, parts[0], 0u, plus);
    weighted = reduce_block(weighted % BASE, parts[1], 0u, plus);
    if (threadIdx.x == 0) {
        atomicAdd(&segments[index].sum, (u64)sum);
        atomicAdd(&segments[index].weighted, (u64)weighted);
    }
}

static __device__ __forceinline__ u32 four_bytes(const u8 *at) {
    return at[0] | at[1] << 8 | at[2] << 16 | (u32)at[3] << 24;
}

// Whether strings of the middle come again at a distance: `come_again` of src/deflate/compress/quick.rs. For all threads
// of a block; `keys` holds MOST_PLACES.
constexpr u32 MOST_PLACES = 512;
static __device__ bool come_again(const u8 *bytes, u32 len, u32 *keys) {
    constexpr u32 STRETCH = 16 << 10, BUCKETS = 2048, FEWEST = 32;
    if (len < STRETCH) return false;
    const u8 *middle = bytes + (len - STRETCH) / 2;
    __shared__ u32 places, equal;
    if (threadIdx.x == 0) places = 0, equal = 0;
    __syncthreads();
    for (u32 i = threadIdx.x; i <= STRETCH - 8; i += BLOCK) {
        const u32 hash = four_bytes(middle + i) * 0x9e3779b1u;
        if (hash < 0x3fu << 26) continue;
        const u32 at = atomicAdd(&places, 1);
        if (at < MOST_PLACES) keys[at] = (hash >> 15) % BUCKETS * STRETCH + i;
    }
    __syncthreads();
    const u32 count = places;
    if (count > MOST_PLACES || count < FEWEST) return count > MOST_PLACES;
    for (u32 i = count + threadIdx.x; i < MOST_PLACES; i += BLOCK) keys[i] = ALL;
    sort<MOST_PLACES>(keys); // by bucket, and by place in a bucket
    for (u32 i = 1 + threadIdx.x; i < count; i += BLOCK) {
        const u8 *a = middle + keys[i - 1] % STRETCH, *b = middle + keys[i] % STRETCH;
        const bool bucket = keys[i - 1] / STRETCH == keys[i] / STRETCH;
        if (bucket && four_bytes(a) == four_bytes(b) && four_bytes(a + 4) == four_bytes(b + 4)) atomicAdd(&equal, 1);
    }
    __syncthreads();
    return 4 * equal >= count;
}

// lengths: filtered[grid.blocks * stride], segments[grid.blocks]
// requires: rows >= 1, grid.blocks == ceil(height, rows), min(rows, height) * (row + 1) <= stride
// in sets
extern "C" __global__ void __launch_bounds__(BLOCK)
    png_estimate(u32 row, u32 height, u32 rows, const u8 *filtered, u64 stride, Segment *segments) {
    constexpr u32 WINDOWS = 8, SAMPLE = 512, STRINGS = SAMPLE - 3, ALL_STRINGS = WINDOWS * STRINGS, SORTED = 4096;
    const Cut segment = cut(blockIdx.x, row, height, rows);
    if (segment.len < WINDOWS * SAMPLE) return;
    const u8 *bytes = filtered + blockIdx.x * stride;
    const auto string = [&](u32 i) {
        const u32 spread = (i / STRINGS + 1) * 0x9e3779b1u;
        return four_bytes(bytes + (u32)((u64)spread * (segment.len - SAMPLE) >> 32) + i % STRINGS);
    };
    // Sorted by hash, and by position among equal hashes: each string follows the previous one with its hash.
    __shared__ u32 keys[SORTED];
    for (u32 i = threadIdx.x; i < SORTED; i += BLOCK)
        keys[i] = i < ALL_STRINGS ? string(i) * 0x9e3779b1u >> 21 << 12 | i : ALL;
    sort<SORTED>(keys);
    u32 count = 0, repeated = 0;
    for (u32 i = threadIdx.x; i < ALL_STRINGS; i += BLOCK) {
        const u32 key = keys[i], four = string(key & 0xfff);
        if (four == 0) continue;
        count++;
        if (i > 0 && keys[i - 1] >> 12 == key >> 12) repeated += string(keys[i - 1] & 0xfff) == four;
    }
    __shared__ u32 parts[WARPS], both;
    // Both fit into 16 bits.
    const u32 sum = reduce_block(count | repeated << 16, parts, 0u, [](u32 a, u32 b) { return a + b; });
    if (threadIdx.x == 0) both = sum;
    __syncthreads();
    count = both & 0xffff, repeated = both >> 16;
    const bool near = 4 * count < ALL_STRINGS || 2 * repeated >= count;
    const bool matches = count > 0 && (near || come_again(bytes, segment.len, keys));
    if (threadIdx.x == 0) segments[blockIdx.x].matches = matches;
}
