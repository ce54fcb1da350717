// SPDX-License-Identifier: Apache-2.0
//
// Kernels with stamps written by hand, launched as the arguments say: `program OUT WORD...`. After the last word the output array
// goes to the file OUT. One CTA of each kernel is enough to record; two are launched.
#include "autostamp.cuh"
#line 1
#include <unistd.h>

#include <cstdint>
#include <cstdio>
#include <cstdlib>
#include <string>
#include <vector>

#ifdef WITHOUT_HOOKS  // as where the launches are not in sight
#undef AUTOSTAMP_PREPARE
#define AUTOSTAMP_PREPARE(...)
#endif

// Lean stamps read the slot from the symbol.
#ifdef LEAN
#undef AUTOSTAMP_BIND_PARAM
#define AUTOSTAMP_BIND_PARAM(key, k) AUTOSTAMP_BIND(key, k)
#define PREPARE_PARAM(...) AUTOSTAMP_PREPARE(__VA_ARGS__)
#else
#define PREPARE_PARAM(...)
#endif

#define CHECK(call)                                                                            \
  do {                                                                                         \
    const cudaError_t error_ = (call);                                                         \
    if (error_ != cudaSuccess) {                                                               \
      std::fprintf(stderr, "%s:%d: %s\n", __FILE__, __LINE__, cudaGetErrorString(error_));     \
      std::exit(3);                                                                            \
    }                                                                                          \
  } while (false)

constexpr int stages = 3;
constexpr int size = 1 << 16;

__device__ __forceinline__ uint32_t shared_address(const void* at) { return static_cast<uint32_t>(__cvta_generic_to_shared(at)); }
__device__ __forceinline__ void init(uint64_t* barrier, int arrivals) {
  asm volatile("mbarrier.init.shared.b64 [%0], %1;" ::"r"(shared_address(barrier)), "r"(arrivals) : "memory");
}
__device__ __forceinline__ void arrive(uint64_t* barrier) {
  asm volatile("{ .reg .b64 s; mbarrier.arrive.shared.b64 s, [%0]; }" ::"r"(shared_address(barrier)) : "memory");
}
__device__ __forceinline__ void wait(uint64_t* barrier, uint32_t parity) {
  uint32_t is_done = 0;
  while (is_done == 0) {
    asm volatile("{ .reg .pred p; mbarrier.test_wait.parity.shared.b64 p, [%1], %2; selp.u32 %0, 1, 0, p; }"
                 : "=r"(is_done) : "r"(shared_address(barrier)), "r"(parity) : "memory");
  }
}

// The same stamp in both forms: the second may stand where the whole warp, or thread 0 of it alone, passes.
#define ENTER_AT(n, ...)                                                                                                        \
  if constexpr (IsWhole) { AUTOSTAMP_WARP_ENTER_AT(aa, n, __VA_ARGS__) } else { AUTOSTAMP_ENTER_AT(aa, n, __VA_ARGS__) }
#define EXIT(n)                                                                                                                 \
  if constexpr (IsWhole) { AUTOSTAMP_WARP_EXIT(aa, n) } else { AUTOSTAMP_EXIT(aa, n) }
#define SIGNAL_AT(n, ...)                                                                                                       \
  if constexpr (IsWhole) { AUTOSTAMP_WARP_SIGNAL_AT(aa, n, __VA_ARGS__) } else { AUTOSTAMP_SIGNAL_AT(aa, n, __VA_ARGS__) }

/// Warp 0's first thread hands numbers to the other warps through a ring of `stages` words.
template <bool IsWhole> __device__ AUTOSTAMP_INLINE void ring(int* out, int n) {
  __shared__ uint64_t full[stages], empty[stages];
  __shared__ int words[stages];
  const int warps = blockDim.x / 32;
  if (threadIdx.x == 0) {
    for (int i = 0; i < stages; ++i) init(&full[i], 1), init(&empty[i], warps - 1);
  }
  __syncthreads();
  if (threadIdx.x == 0) {
    for (int i = 0; i < n; ++i) {
      ENTER_AT(1, (&empty[i % stages])) wait(&empty[i % stages], (i / stages + 1) & 1); EXIT(1)
      words[i % stages] = 3 * i;
      arrive(&full[i % stages]); SIGNAL_AT(2, (full[i % stages]))
    }
  } else if (threadIdx.x >= 32) {
    for (int i = 0; i < n; ++i) {
      ENTER_AT(3, (shared_address(&full[i % stages]))) wait(&full[i % stages], (i / stages) & 1); EXIT(3)
      atomicAdd(&out[i % size], words[i % stages] + static_cast<int>(threadIdx.x));
      __syncwarp();
      if (threadIdx.x % 32 == 0) { arrive(&empty[i % stages]); SIGNAL_AT(4, (empty[i % stages])) }
    }
  }
  AUTOSTAMP_WARP_ENTER(aa,5) __syncthreads(); AUTOSTAMP_WARP_EXIT(aa,5)
}

template <int Which> __global__ void ring_param(int* out, int n AUTOSTAMP_PARAM) { AUTOSTAMP_BIND_PARAM(aa,1) ring<Which == 1>(out, n); }
__global__ void ring_symbol(int* out, int n) { AUTOSTAMP_BIND(aa,2) ring<false>(out, n); }

/// Thread 5 of warp 1 alone passes site 6, threads 8 to 15 of warp 2 together, and thread 0 of warp 3; every warp passes site 7.
__global__ void elected(int* out, int n) { AUTOSTAMP_BIND(aa,3)
  const int linear = (threadIdx.z * blockDim.y + threadIdx.y) * blockDim.x + threadIdx.x, warp = linear / 32, lane = linear % 32;
  for (int i = 0; i < n; ++i) {
    const bool is_chosen = warp == 1 ? lane == 5 : warp == 2 ? lane / 8 == 1 : warp == 3 && lane == 0;
    if (is_chosen) {
      AUTOSTAMP_ENTER_ID(aa,6,(i)) __nanosleep(100); AUTOSTAMP_EXIT(aa,6)
      atomicAdd(&out[linear], 1);
    }
    __syncwarp();
    if (AUTOSTAMP_AROUND(aa,7) __syncthreads_or(i >= 0) AUTOSTAMP_AROUND_END) atomicAdd(&out[linear], 2);
  }
}

/// Thread 3 and thread 4 of warp 0 take turns without thread 0: their records lie over each other.
__global__ void sharing(int* out, int n) { AUTOSTAMP_BIND(aa,4)
  for (int lane = 3; lane <= 4; ++lane) {
    if (threadIdx.x % 32 == lane) {
      for (int i = 0; i < n; ++i) { AUTOSTAMP_ENTER(aa,8) __nanosleep(20); AUTOSTAMP_EXIT(aa,8) }
      out[lane] = n;
    }
    __syncwarp();
  }
}

/// Records n visits, then holds the device for `cycles`; with a negative n it never ends.
__global__ void busy(int* out, int n, long long cycles) { AUTOSTAMP_BIND(aa,5)
  for (int i = 0; i < (n < 0 ? -n : n); ++i) { AUTOSTAMP_ENTER(aa,9) __syncwarp(); AUTOSTAMP_EXIT(aa,9) }
  AUTOSTAMP_ENTER(aa,10)
  const long long begin = clock64();
  while (n < 0 || clock64() - begin < cycles) __nanosleep(1000);
  AUTOSTAMP_EXIT(aa,10) out[0] = n;
}

void launch(const std::string& word, int* out, cudaStream_t stream) {
  const int n = std::atoi(word.c_str() + 1);
  switch (word[0]) {
    case 'p': PREPARE_PARAM((stream)) ring_param<0><<<2, 96, 0, stream>>>(out, n AUTOSTAMP_ARG(aa,1,(stream))); break;
    case 'q': PREPARE_PARAM((stream)) ring_param<1><<<2, 128, 0, stream>>>(out, n AUTOSTAMP_ARG(aa,1,(stream))); break;
    case 's': { AUTOSTAMP_PREPARE((stream)) ring_symbol<<<2, 96, 0, stream>>>(out, n); break; }
    case 'e':
    case 'f': {
      const dim3 threads = word[0] == 'e' ? dim3(8, 4, 4) : dim3(7, 5, 1);
      AUTOSTAMP_PREPARE((stream)) elected<<<2, threads, 0, stream>>>(out, n);
      break;
    }
    case 'h': { AUTOSTAMP_PREPARE((stream)) sharing<<<2, 32, 0, stream>>>(out, n); break; }
    case 'b': { AUTOSTAMP_PREPARE((stream)) busy<<<1, 32, 0, stream>>>(out, n, 100000000LL); break; }
    default: std::exit(2);
  }
  CHECK(cudaGetLastError());
}

int main(int count, char** words) {
  int* out = nullptr;
  CHECK(cudaMalloc(&out, size * sizeof(int)));
  CHECK(cudaMemset(out, 0, size * sizeof(int)));
  cudaStream_t streams[3] = {};
  for (int i = 1; i < 3; ++i) CHECK(cudaStreamCreateWithFlags(&streams[i], cudaStreamNonBlocking));
  cudaStream_t stream = nullptr;
  cudaGraph_t graph = nullptr;
  cudaGraphExec_t ready = nullptr;
  for (int i = 2; i < count; ++i) {
    const std::string word = words[i];
    if (word[0] == 't') {
      stream = streams[word[1] - '0'];
    } else if (word == "begin") {
      CHECK(cudaStreamBeginCapture(stream, cudaStreamCaptureModeGlobal));
    } else if (word == "end") {
      CHECK(cudaStreamEndCapture(stream, &graph));
      CHECK(cudaGraphInstantiate(&ready, graph, 0));
    } else if (word == "graph") {
      CHECK(cudaGraphLaunch(ready, stream));
    } else if (word == "abort") {
      usleep(500000);
      std::abort();
    } else {
      launch(word, out, stream);
    }
  }
  CHECK(cudaDeviceSynchronize());
  std::vector<int> host(size);
  CHECK(cudaMemcpy(host.data(), out, size * sizeof(int), cudaMemcpyDeviceToHost));
  std::FILE* const file = std::fopen(words[1], "wb");
  if (file == nullptr || std::fwrite(host.data(), sizeof(int), size, file) != size) return 4;
  return std::fclose(file);
}
