// LZW as in TIFF's strips and tiles (TIFF 6.0, section 13): codes of 9 to 12 bits, highest bit first, whose width grows one code
// early. A *segment* is the codes of a stream between two Clear codes: segments share no table, so that a warp decodes each.
//
//   lzw_find(const u32 *stream, u32 words, const u32 *begins, u32 count, Segment *segments, u32 *report)
//       Finds the segments of `count` streams. Stream i has the bytes of `stream` from begins[i] to begins[i + 1]; its segments are
//       those from first_slot on, the unused ones with 0 codes. Grid: a warp a stream.
//   lzw_measure(const u32 *stream, u32 words, Segment *segments)
//       How many bytes each segment gives. Grid: a warp a segment.
//   lzw_write(const u32 *stream, u32 words, const u32 *begins, u32 count, u32 each, u32 total, const Segment *segments, u8 *bytes,
//             u32 *report)
//       The bytes of all segments: stream i gives the bytes from i·each to (i + 1)·each, the last one those up to `total`. The
//       report says whether a stream is damaged or gives fewer bytes; what exceeds them is ignored. Grid: a warp a segment.
//
// A warp decodes 32 codes at a time. Three facts make that possible:
// * The width of a code depends only on how many codes precede it in its segment. So each lane knows where its code begins.
// * The string of code 258 + e consists of the bytes that code number e of the segment gave, and the byte after them. So the
//   output itself is the table: where the bytes of each code begin is all that must be kept.
// * A byte of a string is a copy of an earlier byte. If a code of the same 32 gives that one, the lane follows the copies
//   until it meets a literal or a byte that is written already. No lane waits for another.
//
// Two numbers, for b bytes of stream that make n: reads b three times and some n, and writes n.
#include "inflate.cuh"

constexpr u32 LZW_BLOCK = 32; // threads of a block, which is one warp
constexpr u32 CLEAR = 256, END_OF_STREAM = 257, FIRST_STRING = 258, CODES = 4096;
constexpr u32 STRINGS = CODES - FIRST_STRING;
// Codes of a segment whose width is at most 9, 10 and 11 bits: the table then has 511, 1023 and 2047 entries.
constexpr u32 NINE = 254, TEN = 766, ELEVEN = 1790;
constexpr u32 AHEAD = 8; // groups of 32 codes that are loaded together

// Segments for which there is room: one for so many bytes of a stream, and so many more. A full table takes 5 KB.
constexpr u32 SEGMENT_BYTES = 2048, MORE_SEGMENTS = 2; // host

struct alignas(16) Segment {
    u32 first_bit; // of its first code
    u32 codes;     // how many it has
    u32 bytes;     // how many they give, up to the first code that is invalid
    u32 stream;    // the index of its stream; IS_INVALID is added if a code is invalid
};
constexpr u32 IS_INVALID = 1u << 31;

static __device__ __forceinline__ u32 first_slot(u32 begin, u32 index) {
    return begin / SEGMENT_BYTES + index * (MORE_SEGMENTS + 1);
}

// The first bit of code number `i` of a segment, counted from that of its first code, and the width of the code.
static __device__ __forceinline__ u32 bit_of(u32 i) {
    u32 bits = 9 * i;
    if (i > NINE) bits += i - NINE;
    if (i > TEN) bits += i - TEN;
    if (i > ELEVEN) bits += i - ELEVEN;
    return bits;
}
static __device__ __forceinline__ u32 width_of(u32 i) { return 9 + (i >= NINE) + (i >= TEN) + (i >= ELEVEN); }

// The `width` bits of the stream from `bit` on.
static __device__ __forceinline__ u32 code_at(const u32 *stream, u32 bit, u32 width) {
    const u32 high = __byte_perm(stream[bit / 32], 0, 0x0123), low = __byte_perm(stream[bit / 32 + 1], 0, 0x0123);
    return __funnelshift_l(low, high, bit % 32) >> (32 - width);
}

// lengths: stream[words], begins[count + 1], segments[..], report[REPORT]
// requires: grid.blocks == count
// trusts: begins, which rise and end two words before the end of the stream, and segments, of which there are as many as
//     first_slot gives for the stream after the last one
// in sets
extern "C" __global__ void __launch_bounds__(LZW_BLOCK)
    lzw_find(const u32 *__restrict__ stream, u32 words, const u32 *__restrict__ begins, u32 count, Segment *segments,
             u32 *report) {
    const u32 lane = threadIdx.x, index = blockIdx.x;
    const u32 end = 8 * begins[index + 1];
    u32 slot = first_slot(begins[index], index);
    const u32 slots = first_slot(begins[index + 1], index + 1);
    u32 first = 8 * begins[index], done = 0;
    bool is_over = false, is_crowded = false;
    while (!is_over) {
        u32 codes[AHEAD];
#pragma unroll
        for (u32 k = 0; k < AHEAD; k++) {
            const u32 number = done + 32 * k + lane, bit = first + bit_of(number), width = width_of(number);
            codes[k] = bit < end && width <= end - bit ? code_at(stream, bit, width) : END_OF_STREAM;
        }
#pragma unroll
        for (u32 k = 0; k < AHEAD; k++) {
            const u32 special = __ballot_sync(ALL, codes[k] == CLEAR || codes[k] == END_OF_STREAM);
            if (!special) {
                done += 32;
                continue;
            }
            const u32 used = __ffs(special) - 1;
            done += used;
            if (done > 0) {
                is_crowded = slot == slots;
                if (lane == 0 && !is_crowded) segments[slot] = {first, done, 0, index};
                slot += !is_crowded;
            }
            is_over = is_crowded || __shfl_sync(ALL, codes[k], used) == END_OF_STREAM;
            first += bit_of(done) + width_of(done);
            done = 0;
            break;
        }
    }
    for (u32 i = slot + lane; i < slots; i += 32) segments[i] = {0, 0, 0, index};
    if (lane == 0 && is_crowded) atomicOr(&report[WRONG], BAD_LZW);
}

// The codes of 32 lanes, decoded as far as to where their bytes begin. A code that repeats another of the round has as its root
// the code at the end of that chain: both begin with the same bytes.
struct Round {
    u32 codes[32], starts[33], roots[32];
};

// Decodes the codes of a segment, 32 at a time. Before each round's bytes are written, `round` has its codes, and where their
// bytes begin, counted from the first byte of the segment; `starts` has the same of all codes before. `take`
// is called with the first byte of a round, the bytes that it makes, the number of its first code, how many codes are valid, and the
// length of the lane's string. Returns whether all codes are
// valid.
template <class Take>
static __device__ __forceinline__ bool decode(const u32 *stream, const Segment &segment, u32 *starts, Round &round, Take take) {
    const u32 lane = threadIdx.x;
    u32 at = 0;
    // Beyond the segment's codes nothing is used: the stream has two words more.
    const u32 own = min(lane, segment.codes);
    u32 code = code_at(stream, segment.first_bit + bit_of(own), width_of(own));
    for (u32 done = 0; done < segment.codes; done += 32) {
        const u32 number = done + lane;
        // The next round's, in flight during this one.
        const u32 later = min(number + 32, segment.codes);
        const u32 next = code_at(stream, segment.first_bit + bit_of(later), width_of(later));
        const u32 used = min(segment.codes - done, 32);
        const bool is_used = lane < used;
        // The first code adds no string to the table, each later one does, until it is full. A code may name the string that
        // is being formed.
        const u32 newest = number == 0 ? CLEAR - 1 : min(FIRST_STRING + number - 1, CODES - 1);
        const u32 invalid = __ballot_sync(ALL, is_used && code > newest);
        const u32 valid = invalid ? __ffs(invalid) - 1 : used;
        const bool is_valid = lane < valid;
        // The length of each string: one more than that of the code that it repeats.
        const u32 repeated = code - FIRST_STRING;
        u32 length = is_valid;
        bool is_known = !is_valid || code < CLEAR;
        if (!is_known && repeated < done) {
            length = starts[repeated + 1] - starts[repeated] + 1;
            is_known = true;
        }
        const u32 from = is_known ? lane : repeated - done;
        u32 root = lane;
        while (__any_sync(ALL, !is_known)) {
            const u32 theirs = __shfl_sync(ALL, length, from), their_root = __shfl_sync(ALL, root, from);
            const bool are_known = __shfl_sync(ALL, is_known, from);
            if (!is_known && are_known) {
                length = theirs + 1;
                root = their_root;
                is_known = true;
            }
        }
        u32 sum = length;
#pragma unroll
        for (u32 d = 1; d < 32; d *= 2) {
            const u32 before = __shfl_up_sync(ALL, sum, d);
            if (lane >= d) sum += before;
        }
        const u32 made = __shfl_sync(ALL, sum, 31), start = at + sum - length;
        __syncwarp(); // all have read `starts`
        round.codes[lane] = code;
        round.starts[lane] = start;
        round.roots[lane] = root;
        if (lane == 31) round.starts[32] = at + made;
        if (is_valid && number <= STRINGS) starts[number] = start;
        if (lane == 0 && done + valid <= STRINGS) starts[done + valid] = at + made;
        __syncwarp();
        take(at, made, done, valid, length);
        __syncwarp();
        at += made;
        if (invalid) return false;
        code = next;
    }
    return true;
}

// lengths: stream[words], segments[grid.blocks]
// trusts: segments, which lie inside the stream
// in sets
extern "C" __global__ void __launch_bounds__(LZW_BLOCK)
    lzw_measure(const u32 *__restrict__ stream, u32 words, Segment *segments) {
    __shared__ u32 starts[STRINGS + 1];
    __shared__ Round round;
    const Segment segment = segments[blockIdx.x];
    if (segment.codes == 0) return;
    u32 bytes = 0;
    const bool is_valid = decode(stream, segment, starts, round, [&](u32 at, u32 made, u32, u32, u32) { bytes = at + made; });
    if (threadIdx.x == 0) {
        segments[blockIdx.x].bytes = bytes;
        if (!is_valid) segments[blockIdx.x].stream = segment.stream | IS_INVALID;
    }
}

// The byte at `offset` of what code number `k` of a round gives. `before` are the bytes of the segment.
static __device__ __forceinline__ u32
byte_of(const Round &round, const u32 *starts, const u8 *before, u32 at, u32 done, u32 k, u32 offset) {
    while (true) {
        const u32 code = round.codes[k];
        if (code < CLEAR) return code;
        const u32 repeated = code - FIRST_STRING;
        if (repeated < done) {
            const u32 source = starts[repeated] + offset;
            if (source < at) return before[source];
            // The last byte of the string is the first of this round.
            k = 0;
            offset = source - at;
        } else {
            // The root is shorter; a byte that it does not have is looked up one code after the other.
            const u32 root = round.roots[k];
            k = offset < round.starts[root + 1] - round.starts[root] ? root : repeated - done;
            if (offset == round.starts[k + 1] - round.starts[k]) {
                k++;
                offset = 0;
            }
        }
    }
}

// The largest value of a warp.
static __device__ __forceinline__ u32 longest_of(u32 value) {
#pragma unroll
    for (u32 d = 16; d; d /= 2) value = max(value, __shfl_xor_sync(ALL, value, d));
    return value;
}

// lengths: stream[words], begins[count + 1], segments[grid.blocks], bytes[total], report[REPORT]
// trusts: segments, which lie inside the stream, and whose streams there are; begins, as lzw_find does
// in sets
extern "C" __global__ void __launch_bounds__(LZW_BLOCK)
    lzw_write(const u32 *__restrict__ stream, u32 words, const u32 *__restrict__ begins, u32 count, u32 each, u32 total,
              const Segment *segments, u8 *bytes, u32 *report) {
    __shared__ u32 starts[STRINGS + 1];
    __shared__ Round round;
    const u32 lane = threadIdx.x, slot = blockIdx.x;
    const Segment segment = segments[slot];
    const u32 index = segment.stream & ~IS_INVALID;
    const u32 first = first_slot(begins[index], index);
    if (segment.codes == 0) {
        // A stream without codes gives no bytes.
        if (slot == first && lane == 0) atomicOr(&report[WRONG], BAD_LZW);
        return;
    }
    // The bytes of the segments before, as far as the stream takes bytes.
    const u32 room = (index + 1 == count ? total : (index + 1) * each) - index * each;
    u64 before = 0;
    for (u32 i = first + lane; i < slot; i += 32) before += segments[i].bytes;
#pragma unroll
    for (u32 d = 16; d; d /= 2) before += __shfl_xor_sync(ALL, before, d);
    if (before >= room) return;
    const u32 limit = min(segment.bytes, room - (u32)before);
    const bool is_last = slot + 1 == first_slot(begins[index + 1], index + 1) || segments[slot + 1].codes == 0;
    const bool is_short = limit < room - (u32)before;
    if (lane == 0 && is_short && (is_last || segment.stream != index)) atomicOr(&report[WRONG], BAD_LZW);
    u8 *own = bytes + index * each + (u32)before;
    decode(stream, segment, starts, round, [&](u32 at, u32 made, u32 done, u32 used, u32 length) {
        const u32 longest = longest_of(length);
        if (longest <= 8) {
            // A code a lane.
            const u32 start = round.starts[lane];
            for (u32 offset = 0; offset < length; offset++)
                if (start + offset < limit) own[start + offset] = byte_of(round, starts, own, at, done, lane, offset);
        } else {
            for (u32 i = at + lane; i < min(at + made, limit); i += 32) {
                // The code that gives byte i: the last one that begins there or before.
                u32 k = 0;
#pragma unroll
                for (u32 d = 16; d; d /= 2)
                    if (k + d < used && round.starts[k + d] <= i) k += d;
                own[i] = byte_of(round, starts, own, at, done, k, i - round.starts[k]);
            }
        }
    });
}
