// PNG decoder, first part: where deflate's blocks begin in a stream of which nothing else is known.
//
//   png_find(const u32 *stream, u32 words, u32 bits, u32 first, u32 most, u32 regions, u32 *counts, u32 *slots,
//            Codes *codes, u32 *report)
//       Looks at every bit from `first` on for a dynamic block's header; one that is the last only in the last LAST
//       bits. What it finds goes to `codes`, `most` of them, in any order; slots + r·MOST says which begin in region
//       r, in order, and counts[r] how many. Grid: a block of 256 a region of REGION words, ceil(words / REGION).
//   png_order(u32 bits, u32 regions, const u32 *counts, const u32 *slots, const Codes *codes, u32 most, u32 span,
//             Part *parts, u32 *report)
//       Cuts what lies from each header to the next into parts of at most `span` bits. Grid: one block of 1024.
//
// Two numbers, for b bytes of stream: find reads b; some 10 instructions a bit for one in nine, which can begin a
// header by its first 13 bits. One of 2000 has a whole code of code lengths and is read to the end of its header or to
// a contradiction; not one in a file is wrong then, as a rule.
#include "png_inflate.cuh"

constexpr u32 REGION = 2048, MOST = 64;
constexpr u32 HEADER = 160;        // words: more than the longest header has
constexpr u32 LAST = 256 << 13;    // bits
constexpr u32 HITS = 1024, READERS = 64;

// Weights of eight code lengths of three bits, 128 >> length and 0 for none, in two sums that are to be added.
static __device__ __forceinline__ u32 weights(u32 lengths) {
    // Four bits each: the halves apart, then pairs, then each.
    u32 x = (lengths & 0xfff) | (lengths & 0xfff000) << 4;
    x = (x & 0x003f003f) | (x & 0x0fc00fc0) << 2;
    x = (x & 0x07070707) | (x & 0x38383838) << 1;
    const u32 low = __byte_perm(0x10204000, 0x01020408, x & 0xffff), high = __byte_perm(0x10204000, 0x01020408, x >> 16);
    return (low & 0xff00ff) + (low >> 8 & 0xff00ff) + (high & 0xff00ff) + (high >> 8 & 0xff00ff);
}

// Whether the code of code lengths of a header at bit `at` is complete.
static __device__ __forceinline__ bool is_complete(const u32 *words, u32 at) {
    const u32 low = bits_at(words, at + 13), high = bits_at(words, at + 45);
    const u32 count = 4 + (low & 15);
    const u64 all = ((u64)high << 32 | low) >> 4 & ((1ull << 3 * count) - 1);
    const u32 both = weights((u32)all & 0xffffff) + weights((u32)(all >> 24) & 0xffffff) + weights((u32)(all >> 48));
    return (both & 0xffff) + (both >> 16) == 128;
}

// Reads the header of a block at bit `at` of `words`, whose code of code lengths is complete; lengths go to every
// READERS-th word of `lengths`, `symbols` is memory in steps of READERS. False where it is not a header: an
// incomplete code but that of one distance of one bit and that without distances, or one without an end of block.
static __device__ bool read_header(const u32 *words, u32 at, u8 *symbols, u32 *lengths, Codes &codes) {
    constexpr u8 ORDER[19] = {16, 17, 18, 0, 8, 7, 9, 6, 10, 5, 11, 4, 12, 3, 13, 2, 14, 1, 15};
    const u32 head = bits_at(words, at + 3);
    const u32 litlens = 257 + (head & 31), all = litlens + 1 + (head >> 5 & 31), count = 4 + (head >> 10 & 15);
    at += 17;
    u64 told = 0, counts = 0; // three bits a symbol, a byte a length
#pragma unroll
    for (u32 k = 0; k < 19; k++)
        if (k < count) {
            const u64 length = bits_at(words, at + 3 * k) & 7;
            told |= length << 3 * ORDER[k];
            counts += length ? 1ull << 8 * length : 0;
        }
    at += 3 * count;
    // Of each length: the code behind its last, with seven bits, and what a code is ahead of its place among the symbols.
    u32 behind[8], code = 0, places = 0;
    u64 next = 0, ahead = 0;
#pragma unroll
    for (u32 length = 1; length <= 7; length++) {
        const u32 of = counts >> 8 * length & 0xff;
        next |= (u64)places << 8 * length;
        ahead |= (u64)(code - places & 0xff) << 8 * length;
        behind[length] = (code + of) << (7 - length);
        code = (code + of) << 1;
        places += of;
    }
    for (u32 symbol = 0; symbol < 19; symbol++) {
        const u32 length = told >> 3 * symbol & 7;
        if (length == 0) continue;
        symbols[(next >> 8 * length & 31) * READERS] = symbol;
        next += 1ull << 8 * length;
    }
    u32 i = 0, last = 0, word = 0;
    u32 litlen_weight = 0, dist_weight = 0, dists = 0;
    bool ends = false;
    while (i < all) {
        const u32 bits = bits_at(words, at), seven = __brev(bits) >> 25;
        u32 length = 1;
#pragma unroll
        for (u32 k = 1; k < 7; k++) length += seven >= behind[k];
        const u32 place = (seven >> (7 - length)) - (u32)(ahead >> 8 * length) & 31;
        const u32 symbol = symbols[place * READERS];
        const u32 extra = symbol < 16 ? 0 : symbol == 16 ? 2 : symbol == 17 ? 3 : 7;
        const u32 value = symbol < 16 ? symbol : symbol == 16 ? last : 0;
        u32 times = (symbol < 16 ? 1 : symbol == 18 ? 11 : 3) + (bits >> length & ((1u << extra) - 1));
        if (symbol == 16 && i == 0 || i + times > all) return false;
        if (value > 0) {
            const u32 literal = i < litlens ? min(litlens - i, times) : 0;
            litlen_weight += literal * (32768u >> value);
            dist_weight += (times - literal) * (32768u >> value);
            dists += times - literal;
            ends |= i <= 256 && 256 < i + times;
            if (litlen_weight > 32768 || dist_weight > 32768) return false;
        }
        while (times > 0) {
            const u32 take = min(times, 8 - i % 8);
            word |= (value * 0x11111111u & ALL >> (32 - 4 * take)) << 4 * (i % 8);
            i += take;
            times -= take;
            if (i % 8 == 0) lengths[(i / 8 - 1) * READERS] = word, word = 0;
        }
        last = value;
        at += length + extra;
    }
    if (i % 8) lengths[i / 8 * READERS] = word;
    codes.data = at;
    codes.litlens = litlens;
    codes.all = all;
    return ends && litlen_weight == 32768 && (dist_weight == 32768 || dists == 0 || dists == 1 && dist_weight == 16384);
}

extern "C" __global__ void __launch_bounds__(BLOCK)
    png_find(const u32 *__restrict__ stream, u32 words, u32 bits, u32 first, u32 most, u32 *counts, u32 *slots, Codes *codes,
             u32 *report) {
    __shared__ u32 region[REGION + HEADER + 2];
    // Bits of a warp's 32 words, and later what readers of headers need.
    __shared__ union {
        u16 likely[WARPS][1024];
        struct {
            u32 lengths[PACKED_LENGTHS * READERS];
            u8 symbols[32 * READERS];
        } readers;
    } memory;
    __shared__ u16 hits[HITS];
    __shared__ u32 hit, found, heads[MOST], places[MOST];
    const u32 lane = threadIdx.x % 32, warp = threadIdx.x / 32;
    const u32 from = blockIdx.x * REGION;
    for (u32 i = threadIdx.x; i < REGION + HEADER + 2; i += BLOCK) region[i] = from + i < words ? stream[from + i] : 0;
    if (threadIdx.x == 0) hit = found = 0;
    __syncthreads();
    for (u32 group = warp; group < REGION / 32; group += WARPS) {
        const u32 i = group * 32 + lane, w = region[i], v = region[i + 1], at = (from + i) * 32;
        const auto shifted = [&](u32 by) { return __funnelshift_r(w, v, by); };
        // A dynamic block with at most 286 literals and lengths, and 30 distances.
        u32 mask = ~shifted(1) & shifted(2) & ~(shifted(4) & shifted(5) & shifted(6) & shifted(7)) &
                   ~(shifted(9) & shifted(10) & shifted(11) & shifted(12));
        if (at + LAST < bits) mask &= ~w;
        if (at + 32 <= first || at >= bits) mask = 0;
        u32 place = __popc(mask), mine = place;
#pragma unroll
        for (u32 d = 1; d < 32; d *= 2) {
            const u32 before = __shfl_up_sync(ALL, place, d);
            if (lane >= d) place += before;
        }
        const u32 count = __shfl_sync(ALL, place, 31);
        u16 *likely = memory.likely[warp];
        for (place -= mine; mask; mask &= mask - 1) likely[place++] = lane * 32 + __ffs(mask) - 1;
        __syncwarp();
        for (u32 k = lane; k < count; k += 32) {
            const u32 bit = group * 1024 + likely[k];
            if (!is_complete(region, bit)) continue;
            const u32 place = atomicAdd(&hit, 1);
            if (place < HITS) hits[place] = bit;
        }
        __syncwarp();
    }
    __syncthreads();
    if (threadIdx.x < READERS)
        for (u32 k = threadIdx.x; k < min(hit, HITS); k += READERS) {
            u32 *lengths = memory.readers.lengths + threadIdx.x;
            Codes read;
            if (from * 32 + hits[k] < first || !read_header(region, hits[k], memory.readers.symbols + threadIdx.x, lengths, read)) continue;
            if (from * 32 + read.data > bits) continue;
            const u32 slot = atomicAdd(&report[CODES_FOUND], 1), place = atomicAdd(&found, 1);
            if (slot >= most || place >= MOST) continue;
            heads[place] = hits[k];
            places[place] = slot;
            Codes &own = codes[slot];
            own.head = from * 32 + hits[k];
            own.data = from * 32 + read.data;
            own.litlens = read.litlens;
            own.all = read.all;
            for (u32 i = 0; i < (read.all + 7) / 8; i++) own.lengths[i] = lengths[i * READERS];
        }
    __syncthreads();
    if (threadIdx.x == 0 && (hit > HITS || found > MOST)) atomicOr(&report[WRONG], CROWDED);
    const u32 count = min(found, MOST);
    if (threadIdx.x < count) {
        u32 rank = 0;
        for (u32 k = 0; k < count; k++) rank += heads[k] < heads[threadIdx.x];
        slots[blockIdx.x * MOST + rank] = places[threadIdx.x];
    }
    if (threadIdx.x == 0) counts[blockIdx.x] = count;
}

extern "C" __global__ void __launch_bounds__(1024)
    png_order(u32 bits, u32 regions, const u32 *counts, const u32 *slots, const Codes *codes, u32 most, u32 span,
              u32 most_parts, u32 *order, Part *parts, u32 *report) {
    constexpr u32 THREADS = 1024;
    __shared__ u32 sums[THREADS / 32];
    if (report[CODES_FOUND] > most || report[WRONG]) {
        if (threadIdx.x == 0) report[WRONG] |= CROWDED;
        return;
    }
    // Each thread has regions in a row, then blocks in a row.
    const u32 own = (regions + THREADS - 1) / THREADS;
    const u32 region = min(threadIdx.x * own, regions), region_end = min(region + own, regions);
    u32 sum = 0, count;
    for (u32 r = region; r < region_end; r++) sum += counts[r];
    u32 place = scan_threads<THREADS>(sum, sums, count);
    for (u32 r = region; r < region_end; r++)
        for (u32 k = 0; k < counts[r]; k++) order[place++] = slots[r * MOST + k];
    __syncthreads();
    const u32 blocks = (count + THREADS - 1) / THREADS;
    const u32 block = min(threadIdx.x * blocks, count), block_end = min(block + blocks, count);
    const auto length = [&](u32 b) {
        const u32 data = codes[order[b]].data, next = b + 1 < count ? codes[order[b + 1]].head : bits;
        return next > data ? next - data : 0;
    };
    const auto pieces = [&](u32 len) { return max((len + span - 1) / span, 1); };
    sum = 0;
    for (u32 b = block; b < block_end; b++) sum += pieces(length(b));
    u32 all;
    place = scan_threads<THREADS>(sum, sums, all);
    if (threadIdx.x == 0) report[PARTS_MADE] = min(all, most_parts);
    if (all > most_parts) {
        if (threadIdx.x == 0) report[WRONG] |= CROWDED;
        return;
    }
    for (u32 b = block; b < block_end; b++) {
        const u32 len = length(b), count = pieces(len), step = (len + count - 1) / count;
        const u32 head = codes[order[b]].head, data = codes[order[b]].data;
        for (u32 k = 0; k < count; k++) {
            const u32 begin = min(k * step, len), end = min(begin + step, len);
            parts[place++] = {head, data + begin, data + end, order[b], k == 0 ? data : 0, 0, 0, (k == 0 ? FIRST : 0u) << 16};
        }
    }
}
