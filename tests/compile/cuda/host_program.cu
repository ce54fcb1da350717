// SPDX-License-Identifier: Apache-2.0
//
// Launches two kernels, one for each carrier, as its arguments say. A kernel says in its arguments what it would record, which
// stand_in_cudart.cc then does for it: pairs of records, the signature of its lanes, and its slot.
#include "autostamp.cuh"
#line 1
#include <cstdio>
#include <cstdlib>
#include <cstring>
#include <string>

#define CHECK(call)                                                                  \
  do {                                                                               \
    const cudaError_t error_ = (call);                                               \
    if (error_ != cudaSuccess) std::printf("%s: %d\n", #call, static_cast<int>(error_)); \
  } while (false)

namespace ns {
__global__ void param(int pairs, unsigned signature AUTOSTAMP_PARAM) { AUTOSTAMP_BIND_PARAM(aa, 1)
  AUTOSTAMP_ENTER(aa, 1) __syncthreads(); AUTOSTAMP_EXIT(aa, 1)
  (void)pairs, (void)signature;
}
}  // namespace ns
__global__ void symbol(int pairs, unsigned signature, int slot) { AUTOSTAMP_BIND(aa, 2)
  AUTOSTAMP_ENTER(aa, 1) __syncthreads(); AUTOSTAMP_EXIT(aa, 1)
  (void)pairs, (void)signature, (void)slot;
}

void launch_param(int pairs, int threads, cudaStream_t stream) {
  ns::param<<<2, threads, 0, stream>>>(pairs, 0x1000u AUTOSTAMP_ARG(aa,1,(stream)));
}
void launch_symbol(int pairs, int threads, cudaStream_t stream) {
#ifndef WITHOUT_HOOK
  AUTOSTAMP_PREPARE((stream))
#endif
  symbol<<<2, threads, 0, stream>>>(pairs, 0x1001u, 1);
}

// Launchers: of what is prepared by itself, one more around it, and of a kernel that is launched out of sight.
void launch_out_of_sight(int pairs, cudaStream_t stream) { symbol<<<2, 64, 0, stream>>>(pairs, 0x1001u, 1); }
void launch_within(int pairs, cudaStream_t stream) {
  AUTOSTAMP_OPEN AUTOSTAMP_LAUNCHER((0)) launch_symbol(pairs, 64, stream); AUTOSTAMP_CLOSE
}
int launch_further_within(int pairs, cudaStream_t stream) {
  const int launched = AUTOSTAMP_LAUNCHER_AROUND((0)) (launch_within(pairs, stream), 1) AUTOSTAMP_AROUND_END;
  return launched;
}
void launch_elsewhere(int pairs, cudaStream_t stream) {
  AUTOSTAMP_OPEN AUTOSTAMP_LAUNCHER((stream)) launch_out_of_sight(pairs, stream); AUTOSTAMP_CLOSE
}

extern "C" __attribute__((weak)) unsigned stand_in_symbol_copies();

int main(int count, char** words) {
  cudaStream_t streams[2];
  for (cudaStream_t& stream : streams) CHECK(cudaStreamCreateWithFlags(&stream, cudaStreamNonBlocking));
  cudaStream_t stream = nullptr;
  cudaGraph_t graph;
  cudaGraphExec_t ready;
  for (int i = 1; i < count; ++i) {
    const std::string word = words[i];
    const int number = std::atoi(word.c_str() + 1);
    switch (word[0]) {
      case 'p': launch_param(number, 64, stream); break;
      case 'P': launch_param(number, 96, stream); break;
      case 's': launch_symbol(number, 64, stream); break;
      case 'S': launch_symbol(number, 96, stream); break;
      case 'n': launch_within(number, stream); break;
      case 'N': (void)launch_further_within(number, stream); break;
      case 'o': launch_elsewhere(number, stream); break;
      case 'c': std::printf("symbol copies %u\n", stand_in_symbol_copies()); break;
      case 'd': CHECK(cudaSetDevice(number)); break;
      case 't': stream = number == 0 ? nullptr : streams[number - 1]; break;
      case 'b': CHECK(cudaStreamBeginCapture(stream, cudaStreamCaptureModeGlobal)); break;
      case 'e': CHECK(cudaStreamEndCapture(stream, &graph)); CHECK(cudaGraphInstantiate(&ready, graph, 0)); break;
      case 'g': CHECK(cudaGraphLaunch(ready, stream)); break;
      case 'r': autostamp_drain(); break;
      case 'x': (void)cudaSetDevice(99); break;
      case 'l': std::printf("last error %d\n", static_cast<int>(cudaGetLastError())); break;
      case 'a': std::abort();
      default: return 2;
    }
  }
  std::printf("left %d\n", static_cast<int>(cudaPeekAtLastError()));
  return 0;
}
