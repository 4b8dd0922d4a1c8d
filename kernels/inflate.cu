// Inflater, second part: deflate's symbols, counted and then written.
//
//   inflate_count(const u32 *stream, u32 words, const Codes *codes, Part *parts, Lane *lanes, u32 from, u32 to, u32 rounds,
//             const u32 *report)
//       Of parts [from, to), or of all that are made where `to` is 0: where each lane begins and what it makes. Lanes that
//       do not start where the one before stopped decode again, in `rounds` rounds at most; LANES always suffice where
//       the part's start is known. Grid: as many blocks of LANES as the card holds; each takes part after part.
//   inflate_write(stream, words, codes, parts, lanes, const Place *places, u32 count, u8 *bytes, Match *matches, u32 *report)
//       Literals of the parts that `places` name, and the list of their matches. Bytes of matches are left undefined.
//       Grid: as many blocks of LANES as the card holds.
//   inflate_stored(const u8 *stream, const Stored *pieces, u8 *bytes)
//       The bytes of stored blocks. Grid: a block of 256 a piece.
// `codes` may lie behind one another in two buffers no more than parts do: all lists are the host's to size. Beyond its
// last word the stream reads as zeros.
//
// Two numbers, for b bytes of stream that make n: count reads b and write too, and writes n. Either decodes some 1.5
// literals in 20 to 25 instructions, count a third more for the start of lanes; a part's tables take as many
// instructions as a fifth of its symbols.
#include "inflate.cuh"

constexpr u32 LANES = 128;
constexpr u32 SPAN = 96 << 10;          // bits of the longest part
constexpr u32 WARM = 256, WARM_PART = 1024; // bits ahead of a lane, and ahead of the first of a part
constexpr u32 BEYOND = 6;               // words that a symbol of the last bits and the reader's view of what is next reach into
constexpr u32 STAGE = SPAN / 32 + WARM_PART / 32 + 2 + BEYOND;
constexpr u32 WINDOW = 22 << 10;        // bytes of output that shared memory holds

constexpr u32 LITLEN_BITS = 11, DIST_BITS = 8;
// An entry of the table of literals and lengths has in its lowest four bits how many bits it takes, then how many
// literals it is, 0 to 2. Literals: they follow in bits 8 and 16, and the bits of the first alone in bit 24. A length: its base
// in bit 8, how many extra bits in bit 17. Distances: extra bits in bit 4, base in bit 8. 0: no word so short.
constexpr u32 LITERAL = 1 << 4, BOTH = 2 << 4, LITERALS = 3 << 4, END = 1 << 20;

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
    if (symbol == 256) return bits | END;
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
        if ((two & LITERALS) && both <= LITLEN_BITS) entries[k] = (one & ~(15u | LITERALS)) | both | BOTH | (two & 0xff00) << 8;
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

// Reads bits on from any place, two words and the next in registers.
struct Reader {
    const u32 *words;
    u32 at, low, high, next;
    __device__ Reader(const u32 *words, u32 at) : words(words), at(at) {
        const u32 *from = words + at / 32;
        low = from[0], high = from[1], next = from[2];
    }
    __device__ __forceinline__ u32 peek() const { return __funnelshift_r(low, high, at % 32); }
    // Fewer than 32 bits.
    __device__ __forceinline__ void pass(u32 bits) {
        const u32 then = at + bits;
        if ((then ^ at) & 32) low = high, high = next, next = words[then / 32 + 2];
        at = then;
    }
};

// Takes one entry, or only its first literal where the second would begin at `limit` or later.
//   literals(entry, how many)   length_distance(length, distance)
// Says whether it was the block's end; `bad` becomes true where a word means nothing.
template <class Literals, class Copy>
static __device__ __forceinline__ bool
take(const Tables &tables, Reader &reader, u32 limit, bool &bad, Literals literals, Copy copy) {
    u32 bits = reader.peek(), entry = tables.litlen[bits % (1 << LITLEN_BITS)];
    if (entry == 0) entry = long_word<false>(tables, bits);
    if (entry & LITERALS) {
        const u32 first = entry >> 24;
        const bool one = reader.at + first >= limit;
        literals(entry, one ? 1 : entry >> 4 & 3);
        reader.pass(one ? first : entry & 15);
        return false;
    }
    if (entry == 0) {
        bad = true;
        reader.pass(1);
        return false;
    }
    const u32 taken = entry & 15, extra = entry >> 17 & 7;
    reader.pass(taken + extra);
    if (entry & END) return true;
    const u32 length = (entry >> 8 & 0x1ff) + (bits >> taken & ((1u << extra) - 1));
    bits = reader.peek();
    entry = tables.dist[bits % (1 << DIST_BITS)];
    if (entry == 0) entry = long_word<true>(tables, bits);
    if (entry == 0) {
        bad = true;
        reader.pass(1);
        return false;
    }
    const u32 dist_taken = entry & 15, dist_extra = entry >> 4 & 15;
    reader.pass(dist_taken + dist_extra);
    copy(length, (entry >> 8) + (bits >> dist_taken & ((1u << dist_extra) - 1)));
    return false;
}

constexpr u32 LANE_WARPS = LANES / 32;

// The first of all threads with `yes`, or LANES; `shared` holds a word a warp, and is free again after a barrier.
static __device__ __forceinline__ u32 first_thread(bool yes, u32 *shared) {
    const u32 mask = __ballot_sync(ALL, yes);
    if (threadIdx.x % 32 == 0) shared[threadIdx.x / 32] = mask;
    __syncthreads();
    u32 first = LANES;
#pragma unroll
    for (u32 w = LANE_WARPS; w-- > 0;)
        if (shared[w]) first = 32 * w + __ffs(shared[w]) - 1;
    return first;
}

extern "C" __global__ void __launch_bounds__(LANES)
    inflate_count(const u32 *__restrict__ stream, u32 words, const Codes *__restrict__ codes, Part *parts, Lane *lanes, u32 from,
              u32 to, u32 rounds, const u32 *report) {
    __shared__ Tables tables;
    __shared__ u32 stage[STAGE], stops[LANES], shared[4][LANE_WARPS];
    if (to == 0) to = report[WRONG] ? 0 : report[PARTS_MADE];
    for (u32 index = from + blockIdx.x; index < to; index += gridDim.x) {
        const Part part = parts[index];
        const Codes &own = codes[part.codes];
        make_tables(tables, own);
        // A part whose start is not known has one in its block before it, so that there is something to warm up with.
        const u32 data = own.data;
        const u32 warm = part.start ? part.start : max(data, part.begin - min(part.begin, WARM_PART));
        Stage in;
        in.fill(stage, stream, words, min(warm, part.begin - min(part.begin - data, WARM)), part.limit);
        __syncthreads();
        const u32 step = max((part.limit - part.begin + LANES - 1) / LANES, 64);
        const u32 limit_all = in.inner(part.limit);
        const u32 begin = min(in.inner(part.begin) + threadIdx.x * step, limit_all), limit = min(begin + step, limit_all);
        // Lanes without a stretch of their own, if the part is short, start where it stops.
        const bool active = threadIdx.x == 0 || begin < limit_all;
        u32 start = begin;
        if (threadIdx.x == 0 && part.start) start = in.inner(part.start);
        else if (begin < limit) {
            const u32 earliest = in.inner(max(data, 32 * in.first));
            const u32 before = threadIdx.x == 0 ? WARM_PART : WARM;
            Reader reader(stage, max(earliest, begin - min(begin, before)));
            bool bad;
            while (reader.at < begin) take(tables, reader, begin, bad, [](u32, u32) {}, [](u32, u32) {});
            start = reader.at;
        }
        u32 bytes = 0, matches = 0, stop = 0, last = LANES, errors = LANES;
        bool again = true, ended = false, bad = false, settled = false;
        for (u32 round = 0; round < rounds; round++) {
            if (again) {
                bytes = matches = 0;
                ended = bad = false;
                stop = start;
                if (start < limit) {
                    Reader reader(stage, start);
                    while (reader.at < limit && !ended)
                        ended = take(tables, reader, limit, bad, [&](u32, u32 count) { bytes += count; },
                                     [&](u32 length, u32) { bytes += length, matches++; });
                    stop = reader.at;
                }
                stops[threadIdx.x] = stop;
            }
            __syncthreads();
            const u32 true_start = threadIdx.x ? stops[threadIdx.x - 1] : start;
            again = active && start != true_start;
            start = true_start;
            const u32 wrong = first_thread(again, shared[0]);
            last = first_thread(ended, shared[1]);
            errors = first_thread(bad, shared[2]);
            settled = wrong > last || wrong == LANES;
            if (settled) break;
            __syncthreads();
        }
        // What lies behind the block's end is not its own.
        const u32 idle = first_thread(!active, shared[3]);
        stop = stops[min(last, idle - 1)];
        if (threadIdx.x > last || !active) bytes = matches = 0, start = stop;
        u32 all_bytes, all_matches;
        __syncthreads();
        const u32 bytes_before = scan_threads<LANES>(bytes, shared[0], all_bytes);
        const u32 matches_before = scan_threads<LANES>(matches, shared[1], all_matches);
        lanes[index * LANES + threadIdx.x] = {in.outer(start), bytes_before, matches_before};
        if (threadIdx.x == 0) {
            Part &result = parts[index];
            result.start = in.outer(start);
            result.stop = in.outer(stop);
            result.bytes = all_bytes;
            const u32 flags = (last < LANES ? ENDED : 0) | (settled ? 0 : UNSETTLED) | (errors < LANES && errors <= last ? BAD : 0);
            result.found = (part.found >> 16 & (FIRST | LAST) | flags) << 16 | all_matches;
        }
        __syncthreads();
    }
}

extern "C" __global__ void __launch_bounds__(LANES)
    inflate_write(const u32 *__restrict__ stream, u32 words, const Codes *__restrict__ codes, const Part *__restrict__ parts,
              const Lane *__restrict__ lanes, const Place *__restrict__ places, u32 count, u8 *bytes, Match *matches, u32 *report) {
    __shared__ Tables tables;
    __shared__ u32 stage[STAGE];
    __shared__ uint4 window[WINDOW / 16 + 1];
    for (u32 index = blockIdx.x; index < count; index += gridDim.x) {
        const Place place = places[index];
        const Part part = parts[place.part];
        make_tables(tables, codes[part.codes]);
        Stage in;
        in.fill(stage, stream, words, part.start, max(part.limit, part.stop));
        __syncthreads();
        const Lane *own = lanes + place.part * LANES + threadIdx.x;
        const u32 end = in.inner(threadIdx.x + 1 < LANES ? own[1].start : part.stop);
        const bool fits = part.bytes <= WINDOW;
        // As far from a multiple of 16 as the place in memory, so that vectors can be copied.
        u8 *to = fits ? (u8 *)window + place.at % 16 : bytes + place.at;
        u32 at = own->bytes;
        Match *match = matches + place.matches + own->matches;
        Reader reader(stage, in.inner(own->start));
        bool bad = false, ended = false;
        while (reader.at < end && !ended)
            ended = take(
                tables, reader, end, bad,
                [&](u32 entry, u32 literals) {
                    to[at++] = entry >> 8;
                    if (literals == 2) to[at++] = entry >> 16;
                },
                [&](u32 length, u32 distance) {
                    if (distance > place.at + at - place.first) atomicOr(&report[WRONG], TOO_FAR);
                    *match++ = {place.at + at, (u16)length, (u16)(distance & 0x7fff)};
                    at += length;
                });
        __syncthreads();
        if (fits && part.bytes > 0) {
            const u32 from = place.at % 16, behind = from + part.bytes; // in the window
            u8 *base = bytes + (place.at - from);
            const u8 *made = (const u8 *)window;
            const u32 first = min((from + 15) / 16 * 16, behind), last = max(behind / 16 * 16, first);
            for (u32 i = from + threadIdx.x; i < first; i += LANES) base[i] = made[i];
            for (u32 i = first / 16 + threadIdx.x; i < last / 16; i += LANES) ((uint4 *)base)[i] = window[i];
            for (u32 i = last + threadIdx.x; i < behind; i += LANES) base[i] = made[i];
        }
        __syncthreads();
    }
}

// Bytes of a stored block, from byte `from` of the stream on.
struct Stored {
    u32 from, at, len, unused;
};

extern "C" __global__ void __launch_bounds__(BLOCK) inflate_stored(const u8 *stream, const Stored *pieces, u8 *bytes) {
    const Stored piece = pieces[blockIdx.x];
    for (u32 i = threadIdx.x; i < piece.len; i += BLOCK) bytes[piece.at + i] = stream[piece.from + i];
}
