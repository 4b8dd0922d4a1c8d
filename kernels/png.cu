// PNG's deflate data from an image in device memory, bit for bit what src/codec/png/encode.rs says: its words
// (segment, window, group, run, weight, sample) are used here, and its definitions are not repeated.
//
//   png_choose(const u8 *image, u32 row, u32 height, u32 rows, u32 pixel, u32 swap, Segment *segments)
//       The filters of each segment. Grid: a block of 256 a segment.
//   png_filter(the same, u8 *filtered, u64 stride, u32 tiles)
//       The filtered bytes of segment s from filtered + s·stride on, up to 3 zeros behind them, and their sums
//       for Adler-32. Grid: segments·tiles blocks of 256, tiles = ceil(bytes of a segment / TILE).
//   png_promise(row, height, rows, const u8 *filtered, stride, Segment *segments)
//       Whether matches could pay. Grid: a block of 256 a segment.
//   png_histogram(row, height, rows, filtered, stride, u32 blocks, Block *block)
//   png_codes(row, height, rows, u32 blocks, Block *block)
//       Weights, then codes and header of each deflate block. Grid: segments·blocks blocks of 256,
//       blocks = ceil(bytes of a segment / 128 KiB).
//   png_place(row, height, rows, u32 count, u32 blocks, Block *block, Segment *segments)
//       Where each deflate block begins in its segment, and the segment's bytes. Grid: ceil(segments / 256) blocks of 256.
//   png_pack(row, height, rows, filtered, stride, blocks, const Block *block, const u64 *places, u8 *out)
//       The deflate data of segment s from out + places[s] on; nothing where that is all ones. `out` is zero on
//       entry, places are multiples of 4. Grid: segments·blocks blocks of 256.
// row, rows, pixel: bytes of a row, rows of a segment, bytes of a pixel. swap: 1 for samples of 16 bits, else 0.
// `segments` is zero before png_choose. stride is a multiple of 16, and so is the address of `filtered`.
//
// Two numbers, for b bytes of image: filter, histogram and pack read b each, filter and pack write b and what is
// left of it. A byte costs some 40 instructions in all; the link to the host takes longer for its code.
#include "common.cuh"

struct Segment {
    u64 sum, weighted; // of its filtered bytes d[i], i < n: Σ d[i], and Σ (n − i)·d[i], each term modulo 65521
    u64 filters;       // of its first row, and of the others in the next byte
    u64 promised;      // whether matches could pay
    u64 bytes;         // of its deflate data
};

enum : u32 { NONE = 0, SUB = 1, UP = 2, PAETH = 4 }; // filter bytes
enum : u32 { LITERALS, RUNS, STORED };               // kinds of deflate block

constexpr u32 LITLEN = 286, END = 256, LIMIT = 14, CODE_LENGTHS = 19;
constexpr u32 DEFLATE_BLOCK = 128 << 10;
constexpr u32 STORED_BLOCK = 65535;
constexpr u32 GROUPS = DEFLATE_BLOCK / 8;
constexpr u32 MASK = GROUPS / 32;
// The longest header: 17 + 19·3 bits, and 287 code lengths of at most 7 bits each.
constexpr u32 HEADER = 68;

struct Block {
    u64 start; // bit of the segment's data where it begins
    u32 kind;
    u32 header_bits, bits; // of its header, and of all of it; not of a stored one
    u32 header[HEADER];
    u32 weights[LITLEN + 2]; // for the codes
    u32 counts[LITLEN + 2];  // how often each symbol really occurs
    u32 codes[LITLEN + 2];   // length << 16 | bits
    u32 zero[MASK];          // a bit for each group: whether it is zero
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

// Byte x of row y, filtered: `at` is its place in an image of `row` bytes a row, in which samples are not swapped.
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

constexpr u32 TILE = 8192; // filtered bytes of a block of threads

extern "C" __global__ void __launch_bounds__(BLOCK)
    png_filter(const u8 *image, u32 row, u32 height, u32 rows, u32 pixel, u32 swap, Segment *segments, u8 *filtered,
               u64 stride, u32 tiles) {
    constexpr u32 BASE = 65521; // of Adler-32
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
        // Made positive by one BASE more; eight of these stay below 2³².
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

extern "C" __global__ void __launch_bounds__(BLOCK)
    png_promise(u32 row, u32 height, u32 rows, const u8 *filtered, u64 stride, Segment *segments) {
    constexpr u32 WINDOWS = 8, SAMPLE = 512, STRINGS = SAMPLE - 3, ALL_STRINGS = WINDOWS * STRINGS, SORTED = 4096;
    const Cut segment = cut(blockIdx.x, row, height, rows);
    if (segment.len < WINDOWS * SAMPLE) return;
    const u8 *bytes = filtered + blockIdx.x * stride;
    const auto string = [&](u32 i) {
        const u32 spread = (i / STRINGS + 1) * 0x9e3779b1u;
        return four_bytes(bytes + (u32)((u64)spread * (segment.len - SAMPLE) >> 32) + i % STRINGS);
    };
    // Sorted by hash, and by place among equal hashes, each string follows the last with its hash.
    __shared__ u32 keys[SORTED];
    for (u32 i = threadIdx.x; i < SORTED; i += BLOCK)
        keys[i] = i < ALL_STRINGS ? string(i) * 0x9e3779b1u >> 21 << 12 | i : ALL;
    for (u32 size = 2; size <= SORTED; size *= 2)
        for (u32 apart = size / 2; apart; apart /= 2) {
            __syncthreads();
            for (u32 i = threadIdx.x; i < SORTED / 2; i += BLOCK) {
                const u32 a = 2 * i - (i & (apart - 1)), b = a + apart;
                const u32 low = min(keys[a], keys[b]), high = max(keys[a], keys[b]);
                const bool up = (a & size) == 0;
                keys[a] = up ? low : high;
                keys[b] = up ? high : low;
            }
        }
    __syncthreads();
    u32 count = 0, repeated = 0;
    for (u32 i = threadIdx.x; i < ALL_STRINGS; i += BLOCK) {
        const u32 key = keys[i], four = string(key & 0xfff);
        if (four == 0) continue;
        count++;
        if (i > 0 && keys[i - 1] >> 12 == key >> 12) repeated += string(keys[i - 1] & 0xfff) == four;
    }
    __shared__ u32 parts[WARPS];
    // Both fit into 16 bits.
    const u32 both = reduce_block(count | repeated << 16, parts, 0u, [](u32 a, u32 b) { return a + b; });
    if (threadIdx.x == 0) {
        count = both & 0xffff, repeated = both >> 16;
        segments[blockIdx.x].promised = count >= 64 && (4 * count < ALL_STRINGS || 2 * repeated >= count);
    }
}

// The zero groups of a deflate block, and how far runs of them reach beyond each word of the mask.
struct Zeros {
    u32 mask[MASK];
    u16 before[MASK]; // where the run begins that goes on at the word's first group
    u16 after[MASK];  // where the run ends that goes on after the word's last group
};

// From the mask, which all threads must see, the rest.
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

// A deflate block's place: its segment's index, its first byte in the segment, its length, or 0 if there is none.
struct Piece {
    u32 segment, from, len;
    bool last;
};
static __device__ __forceinline__ Piece piece(u32 blocks, u32 row, u32 height, u32 rows) {
    const u32 index = blockIdx.x / blocks, from = blockIdx.x % blocks * DEFLATE_BLOCK;
    const u32 len = cut(index, row, height, rows).len;
    return {index, from, from < len ? min(DEFLATE_BLOCK, len - from) : 0, from + DEFLATE_BLOCK >= len};
}

extern "C" __global__ void __launch_bounds__(BLOCK)
    png_histogram(u32 row, u32 height, u32 rows, const u8 *filtered, u64 stride, u32 blocks, Block *block) {
    __shared__ u32 counts[WARPS][256], sampled[256], symbols[LITLEN], zero;
    __shared__ Zeros zeros;
    const Piece own = piece(blocks, row, height, rows);
    if (own.len == 0) return;
    const u8 *bytes = filtered + own.segment * stride + own.from;
    const u32 groups = own.len / 8, warp = threadIdx.x / 32;
    const bool sample = own.len >= 32 << 10;
    for (u32 w = 0; w < WARPS; w++) counts[w][threadIdx.x] = 0;
    for (u32 i = threadIdx.x; i < MASK; i += BLOCK) zeros.mask[i] = 0;
    for (u32 i = threadIdx.x; i < LITLEN; i += BLOCK) symbols[i] = 0;
    sampled[threadIdx.x] = 0;
    if (threadIdx.x == 0) zero = 0;
    __syncthreads();
    for (u32 base = 32 * warp; base < groups; base += BLOCK) {
        const u32 group = base + threadIdx.x % 32;
        const bool there = group < groups;
        const uint2 eight = there ? ((const uint2 *)bytes)[group] : make_uint2(1, 1);
        const bool filled = (eight.x | eight.y) != 0;
        const u32 mask = __ballot_sync(ALL, !filled);
        if (threadIdx.x % 32 == 0) {
            zeros.mask[base / 32] = mask;
            atomicAdd(&zero, __popc(mask));
        }
        // Zero groups are counted by their number: most of a background's bytes would meet at one word.
        const u32 four = group / 4;
        const bool drawn = sample && there && four < groups / 4 && four * 0x9e3779b1u >> 30 == group % 4;
        if (filled && there)
#pragma unroll
            for (u32 e = 0; e < 8; e++) atomicAdd(&counts[warp][((e < 4 ? eight.x : eight.y) >> 8 * (e % 4)) & 0xff], 1);
        if (drawn && filled)
#pragma unroll
            for (u32 e = 0; e < 8; e++) atomicAdd(&sampled[((e < 4 ? eight.x : eight.y) >> 8 * (e % 4)) & 0xff], 1);
        const u32 drawn_zeros = __popc(__ballot_sync(ALL, drawn && !filled));
        if (threadIdx.x % 32 == 0 && drawn_zeros) atomicAdd(&sampled[0], 8 * drawn_zeros);
    }
    if (threadIdx.x < own.len % 8) atomicAdd(&counts[0][bytes[8 * groups + threadIdx.x]], 1);
    __syncthreads();
    const bool runs = zero * 64 >= max(groups, 1);
    if (runs) {
        reach(zeros);
        __syncthreads();
        for (u32 group = threadIdx.x; group < groups; group += BLOCK)
            if (zeros.mask[group / 32] >> group % 32 & 1)
                run_symbols(zeros, group, [&](u32 symbol, u32) { atomicAdd(&symbols[symbol], 1); });
        __syncthreads();
    }
    Block &out = block[blockIdx.x];
    for (u32 symbol = threadIdx.x; symbol < LITLEN; symbol += BLOCK) {
        u32 count = symbols[symbol], weight;
        if (symbol < 256)
            for (u32 w = 0; w < WARPS; w++) count += counts[w][symbol];
        if (symbol == 0 && !runs) count += 8 * zero;
        if (symbol == END) count = 1;
        weight = count;
        if (sample && !runs && symbol < 256) weight = 4 * sampled[symbol] + 1;
        out.counts[symbol] = count;
        out.weights[symbol] = weight;
    }
    for (u32 i = threadIdx.x; i < MASK; i += BLOCK) out.zero[i] = zeros.mask[i];
    if (threadIdx.x == 0) out.kind = runs ? RUNS : LITERALS;
}

// What the making of a code needs; `lengths` is the result.
struct Tree {
    u32 order[LITLEN]; // weight << 9 | symbol, ascending
    u32 node[LITLEN];  // weights of inner nodes
    u16 parent[LITLEN], depth[LITLEN];
    u32 used, counts[16]; // leaves of each depth
    u32 lengths[LITLEN + 1];
};

// How many leaves lie at each depth up to the limit, by one thread.
static __device__ void depths(Tree &tree, u32 limit) {
    const u32 used = tree.used;
    u32 leaf = 0, node = 0, light = tree.order[0] >> 9, heavy = ALL; // the next leaf's and the next node's weight
    for (u32 made = 0; made + 1 < used; made++) {
        u32 sum = 0;
        for (u32 k = 0; k < 2; k++)
            if (light <= heavy) {
                sum += light;
                leaf++;
                light = leaf < used ? tree.order[leaf] >> 9 : ALL;
            } else {
                sum += heavy;
                tree.parent[node++] = made;
                heavy = node < made ? tree.node[node] : ALL;
            }
        tree.node[made] = sum;
        if (node == made) heavy = sum;
    }
    u32 inner[16]; // nodes at each depth
    for (u32 level = 0; level < 16; level++) inner[level] = 0;
    tree.depth[used - 2] = 0;
    inner[0] = 1;
    for (u32 node = used - 2; node-- > 0;) {
        const u32 depth = tree.depth[tree.parent[node]] + 1;
        tree.depth[node] = depth;
        if (depth <= limit) inner[depth]++;
    }
    u32 *counts = tree.counts, placed = 0, total = 0;
    for (u32 level = 1; level <= limit; level++) {
        counts[level] = 2 * inner[level - 1] - inner[level];
        placed += counts[level];
    }
    counts[limit] += used - placed;
    for (u32 len = 1; len <= limit; len++) total += counts[len] << (limit - len);
    for (; total > 1u << limit; total--) {
        u32 len = limit - 1;
        while (counts[len] == 0) len--;
        counts[len]--;
        counts[len + 1] += 2;
        counts[limit]--;
    }
}

// The code length of each of `symbols` symbols, by all threads, which must see the weights.
static __device__ void code_lengths(const u32 *weights, u32 symbols, u32 limit, Tree &tree) {
    if (threadIdx.x == 0) tree.used = 0;
    __syncthreads();
    for (u32 symbol = threadIdx.x; symbol < symbols; symbol += BLOCK) {
        tree.lengths[symbol] = 0;
        if (weights[symbol] == 0) continue;
        const u32 key = weights[symbol] << 9 | symbol;
        u32 rank = 0;
        for (u32 other = 0; other < symbols; other++)
            rank += weights[other] > 0 && (weights[other] << 9 | other) < key;
        tree.order[rank] = key;
        atomicAdd(&tree.used, 1);
    }
    __syncthreads();
    if (tree.used == 1) {
        if (threadIdx.x == 0) tree.lengths[tree.order[0] & 511] = 1;
    } else {
        if (threadIdx.x == 0) depths(tree, limit);
        __syncthreads();
        for (u32 rank = threadIdx.x; rank < tree.used; rank += BLOCK) {
            u32 len = limit, longer = tree.counts[limit];
            while (longer <= rank) longer += tree.counts[--len];
            tree.lengths[tree.order[rank] & 511] = len;
        }
    }
    __syncthreads();
}

// The canonical code of a symbol, as it is packed: length << 16 | bits.
static __device__ u32 code(const u32 *lengths, u32 symbols, u32 symbol) {
    const u32 len = lengths[symbol];
    if (len == 0) return 0;
    u32 before = 0;
    for (u32 other = 0; other < symbols; other++) {
        const u32 its = lengths[other];
        if (its > 0 && its < len) before += 1u << (len - its);
        if (its == len && other < symbol) before++;
    }
    return len << 16 | __brev(before) >> (32 - len);
}

// The sum of the values of all threads before this one; `all` becomes that of all threads. `shared` holds WARPS values.
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

// Sets bits from bit `at` on, where all are 0.
static __device__ __forceinline__ void put_bits(u32 *words, u32 at, u32 bits) {
    const u64 shifted = (u64)bits << at % 32;
    atomicOr(&words[at / 32], (u32)shifted);
    if (shifted >> 32) atomicOr(&words[at / 32 + 1], (u32)(shifted >> 32));
}

__constant__ u8 TOLD_ORDER[CODE_LENGTHS] = {16, 17, 18, 0, 8, 7, 9, 6, 10, 5, 11, 4, 12, 3, 13, 2, 14, 1, 15};

// The lengths of a block's codes as they are told, repeats taken together, by one thread: value of the extra
// bits << 8 | symbol. Returns how many there are. Behind `litlen` lengths that of the only distance stands.
static __device__ u32 tell(const u32 *lengths, u32 litlen, u16 *told) {
    u32 used = 0;
    for (u32 at = 0; at <= litlen;) {
        const u32 len = lengths[at];
        u32 end = at + 1;
        while (end <= litlen && lengths[end] == len) end++;
        u32 left = end - at;
        at = end;
        if (len > 0) told[used++] = len, left--;
        while (left > 0) {
            const u32 piece = min(left, len > 0 ? 6 : 138);
            left -= piece;
            if (piece < 3)
                for (u32 i = 0; i < piece; i++) told[used++] = len;
            else if (len > 0) told[used++] = (piece - 3) << 8 | 16;
            else if (piece < 11) told[used++] = (piece - 3) << 8 | 17;
            else told[used++] = (piece - 11) << 8 | 18;
        }
    }
    return used;
}

extern "C" __global__ void __launch_bounds__(BLOCK)
    png_codes(u32 row, u32 height, u32 rows, u32 blocks, Block *block) {
    __shared__ Tree tree;
    __shared__ u32 weights[LITLEN], lengths[LITLEN + 1], parts[4][WARPS], header[HEADER];
    __shared__ u32 told_weights[CODE_LENGTHS], told_codes[CODE_LENGTHS], litlen, used, ordered;
    __shared__ u16 told[LITLEN + 2];
    if (piece(blocks, row, height, rows).len == 0) return;
    Block &own = block[blockIdx.x];
    const u32 kind = own.kind;
    for (u32 i = threadIdx.x; i < LITLEN; i += BLOCK) weights[i] = own.weights[i];
    if (threadIdx.x < CODE_LENGTHS) told_weights[threadIdx.x] = 0;
    if (threadIdx.x < HEADER) header[threadIdx.x] = 0;
    if (threadIdx.x == 0) litlen = 0, ordered = 4;
    __syncthreads();
    code_lengths(weights, LITLEN, LIMIT, tree);
    u32 promised = 0, weighed = 0, bits = 0;
    for (u32 symbol = threadIdx.x; symbol < LITLEN; symbol += BLOCK) {
        const u32 len = tree.lengths[symbol], all = len + extra_bits(symbol);
        lengths[symbol] = len;
        own.codes[symbol] = code(tree.lengths, LITLEN, symbol);
        if (len > 0) atomicMax(&litlen, symbol + 1);
        promised += weights[symbol] * all;
        weighed += weights[symbol];
        bits += own.counts[symbol] * (all + (symbol > END)); // a match has its distance's one bit
    }
    __syncthreads();
    if (threadIdx.x == 0) {
        lengths[litlen] = 1;
        used = tell(lengths, litlen, told);
    }
    __syncthreads();
    for (u32 i = threadIdx.x; i < used; i += BLOCK) atomicAdd(&told_weights[told[i] & 0xff], 1);
    __syncthreads();
    code_lengths(told_weights, CODE_LENGTHS, 7, tree);
    if (threadIdx.x < CODE_LENGTHS) {
        told_codes[threadIdx.x] = code(tree.lengths, CODE_LENGTHS, threadIdx.x);
        if (tree.lengths[TOLD_ORDER[threadIdx.x]] > 0) atomicMax(&ordered, threadIdx.x + 1);
    }
    __syncthreads();
    // The header: each thread puts two of the symbols told, behind what is put by the first.
    const auto extra = [](u32 symbol) { return symbol == 16 ? 2 : symbol == 17 ? 3 : symbol == 18 ? 7 : 0; };
    u32 mine = 0;
    for (u32 i = 2 * threadIdx.x; i < min(used, 2 * threadIdx.x + 2); i++)
        mine += (told_codes[told[i] & 0xff] >> 16) + extra(told[i] & 0xff);
    u32 header_bits;
    u32 at = 17 + 3 * ordered + scan_block(mine, parts[0], header_bits);
    header_bits += 17 + 3 * ordered;
    for (u32 i = 2 * threadIdx.x; i < min(used, 2 * threadIdx.x + 2); i++) {
        const u32 symbol = told[i] & 0xff, code = told_codes[symbol], len = code >> 16;
        put_bits(header, at, (code & 0xffff) | (u32)(told[i] >> 8) << len);
        at += len + extra(symbol);
    }
    if (threadIdx.x < ordered) put_bits(header, 17 + 3 * threadIdx.x, tree.lengths[TOLD_ORDER[threadIdx.x]]);
    if (threadIdx.x == 0) put_bits(header, 0, 4 | (litlen - 257) << 3 | (ordered - 4) << 13);
    const auto plus = [](u32 a, u32 b) { return a + b; };
    promised = reduce_block(promised, parts[1], 0u, plus);
    weighed = reduce_block(weighed, parts[2], 0u, plus);
    bits = reduce_block(bits, parts[3], 0u, plus); // and all see the header
    if (threadIdx.x < HEADER) own.header[threadIdx.x] = header[threadIdx.x];
    if (threadIdx.x == 0) {
        if (kind != RUNS && header_bits + promised >= 8 * weighed) own.kind = STORED;
        own.header_bits = header_bits;
        own.bits = header_bits + bits;
    }
}

extern "C" __global__ void __launch_bounds__(BLOCK)
    png_place(u32 row, u32 height, u32 rows, u32 count, u32 blocks, Block *block, Segment *segments) {
    const u32 index = blockIdx.x * BLOCK + threadIdx.x;
    if (index >= count) return;
    const u32 len = cut(index, row, height, rows).len;
    const auto aligned = [](u64 bit) { return (bit + 7) / 8 * 8; };
    u64 bit = 0;
    for (u32 from = 0; from < len; from += DEFLATE_BLOCK) {
        Block &own = block[(u64)index * blocks + from / DEFLATE_BLOCK];
        const u32 bytes = min(DEFLATE_BLOCK, len - from);
        own.start = bit;
        if (own.kind == STORED)
            for (u32 at = 0; at < bytes; at += STORED_BLOCK)
                bit = aligned(bit + 3) + 32 + 8 * min(STORED_BLOCK, bytes - at);
        else bit += own.bits;
    }
    segments[index].bytes = (aligned(bit + 3) + 32) / 8;
}

// 16 bytes of a deflate block, from byte `first` on, and what is needed to put them.
struct Sixteen {
    u32 kind;
    const u32 *codes;
    const Zeros &zeros;
    u32 words[4];
    u32 first, len, padding; // padding: zero bits before the length of the block's first stored block
};

// Everything that begins in the 16 bytes, in order: emit(bits, count), at most 32 each.
template <class Emit> static __device__ __forceinline__ void all_bits(const Sixteen &own, Emit emit) {
    const auto coded = [&](u32 entry) { emit(entry & 0xffff, entry >> 16); };
#pragma unroll
    for (u32 half = 0; half < 2; half++) {
        const u32 at = own.first + 8 * half;
        if (own.kind == RUNS && at + 8 <= own.len && (own.words[2 * half] | own.words[2 * half + 1]) == 0) {
            run_symbols(own.zeros, at / 8, [&](u32 symbol, u32 value) {
                const u32 entry = own.codes[symbol], len = entry >> 16;
                // Behind a match its distance of 1: code 0 of one bit.
                emit((entry & 0xffff) | value << len, len + extra_bits(symbol) + (symbol > END));
            });
            continue;
        }
#pragma unroll
        for (u32 e = 0; e < 8; e++) {
            if (at + e >= own.len) break;
            const u32 byte = own.words[2 * half + e / 4] >> 8 * (e % 4) & 0xff;
            if (own.kind != STORED) {
                coded(own.codes[byte]);
                continue;
            }
            if ((at + e) % STORED_BLOCK == 0) {
                const u32 left = min(STORED_BLOCK, own.len - at - e);
                emit(0, at + e == 0 ? 3 + own.padding : 8);
                emit(left | ~left << 16, 32);
            }
            emit(byte, 8);
        }
    }
    if (own.kind != STORED && own.first < own.len && own.len <= own.first + 16) coded(own.codes[END]);
}

extern "C" __global__ void __launch_bounds__(BLOCK)
    png_pack(u32 row, u32 height, u32 rows, const u8 *filtered, u64 stride, u32 blocks, const Block *block,
             const u64 *places, u8 *out) {
    // A thread has 16 bytes at a time, of at most 14 bits each, and the end or a stored block's head of 40.
    constexpr u32 STAGE = (BLOCK * (16 * LIMIT + 40) + 32) / 32 + HEADER + 2;
    __shared__ u32 stage[STAGE], codes[LITLEN], parts[2][WARPS];
    __shared__ Zeros zeros;
    const Piece own = piece(blocks, row, height, rows);
    if (own.len == 0 || places[own.segment] == ~0ull) return;
    const Block &from = block[blockIdx.x];
    const u8 *bytes = filtered + own.segment * stride + own.from;
    const u32 kind = from.kind;
    for (u32 i = threadIdx.x; i < LITLEN; i += BLOCK) codes[i] = from.codes[i];
    for (u32 i = threadIdx.x; i < STAGE; i += BLOCK) stage[i] = 0;
    if (kind == RUNS) {
        for (u32 i = threadIdx.x; i < MASK; i += BLOCK) zeros.mask[i] = from.zero[i];
        __syncthreads();
        reach(zeros);
    }
    __syncthreads();

    // The stage holds the bits from that of `to` on; those before `cursor` are there.
    u32 *to = (u32 *)(out + places[own.segment]) + from.start / 32;
    u32 cursor = from.start % 32;
    bool shared_word = cursor > 0; // with the block before
    if (kind != STORED) {
        if (threadIdx.x < HEADER && 32 * threadIdx.x < from.header_bits)
            put_bits(stage, cursor + 32 * threadIdx.x, from.header[threadIdx.x]);
        cursor += from.header_bits;
    }
    const u32 padding = (0u - ((u32)from.start + 3)) % 8; // before the first stored block's length
    for (u32 start = 0; start < own.len; start += 16 * BLOCK) {
        const u32 first = start + 16 * threadIdx.x;
        uint4 sixteen = {};
        if (first < own.len) sixteen = *(const uint4 *)(bytes + first);
        const Sixteen from_here = {kind, codes, zeros, {sixteen.x, sixteen.y, sixteen.z, sixteen.w}, first, own.len, padding};
        u32 mine = 0, all;
        all_bits(from_here, [&](u32, u32 count) { mine += count; });
        const u32 at = cursor + scan_block(mine, parts[start / (16 * BLOCK) % 2], all);
        u64 waiting = 0;
        u32 *word = stage + at / 32, held = at % 32;
        all_bits(from_here, [&](u32 bits, u32 count) {
            waiting |= (u64)bits << held;
            held += count;
            if (held >= 32) {
                atomicOr(word++, (u32)waiting);
                waiting >>= 32;
                held -= 32;
            }
        });
        if (waiting) atomicOr(word, (u32)waiting);
        __syncthreads();
        cursor += all;
        const u32 full = cursor / 32, rest = stage[full];
        for (u32 i = threadIdx.x; i < full; i += BLOCK) {
            if (i == 0 && shared_word) atomicOr(&to[0], stage[0]);
            else to[i] = stage[i];
        }
        __syncthreads();
        for (u32 i = threadIdx.x; i <= full; i += BLOCK) stage[i] = i == 0 ? rest : 0;
        __syncthreads();
        to += full;
        cursor %= 32;
        shared_word = shared_word && full == 0;
    }
    if (threadIdx.x == 0) {
        if (own.last) {
            put_bits(stage, cursor, own.segment + 1 == gridDim.x / blocks);
            cursor = (cursor + 3 + 7) / 8 * 8;
            put_bits(stage, cursor, 0xffff0000u);
            cursor += 32;
        }
        // Others may have bits in the last word, and none but this in those before.
        for (u32 i = 0; 32 * i < cursor; i++) atomicOr(&to[i], stage[i]);
    }
}
