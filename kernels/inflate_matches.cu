// Inflater, fourth part: the bytes of matches. A byte's value is that of another byte up to 32 KiB before it, which
// may lie in a match itself; on the way from byte to byte a literal comes soon.
//
//   inflate_near(const Part *parts, const Place *places, const Match *matches, u8 *bytes, u32 *sources, u32 *waiting,
//            const u32 *report)
//       Part by part, in windows of shared memory: bytes whose way ends at a literal of the same window get their
//       value. Of the others a bit of `waiting`, zero before, is set, and their word of `sources` says which byte
//       before the window they equal. Grid: any number of blocks of 256; where parts make much, several share one.
//   inflate_far(const u32 *waiting, u32 count, u32 *sources, u8 *bytes, const u32 *report)
//       Gives the bytes that are left their value. Each step on a way is written back, so that the next is shorter.
//       Grid: a block of 256 for 256 of the `count` words.
// A source lies before its byte: every way ends.
#include "inflate.cuh"

constexpr u32 NEAR = 16 << 10; // bytes of a window
constexpr u32 FEW = 64;        // matches for which a window does not pay

// take(byte, source) for the bytes of a match in [from, to): byte k equals one of the `distance` bytes before the match.
template <class Take> static __device__ __forceinline__ void each(const Match &match, u32 from, u32 to, Take take) {
    const u32 distance = match.distance ? match.distance : 32768, first = match.at - distance;
    const u32 end = min(match.at + match.len, to) - match.at;
    u32 k = max(from, match.at) - match.at, back = k % distance;
    for (; k < end; k++) {
        take(match.at + k, first + back);
        if (++back == distance) back = 0;
    }
}

// lengths: parts[..], places[..], matches[..], bytes[..], sources[..], waiting[..], report[REPORT]
// trusts: all of them, as inflate_write leaves them: a source and a bit that waits for each byte
// in sets
extern "C" __global__ void __launch_bounds__(BLOCK)
    inflate_near(const Part *__restrict__ parts, const Place *__restrict__ places, const Match *__restrict__ matches, u8 *bytes,
             u32 *sources, u32 *waiting, const u32 *report) {
    // Of a byte: whether it is a LITERAL, or waits for one before the window, or its source's place INSIDE.
    enum : u32 { INSIDE = NEAR - 1, AWAY, LITERAL = 0xffff };
    __shared__ uint4 memory[NEAR / 8];
    u16 *window = (u16 *)memory;
    if (report[WRONG] || report[MATCHES] == 0) return;
    constexpr int MOST_SHARE = 64; // host: blocks that share the windows of a part
    const u32 share = min(max(report[LARGEST] / (4 * NEAR), 1), MOST_SHARE);
    for (u32 item = blockIdx.x; item < share * report[USED]; item += gridDim.x) {
        const Place place = places[item / share];
        const u32 turn = item % share;
        const Part part = parts[place.part];
        const u32 end = place.at + part.bytes, count = part.found & 0xffff;
        const Match *own = matches + place.matches;
        if (count < FEW) {
            for (u32 m = turn * BLOCK + threadIdx.x; m < count; m += BLOCK)
                each(own[m], 0, end, [&](u32 at, u32 source) {
                    sources[at] = source;
                    atomicOr(&waiting[at / 32], 1u << at % 32);
                });
            continue;
        }
        // Windows begin where words of `waiting` do.
        for (u32 from = place.at / 32 * 32 + turn * NEAR; from < end; from += share * NEAR) {
            const u32 begin = max(from, place.at), to = min(from + NEAR, end);
            // The first match that reaches into the window.
            u32 match = 0;
            for (u32 behind = begin > place.at ? count : 0; match < behind;) {
                const u32 middle = (match + behind) / 2;
                if (own[middle].at + own[middle].len <= begin) match = middle + 1;
                else behind = middle;
            }
            for (u32 i = threadIdx.x; i < NEAR / 8; i += BLOCK) memory[i] = make_uint4(ALL, ALL, ALL, ALL);
            __syncthreads();
            for (u32 m = match + threadIdx.x; m < count && own[m].at < to; m += BLOCK) {
                const Match one = own[m];
                each(one, begin, to, [&](u32 at, u32 source) {
                    window[at - from] = source >= begin ? source - from : AWAY;
                    if (source < begin) sources[at] = source;
                });
            }
            __syncthreads();
            for (u32 base = from; base < to; base += BLOCK) {
                const u32 at = base + threadIdx.x;
                const bool inside = at >= begin && at < to;
                u32 last = at - from, way = inside ? window[last] : LITERAL;
                bool away = false;
                if (way != LITERAL) {
                    while (way <= INSIDE) last = way, way = window[last];
                    away = way == AWAY;
                    if (!away) bytes[at] = bytes[from + last];
                    else if (from + last != at) sources[at] = sources[from + last];
                }
                const u32 mask = __ballot_sync(ALL, away);
                if (threadIdx.x % 32 == 0 && mask) atomicOr(&waiting[at / 32], mask);
            }
            __syncthreads();
        }
    }
}

// lengths: waiting[count], sources[..], bytes[..], report[REPORT]
// trusts: waiting and sources, as inflate_near leaves them
// in sets
extern "C" __global__ void __launch_bounds__(BLOCK)
    inflate_far(const u32 *__restrict__ waiting, u32 count, volatile u32 *sources, u8 *bytes, const u32 *report) {
    if (report[WRONG] || report[MATCHES] == 0) return;
    const u32 lane = threadIdx.x % 32, first = blockIdx.x * BLOCK + threadIdx.x - lane;
    const u32 own = first + lane < count ? waiting[first + lane] : 0;
    for (u32 left = __ballot_sync(ALL, own != 0); left; left &= left - 1) {
        const u32 i = __ffs(left) - 1, mask = __shfl_sync(ALL, own, i);
        if ((mask >> lane & 1) == 0) continue;
        const u32 at = (first + i) * 32 + lane;
        u32 source = sources[at];
        while (waiting[source / 32] >> source % 32 & 1) sources[at] = source = sources[source];
        bytes[at] = bytes[source];
    }
}
