// PNG decoder: what is to be known of the inflated bytes, and samples from those that are packed.
//
//   png_kinds(u8 *bytes, u32 row, u32 height, u8 *filters, u32 *report)
//       The filter of each row of 1 + `row` bytes, and how many rows have each; 32 zeros behind the last row. Grid:
//       ceil(height / 256) blocks of 256.
//   png_expand(const u8 *rows, u32 row, u32 width, u32 height, u32 bits, u32 mode, u64 key, const u32 *palette,
//              u32 colours, u8 *samples, u32 *report)
//       Samples from rows of packed ones: fewer than 8 bits scaled to 8, an index as its colour, and a channel of
//       opacity that is 0 where the pixel is `key` (16 bits a channel). Grid: any
//       number of blocks of 256.
#include "inflate.cuh"

// lengths: bytes[height * (row + 1) + 32], filters[height], report[REPORT]
// in sets
extern "C" __global__ void __launch_bounds__(BLOCK)
    png_kinds(u8 *bytes, u32 row, u32 height, u8 *filters, u32 *report) {
    __shared__ u32 counts[5];
    if (report[WRONG]) return;
    if (threadIdx.x < 5) counts[threadIdx.x] = 0;
    __syncthreads();
    const u32 y = blockIdx.x * BLOCK + threadIdx.x;
    if (y < height) {
        const u32 filter = bytes[y * (row + 1ull)];
        filters[y] = filter;
        if (filter > 4) atomicOr(&report[WRONG], NO_FILTER);
        else atomicAdd(&counts[filter], 1);
    }
    if (blockIdx.x == 0 && threadIdx.x < 32) bytes[height * (row + 1ull) + threadIdx.x] = 0;
    __syncthreads();
    if (threadIdx.x < 5 && counts[threadIdx.x]) atomicAdd(&report[FILTERS + threadIdx.x], counts[threadIdx.x]);
}

enum : u32 { GREY, GREY_KEY, RGB_KEY, PALETTE, PALETTE_OPACITY }; // host: modes

// lengths: rows[row * height], palette[colours],
//     samples[width * height * (mode == RGB_KEY ? bits / 2 : bits == 16 ? 4 : mode >= PALETTE ? mode : mode + 1)],
//     report[REPORT]
// requires: width * bits * (mode == RGB_KEY ? 3 : 1) <= 8 * row, bits >= 1, mode <= PALETTE_OPACITY,
//     colours >= (mode < PALETTE ? 0 : 1)
// in sets
extern "C" __global__ void __launch_bounds__(BLOCK)
    png_expand(const u8 *rows, u32 row, u32 width, u32 height, u32 bits, u32 mode, u64 key, const u32 *palette, u32 colours,
               u8 *samples, u32 *report) {
    if (report[WRONG]) return;
    const u64 pixels = (u64)width * height;
    for (u64 i = (u64)blockIdx.x * BLOCK + threadIdx.x; i < pixels; i += (u64)gridDim.x * BLOCK) {
        const u32 y = i / width, x = i % width;
        const u8 *from = rows + (u64)y * row;
        if (mode == RGB_KEY) {
            if (bits == 8) {
                const u8 *in = from + 3 * x;
                const u32 rgb = in[0] | in[1] << 8 | in[2] << 16;
                const u64 as_key = in[0] | (u64)in[1] << 16 | (u64)in[2] << 32;
                ((u32 *)samples)[i] = rgb | (as_key == key ? 0 : 0xff000000u);
            } else {
                const u16 *in = (const u16 *)from + 3 * x;
                const u64 rgb = in[0] | (u64)in[1] << 16 | (u64)in[2] << 32;
                ((u64 *)samples)[i] = rgb | (rgb == key ? 0 : 0xffffull << 48);
            }
            continue;
        }
        if (bits == 16) { // grey with a key
            const u32 grey = ((const u16 *)from)[x];
            ((u32 *)samples)[i] = grey | (grey == key ? 0 : 0xffff0000u);
            continue;
        }
        const u32 at = x * bits, value = from[at / 8] >> (8 - bits - at % 8) & ((1u << bits) - 1);
        if (mode >= PALETTE) {
            if (value >= colours) atomicOr(&report[WRONG], NO_COLOUR);
            const u32 colour = palette[min(value, colours - 1)];
            if (mode == PALETTE_OPACITY) ((u32 *)samples)[i] = colour;
            else
                for (u32 c = 0; c < 3; c++) samples[3 * i + c] = colour >> 8 * c;
            continue;
        }
        const u32 grey = value * (255 / ((1u << bits) - 1));
        if (mode == GREY) samples[i] = grey;
        else ((u16 *)samples)[i] = grey | (value == key ? 0 : 0xff00);
    }
}
