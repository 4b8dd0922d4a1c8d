// Pixels for the kernels that move them. PIXEL is the size of a pixel in bytes: 1, 2, 3, 4, 6 or 8.
#pragma once
#include "common.cuh"

template <u32 bytes> struct Types;
template <> struct Types<1> { typedef u8 Unit; typedef u32 Word; };
template <> struct Types<2> { typedef u16 Unit; typedef u32 Word; };
template <> struct Types<4> { typedef u32 Unit; typedef u32 Word; };
template <> struct Types<8> { typedef u64 Unit; typedef u64 Word; };
