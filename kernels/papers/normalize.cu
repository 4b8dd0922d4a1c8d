// The scale v = (float(p) − sub)·factor of "CUDA: performance aspects of typical tasks" (2011), in place, with its
// three ways to round; and an exact version in integers.
//
//   truncating(u16 *data, u32 pieces, u32 piece, float sub, float factor)    the integer part is stored
//   rounding(…)    the library's rounding before the store: several instructions
//   half_up(…)     + 0.5f, then the integer part: rounds half up with one addition
//   half_up_double(…)   as the paper writes it, + 0.5, which in C is a double: the value is widened, added to and cut in
//       double precision
//   nearest_even(…)     rintf, which is one instruction: the nearest integer, of two the even one
//   magic(…)       1.5·2²³ is added as a float, whose lower bits are then the nearest integer: no conversion
//   exact(u16 *data, u32 pieces, u32 piece, u32 min, u32 span, u32 d)
//       floor((p − min)·span/d + 1/2) in integers, a division an element: what `normalize` promises, done the plain way
// Each rounding step is written out (_rn), so that the compiler cannot fuse a multiplication and an addition, and the
// results are predictable.
#include "papers/papers.cuh"

static __device__ __forceinline__ float scaled(u16 p, float sub, float factor) {
    return __fmul_rn(__fsub_rn((float)p, sub), factor);
}

template <class Store> static __device__ __forceinline__ void change(u16 *data, u32 pieces, u32 piece, Store store) {
    each(pieces, piece, [&](u32 j, u32 i) {
        u16 *p = data + ((u64)j * piece + i);
        *p = store(*p);
    });
}

// family: Change
// lengths: data[pieces * piece]
extern "C" __global__ void truncating(u16 *data, u32 pieces, u32 piece, float sub, float factor) {
    change(data, pieces, piece, [=](u16 p) { return (u16)(int)scaled(p, sub, factor); });
}

extern "C" __global__ void rounding(u16 *data, u32 pieces, u32 piece, float sub, float factor) {
    change(data, pieces, piece, [=](u16 p) { return (u16)(int)roundf(scaled(p, sub, factor)); });
}

extern "C" __global__ void half_up(u16 *data, u32 pieces, u32 piece, float sub, float factor) {
    change(data, pieces, piece, [=](u16 p) { return (u16)(int)__fadd_rn(scaled(p, sub, factor), 0.5f); });
}

extern "C" __global__ void half_up_double(u16 *data, u32 pieces, u32 piece, float sub, float factor) {
    change(data, pieces, piece, [=](u16 p) { return (u16)(int)__dadd_rn((double)scaled(p, sub, factor), 0.5); });
}

extern "C" __global__ void nearest_even(u16 *data, u32 pieces, u32 piece, float sub, float factor) {
    change(data, pieces, piece, [=](u16 p) { return (u16)(int)rintf(scaled(p, sub, factor)); });
}

extern "C" __global__ void magic(u16 *data, u32 pieces, u32 piece, float sub, float factor) {
    change(data, pieces, piece,
           [=](u16 p) { return (u16)__float_as_uint(__fadd_rn(scaled(p, sub, factor), 12582912.0f)); });
}

// lengths: data[pieces * piece]
// requires: d >= 1
extern "C" __global__ void exact(u16 *data, u32 pieces, u32 piece, u32 min, u32 span, u32 d) {
    change(data, pieces, piece, [=](u16 p) { return (u16)(((p - min) * span + d / 2) / d); });
}
