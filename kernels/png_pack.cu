// PNG, third part: deflate data.
//
//   png_place(u32 row, u32 height, u32 rows, u32 count, u32 blocks, Block *block, Segment *segments)
//       Where each deflate block begins in its segment, and the segment's bytes. Grid: ceil(count / 256) blocks of 256,
//       for `count` segments.
//   png_pack(row, height, rows, const u8 *filtered, u64 stride, blocks, const Block *block, const u64 *places, u8 *out)
//       The deflate data of segment s from out + places[s] on; nothing where that is all ones. `out` is zero on
//       entry, places are multiples of 4. Grid: segments·blocks blocks of 256.
//
// Two numbers, for b bytes of image: pack reads b and writes the compressed bytes; some 25 instructions a byte.
#include "png.cuh"

// lengths: block[count * blocks], segments[count]
// requires: rows >= 1, count == ceil(height, rows), min(rows, height) * (row + 1) <= blocks * DEFLATE_BLOCK
// in sets
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

// 16 bytes of a deflate block, from byte `first` on, with the data needed to encode them.
struct Sixteen {
    u32 kind;
    const u32 *codes;
    const Zeros &zeros;
    u32 words[4];
    u32 first, len, padding; // padding: zero bits before the length of the block's first stored block
};

// All codes that begin in the 16 bytes, in order: emit(bits, count), at most 32 bits each.
template <class Emit> static __device__ __forceinline__ void all_bits(const Sixteen &own, Emit emit) {
    const auto coded = [&](u32 entry) { emit(entry & 0xffff, entry >> 16); };
#pragma unroll 1
    for (u32 half = 0; half < 2; half++) {
        const u32 at = own.first + 8 * half;
        const u32 words[2] = {half ? own.words[2] : own.words[0], half ? own.words[3] : own.words[1]};
        if (own.kind == STORED) {
#pragma unroll 1
            for (u32 e = at; e < min(at + 8, own.len); e++) {
                if (e % STORED_BLOCK == 0) {
                    const u32 left = min(STORED_BLOCK, own.len - e);
                    emit(0, e == 0 ? 3 + own.padding : 8);
                    emit(left | ~left << 16, 32);
                }
                emit((e & 4 ? words[1] : words[0]) >> 8 * (e & 3) & 0xff, 8);
            }
        } else if (own.kind == RUNS && at + 8 <= own.len && (words[0] | words[1]) == 0) {
            run_symbols(own.zeros, at / 8, [&](u32 symbol, u32 value) {
                const u32 entry = own.codes[symbol], len = entry >> 16;
                // After a match, its distance of 1: code 0, one bit.
                emit((entry & 0xffff) | value << len, len + extra_bits(symbol) + (symbol > END));
            });
        } else {
#pragma unroll
            for (u32 e = 0; e < 8; e++)
                if (at + e < own.len) coded(own.codes[words[e / 4] >> 8 * (e % 4) & 0xff]);
        }
    }
    if (own.kind != STORED && own.first < own.len && own.len <= own.first + 16) coded(own.codes[END]);
}

// lengths: filtered[grid.blocks / blocks * stride], block[grid.blocks], places[grid.blocks / blocks], out[..]
// requires: rows >= 1, blocks >= 1, grid.blocks == ceil(height, rows) * blocks, min(rows,
//     height) * (row + 1) <= stride, stride % 16 == 0
// trusts: block, as png_place leaves it, and places: from each on, `out` has room for the bytes of its segment
// in sets
extern "C" __global__ void __launch_bounds__(BLOCK)
    png_pack(u32 row, u32 height, u32 rows, const u8 *filtered, u64 stride, u32 blocks, const Block *block,
             const u64 *places, u8 *out) {
    // A thread encodes 16 bytes at a time, of at most 14 bits each, and the end or a stored block's header of 40 bits.
    constexpr u32 STAGE = (BLOCK * (16 * LIMIT + 40) + 32) / 32 + HEADER + 2;
    __shared__ u32 stage[STAGE], codes[LITLEN], parts[2][WARPS];
    __shared__ Zeros zeros;
    const Piece own = piece(blockIdx.x, blocks, row, height, rows);
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

    // The stage begins at the word of `to`; the bits before `cursor` are written.
    u32 *to = (u32 *)(out + places[own.segment]) + from.start / 32;
    u32 cursor = from.start % 32;
    bool shared_word = cursor > 0; // shared with the previous block
    if (kind != STORED) {
        if (threadIdx.x < HEADER && 32 * threadIdx.x < from.header_bits)
            put_bits(stage, cursor + 32 * threadIdx.x, from.header[threadIdx.x]);
        cursor += from.header_bits;
    }
    const u32 padding = (0u - ((u32)from.start + 3)) % 8; // before the first stored block's length
    for (u32 start = 0; start < own.len; start += 16 * BLOCK) {
        const u32 first = start + 16 * threadIdx.x;
        Sixteen from_here = {kind, codes, zeros, {}, first, own.len, padding};
        if (first + 16 <= own.len) {
            const uint4 sixteen = *(const uint4 *)(bytes + first);
            from_here.words[0] = sixteen.x, from_here.words[1] = sixteen.y;
            from_here.words[2] = sixteen.z, from_here.words[3] = sixteen.w;
        } else {
            // What follows the end of a segment was never written.
#pragma unroll
            for (u32 e = 0; e < 16; e++)
                if (first + e < own.len) from_here.words[e / 4] |= (u32)bytes[first + e] << 8 * (e % 4);
        }
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
        // Other blocks may have bits in the first and last word; only this block writes the words between them.
        for (u32 i = 0; 32 * i < cursor; i++) atomicOr(&to[i], stage[i]);
    }
}
