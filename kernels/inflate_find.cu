// Inflater, first part: where deflate's blocks begin in streams of which nothing else is known.
//
//   inflate_find(const u32 *stream, u32 words, u32 bits, u32 first, u32 last, u32 most, u32 *hits, u32 *report)
//       The bits from `first` on at which a dynamic block's header can begin, as far as its first 74 bits tell; one
//       that is its stream's last only from `last` on. Grid: a block of 256 for GROUP words.
//   inflate_sieve(stream, words, u32 most, u32 most_likely, const u32 *hits, u32 *likely, u32 *report)
//       Those of them whose headers contradict nothing in their first SIEVED code lengths and runs. Grid: any number of
//       blocks of SIEVERS.
//   inflate_read(stream, words, bits, u32 most_likely, u32 most_codes, const u32 *likely, u32 *counts, Head *heads,
//            Codes *codes, u32 *report)
//       Reads these headers to the end. Their codes go to `codes` in any order; heads + r·MOST
//       say which begin in region r of the stream, and counts[r], zero before, how many. Grid: any number of blocks
//       of READERS.
//   inflate_order(u32 bits, u32 regions, const u32 *counts, const Head *heads, u32 span, u32 most_parts, Head *order, Part *parts,
//             u32 *report)
//       Cuts what lies from each header to the next into parts of at most `span` bits. Grid: one block of 1024.
// `most` hits, `most_likely` of them and `most_codes` headers are kept; what is too much, the host finds where it is missing.
//
// Two numbers, for b bytes of stream: find reads b; some 6 instructions a bit, half of them for one bit in seventeen, which can
// begin a header by its first 17 bits. Of a few thousand one has a whole code of code lengths. Most of these contradict
// themselves within SIEVED steps, which depend on one another; the rest are read to the end, some hundred steps. Not one
// of those left is wrong, as a rule.
#include "inflate.cuh"

constexpr u32 GROUP = 2048;                  // host: words of a block of threads
constexpr u32 REGION = 256 << 10, MOST = 64; // host: bits of a region, and headers kept of it
constexpr u32 HITS = 1024;                   // of a group that are gathered; only regular data have more
constexpr u32 SIEVERS = 64, READERS = 32;    // host: threads of a block
constexpr u32 SIEVED = 48;                   // code lengths, and runs of them

// A header that was read: of which codes, where it and its symbols begin, and whether it says that its block is the LAST.
struct alignas(16) Head {
    u32 codes, head, data, last;
};
static_assert(sizeof(Head) == 16, "the host knows");

// Four bits for each of eight code lengths of three bits.
static __device__ __forceinline__ u32 spread(u32 lengths) {
    // The halves apart, then pairs, then each.
    u32 x = (lengths & 0xfff) | (lengths & 0xfff000) << 4;
    x = (x & 0x003f003f) | (x & 0x0fc00fc0) << 2;
    return (x & 0x07070707) | (x & 0x38383838) << 1;
}
// Weights of four of them, a byte each: 128 >> length, and 0 for none.
static __device__ __forceinline__ u32 weights(u32 spread) { return __byte_perm(0x10204000, 0x01020408, spread); }

// The sum of four bytes and `sum`.
static __device__ __forceinline__ u32 add_bytes(u32 four, u32 sum) {
#if __CUDA_ARCH__ >= 610
    asm("dp4a.u32.u32 %0, %1, %2, %0;" : "+r"(sum) : "r"(four), "r"(0x01010101u));
    return sum;
#else
    const u32 pairs = (four & 0xff00ff) + (four >> 8 & 0xff00ff);
    return sum + (pairs & 0xffff) + (pairs >> 16);
#endif
}

// Whether the code of code lengths of a header at bit `at` is complete.
static __device__ __forceinline__ bool is_complete(const u32 *words, u32 at) {
    const u32 *from = words + (at + 13) / 32, shift = (at + 13) % 32;
    const u32 middle = from[1];
    const u32 low = __funnelshift_r(from[0], middle, shift), high = __funnelshift_r(middle, from[2], shift);
    const u32 count = 4 + (low & 15);
    // Of 21 lengths the last are its own, the first 0; bit 63 is none of them.
    const u64 all = ((u64)high << 32 | low) >> 4 << 3 * (21 - count);
    const u32 one = spread((u32)all & 0xffffff), two = spread((u32)(all >> 24) & 0xffffff);
    const u32 three = spread((u32)(all >> 48) & 0x7fff);
    u32 sum = 0;
    const auto add = [&](u32 four) { sum = add_bytes(weights(four), sum); };
    add(one), add(one >> 16), add(two), add(two >> 16), add(three), add(three >> 16);
    return sum == 128;
}

// Reads a stream of `count` words bit by bit, two words and the next in registers; zeros behind its last word.
struct Stream {
    const u32 *words;
    u32 count, at, low, high, next;
    __device__ Stream(const u32 *words, u32 count, u32 at) : words(words), count(count), at(at) {
        low = word(at / 32), high = word(at / 32 + 1), next = word(at / 32 + 2);
    }
    __device__ __forceinline__ u32 word(u32 i) const { return i < count ? words[i] : 0; }
    __device__ __forceinline__ u32 peek() const { return __funnelshift_r(low, high, at % 32); }
    // Fewer than 32 bits.
    __device__ __forceinline__ void pass(u32 bits) {
        const u32 then = at + bits;
        if ((then ^ at) & 32) low = high, high = next, next = word(then / 32 + 2);
        at = then;
    }
};

// Reads the header of a block that begins where `stream` is, whose code of code lengths is complete; if KEPT,
// lengths go to every STEP-th word of `lengths`, else it ends after SIEVED steps; `symbols` is memory in steps of
// STEP. False where it is not a header: an incomplete code but that of one distance of one bit and that without
// distances, or one without an end of block.
template <bool KEPT, u32 STEP>
static __device__ bool read_header(Stream stream, u8 *symbols, u32 *lengths, Codes &codes) {
    constexpr u8 ORDER[19] = {16, 17, 18, 0, 8, 7, 9, 6, 10, 5, 11, 4, 12, 3, 13, 2, 14, 1, 15};
    stream.pass(3);
    const u32 head = stream.peek();
    const u32 litlens = 257 + (head & 31), all = litlens + 1 + (head >> 5 & 31), count = 4 + (head >> 10 & 15);
    stream.pass(14);
    u64 told = 0, counts = 0; // three bits a symbol, a byte a length
#pragma unroll
    for (u32 k = 0; k < 19; k++)
        if (k < count) {
            const u64 length = stream.peek() & 7;
            stream.pass(3);
            told |= length << 3 * ORDER[k];
            counts += length ? 1ull << 8 * length : 0;
        }
    // Of each length: the code behind its last, with seven bits, and what a code is ahead of its place.
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
        symbols[(next >> 8 * length & 31) * STEP] = symbol;
        next += 1ull << 8 * length;
    }
    if (KEPT)
        for (u32 k = 0; k < PACKED_LENGTHS; k++) lengths[k * STEP] = 0;
    u32 i = 0, last = 0, eight = 0; // eight: those of i's word so far
    u32 litlen_weight = 0, dist_weight = 0, dists = 0;
    bool ends = false;
    for (u32 step = 0; i < all; step++) {
        if (!KEPT && step == SIEVED) return true;
        const u32 bits = stream.peek(), seven = __brev(bits) >> 25;
        u32 length = 1;
#pragma unroll
        for (u32 k = 1; k < 7; k++) length += seven >= behind[k];
        const u32 place = (seven >> (7 - length)) - (u32)(ahead >> 8 * length) & 31;
        const u32 symbol = symbols[place * STEP];
        const u32 extra = symbol < 16 ? 0 : symbol == 16 ? 2 : symbol == 17 ? 3 : 7;
        const u32 value = symbol < 16 ? symbol : symbol == 16 ? last : 0;
        const u32 times = (symbol < 16 ? 1 : symbol == 18 ? 11 : 3) + (bits >> length & ((1u << extra) - 1));
        const u32 then = i + times, literal = min(max(litlens, i) - i, times), distance = times - literal;
        const u32 weight = value ? 32768u >> value : 0;
        litlen_weight += literal * weight;
        dist_weight += distance * weight;
        dists += value ? distance : 0;
        ends |= value && i <= 256 && 256 < then;
        if (symbol == 16 && i == 0 || then > all || litlen_weight > 32768 || dist_weight > 32768) return false;
        if (KEPT) {
            const u32 some = value * 0x11111111u & ((1u << 4 * min(times, 7u)) - 1); // a length comes six times at most
            eight |= some << 4 * (i % 8);
            if (then / 8 != i / 8) {
                lengths[i / 8 * STEP] = eight;
                eight = __funnelshift_l(some, 0, 4 * (i % 8));
            }
        }
        i = then;
        last = value;
        stream.pass(length + extra);
    }
    if (KEPT && i % 8) lengths[i / 8 * STEP] = eight;
    codes.data = stream.at;
    codes.litlens = litlens;
    codes.all = all;
    return ends && litlen_weight == 32768 && (dist_weight == 32768 || dists == 0 || dists == 1 && dist_weight == 16384);
}

// lengths: stream[words], hits[most], report[REPORT]
// in sets
extern "C" __global__ void __launch_bounds__(BLOCK)
    inflate_find(const u32 *__restrict__ stream, u32 words, u32 bits, u32 first, u32 last, u32 most, u32 *hits, u32 *report) {
    __shared__ u32 group[GROUP + 6];
    __shared__ u16 likely[WARPS][32 + 1024]; // those that wait, and bits of a warp's 32 words
    __shared__ u16 own_hits[HITS];
    __shared__ u32 hit, place_of_all;
    const u32 lane = threadIdx.x % 32, warp = threadIdx.x / 32;
    const u32 from = blockIdx.x * GROUP;
    for (u32 i = threadIdx.x; i < GROUP + 6; i += BLOCK) group[i] = from + i < words ? stream[from + i] : 0;
    if (threadIdx.x == 0) hit = 0;
    __syncthreads();
    const auto keep = [&](u32 place, u32 bit) {
        if (place < most) hits[place] = from * 32 + bit;
    };
    const auto look = [&](u32 bit) {
        if (!is_complete(group, bit)) return;
        const u32 place = atomicAdd(&hit, 1);
        if (place < HITS) own_hits[place] = bit;
        else keep(atomicAdd(&report[HITS_FOUND], 1), bit);
    };
    u32 waiting = 0;
    for (u32 some = warp; some < GROUP / 32; some += WARPS) {
        const u32 i = some * 32 + lane, w = group[i], v = group[i + 1], at = (from + i) * 32;
        const auto shifted = [&](u32 by) { return __funnelshift_r(w, v, by); };
        // A dynamic block with at most 286 literals and lengths, and 30 distances. A code of so few distances has a word of at
        // most four bits, and the length 4 is the twelfth of those whose own lengths the header has (RFC 1951, section
        // 3.2.7): so it has 12 or more of them, or it is a block without distances, whose header has one, unused.
        const u32 high = shifted(9) | shifted(10) | shifted(11) | shifted(12);
        u32 mask = ~shifted(1) & shifted(2) & ~(shifted(4) & shifted(5) & shifted(6) & shifted(7)) &
                   ~(shifted(9) & shifted(10) & shifted(11) & shifted(12)) & (shifted(16) | ~(shifted(8) | high));
        if (at < last) mask &= ~w;
        if (at + 32 <= first || at >= bits) mask = 0;
        u32 place = __popc(mask);
        const u32 mine = place;
#pragma unroll
        for (u32 d = 1; d < 32; d *= 2) {
            const u32 before = __shfl_up_sync(ALL, place, d);
            if (lane >= d) place += before;
        }
        const u32 count = waiting + __shfl_sync(ALL, place, 31);
        for (place += waiting - mine; mask; mask &= mask - 1) likely[warp][place++] = i * 32 + __ffs(mask) - 1;
        __syncwarp();
        // All lanes look at what any has found; fewer than a lane each wait for more.
        u32 looked = 0;
        for (; looked + 32 <= count; looked += 32) look(likely[warp][looked + lane]);
        waiting = count - looked;
        const u16 left = likely[warp][looked + lane];
        __syncwarp();
        likely[warp][lane] = left;
        __syncwarp();
    }
    if (lane < waiting) look(likely[warp][lane]);
    __syncthreads();
    const u32 count = min(hit, HITS);
    if (threadIdx.x == 0) place_of_all = atomicAdd(&report[HITS_FOUND], count);
    __syncthreads();
    for (u32 k = threadIdx.x; k < count; k += BLOCK) keep(place_of_all + k, own_hits[k]);
}

// lengths: stream[words], hits[most], likely[most_likely], report[REPORT]
// in sets
extern "C" __global__ void __launch_bounds__(SIEVERS)
    inflate_sieve(const u32 *__restrict__ stream, u32 words, u32 most, u32 most_likely, const u32 *hits, u32 *likely, u32 *report) {
    __shared__ u8 symbols[32 * SIEVERS];
    const u32 count = min(report[HITS_FOUND], most);
    for (u32 k = blockIdx.x * SIEVERS + threadIdx.x; k < count; k += gridDim.x * SIEVERS) {
        Codes read;
        const Stream from(stream, words, hits[k]);
        if (!read_header<false, SIEVERS>(from, symbols + threadIdx.x, nullptr, read)) continue;
        const u32 place = atomicAdd(&report[LIKELY_FOUND], 1);
        if (place < most_likely) likely[place] = hits[k];
    }
}

// lengths: stream[words], likely[most_likely], counts[ceil(bits, REGION)], heads[ceil(bits, REGION) * MOST],
//     codes[most_codes], report[REPORT]
// trusts: likely, as inflate_sieve leaves it: bits of the stream
// in sets
extern "C" __global__ void __launch_bounds__(READERS)
    inflate_read(const u32 *__restrict__ stream, u32 words, u32 bits, u32 most_likely, u32 most_codes, const u32 *likely,
             u32 *counts, Head *heads, Codes *codes, u32 *report) {
    __shared__ u8 symbols[32 * READERS];
    __shared__ u32 lengths[PACKED_LENGTHS * READERS];
    const u32 count = min(report[LIKELY_FOUND], most_likely);
    for (u32 k = blockIdx.x * READERS + threadIdx.x; k < count; k += gridDim.x * READERS) {
        const u32 head = likely[k], region = head / REGION;
        Codes read;
        const Stream from(stream, words, head);
        if (!read_header<true, READERS>(from, symbols + threadIdx.x, lengths + threadIdx.x, read)) continue;
        if (read.data > bits) continue;
        const u32 slot = atomicAdd(&report[CODES_FOUND], 1);
        if (slot >= most_codes) continue;
        const u32 place = atomicAdd(&counts[region], 1);
        if (place < MOST) heads[region * MOST + place] = {slot, head, read.data, from.peek() & 1 ? LAST : 0u};
        Codes &own = codes[slot];
        own.head = head;
        own.data = read.data;
        own.litlens = read.litlens;
        own.all = read.all;
        for (u32 i = 0; i < (read.all + 7) / 8; i++) own.lengths[i] = lengths[i * READERS + threadIdx.x];
    }
}

// lengths: counts[regions], heads[regions * MOST], order[regions * MOST], parts[most_parts], report[REPORT]
// in sets
extern "C" __global__ void __launch_bounds__(1024)
    inflate_order(u32 bits, u32 regions, const u32 *__restrict__ counts, const Head *__restrict__ heads, u32 span, u32 most_parts,
                  Head *order, Part *parts, u32 *report) {
    constexpr u32 THREADS = 1024;
    __shared__ u32 sums[THREADS / 32];
    u32 count = 0, all;
    for (u32 first = 0; first < regions; first += THREADS) {
        const u32 r = first + threadIdx.x, found = r < regions ? min(counts[r], MOST) : 0;
        const u32 place = count + scan_threads<THREADS>(found, sums, all);
        // In the order of the stream: one or two, as a rule.
        const Head *own = heads + r * MOST;
        for (u32 k = 0; k < found; k++) {
            const Head one = own[k];
            u32 before = 0;
            for (u32 other = 0; other < found; other++) before += own[other].head < one.head;
            order[place + before] = one;
        }
        count += all;
        __syncthreads();
    }
    u32 made = 0;
    for (u32 first = 0; first < count; first += THREADS) {
        const u32 b = first + threadIdx.x;
        Head own{};
        u32 len = 0, pieces = 0;
        if (b < count) {
            own = order[b];
            const u32 next = b + 1 < count ? order[b + 1].head : bits;
            len = next > own.data ? next - own.data : 0;
            pieces = max((len + span - 1) / span, 1);
        }
        const u32 place = made + scan_threads<THREADS>(pieces, sums, all);
        made += all;
        if (made > most_parts) break;
        const u32 step = pieces ? (len + pieces - 1) / pieces : 0;
        for (u32 k = 0; k < pieces; k++) {
            const u32 from = min(k * step, len), to = min(from + step, len);
            const u32 flags = own.last | (k == 0 ? FIRST : 0u);
            parts[place + k] = {own.head, own.data + from, own.data + to, own.codes, k == 0 ? own.data : 0, 0, 0, flags << 16};
        }
        __syncthreads();
    }
    if (threadIdx.x > 0) return;
    report[PARTS_MADE] = min(made, most_parts);
    if (made > most_parts) report[WRONG] |= CROWDED;
}
