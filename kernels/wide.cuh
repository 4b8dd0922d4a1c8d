// Floating-point samples of 32 bits, which are in memory as keys that sort as the numbers do: their bits, all flipped
// if the number is negative, else the top one (src/image/number.rs).
#pragma once
#include "common.cuh"

// The keys of finite numbers: LEAST … LEAST + SPAN.
constexpr u32 LEAST = 0x00800000, SPAN = 0xff7fffff - LEAST;

// The bits of the number with a key.
static __device__ __forceinline__ u32 bits(u32 key) { return key ^ (~(int)key >> 31 | 0x80000000u); }
