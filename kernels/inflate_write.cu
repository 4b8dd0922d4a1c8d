// Inflater, third part: what deflate's symbols make, written.
//
//   inflate_write(const u32 *stream, u32 words, const Codes *codes, const Part *parts, const Lane *lanes, const Place *places,
//             u8 *bytes, Match *matches, u32 *report)
//       Literals of the parts that are USED, which `places` name, and the list of their matches. Bytes of matches are left
//       undefined. Grid: as many blocks of LANES as the card holds; each takes part after part.
//   inflate_stored(const u8 *stream, const Stored *pieces, u8 *bytes)
//       The bytes of stored blocks. Grid: a block of 256 a piece.
// Beyond its last word the stream reads as zeros.
//
// Two numbers, for b bytes of stream that make n: reads b and writes n; some three literals in 38 instructions.
#include "inflate_symbols.cuh"

constexpr u32 WINDOW = 17 << 10; // bytes of output that shared memory holds: zlib's blocks are 16 K symbols, or twice as many

// Writes the bytes that a lane makes into memory of whole words, a word at a time; of the words that it shares with its
// neighbours only its own bytes. What it writes for the bytes of matches is undefined.
struct Writer {
    u32 *words;
    u32 begin, at; // its first byte, and the next
    u32 word;      // of the next byte: what is known of it
    __device__ void edge(u32 i, u32 to) {
        for (u32 k = i == begin / 4 ? begin % 4 : 0; k < to; k++) ((u8 *)words)[4 * i + k] = word >> 8 * k;
    }
    __device__ __forceinline__ void end_word() {
        const u32 i = at / 4;
        if (i == begin / 4) edge(i, 4);
        else words[i] = word;
    }
    // Four bytes at most.
    __device__ __forceinline__ void literals(u32 bytes, u32 count) {
        const u32 then = at + count;
        word |= __funnelshift_l(0, bytes, 8 * at);
        if ((then ^ at) & 4) {
            end_word();
            word = __funnelshift_l(bytes, 0, 8 * at);
        }
        at = then;
    }
    // Three bytes or more: the rest of a word that has begun.
    __device__ __forceinline__ void match(u32 len) {
        if (at % 4) end_word();
        word = 0;
        at += len;
    }
    __device__ __forceinline__ void end() { edge(at / 4, at % 4); }
};

// Writes the bytes that a lane makes; those of matches are left undefined.
struct Bytes {
    u8 *to;
    u32 at;
    // Four bytes at most.
    __device__ __forceinline__ void literals(u32 bytes, u32 count) {
#pragma unroll
        for (u32 k = 0; k < 4; k++)
            if (k < count) to[at + k] = bytes >> 8 * k;
        at += count;
    }
    __device__ __forceinline__ void match(u32 len) { at += len; }
    __device__ __forceinline__ void end() {}
};

// Writes what a lane makes from byte `at` of `words` on.
//   match(at, length, distance)
template <class Out, class Copy>
static __device__ __forceinline__ void write_lane(const Tables &tables, Reader reader, u32 end, Out out, Copy match) {
    bool bad = false;
    decode(
        tables, reader, end, bad, [&](u32 bytes, u32 count) { out.literals(bytes, count); },
        [&](u32 length, u32 distance) {
            match(out.at, length, distance);
            out.match(length);
        });
    out.end();
}

// Outside the kernel, so that the kernel of sets has the same: `long_word` then knows its address.
static __shared__ Tables tables;

// Five blocks of threads at once are what shared memory allows.
// lengths: stream[words], codes[..], parts[..], lanes[..], places[..], bytes[..], matches[..], report[REPORT]
// trusts: report, parts, lanes and places: their bytes and matches there are
// in sets
extern "C" __global__ void __launch_bounds__(LANES, 5)
    inflate_write(const u32 *__restrict__ stream, u32 words, const Codes *__restrict__ codes, const Part *__restrict__ parts,
              const Lane *__restrict__ lanes, const Place *__restrict__ places, u8 *bytes, Match *matches, u32 *report) {
    __shared__ u32 stage[STAGE];
    __shared__ uint4 window[WINDOW / 16 + 1];
    const u32 count = report[USED];
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
        const u32 ahead = place.at % 16, at = ahead + own->bytes, base = place.at - ahead;
        Match *match = matches + place.matches + own->matches;
        const Reader reader{stage, in.inner(own->start)};
        const auto copy = [&](u32 to, u32 length, u32 distance) {
            if (distance > base + to - place.first) atomicOr(&report[WRONG], TOO_FAR);
            *match++ = {base + to, (u16)length, (u16)(distance & 0x7fff)};
        };
        if (fits) write_lane(tables, reader, end, Writer{(u32 *)window, at, at, 0}, copy);
        else write_lane(tables, reader, end, Bytes{bytes + base, at}, copy);
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
struct alignas(16) Stored {
    u32 from, at, len, unused;
};

// lengths: stream[..], pieces[grid.blocks], bytes[..]
// trusts: pieces, which lie inside the stream and the bytes
// in sets
extern "C" __global__ void __launch_bounds__(BLOCK) inflate_stored(const u8 *stream, const Stored *pieces, u8 *bytes) {
    const Stored piece = pieces[blockIdx.x];
    for (u32 i = threadIdx.x; i < piece.len; i += BLOCK) bytes[piece.at + i] = stream[piece.from + i];
}
