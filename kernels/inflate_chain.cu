// Inflater, between its second part and its third: whether the parts of one stream follow one another as they were found.
//
//   inflate_chain(const u32 *stream, u32 bits, const Part *parts, u32 head, u32 bytes, u32 most_matches, Place *places,
//             u32 *report)
//       Where the bytes and matches of each part belong, up to the end of the stream's last block: USED, END, LARGEST and
//       MATCHES of the report. The first block's header begins at bit `head`, and all blocks make `bytes` bytes with at most
//       `most_matches` matches; between two blocks, and behind the last, an empty stored one may lie. Where that is not so,
//       WRONG becomes UNCHAINED, and the host puts the parts together. Grid: one block of 1024.
// Behind the stream there is a word more.
#include "inflate.cuh"

constexpr u32 THREADS = 1024;
constexpr u32 MOST_BYTES = 1 << 22; // of a part: so the sum of as many as threads fits into a word

// Behind an empty stored block at bit `at` (RFC 1951, section 3.2.4), or 0; `last` is whether it says that it is the last.
static __device__ __forceinline__ u32 behind_empty(const u32 *stream, u32 bits, u32 at, bool &last) {
    const u32 lengths = (at + 3 + 7) / 8 * 8;
    if (lengths + 32 > bits) return 0;
    const u32 header = bits_at(stream, at) & 7;
    last = header & 1;
    return header < 2 && bits_at(stream, lengths) == 0xffff0000 ? lengths + 32 : 0;
}

// lengths: stream[bits / 32 + 1], parts[..], places[..], report[REPORT]
// trusts: report and parts, as inflate_order and inflate_count leave them: there are as many places as parts
// in sets
extern "C" __global__ void __launch_bounds__(THREADS)
    inflate_chain(const u32 *__restrict__ stream, u32 bits, const Part *__restrict__ parts, u32 head, u32 bytes, u32 most_matches,
                  Place *places, u32 *report) {
    __shared__ u32 sums[2][THREADS / 32];
    __shared__ u32 last_part, wrong_part, end, largest;
    if (report[WRONG]) return;
    const u32 made = report[PARTS_MADE];
    if (threadIdx.x == 0) last_part = wrong_part = ALL, end = largest = 0;
    __syncthreads();
    u64 at = 0;
    u32 matches = 0, last = ALL;
    bool fits = true;
    for (u32 first = 0; first < made && fits && last == ALL; first += THREADS) {
        const u32 i = first + threadIdx.x;
        u32 own_bytes = 0, own_matches = 0, behind = 0;
        if (i < made) {
            const Part own = parts[i], next = i + 1 < made ? parts[i + 1] : Part{};
            const u32 flags = own.found >> 16;
            const bool block_follows = next.found >> 16 & FIRST;
            bool joins = i > 0 || (flags & FIRST) && own.head == head;
            joins = joins && !(flags & (UNSETTLED | BAD)) && own.bytes < MOST_BYTES;
            behind = own.stop;
            if (flags & ENDED) {
                bool of_all = flags & LAST;
                if (!of_all && !(block_follows && next.head == behind)) {
                    behind = behind_empty(stream, bits, behind, of_all);
                    joins = joins && behind && (of_all || block_follows && next.head == behind);
                }
                if (of_all && joins) atomicMin(&last_part, i);
            } else joins = joins && i + 1 < made && !block_follows && next.start == behind;
            if (!joins) atomicMin(&wrong_part, i);
            own_bytes = own.bytes, own_matches = own.found & 0xffff;
        }
        __syncthreads();
        last = last_part;
        fits = wrong_part == ALL || wrong_part > last;
        if (i == last) end = behind;
        if (!fits || i > last) own_bytes = own_matches = 0;
        u32 all_bytes, all_matches;
        const u32 bytes_before = scan_threads<THREADS>(own_bytes, sums[0], all_bytes);
        const u32 matches_before = scan_threads<THREADS>(own_matches, sums[1], all_matches);
        if (i < made && i <= last) places[i] = {i, (u32)at + bytes_before, matches + matches_before, 0};
        atomicMax(&largest, own_bytes);
        at += all_bytes, matches += all_matches;
        fits = fits && at <= bytes && matches <= most_matches;
        __syncthreads();
    }
    if (threadIdx.x > 0) return;
    if (fits && last != ALL && end <= bits && at == bytes) {
        report[USED] = last + 1;
        report[END] = end;
        report[LARGEST] = largest;
        report[MATCHES] = matches;
    } else report[WRONG] |= UNCHAINED;
}
