// SPDX-License-Identifier: Apache-2.0
//
// NVFP4: e2m1 numbers, two in a byte (the first in the low nibble), and one e4m3 scale for every 16 of them.
//
// Hopper has no instruction that converts e2m1 (PTX ISA, "cvt": .e2m1x2 needs sm_100a or later). Twice an e2m1 number is a
// whole number from -12 to 12, so the dot product of a block is exact in integers, and in floats too.

#pragma once

#include <cuda_fp16.h>

#include <cstdint>

constexpr int WARP = 32;
constexpr int BLOCK = 16;              // numbers that share a scale
constexpr int BLOCK_BYTES = BLOCK / 2;
constexpr int CHUNK = 2 * BLOCK;       // numbers in 16 bytes: the widest load of a thread

// c[l][m] = sum over k of a[l][m][k] * b[l][k]; k is innermost and c is f32.
struct Problem {
    const uint8_t* a;         // [L][M][K / 2]
    const uint8_t* a_scales;  // [L][M][K / 16]
    const uint8_t* b;         // [L][K / 2]
    const uint8_t* b_scales;  // [L][K / 16]
    float* c;                 // [L][M]
    int m;
    int k;
    int l;

    __device__ __forceinline__ int rows() const { return m * l; }
    __device__ __forceinline__ const uint8_t* row(int row) const { return a + static_cast<size_t>(row) * (k / 2); }
    __device__ __forceinline__ const uint8_t* row_scales(int row) const {
        return a_scales + static_cast<size_t>(row) * (k / BLOCK);
    }
    __device__ __forceinline__ const uint8_t* vector(int batch) const { return b + static_cast<size_t>(batch) * (k / 2); }
    __device__ __forceinline__ const uint8_t* vector_scales(int batch) const {
        return b_scales + static_cast<size_t>(batch) * (k / BLOCK);
    }
};

// Two e4m3 numbers as floats. A half holds each of them exactly: PTX ISA, "cvt", sm_89 and later.
__device__ __forceinline__ float2 e4m3x2_to_float2(uint16_t pair) {
    uint32_t halves;
    asm("cvt.rn.f16x2.e4m3x2 %0, %1;" : "=r"(halves) : "h"(pair));
    return __half22float2(*reinterpret_cast<__half2*>(&halves));
}

__device__ __forceinline__ float e4m3_to_float(uint8_t bits) { return e4m3x2_to_float2(bits).x; }

// One number: sign, two bits of exponent (bias 1), one of mantissa. The same bits in their places of a half (bias 15) are the
// number times 2^-14, subnormals included.
__device__ __forceinline__ float e2m1_to_float(uint32_t nibble) {
    const uint32_t bits = (nibble & 8) << 12 | (nibble & 7) << 9;
    return __half2float(__ushort_as_half(static_cast<unsigned short>(bits))) * 16384.0f;
}

// The sum of eight products, in floats: exact.
__device__ __forceinline__ float dot8(uint32_t a, uint32_t b, float sum) {
#pragma unroll
    for (int i = 0; i < 32; i += 4) {
        sum = fmaf(e2m1_to_float(a >> i & 15), e2m1_to_float(b >> i & 15), sum);
    }
    return sum;
}

// PTX ISA, "prmt": of the eight bytes of `high` and `low`, the four that the nibbles of `selectors` name by their low three
// bits; where a nibble's top bit is set, the byte's sign instead, eight times.
__device__ __forceinline__ uint32_t prmt(uint32_t low, uint32_t high, uint32_t selectors) {
    uint32_t bytes;
    asm("prmt.b32 %0, %1, %2, %3;" : "=r"(bytes) : "r"(low), "r"(high), "r"(selectors));
    return bytes;
}

constexpr uint32_t SIGNS = 0x88888888;

// The same word, but not one that the compiler knows: it would copy a constant to a register for every prmt. Exactly one bit of
// lanemask_eq is set (PTX ISA, "Special Registers").
__device__ __forceinline__ uint32_t unknown(uint32_t word) {
    uint32_t mask;
    asm volatile("mov.u32 %0, %%lanemask_eq;" : "=r"(mask));
    return mask == 0 ? 0 : word;
}

// Look-up of twice a magnitude. A register holds the lower half, as prmt takes one constant, which is the upper half. No byte has
// its top bit set, so that for a number with a sign prmt answers 0: the positive ones come out, and with all signs flipped the
// magnitudes of the negative ones.
struct Table {
    uint32_t lower;

    __device__ __forceinline__ Table() : lower(unknown(0x03020100)) {}

    // Of the numbers in the low half of `nibbles`, one in a byte.
    __device__ __forceinline__ uint32_t bytes(uint32_t nibbles) const { return prmt(lower, 0x0c080604, nibbles); }

    // Signed bytes that hold twice the number; `negated` is the same with all signs flipped.
    __device__ __forceinline__ int signed_bytes(uint32_t nibbles, uint32_t negated) const {
        constexpr uint32_t tops = 0x80808080;  // keep a byte's borrow from the next one
        return static_cast<int>(((bytes(nibbles) | tops) - bytes(negated)) ^ tops);
    }
};

// Whole numbers below 2^22 are the low bits of the floats from 1.5 * 2^23 on: a sum of integers that begins there is a float.
constexpr int MAGIC_BITS = 0x4b400000;  // 1.5 * 2^23

// A block of the vector, ready to be multiplied.
struct VectorBlock {
    int bytes[4];
    float scale;

    VectorBlock() = default;
    __device__ __forceinline__ VectorBlock(const Table& table, uint2 numbers, float its_scale) {
        const uint32_t words[] = {numbers.x, numbers.y};
#pragma unroll
        for (int i = 0; i < 2; ++i) {
            const uint32_t negated = words[i] ^ SIGNS;
            bytes[2 * i] = table.signed_bytes(words[i], negated);
            bytes[2 * i + 1] = table.signed_bytes(words[i] >> 16, negated >> 16);
        }
        scale = its_scale * 0.25f;  // both factors are doubled
    }

    // Add the product with a block of the matrix. All but the last addition is exact. Numbers with a sign have a sum of their own:
    // another dp4a costs less than to bring both kinds together, since it runs on another pipe than prmt and its like.
    __device__ __forceinline__ float dot(const Table& table, uint32_t first, uint32_t second, float a_scale, float sum) const {
        const uint32_t words[] = {first, second};
        int positive = MAGIC_BITS, negative = MAGIC_BITS;
#pragma unroll
        for (int i = 0; i < 2; ++i) {
            const uint32_t negated = words[i] ^ SIGNS;
            positive = __dp4a(static_cast<int>(table.bytes(words[i])), bytes[2 * i], positive);
            negative = __dp4a(static_cast<int>(table.bytes(negated)), bytes[2 * i], negative);
            positive = __dp4a(static_cast<int>(table.bytes(words[i] >> 16)), bytes[2 * i + 1], positive);
            negative = __dp4a(static_cast<int>(table.bytes(negated >> 16)), bytes[2 * i + 1], negative);
        }
        return fmaf(__int_as_float(positive) - __int_as_float(negative), a_scale * scale, sum);
    }
};

// The 32 numbers of a thread's widest load.
struct VectorChunk {
    VectorBlock blocks[2];

    VectorChunk() = default;
    __device__ __forceinline__ VectorChunk(const Table& table, uint4 numbers, uint16_t scales) {
        const float2 both = e4m3x2_to_float2(scales);
        blocks[0] = VectorBlock(table, {numbers.x, numbers.y}, both.x);
        blocks[1] = VectorBlock(table, {numbers.z, numbers.w}, both.y);
    }

    __device__ __forceinline__ float dot(const Table& table, uint4 numbers, uint16_t scales, float sum) const {
        const float2 both = e4m3x2_to_float2(scales);
        sum = blocks[0].dot(table, numbers.x, numbers.y, both.x, sum);
        return blocks[1].dot(table, numbers.z, numbers.w, both.y, sum);
    }
};
