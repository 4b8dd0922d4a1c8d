// Cast: copies the samples of one array to another, whatever their strides, and converts them (src/gpu/cast.rs).
//
//   cast(u64 src, u32 src_bytes, u32 src_form, u64 src_down, u64 src_across, u64 src_deep,
//        u64 dst, u32 dst_bytes, u32 dst_form, u64 dst_down, u64 dst_across, u64 dst_deep,
//        u32 height, u32 width, u32 channels)
//       dst[row, column, channel] = src[row, column, channel] in the type of dst, which holds every value of src.
//       src and dst are addresses of first samples. A type is the bytes of a sample, 1, 2, 4 or 8, and its form.
//       down, across and deep are the bytes from one row, column and channel to the next, modulo 2^64: a stride may be
//       negative. Grid: any in x and y; best ceil(width · channels / 2048) × height blocks of 256.
//
// Two numbers, for n samples: reads n·src_bytes, writes n·dst_bytes; about 30 instructions a sample.
#include "common.cuh"

// The forms of samples: integers without sign; in two's complement; signed ones as images have them in memory, with half the
// range added; floating point; and their keys (wide.cuh).
enum : u32 { WHOLE = 0, SIGNED = 1, TOGGLED = 2, REAL = 3, KEY = 4 }; // host

static __device__ __forceinline__ u64 loaded(u64 address, u32 bytes) {
    switch (bytes) {
    case 1: return *(const u8 *)address;
    case 2: return *(const u16 *)address;
    case 4: return *(const u32 *)address;
    default: return *(const u64 *)address;
    }
}

static __device__ __forceinline__ void store(u64 address, u32 bytes, u64 sample) {
    switch (bytes) {
    case 1: *(u8 *)address = (u8)sample; break;
    case 2: *(u16 *)address = (u16)sample; break;
    case 4: *(u32 *)address = (u32)sample; break;
    default: *(u64 *)address = sample;
    }
}

// The key of a number's bits: all flipped if the number is negative, else the top one.
static __device__ __forceinline__ u64 key(u64 bits, u64 top) { return bits & top ? ~bits & (top | (top - 1)) : bits | top; }
// The bits of the number with a key.
static __device__ __forceinline__ u64 bits_of_key(u64 key, u64 top) {
    return key & top ? key ^ top : ~key & (top | (top - 1));
}

// The bits of a 64-bit number that is a 32-bit one. A NaN keeps its bits, and becomes quiet, as on the CPU.
static __device__ __forceinline__ u64 doubled(u32 bits) {
    if ((bits & 0x7fffffff) <= 0x7f800000) return (u64)__double_as_longlong((double)__uint_as_float(bits));
    return (u64)(bits >> 31) << 63 | 0x7ff8000000000000 | (u64)(bits & 0x007fffff) << 29;
}

// A sample in another type.
static __device__ __forceinline__ u64 cast_sample(u64 sample, u32 src_bytes, u32 src_form, u32 dst_bytes, u32 dst_form) {
    const u64 src_top = (u64)1 << (8 * src_bytes - 1), dst_top = (u64)1 << (8 * dst_bytes - 1);
    if (src_form >= REAL) {
        u64 bits = src_form == KEY ? bits_of_key(sample, src_top) : sample;
        if (src_bytes < dst_bytes) bits = doubled((u32)bits);
        return dst_form == KEY ? key(bits, dst_top) : bits;
    }
    // Two's complement of 64 bits.
    const u64 value = src_form == WHOLE ? sample : src_form == TOGGLED ? sample - src_top : (sample ^ src_top) - src_top;
    if (dst_form >= REAL) {
        const double number = (double)(long long)value;
        const u64 bits = dst_bytes == 8 ? (u64)__double_as_longlong(number) : __float_as_uint((float)number);
        return dst_form == KEY ? key(bits, dst_top) : bits;
    }
    return dst_form == TOGGLED ? value + dst_top : value;
}

// trusts: src and dst, which are addresses of samples that are aligned and in memory, as are all others that the strides lead to
extern "C" __global__ void __launch_bounds__(BLOCK)
    cast(u64 src, u32 src_bytes, u32 src_form, u64 src_down, u64 src_across, u64 src_deep, u64 dst, u32 dst_bytes,
         u32 dst_form, u64 dst_down, u64 dst_across, u64 dst_deep, u32 height, u32 width, u32 channels) {
    const u64 samples = (u64)width * channels;
    for (u32 row = blockIdx.y; row < height; row += gridDim.y) {
        const u64 from = src + row * src_down, to = dst + row * dst_down;
        for (u64 i = (u64)blockIdx.x * BLOCK + threadIdx.x; i < samples; i += (u64)gridDim.x * BLOCK) {
            // Rows of 2^32 samples and more are rare, and a division of 64 bits is slow.
            const u64 column = samples >> 32 ? i / channels : (u32)i / channels, channel = i - column * channels;
            const u64 sample = loaded(from + column * src_across + channel * src_deep, src_bytes);
            store(to + column * dst_across + channel * dst_deep, dst_bytes,
                  cast_sample(sample, src_bytes, src_form, dst_bytes, dst_form));
        }
    }
}
