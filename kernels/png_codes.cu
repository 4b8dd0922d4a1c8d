// PNG, second part: the Huffman codes of each deflate block, and its header.
//
//   png_histogram(u32 row, u32 height, u32 rows, const u8 *filtered, u64 stride, u32 blocks, Block *block)
//       Weights, true counts and zero groups of each block.
//   png_codes(row, height, rows, u32 blocks, Block *block)
//       From them the codes, header, length and kind of each block.
// Grid of both: segments·blocks blocks of 256.
//
// Two numbers, for b bytes of image: histogram reads b; in codes 1 thread in 256 works most of the time, some 50 µs,
// with all blocks concurrently.
#include "png.cuh"

// lengths: filtered[grid.blocks / blocks * stride], block[grid.blocks]
// requires: rows >= 1, blocks >= 1, grid.blocks == ceil(height, rows) * blocks, min(rows,
//     height) * (row + 1) <= stride, stride % 16 == 0
// in sets
extern "C" __global__ void __launch_bounds__(BLOCK)
    png_histogram(u32 row, u32 height, u32 rows, const u8 *filtered, u64 stride, u32 blocks, Block *block) {
    __shared__ u32 counts[WARPS][256], sampled[256], symbols[LITLEN], zero;
    __shared__ Zeros zeros;
    const Piece own = piece(blockIdx.x, blocks, row, height, rows);
    if (own.len == 0) return;
    const u8 *bytes = filtered + own.segment * stride + own.from;
    const u32 groups = own.len / 8, warp = threadIdx.x / 32;
    const bool sample = own.len >= 32 << 10;
    for (u32 w = 0; w < WARPS; w++) counts[w][threadIdx.x] = 0;
    for (u32 i = threadIdx.x; i < MASK; i += BLOCK) zeros.mask[i] = 0;
    for (u32 i = threadIdx.x; i < LITLEN; i += BLOCK) symbols[i] = 0;
    sampled[threadIdx.x] = 0;
    if (threadIdx.x == 0) zero = 0;
    __syncthreads();
    for (u32 base = 32 * warp; base < groups; base += BLOCK) {
        const u32 group = base + threadIdx.x % 32;
        const bool there = group < groups;
        const uint2 eight = there ? ((const uint2 *)bytes)[group] : make_uint2(1, 1);
        const bool filled = (eight.x | eight.y) != 0;
        const u32 mask = __ballot_sync(ALL, !filled);
        if (threadIdx.x % 32 == 0) {
            zeros.mask[base / 32] = mask;
            atomicAdd(&zero, __popc(mask));
        }
        // Zero groups are counted by their number: most bytes of a background would compete for one word.
        const u32 four = group / 4;
        const bool drawn = sample && there && four < groups / 4 && four * 0x9e3779b1u >> 30 == group % 4;
        if (filled && there)
#pragma unroll
            for (u32 e = 0; e < 8; e++) atomicAdd(&counts[warp][((e < 4 ? eight.x : eight.y) >> 8 * (e % 4)) & 0xff], 1);
        if (drawn && filled)
#pragma unroll
            for (u32 e = 0; e < 8; e++) atomicAdd(&sampled[((e < 4 ? eight.x : eight.y) >> 8 * (e % 4)) & 0xff], 1);
        const u32 drawn_zeros = __popc(__ballot_sync(ALL, drawn && !filled));
        if (threadIdx.x % 32 == 0 && drawn_zeros) atomicAdd(&sampled[0], 8 * drawn_zeros);
    }
    if (threadIdx.x < own.len % 8) atomicAdd(&counts[0][bytes[8 * groups + threadIdx.x]], 1);
    __syncthreads();
    const bool runs = zero * 64 >= max(groups, 1);
    if (runs) {
        reach(zeros);
        __syncthreads();
        for (u32 group = threadIdx.x; group < groups; group += BLOCK)
            if (zeros.mask[group / 32] >> group % 32 & 1)
                run_symbols(zeros, group, [&](u32 symbol, u32) { atomicAdd(&symbols[symbol], 1); });
        __syncthreads();
    }
    Block &out = block[blockIdx.x];
    for (u32 symbol = threadIdx.x; symbol < LITLEN; symbol += BLOCK) {
        u32 count = symbols[symbol], weight;
        if (symbol < 256)
            for (u32 w = 0; w < WARPS; w++) count += counts[w][symbol];
        if (symbol == 0 && !runs) count += 8 * zero;
        if (symbol == END) count = 1;
        weight = count;
        if (sample && !runs && symbol < 256) weight = 4 * sampled[symbol] + 1;
        out.counts[symbol] = count;
        out.weights[symbol] = weight;
    }
    for (u32 i = threadIdx.x; i < MASK; i += BLOCK) out.zero[i] = zeros.mask[i];
    if (threadIdx.x == 0) out.kind = runs ? RUNS : LITERALS;
}

// The working memory for making a code; `lengths` and `codes` are the result.
struct Tree {
    u32 order[512];      // weight << 9 | symbol, then length << 9 | symbol: ascending, behind them ones
    u32 node[LITLEN];    // weights of inner nodes
    u16 parent[LITLEN], depth[LITLEN];
    u32 inner[16];       // inner nodes at each depth
    u32 used, counts[16]; // leaves of each depth
    u32 lengths[LITLEN];
    u32 codes[LITLEN]; // length << 16 | bits as they are packed
};

// Computes the number of leaves at each depth up to the limit, with one thread.
static __device__ void depths(Tree &tree, u32 limit) {
    const u32 used = tree.used;
    if (used == 1) { // gets one bit
        for (u32 level = 0; level < 16; level++) tree.counts[level] = level == 1;
        return;
    }
    u32 leaf = 0, node = 0, light = tree.order[0] >> 9, heavy = ALL; // the next leaf's and the next node's weight
    for (u32 made = 0; made + 1 < used; made++) {
        u32 sum = 0;
        for (u32 k = 0; k < 2; k++)
            if (light <= heavy) {
                sum += light;
                leaf++;
                light = leaf < used ? tree.order[leaf] >> 9 : ALL;
            } else {
                sum += heavy;
                tree.parent[node++] = made;
                heavy = node < made ? tree.node[node] : ALL;
            }
        tree.node[made] = sum;
        if (node == made) heavy = sum;
    }
    u32 *inner = tree.inner, *counts = tree.counts, placed = 0, total = 0;
    for (u32 level = 0; level < 16; level++) inner[level] = 0;
    tree.depth[used - 2] = 0;
    inner[0] = 1;
    for (u32 node = used - 2; node-- > 0;) {
        const u32 depth = tree.depth[tree.parent[node]] + 1;
        tree.depth[node] = depth;
        if (depth <= limit) inner[depth]++;
    }
    for (u32 level = 1; level <= limit; level++) {
        counts[level] = 2 * inner[level - 1] - inner[level];
        placed += counts[level];
    }
    counts[limit] += used - placed;
    for (u32 len = 1; len <= limit; len++) total += counts[len] << (limit - len);
    for (; total > 1u << limit; total--) {
        u32 len = limit - 1;
        while (counts[len] == 0) len--;
        counts[len]--;
        counts[len + 1] += 2;
        counts[limit]--;
    }
}

// Makes the canonical code (RFC 1951 §3.2.2) of SYMBOLS symbols with at most MOST bits, with all threads.
template <u32 SYMBOLS, u32 MOST> static __device__ void make_code(const u32 *weights, Tree &tree) {
    constexpr u32 SIZE = SYMBOLS <= 32 ? 32 : 512;
    if (threadIdx.x == 0) tree.used = 0;
    __syncthreads();
    for (u32 symbol = threadIdx.x; symbol < SIZE; symbol += BLOCK) {
        const u32 weight = symbol < SYMBOLS ? weights[symbol] : 0;
        tree.order[symbol] = weight > 0 ? weight << 9 | symbol : ALL;
        if (weight > 0) atomicAdd(&tree.used, 1);
        if (symbol < SYMBOLS) tree.lengths[symbol] = tree.codes[symbol] = 0;
    }
    sort<SIZE>(tree.order);
    if (threadIdx.x == 0) depths(tree, MOST);
    __syncthreads();
    for (u32 rank = threadIdx.x; rank < tree.used; rank += BLOCK) {
        u32 len = MOST, longer = tree.counts[MOST];
        while (longer <= rank) longer += tree.counts[--len];
        const u32 symbol = tree.order[rank] & 511;
        tree.lengths[symbol] = len;
        tree.order[rank] = len << 9 | symbol;
    }
    // Codes of the same length are in the order of their symbols.
    sort<SIZE>(tree.order);
    for (u32 rank = threadIdx.x; rank < tree.used; rank += BLOCK) {
        const u32 len = tree.order[rank] >> 9, symbol = tree.order[rank] & 511;
        u32 code = 0, shorter = 0;
        for (u32 less = 1; less < len; less++) {
            code = (code + tree.counts[less]) << 1;
            shorter += tree.counts[less];
        }
        tree.codes[symbol] = len << 16 | __brev(code + rank - shorter) >> (32 - len);
    }
    __syncthreads();
}

__constant__ u8 TOLD_ORDER[CODE_LENGTHS] = {16, 17, 18, 0, 8, 7, 9, 6, 10, 5, 11, 4, 12, 3, 13, 2, 14, 1, 15};

// Encodes a block's code lengths for the header, with repeats combined (RFC 1951 §3.2.7), with one thread: value of the
// extra bits << 8 | symbol. Returns the number of symbols. The length of the only distance code follows `litlen`
// lengths.
static __device__ u32 tell(const u32 *lengths, u32 litlen, u16 *told) {
    u32 used = 0;
    for (u32 at = 0; at <= litlen;) {
        const u32 len = lengths[at];
        u32 end = at + 1;
        while (end <= litlen && lengths[end] == len) end++;
        u32 left = end - at;
        at = end;
        if (len > 0) told[used++] = len, left--;
        while (left > 0) {
            const u32 piece = min(left, len > 0 ? 6 : 138);
            left -= piece;
            if (piece < 3)
                for (u32 i = 0; i < piece; i++) told[used++] = len;
            else if (len > 0) told[used++] = (piece - 3) << 8 | 16;
            else if (piece < 11) told[used++] = (piece - 3) << 8 | 17;
            else told[used++] = (piece - 11) << 8 | 18;
        }
    }
    return used;
}

// lengths: block[grid.blocks]
// requires: rows >= 1, blocks >= 1, grid.blocks == ceil(height, rows) * blocks
// in sets
extern "C" __global__ void __launch_bounds__(BLOCK)
    png_codes(u32 row, u32 height, u32 rows, u32 blocks, Block *block) {
    __shared__ Tree tree;
    __shared__ u32 weights[LITLEN], lengths[LITLEN + 1], parts[4][WARPS], header[HEADER];
    __shared__ u32 told_weights[CODE_LENGTHS], litlen, used, ordered;
    __shared__ u16 told[LITLEN + 2];
    if (piece(blockIdx.x, blocks, row, height, rows).len == 0) return;
    Block &own = block[blockIdx.x];
    const u32 kind = own.kind;
    for (u32 i = threadIdx.x; i < LITLEN; i += BLOCK) weights[i] = own.weights[i];
    if (threadIdx.x < CODE_LENGTHS) told_weights[threadIdx.x] = 0;
    if (threadIdx.x < HEADER) header[threadIdx.x] = 0;
    if (threadIdx.x == 0) litlen = 0, ordered = 4;
    __syncthreads();
    make_code<LITLEN, LIMIT>(weights, tree);
    u32 coded = 0, weighed = 0, bits = 0;
    for (u32 symbol = threadIdx.x; symbol < LITLEN; symbol += BLOCK) {
        const u32 len = tree.lengths[symbol], all = len + extra_bits(symbol);
        lengths[symbol] = len;
        own.codes[symbol] = tree.codes[symbol];
        if (len > 0) atomicMax(&litlen, symbol + 1);
        coded += weights[symbol] * all;
        weighed += weights[symbol];
        bits += own.counts[symbol] * (all + (symbol > END)); // a match includes the one bit of its distance
    }
    __syncthreads();
    if (threadIdx.x == 0) {
        lengths[litlen] = 1;
        used = tell(lengths, litlen, told);
    }
    __syncthreads();
    for (u32 i = threadIdx.x; i < used; i += BLOCK) atomicAdd(&told_weights[told[i] & 0xff], 1);
    __syncthreads();
    make_code<CODE_LENGTHS, 7>(told_weights, tree);
    if (threadIdx.x < CODE_LENGTHS && tree.lengths[TOLD_ORDER[threadIdx.x]] > 0)
        atomicMax(&ordered, threadIdx.x + 1);
    __syncthreads();
    // The header: each thread writes two of the encoded symbols, after the part that the first thread writes.
    const auto extra = [](u32 symbol) { return symbol == 16 ? 2 : symbol == 17 ? 3 : symbol == 18 ? 7 : 0; };
    u32 mine = 0;
    for (u32 i = 2 * threadIdx.x; i < min(used, 2 * threadIdx.x + 2); i++)
        mine += (tree.codes[told[i] & 0xff] >> 16) + extra(told[i] & 0xff);
    u32 header_bits;
    u32 at = 17 + 3 * ordered + scan_block(mine, parts[0], header_bits);
    header_bits += 17 + 3 * ordered;
    for (u32 i = 2 * threadIdx.x; i < min(used, 2 * threadIdx.x + 2); i++) {
        const u32 symbol = told[i] & 0xff, code = tree.codes[symbol], len = code >> 16;
        put_bits(header, at, (code & 0xffff) | (u32)(told[i] >> 8) << len);
        at += len + extra(symbol);
    }
    if (threadIdx.x < ordered) put_bits(header, 17 + 3 * threadIdx.x, tree.lengths[TOLD_ORDER[threadIdx.x]]);
    if (threadIdx.x == 0) put_bits(header, 0, 4 | (litlen - 257) << 3 | (ordered - 4) << 13);
    const auto plus = [](u32 a, u32 b) { return a + b; };
    coded = reduce_block(coded, parts[1], 0u, plus);
    weighed = reduce_block(weighed, parts[2], 0u, plus);
    bits = reduce_block(bits, parts[3], 0u, plus); // also makes the header visible to all threads
    if (threadIdx.x < HEADER) own.header[threadIdx.x] = header[threadIdx.x];
    if (threadIdx.x == 0) {
        if (kind != RUNS && header_bits + coded >= 8 * weighed) own.kind = STORED;
        own.header_bits = header_bits;
        own.bits = header_bits + bits;
    }
}
