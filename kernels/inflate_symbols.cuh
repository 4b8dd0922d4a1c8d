// Deflate's symbols (RFC 1951, section 3.2.5), as inflate_count.cu and inflate_write.cu decode them: a block's tables, the stream
// around a part in shared memory, and the loop that takes symbol after symbol.
#pragma once
#include "inflate.cuh"

constexpr u32 LANES = 128; // host
constexpr u32 SPAN = 96 << 10;    // host: bits of the longest part
constexpr u32 WARM_PART = 1024;   // bits ahead of a part that are decoded too where its start is not known
constexpr u32 BEYOND = 6;         // words that a symbol of the last bits and what is read ahead of it reach into
constexpr u32 STAGE = SPAN / 32 + WARM_PART / 32 + 2 + BEYOND;

constexpr u32 LITLEN_BITS = 11, DIST_BITS = 8;
// An entry of the table of literals and lengths has in its lowest five bits how many bits it takes, of which the fifth is 0,
// and behind them how many literals it is, 1 or 2, or 0. Literals: they follow in bits 8 and 16, and the bits of the first alone
// in bit 24. A length: its base in bit 8, how many extra bits in bit 17. Distances: extra bits in bit 4, base in bit 8. 0: no
// word so short.
constexpr u32 TAKEN = 31, LITERAL = 1 << 5 | 1 << 7, BOTH = 2 << 5 | 1 << 7, LITERALS = 1 << 7, STOP = 1 << 20;

struct Tables {
    u32 litlen[1 << LITLEN_BITS], dist[1 << DIST_BITS];
    u16 symbols[2][LITLENS];            // by code
    u32 behind[2][LONGEST + 1];         // of each length: the code behind its last, with 15 bits
    u32 ahead[2][LONGEST + 1];          // what its codes are ahead of their places among the symbols
    u32 next[2][LONGEST + 1];
    u32 lengths[PACKED_LENGTHS];
};

static __device__ __forceinline__ u32 litlen_entry(u32 symbol, u32 bits) {
    if (symbol < 256) return bits | LITERAL | symbol << 8 | bits << 24;
    if (symbol == 256) return bits | STOP;
    const u32 i = symbol - 257; // RFC 1951, section 3.2.5
    if (i > 28) return 0;
    if (i == 28) return bits | 258 << 8;
    const u32 extra = i < 8 ? 0 : i / 4 - 1;
    const u32 base = i < 8 ? 3 + i : 3 + ((4 + i % 4) << extra);
    return bits | base << 8 | extra << 17;
}
static __device__ __forceinline__ u32 dist_entry(u32 symbol, u32 bits) {
    if (symbol > 29) return 0;
    const u32 extra = symbol < 4 ? 0 : symbol / 2 - 1;
    const u32 base = symbol < 4 ? 1 + symbol : 1 + ((2 + symbol % 2) << extra);
    return bits | extra << 4 | base << 8;
}

// The entry of a word that its table does not have.
template <bool DIST> static __device__ __noinline__ u32 long_word(const Tables &tables, u32 bits) {
    constexpr u32 SHORT = DIST ? DIST_BITS : LITLEN_BITS;
    const u32 word = __brev(bits) >> 17;
    if (word < tables.behind[DIST][SHORT]) return 0; // a short word of a symbol that is none
    for (u32 length = SHORT + 1; length <= LONGEST; length++)
        if (word < tables.behind[DIST][length]) {
            const u32 symbol = tables.symbols[DIST][(word >> (15 - length)) - tables.ahead[DIST][length]];
            return DIST ? dist_entry(symbol, length) : litlen_entry(symbol, length);
        }
    return 0;
}

// Makes the tables of a block's codes, by all threads; ends with a barrier.
static __device__ void make_tables(Tables &tables, const Codes &codes) {
    const u32 lane = threadIdx.x % 32, warp = threadIdx.x / 32;
    const u32 litlens = codes.litlens, all = codes.all;
    if (threadIdx.x < (all + 7) / 8) tables.lengths[threadIdx.x] = codes.lengths[threadIdx.x];
    if (threadIdx.x < LONGEST + 1) tables.next[0][threadIdx.x] = tables.next[1][threadIdx.x] = 0;
    __syncthreads();
    const auto length = [&](u32 i) { return tables.lengths[i / 8] >> 4 * (i % 8) & 15; };
    for (u32 i = threadIdx.x; i < all; i += LANES)
        if (length(i) > 0) atomicAdd(&tables.next[i >= litlens][length(i)], 1);
    __syncthreads();
    if (warp < 2) {
        const u32 dist = warp, from = dist ? litlens : 0, count = dist ? all - litlens : litlens;
        // How many words of the lengths up to its own there are, for each of the lanes 1 to 15.
        u32 code = 0, place = 0;
        const u32 own = lane <= LONGEST ? tables.next[dist][lane] : 0;
        for (u32 k = 1; k < LONGEST + 1; k++) {
            const u32 before = k > 1 ? tables.next[dist][k - 1] : 0;
            if (k <= lane) code = (code + before) << 1, place += before;
        }
        __syncwarp();
        if (lane >= 1 && lane <= LONGEST) {
            tables.behind[dist][lane] = (code + own) << (LONGEST - lane);
            tables.ahead[dist][lane] = code - place;
            tables.next[dist][lane] = place;
        }
        __syncwarp();
        for (u32 first = 0; first < count; first += 32) {
            const u32 i = first + lane, l = i < count ? length(from + i) : 0;
            u32 same = ALL; // lanes with the same length
#pragma unroll
            for (u32 bit = 1; bit < 16; bit *= 2) {
                const u32 set = __ballot_sync(ALL, l & bit);
                same &= l & bit ? set : ~set;
            }
            const u32 earlier = __popc(same & ((1u << lane) - 1)), at = tables.next[dist][l] + earlier;
            __syncwarp();
            if (l > 0) {
                tables.symbols[dist][at] = i;
                if (earlier == 0) tables.next[dist][l] += __popc(same);
            }
            __syncwarp();
        }
    }
    __syncthreads();
    // Words in the order of their codes, in which lengths grow: most significant bit first.
    constexpr u32 OWN = (1 << LITLEN_BITS) / LANES;
    u32 bits = 1;
    for (u32 k = 0; k < OWN; k++) {
        const u32 word = threadIdx.x * OWN + k;
        while (bits <= LITLEN_BITS && word >= tables.behind[0][bits] >> (LONGEST - LITLEN_BITS)) bits++;
        u32 entry = 0;
        if (bits <= LITLEN_BITS)
            entry = litlen_entry(tables.symbols[0][(word >> (LITLEN_BITS - bits)) - tables.ahead[0][bits]], bits);
        tables.litlen[__brev(word) >> (32 - LITLEN_BITS)] = entry;
    }
    bits = 1;
    for (u32 word = threadIdx.x; word < 1 << DIST_BITS; word += LANES) {
        while (bits <= DIST_BITS && word >= tables.behind[1][bits] >> (LONGEST - DIST_BITS)) bits++;
        u32 entry = 0;
        if (bits <= DIST_BITS)
            entry = dist_entry(tables.symbols[1][(word >> (DIST_BITS - bits)) - tables.ahead[1][bits]], bits);
        tables.dist[__brev(word) >> (32 - DIST_BITS)] = entry;
    }
    __syncthreads();
    // A literal takes along the next where both fit.
    u32 entries[OWN];
#pragma unroll
    for (u32 k = 0; k < OWN; k++) {
        const u32 i = k * LANES + threadIdx.x, one = tables.litlen[i];
        entries[k] = one;
        if ((one & LITERALS) == 0) continue;
        const u32 two = tables.litlen[i >> (one & 15)], both = (one & 15) + (two & 15);
        if ((two & LITERALS) && both <= LITLEN_BITS) entries[k] = (one & ~(TAKEN | LITERAL)) | both | BOTH | (two & 0xff00) << 8;
    }
    __syncthreads();
#pragma unroll
    for (u32 k = 0; k < OWN; k++) tables.litlen[k * LANES + threadIdx.x] = entries[k];
    __syncthreads();
}

// The stream around a part, in shared memory; its bits are counted from the stage's first.
struct Stage {
    u32 first; // word of the stream
    __device__ void fill(u32 *stage, const u32 *stream, u32 words, u32 from_bit, u32 to_bit) {
        first = from_bit / 32;
        const u32 count = min(to_bit / 32 - first + BEYOND, STAGE);
        for (u32 i = threadIdx.x; i < count; i += LANES) stage[i] = first + i < words ? stream[first + i] : 0;
    }
    __device__ u32 inner(u32 bit) const { return bit - 32 * first; }
    __device__ u32 outer(u32 bit) const { return bit + 32 * first; }
};

// Reads bits from any place on.
struct Reader {
    const u32 *words;
    u32 at;
    __device__ __forceinline__ u32 peek() const { return bits_at(words, at); }
};

static __device__ __forceinline__ u32 literals_of(u32 entry) { return entry >> 8 & 0xffff; }
static __device__ __forceinline__ u32 count_of(u32 entries) { return entries >> 5 & 3; }

// Takes one entry, or only its first literal where the second would begin at `limit` or later.
// Says whether it was the block's end; `bad` becomes true where a word means nothing.
template <class Literals, class Copy>
static __device__ __forceinline__ bool
take(const Tables &tables, Reader &reader, u32 limit, bool &bad, Literals literals, Copy copy) {
    u32 bits = reader.peek(), entry = tables.litlen[bits % (1 << LITLEN_BITS)];
    if (entry == 0) entry = long_word<false>(tables, bits);
    if (entry & LITERALS) {
        const u32 first = entry >> 24;
        const bool one = reader.at + first >= limit;
        literals(literals_of(entry) & (one ? 0xff : 0xffff), one ? 1 : count_of(entry));
        reader.at += one ? first : entry & TAKEN;
        return false;
    }
    if (entry == 0) {
        bad = true;
        reader.at++;
        return false;
    }
    const u32 taken = entry & TAKEN, extra = entry >> 17 & 7;
    reader.at += taken + extra;
    if (entry & STOP) return true;
    const u32 length = (entry >> 8 & 0x1ff) + (bits >> taken & ((1u << extra) - 1));
    bits = reader.peek();
    entry = tables.dist[bits % (1 << DIST_BITS)];
    if (entry == 0) entry = long_word<true>(tables, bits);
    if (entry == 0) {
        bad = true;
        reader.at++;
        return false;
    }
    const u32 dist_taken = entry & 15, dist_extra = entry >> 4 & 15;
    reader.at += dist_taken + dist_extra;
    copy(length, (entry >> 8) + (bits >> dist_taken & ((1u << dist_extra) - 1)));
    return false;
}

// Takes all symbols that begin before `limit`, up to the block's end, and says whether that was among them.
//   literals(up to four bytes, how many)   copy(length, distance)
template <class Literals, class Copy>
static __device__ __forceinline__ bool
decode(const Tables &tables, Reader &reader, u32 limit, bool &bad, Literals literals, Copy copy) {
    while (reader.at < limit) {
        // Entries of literals, two at a time: one look at the stream for both. Lanes wait here for one another, which takes
        // less time than if those with a match made the others wait.
        while (reader.at + 2 * LITLEN_BITS <= limit) {
            const u32 bits = reader.peek(), one = tables.litlen[bits % (1 << LITLEN_BITS)];
            if ((one & LITERALS) == 0) break;
            const u32 next = tables.litlen[__funnelshift_r(bits, 0, one) % (1 << LITLEN_BITS)];
            const u32 two = next & LITERALS ? next : 0;
            literals(literals_of(one) | literals_of(two) << 8 * count_of(one), count_of(one) + count_of(two));
            reader.at += (one + two) & TAKEN;
        }
        if (reader.at < limit && take(tables, reader, limit, bad, literals, copy)) return true;
    }
    return false;
}
