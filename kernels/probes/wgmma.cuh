// SPDX-License-Identifier: Apache-2.0
//
// A loop of wgmma.mma_async m64nNk16, bf16 with binary32 accumulators, as one asm statement, so that the accumulators are
// registers of the PTX and need no operands of C++. PTX ISA, "wgmma.mma_async" and "Matrix descriptor for wgmma".

#pragma once

#include "probe.cuh"

constexpr int MMAS = 16;                  // per trip: four times the four K slices of a 128-byte row
constexpr int A_BYTES = 64 * 128;         // 64 rows of 64 bf16
constexpr int ROW_BYTES = 128;
constexpr int SWIZZLE_ATOM_BYTES = 1024;  // 8 rows; shared matrices begin at multiples of it

// Names of accumulators: c and three octal digits. C: a list, E: the macro F of each.
#define WGMMA_C4 "c000,c001,c002,c003"
#define WGMMA_C8(p) p "0," p "1," p "2," p "3," p "4," p "5," p "6," p "7"
#define WGMMA_C16 WGMMA_C8("c00") "," WGMMA_C8("c01")
#define WGMMA_C32 WGMMA_C16 "," WGMMA_C8("c02") "," WGMMA_C8("c03")
#define WGMMA_C48 WGMMA_C32 "," WGMMA_C8("c04") "," WGMMA_C8("c05")
#define WGMMA_C64 WGMMA_C48 "," WGMMA_C8("c06") "," WGMMA_C8("c07")
#define WGMMA_C96 WGMMA_C64 "," WGMMA_C8("c10") "," WGMMA_C8("c11") "," WGMMA_C8("c12") "," WGMMA_C8("c13")
#define WGMMA_C128 WGMMA_C96 "," WGMMA_C8("c14") "," WGMMA_C8("c15") "," WGMMA_C8("c16") "," WGMMA_C8("c17")
#define WGMMA_E4(F) F("c000") F("c001") F("c002") F("c003")
#define WGMMA_E8(F, p) F(p "0") F(p "1") F(p "2") F(p "3") F(p "4") F(p "5") F(p "6") F(p "7")
#define WGMMA_E8_ONLY(F) WGMMA_E8(F, "c00")
#define WGMMA_E16(F) WGMMA_E8(F, "c00") WGMMA_E8(F, "c01")
#define WGMMA_E32(F) WGMMA_E16(F) WGMMA_E8(F, "c02") WGMMA_E8(F, "c03")
#define WGMMA_E48(F) WGMMA_E32(F) WGMMA_E8(F, "c04") WGMMA_E8(F, "c05")
#define WGMMA_E64(F) WGMMA_E48(F) WGMMA_E8(F, "c06") WGMMA_E8(F, "c07")
#define WGMMA_E96(F) WGMMA_E64(F) WGMMA_E8(F, "c10") WGMMA_E8(F, "c11") WGMMA_E8(F, "c12") WGMMA_E8(F, "c13")
#define WGMMA_E128(F) WGMMA_E96(F) WGMMA_E8(F, "c14") WGMMA_E8(F, "c15") WGMMA_E8(F, "c16") WGMMA_E8(F, "c17")

#define WGMMA_ZERO(c) "mov.f32 " c ", 0f00000000;\n\t"
#define WGMMA_ADD(c) "add.f32 %0, %0, " c ";\n\t"

#define WGMMA_ONE(N, C, a, b, flags) \
    "wgmma.mma_async.sync.aligned.m64n" #N "k16.f32.bf16.bf16 {" C "}, " a ", " b ", p, 1, 1" flags ";\n\t"
#define WGMMA_FOUR_SS(N, C)                                                             \
    WGMMA_ONE(N, C, "a0", "b0", ", 0, 0") WGMMA_ONE(N, C, "a1", "b1", ", 0, 0")         \
    WGMMA_ONE(N, C, "a2", "b2", ", 0, 0") WGMMA_ONE(N, C, "a3", "b3", ", 0, 0")
#define WGMMA_FOUR_RS(N, C)                                                             \
    WGMMA_ONE(N, C, "{f0,f1,f2,f3}", "b0", ", 0") WGMMA_ONE(N, C, "{f0,f1,f2,f3}", "b1", ", 0") \
    WGMMA_ONE(N, C, "{f0,f1,f2,f3}", "b2", ", 0") WGMMA_ONE(N, C, "{f0,f1,f2,f3}", "b3", ", 0")

// One group per trip; while it runs, the next is issued. A step of 16 in K is 32 bytes, 2 in a descriptor.
#define WGMMA_LOOP(FOUR, N, C, E)                                                                              \
    "{\n\t.reg .pred p, more;\n\t.reg .s32 left;\n\t.reg .b64 a<4>, b<4>;\n\t.reg .b32 f<4>;\n\t.reg .f32 " C ";\n\t"             \
    "setp.ne.s32 p, 1, 0;\n\tmov.s32 left, %1;\n\t"                                                            \
    "mov.b64 a0, %2;\n\tadd.s64 a1, a0, 2;\n\tadd.s64 a2, a0, 4;\n\tadd.s64 a3, a0, 6;\n\t"                    \
    "mov.b64 b0, %3;\n\tadd.s64 b1, b0, 2;\n\tadd.s64 b2, b0, 4;\n\tadd.s64 b3, b0, 6;\n\t"                    \
    "mov.b32 f0, %4;\n\txor.b32 f1, f0, 1;\n\txor.b32 f2, f0, 2;\n\txor.b32 f3, f0, 3;\n\t"                  \
    E(WGMMA_ZERO) "AGAIN:\n\t.pragma \"nounroll\";\n\twgmma.fence.sync.aligned;\n\t"                            \
    FOUR(N, C) FOUR(N, C) FOUR(N, C) FOUR(N, C)                                                   \
    "wgmma.commit_group.sync.aligned;\n\twgmma.wait_group.sync.aligned 1;\n\t"                                 \
    "sub.s32 left, left, 1;\n\tsetp.gt.s32 more, left, 0;\n\t@more bra AGAIN;\n\t"                             \
    "wgmma.wait_group.sync.aligned 0;\n\tmov.f32 %0, 0f00000000;\n\t" E(WGMMA_ADD) "}"

// `float name(int trips, uint64_t a, uint64_t b, uint32_t pair)`: both operands in shared memory, or A in registers.
#define WGMMA_FUNCTION(name, FOUR, N, C, E)                                                               \
    __device__ __forceinline__ float name(int trips, uint64_t a, uint64_t b, uint32_t pair) {             \
        float sum;                                                                                        \
        asm volatile(WGMMA_LOOP(FOUR, N, C, E) : "=f"(sum) : "r"(trips), "l"(a), "l"(b), "r"(pair) : "memory"); \
        return sum;                                                                                       \
    }

// PTX ISA, matrix descriptor: address / 16 in bits 0-13, leading offset / 16 in 16-29 (not used when swizzled and K-major),
// stride between groups of 8 rows / 16 in 32-45, swizzling in 62-63 (1: 128 bytes).
__device__ __forceinline__ uint64_t descriptor(const void* matrix) {
    const uint64_t address = (shared_address(matrix) & 0x3FFFF) >> 4;
    return address | (1ULL << 16) | (static_cast<uint64_t>(SWIZZLE_ATOM_BYTES >> 4) << 32) | (1ULL << 62);
}

// Two random bf16 from -2 to 2 that are no denormals: what the tensor core draws in power depends on the bits.
__device__ __forceinline__ uint32_t random_pair(uint32_t index) {
    uint32_t mixed = index * 0x9E3779B9u + 0x7F4A7C15u;
    mixed = (mixed ^ (mixed >> 16)) * 0x85EBCA6Bu;
    mixed = (mixed ^ (mixed >> 13)) * 0xC2B2AE35u;
    return (mixed & 0x807F807Fu) | 0x3F003F00u | ((mixed >> 1) & 0x00800080u);
}

__device__ __forceinline__ void fill_random(unsigned char* shared, int bytes) {
    for (int word = threadIdx.x; word < bytes / 4; word += blockDim.x) {
        reinterpret_cast<uint32_t*>(shared)[word] = random_pair(word);
    }
    asm volatile("fence.proxy.async.shared::cta;" ::: "memory");
}
