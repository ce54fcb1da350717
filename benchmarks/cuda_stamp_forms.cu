// SPDX-License-Identifier: Apache-2.0
//
// One loop with two stamps an iteration (six in a copy that only counts instructions), in every form that a stamp was tried in, around a chain of dependent multiply-adds. Built
// and run by cuda_stamp_forms.py, which says what the forms are. Prints lines "FORM WARPS CYCLES": the median over the launches of
// the cycles that warp 0 took for the loop.
#include "autostamp.cuh"
#line 1
#include <algorithm>
#include <cstdint>
#include <cstdio>
#include <cstdlib>
#include <utility>
#include <vector>

constexpr int iterations = 512;
constexpr int chain = 32;
constexpr int launches = 21;
constexpr unsigned capacity = 2 * iterations + 16;

enum Form {
  none, append, append_signal, append_plain, append_warp, append_index, append_wide, append_if, append_globaltimer, static_slot, shared_append, floor_store,
  clocks_dependent, clocks_independent, forms
};
const char* const names[] = {
  "none", "append", "append_signal", "append_plain", "append_warp", "append_index", "append_wide", "append_if", "append_globaltimer", "static_slot", "shared_append",
  "floor", "clocks_dependent", "clocks_independent"
};

__device__ __forceinline__ float work(float x, float y) {
#pragma unroll
  for (int i = 0; i < chain; ++i) x = fmaf(x, y, y);
  return x;
}

/// What the forms that are not autostamp's keep across the loop.
struct State {
  unsigned low, high, limit;  // of the next record, and where records end
  unsigned long long base;
  unsigned shared, shared_limit, count, index_limit;
};

// 64-bit clock: records of 16 bytes.
template <unsigned Event> __device__ __forceinline__ void wide(State& s) {
  asm volatile(
      "{ .reg .pred p; .reg .b64 a, c;\n\tmov.u64 c, %%clock64;\n\tsetp.lt.u32 p, %0, %2;\n\tmov.b64 a, {%0, %1};\n\t"
      "@p st.global.v2.b64 [a], {c, %3};\n\tadd.u32 %0, %0, 16; }" : "+r"(s.low) : "r"(s.high), "r"(s.limit), "l"(static_cast<unsigned long long>(Event)) : "memory");
}
// The cursor is an index from the beginning of the region: the address is a product and a sum, one IMAD.WIDE.
template <unsigned Event> __device__ __forceinline__ void by_index(State& s) {
  asm volatile(
      "{ .reg .pred p; .reg .b64 a; .reg .u32 c;\n\tmov.u32 c, %%clock;\n\tsetp.lt.u32 p, %0, %1;\n\tmul.wide.u32 a, %0, 4;\n\tadd.s64 a, %2, a;\n\t"
      "@p st.global.v2.b32 [a], {c, %3};\n\tadd.u32 %0, %0, 2; }" : "+r"(s.count) : "r"(s.index_limit), "l"(s.base), "r"(Event) : "memory");
}
template <unsigned Event> __device__ __forceinline__ void global_timer(State& s) {
  asm volatile(
      "{ .reg .pred p; .reg .b64 a; .reg .u32 c;\n\tmov.u32 c, %%globaltimer_lo;\n\tsetp.lt.u32 p, %0, %2;\n\tmov.b64 a, {%0, %1};\n\t"
      "@p st.global.v2.b32 [a], {c, %3};\n\tadd.u32 %0, %0, 8; }" : "+r"(s.low) : "r"(s.high), "r"(s.limit), "r"(Event) : "memory");
}
// As one would write it: a test of the lane and of the room, in C++.
template <unsigned Event> __device__ __forceinline__ void by_if(State& s) {
  if (threadIdx.x % 32 == 0 && s.count < capacity) {
    reinterpret_cast<uint2*>(s.base)[s.count] = make_uint2(static_cast<unsigned>(clock()), Event);
    ++s.count;
  }
}
// A place for each site and iteration: no cursor, and the iteration must be at hand.
template <unsigned Event> __device__ __forceinline__ void in_slot(State& s, int iteration) {
  const unsigned long long at = s.base + (static_cast<unsigned>(iteration) * 2 + Event % 2) * 4ull;
  asm volatile("{ .reg .pred p; .reg .u32 c;\n\tmov.u32 c, %%clock;\n\tsetp.lt.u32 p, %0, %1;\n\t@p st.global.u32 [%2], c; }" ::"r"(iteration), "r"(s.limit), "l"(at) : "memory");
}
template <unsigned Event> __device__ __forceinline__ void into_shared(State& s) {
  asm volatile(
      "{ .reg .pred p; .reg .u32 c;\n\tmov.u32 c, %%clock;\n\tsetp.lt.u32 p, %0, %1;\n\t@p st.shared.v2.b32 [%0], {c, %2};\n\tadd.u32 %0, %0, 8; }"
      : "+r"(s.shared) : "r"(s.shared_limit), "r"(Event) : "memory");
}
template <unsigned Event> __device__ __forceinline__ void store_only(State& s) {
  asm volatile("{ .reg .u32 c;\n\tmov.u32 c, %%clock;\n\tst.global.v2.b32 [%0], {c, %1}; }" ::"l"(s.base), "r"(Event) : "memory");
}

template <int F, unsigned Event> __device__ __forceinline__ void stamp(State& s, int iteration, uint64_t* barrier) {
  if constexpr (F == append && Event == 1) { AUTOSTAMP_ENTER_AT(aa,1,(barrier)) }
  if constexpr (F == append && Event == 2) { AUTOSTAMP_EXIT(aa,1) }
  if constexpr (F == append_signal) { AUTOSTAMP_SIGNAL_AT(aa,1,(barrier)) }
  if constexpr (F == append_plain && Event == 1) { AUTOSTAMP_ENTER(aa,1) }
  if constexpr (F == append_plain && Event == 2) { AUTOSTAMP_EXIT(aa,1) }
  if constexpr (F == append_warp && Event == 1) { AUTOSTAMP_WARP_ENTER_AT(aa,1,(barrier)) }
  if constexpr (F == append_warp && Event == 2) { AUTOSTAMP_WARP_EXIT(aa,1) }
  if constexpr (F == append_index) by_index<Event>(s);
  if constexpr (F == append_wide) wide<Event>(s);
  if constexpr (F == append_if) by_if<Event>(s);
  if constexpr (F == append_globaltimer) global_timer<Event>(s);
  if constexpr (F == static_slot) in_slot<Event>(s, iteration);
  if constexpr (F == shared_append) into_shared<Event>(s);
  if constexpr (F == floor_store) store_only<Event>(s);
  // One clock read a stamp: each waits for the one before, or all are independent. The sum keeps them.
  if constexpr (F == clocks_dependent) {
    unsigned c;
    asm volatile("{ .reg .u32 t;\n\tmov.u32 t, %%clock;\n\tadd.u32 %0, t, %1;\n\tshr.u32 %0, %0, 1; }" : "=r"(c) : "r"(s.count));
    s.count = c;
  }
  if constexpr (F == clocks_independent) {
    unsigned c;
    asm volatile("mov.u32 %0, %%clock;" : "=r"(c));
    s.count += c;
  }
}

template <int F, int Pairs> __global__ void loop(float* out, long long* cycles, char* records, float y AUTOSTAMP_PARAM) { AUTOSTAMP_BIND_PARAM(aa,1)
  __shared__ uint64_t barriers[4];
  __shared__ uint2 kept[32];
  const bool writes = threadIdx.x % 32 == 0;
  State s{};
  s.base = reinterpret_cast<unsigned long long>(records) + (threadIdx.x / 32) * (capacity * 16ull);
  s.high = static_cast<unsigned>(s.base >> 32);
  s.limit = F == static_slot ? (writes ? iterations : 0) : static_cast<unsigned>(s.base) + capacity * 16;
  s.low = writes ? static_cast<unsigned>(s.base) : s.limit;
  s.index_limit = writes ? 2 * capacity : 0;
  s.shared = static_cast<unsigned>(__cvta_generic_to_shared(kept));
  s.shared_limit = writes ? s.shared + sizeof kept : 0;
  float x = y;
  __syncthreads();
  const long long begin = clock64();
#pragma unroll 1
  for (int i = 0; i < iterations; ++i) {
#pragma unroll
    for (int pair = 0; pair < Pairs; ++pair) {
      stamp<F, 1>(s, i, &barriers[(i + pair) % 4]);
      x = work(x, y);
      stamp<F, 2>(s, i, &barriers[(i + pair) % 4]);
      x += y;
    }
    if constexpr (F == shared_append) s.shared -= 16 * (i % 2);
  }
  const long long end = clock64();
  if (threadIdx.x == 0) *cycles = end - begin;
  out[threadIdx.x] = x + static_cast<float>(s.count) + static_cast<float>(s.low & 1) + static_cast<float>(s.shared & 1);
}

template <int F> void measure(int warps) {
  float* out = nullptr;
  long long* cycles = nullptr;
  char *records = nullptr, *region = nullptr;
  const std::size_t lane = autostamp::layout::header_bytes + capacity * std::size_t(autostamp::layout::record_bytes);
  cudaMalloc(&out, 1024 * sizeof(float));
  cudaMalloc(&cycles, sizeof(long long));
  cudaMalloc(&records, 32 * (capacity * std::size_t(16)) + 4096);
  cudaMalloc(&region, autostamp::layout::lanes * lane);
  const autostamp::Slot slot{reinterpret_cast<unsigned long long>(region), capacity, 0, 0, 0};
  std::vector<long long> found;
  for (int i = 0; i < launches; ++i) {
    cudaMemset(region, 0, autostamp::layout::lanes * lane);
    loop<F, 1><<<1, 32 * warps>>>(out, cycles, records, 0.999f, slot);
    long long taken = 0;
    if (cudaMemcpy(&taken, cycles, sizeof taken, cudaMemcpyDeviceToHost) != cudaSuccess) {
      std::fprintf(stderr, "%s: %s\n", names[F], cudaGetErrorString(cudaGetLastError()));
      std::exit(1);
    }
    if (i >= 5) found.push_back(taken);
  }
  std::nth_element(found.begin(), found.begin() + found.size() / 2, found.end());
  std::printf("%s %d %lld\n", names[F], warps, found[found.size() / 2]);
  cudaFree(out), cudaFree(cycles), cudaFree(records), cudaFree(region);
}

template <int... F> void measure_all(int warps, std::integer_sequence<int, F...>) { (measure<F>(warps), ...); }

// Only compiled: what a longer loop has more is the instructions of its stamps, without what the form needs once.
template <int... F> void instantiate(std::integer_sequence<int, F...>) {
  const void* const kernels[] = {reinterpret_cast<const void*>(loop<F, 3>)...};
  cudaFuncAttributes attributes;
  for (const void* const kernel : kernels) cudaFuncGetAttributes(&attributes, kernel);
}

int main() {
  instantiate(std::make_integer_sequence<int, forms>());
  for (const int warps : {1, 4, 16}) measure_all(warps, std::make_integer_sequence<int, forms>());
}
