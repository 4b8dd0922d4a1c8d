// Inflater, second part: what deflate's symbols make, counted.
//
//   inflate_count(const u32 *stream, u32 words, const Codes *codes, Part *parts, Lane *lanes, u32 from, u32 to, u32 rounds,
//             const u32 *report)
//       Of parts [from, to), or of all that are made where `to` is 0: where each lane begins and what it makes. Lanes that
//       do not start where the one before stopped decode again, in `rounds` rounds at most; LANES always suffice where
//       the part's start is known. Grid: as many blocks of LANES as the card holds; each takes part after part.
// `codes` may lie behind one another in two buffers no more than parts do: all lists are the host's to size. Beyond its
// last word the stream reads as zeros.
//
// Two numbers, for b bytes of stream: reads b; some three literals in 22 instructions, a third more for the start of lanes; a
// part's tables take as many instructions as a third of its symbols.
#include "inflate_symbols.cuh"

constexpr u32 WARM = 256; // bits ahead of a lane that are decoded too

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

// Outside the kernel, so that the kernel of sets has the same: `long_word` then knows its address.
static __shared__ Tables tables;

// lengths: stream[words], codes[..], parts[to], lanes[to * LANES], report[REPORT]
// trusts: parts, whose codes there are; where `to` is 0, report too,
//     as inflate_order leaves it: there are so many parts and their lanes
// in sets: __launch_bounds__(LANES, 8)
extern "C" __global__ void __launch_bounds__(LANES)
    inflate_count(const u32 *__restrict__ stream, u32 words, const Codes *__restrict__ codes, Part *parts, Lane *lanes, u32 from,
              u32 to, u32 rounds, const u32 *report) {
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
            Reader reader{stage, max(earliest, begin - min(begin, before))};
            bool bad;
            while (reader.at < begin) decode(tables, reader, begin, bad, [](u32, u32) {}, [](u32, u32) {});
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
                    Reader reader{stage, start};
                    ended = decode(tables, reader, limit, bad, [&](u32, u32 count) { bytes += count; },
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
