// SPDX-License-Identifier: Apache-2.0
//
// wgmma: PTX ISA, "Asynchronous Warpgroup Level Matrix Multiply-Accumulate Instructions". Both operands are in shared
// memory with K contiguous, 128 bytes of it a row, in the 128-byte swizzle; sums are f32 and in registers.

#pragma once

#include <cuda_bf16.h>

#include <cstdint>

#include "mbarrier.cuh"

// The 64-bit descriptor of an operand: PTX ISA, "Matrix Descriptor Format". Offsets are in units of 16 bytes.
//   bits  0-13  start address
//   bits 16-29  leading dimension offset: unused, since a row is no wider than the swizzle
//   bits 32-45  stride dimension offset: 1024 bytes, from eight rows of 128 bytes to the next eight
//   bits 49-51  base offset: 0, since the tiles start at a multiple of 1024 bytes
//   bits 62-63  swizzle mode: 1 is 128 bytes
// The hardware applies the swizzle to the address that it computes. So to move on by `bytes` is to add bytes / 16.
__device__ __forceinline__ uint64_t wgmma_descriptor(const void* tile) {
    const uint64_t start = (shared_address(tile) & 0x3ffff) >> 4;
    return start | uint64_t{1024 >> 4} << 32 | uint64_t{1} << 62;
}

// Order register accesses before the wgmmas that follow.
__device__ __forceinline__ void wgmma_fence() { asm volatile("wgmma.fence.sync.aligned;" ::: "memory"); }

// Close the group of wgmmas issued so far.
__device__ __forceinline__ void wgmma_commit_group() { asm volatile("wgmma.commit_group.sync.aligned;" ::: "memory"); }

// Block until at most PENDING groups are still in flight.
template <int PENDING>
__device__ __forceinline__ void wgmma_wait_group() {
    asm volatile("wgmma.wait_group.sync.aligned %0;" ::"n"(PENDING) : "memory");
}

// Wgmma<T, N>::issue starts d[64, N] = a[64, 32 bytes] * b[N, 32 bytes]^T + (accumulate ? d : 0).
template <typename T, int N>
struct Wgmma;

#define WGMMA_D4(i) "+f"(d[i]), "+f"(d[i + 1]), "+f"(d[i + 2]), "+f"(d[i + 3])
#define WGMMA_D16(i) WGMMA_D4(i), WGMMA_D4(i + 4), WGMMA_D4(i + 8), WGMMA_D4(i + 12)
#define WGMMA_D64(i) WGMMA_D16(i), WGMMA_D16(i + 16), WGMMA_D16(i + 32), WGMMA_D16(i + 48)

#define WGMMA_LIST_64 \
    "%0, %1, %2, %3, %4, %5, %6, %7, %8, %9, %10, %11, %12, %13, %14, %15, %16, %17, %18, %19, %20, " \
    "%21, %22, %23, %24, %25, %26, %27, %28, %29, %30, %31, %32, %33, %34, %35, %36, %37, %38, %39, " \
    "%40, %41, %42, %43, %44, %45, %46, %47, %48, %49, %50, %51, %52, %53, %54, %55, %56, %57, %58, " \
    "%59, %60, %61, %62, %63"

#define WGMMA_LIST_128 \
    "%0, %1, %2, %3, %4, %5, %6, %7, %8, %9, %10, %11, %12, %13, %14, %15, %16, %17, %18, %19, %20, " \
    "%21, %22, %23, %24, %25, %26, %27, %28, %29, %30, %31, %32, %33, %34, %35, %36, %37, %38, %39, " \
    "%40, %41, %42, %43, %44, %45, %46, %47, %48, %49, %50, %51, %52, %53, %54, %55, %56, %57, %58, " \
    "%59, %60, %61, %62, %63, %64, %65, %66, %67, %68, %69, %70, %71, %72, %73, %74, %75, %76, %77, " \
    "%78, %79, %80, %81, %82, %83, %84, %85, %86, %87, %88, %89, %90, %91, %92, %93, %94, %95, %96, " \
    "%97, %98, %99, %100, %101, %102, %103, %104, %105, %106, %107, %108, %109, %110, %111, %112, " \
    "%113, %114, %115, %116, %117, %118, %119, %120, %121, %122, %123, %124, %125, %126, %127"

// After the list: a, b, the predicate, then "do not negate a or b" and, where the type could be, "do not transpose".
#define WGMMA_SHAPE(TYPE, N, OPCODE, LIST, D, A, B, P, IMMEDIATES)                                              \
    template <>                                                                                                 \
    struct Wgmma<TYPE, N> {                                                                                     \
        static __device__ __forceinline__ void issue(float (&d)[N / 2], uint64_t a, uint64_t b, int accumulate) { \
            asm volatile("{ .reg .pred p;\n"                                                                    \
                         "setp.ne.b32 p, " P ", 0;\n"                                                           \
                         "wgmma.mma_async.sync.aligned." OPCODE " {" LIST "}, " A ", " B ", p, " IMMEDIATES "; }" \
                         : D                                                                                    \
                         : "l"(a), "l"(b), "r"(accumulate));                                                    \
        }                                                                                                       \
    };

#define WGMMA_D128 WGMMA_D64(0), WGMMA_D64(64)

WGMMA_SHAPE(float, 128, "m64n128k8.f32.tf32.tf32", WGMMA_LIST_64, WGMMA_D64(0), "%64", "%65", "%66", "1, 1")
WGMMA_SHAPE(float, 256, "m64n256k8.f32.tf32.tf32", WGMMA_LIST_128, WGMMA_D128, "%128", "%129", "%130", "1, 1")
WGMMA_SHAPE(__nv_bfloat16, 128, "m64n128k16.f32.bf16.bf16", WGMMA_LIST_64, WGMMA_D64(0), "%64", "%65", "%66",
            "1, 1, 0, 0")
WGMMA_SHAPE(__nv_bfloat16, 256, "m64n256k16.f32.bf16.bf16", WGMMA_LIST_128, WGMMA_D128, "%128", "%129", "%130",
            "1, 1, 0, 0")
