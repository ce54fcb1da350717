// SPDX-License-Identifier: Apache-2.0
//
// Rates and latencies of the pipes that a softmax needs: MUFU.EX2, conversion to bf16x2 and e4m3x2 (F2FP), FFMA, FMNMX, SHFL,
// and mixtures.
//
// A chain is one value of a thread: each operation takes what the one before it gave. `…_latency`: one chain, one warp. The
// others: 8 chains a thread, so that no operation waits for another. Inputs stay finite and are no denormals.

#include "probe.cuh"

constexpr int CHAINS = 8;
constexpr int STEPS = 32;          // operations of a chain per trip
constexpr int LATENCY_STEPS = 64;  // the same in a latency probe

// x = 2^-x, which goes to 0.6412; the sign is a modifier of MUFU's operand and costs nothing.
struct Ex2 {
    static __device__ __forceinline__ void apply(float& x, float) {
        asm volatile("{ .reg .f32 n; neg.f32 n, %0; ex2.approx.ftz.f32 %0, n; }" : "+f"(x));
    }
};

struct Fma {
    static __device__ __forceinline__ void apply(float& x, float) {
        asm volatile("fma.rn.f32 %0, %0, 0f3F000000, 0f3E800000;" : "+f"(x));  // x / 2 + 1/4
    }
};

// A maximum and a minimum. The compiler knows nothing of `other`, so neither can be left out.
struct MaxMin {
    static __device__ __forceinline__ void apply(float& x, float other) {
        asm volatile("{ .reg .f32 n; neg.f32 n, %1; max.f32 %0, %0, %1; min.f32 %0, %0, n; }" : "+f"(x) : "f"(other));
    }
};

struct Shuffle {
    static __device__ __forceinline__ void apply(float& x, float) {
        asm volatile("shfl.sync.bfly.b32 %0, %0, 1, 31, -1;" : "+f"(x));
    }
};

#if __CUDA_ARCH__ >= 800
// The pair's upper half is x rounded to bf16, so read as binary32 again it stays near x.
struct ToBf16x2 {
    static __device__ __forceinline__ void apply(float& x, float) {
        asm volatile("{ .reg .b32 d; cvt.rn.bf16x2.f32 d, %0, %0; mov.b32 %0, d; }" : "+f"(x));
    }
};
#endif

#if __CUDA_ARCH__ >= 890
// Two conversions: four e4m3 values fill a register, as a kernel packs them. The second merges with the first. Both may not
// be of the same values, or one would do. `other` is 1.875, in e4m3 3F: as the uppermost byte it makes x a number from 0.5 to 2.
struct ToE4m3x2Twice {
    static __device__ __forceinline__ void apply(float& x, float other) {
        asm volatile(
            "{ .reg .b16 low, high;\n\t"
            "cvt.rn.satfinite.e4m3x2.f32 low, %0, %0;\n\t"
            "cvt.rn.satfinite.e4m3x2.f32 high, %1, %0;\n\t"
            "mov.b32 %0, {low, high}; }"
            : "+f"(x)
            : "f"(other));
    }
};
#endif

__device__ __forceinline__ float seed(int chain) {
    return 0.5f + 0.001f * static_cast<float>(threadIdx.x % WARP) + 0.01f * static_cast<float>(chain);
}

// `firsts` chains of First and `seconds` of Second, spread evenly among them.
template <class First, int firsts, class Second, int seconds, int steps>
__device__ __forceinline__ void chains(long long* records, int trips) {
    float first[firsts];
    float second[seconds > 0 ? seconds : 1] = {};
#pragma unroll
    for (int chain = 0; chain < firsts; ++chain) {
        first[chain] = seed(chain);
    }
#pragma unroll
    for (int chain = 0; chain < seconds; ++chain) {
        second[chain] = seed(chain);
    }
    const float other = 1.875f + 0.0005f * static_cast<float>(threadIdx.x % WARP);  // no constant to the compiler
    const Span span(records);
#pragma unroll 1
    for (int trip = 0; trip < trips; ++trip) {
#pragma unroll
        for (int step = 0; step < steps; ++step) {
#pragma unroll
            for (int chain = 0; chain < firsts; ++chain) {
                First::apply(first[chain], other);
                const int due = (chain + 1) * seconds / firsts;
                if (due > chain * seconds / firsts) {
                    Second::apply(second[due - 1], other);
                }
            }
        }
    }
    float sum = 0.0f;
#pragma unroll
    for (int chain = 0; chain < firsts; ++chain) {
        sum += first[chain];
    }
#pragma unroll
    for (int chain = 0; chain < seconds; ++chain) {
        sum += second[chain];
    }
    span.close(MEASURED, __float_as_int(sum));
}

PROBE(ex2) { chains<Ex2, CHAINS, Ex2, 0, STEPS>(records, trips); }
PROBE(ex2_latency) { chains<Ex2, 1, Ex2, 0, LATENCY_STEPS>(records, trips); }
PROBE(fma_rate) { chains<Fma, CHAINS, Fma, 0, STEPS>(records, trips); }
PROBE(fma_latency) { chains<Fma, 1, Fma, 0, LATENCY_STEPS>(records, trips); }
PROBE(max_rate) { chains<MaxMin, CHAINS, Ex2, 0, STEPS>(records, trips); }
PROBE(max_latency) { chains<MaxMin, 1, Ex2, 0, LATENCY_STEPS>(records, trips); }
PROBE(shuffle_rate) { chains<Shuffle, CHAINS, Ex2, 0, STEPS>(records, trips); }
PROBE(shuffle_latency) { chains<Shuffle, 1, Ex2, 0, LATENCY_STEPS>(records, trips); }
PROBE(fma_ex2) { chains<Fma, CHAINS, Ex2, 2, STEPS>(records, trips); }  // 4 : 1

#if __CUDA_ARCH__ >= 800
PROBE(cvt_bf16x2) { chains<ToBf16x2, CHAINS, Ex2, 0, STEPS>(records, trips); }
PROBE(cvt_bf16x2_latency) { chains<ToBf16x2, 1, Ex2, 0, LATENCY_STEPS>(records, trips); }
PROBE(ex2_cvt_bf16x2) { chains<Ex2, CHAINS, ToBf16x2, 4, STEPS>(records, trips); }  // 2 : 1, as a softmax has them
#endif

#if __CUDA_ARCH__ >= 890
PROBE(cvt_e4m3x2) { chains<ToE4m3x2Twice, CHAINS, Ex2, 0, STEPS>(records, trips); }
PROBE(cvt_e4m3x2_latency) { chains<ToE4m3x2Twice, 1, Ex2, 0, LATENCY_STEPS>(records, trips); }
PROBE(ex2_cvt_e4m3x2) { chains<Ex2, CHAINS, ToE4m3x2Twice, 2, STEPS>(records, trips); }  // 2 : 1
#endif
