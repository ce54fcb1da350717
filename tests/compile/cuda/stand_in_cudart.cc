// SPDX-License-Identifier: Apache-2.0
//
// A CUDA runtime for machines without a GPU, as far as the host side of stamps needs one: memory is the process's own, work is
// done when it is enqueued, and a kernel is what its arguments say (see host_program.cu): it binds and releases lanes and leaves
// records as a stamped kernel does. It is strict where the real one is: errors stick until they are asked for, a global stream
// capture forbids what docs call unsafe calls, and a captured copy reads its source when the graph runs.
#include <cuda_runtime.h>
#include <sys/mman.h>

#include <cstdint>
#include <cstdio>
#include <cstdlib>
#include <cstring>
#include <functional>
#include <map>
#include <set>
#include <string>
#include <vector>

namespace {

constexpr int devices = 2;

struct Slot {
  unsigned long long region;
  unsigned capacity, block[3];
};

struct Stream {
  bool is_capturing = false;
};

struct Graph {
  std::vector<std::function<void()>> nodes;
};

thread_local cudaError_t last_error = cudaSuccess;
thread_local int device = 0;
thread_local cudaStreamCaptureMode thread_mode = cudaStreamCaptureModeGlobal;
Graph* capture = nullptr;
Stream* capturing = nullptr;
std::map<const void*, std::string> kernels;
std::map<const void*, std::map<int, std::vector<char>>> symbols;
std::set<Stream*> streams;
unsigned symbol_copies = 0;
dim3 grid, block;
cudaStream_t configured_stream;

cudaError_t result(cudaError_t error) {
  if (error != cudaSuccess) last_error = error;
  return error;
}

bool is_forbidden() { return capture != nullptr && thread_mode != cudaStreamCaptureModeRelaxed; }

cudaError_t enqueue(cudaStream_t stream, std::function<void()> work) {
  Stream* const to = reinterpret_cast<Stream*>(stream);
  if (to != nullptr && streams.count(to) == 0) return result(cudaErrorInvalidResourceHandle);
  if (to != nullptr && to->is_capturing) {
    capture->nodes.push_back(std::move(work));
  } else if (to == nullptr && capture != nullptr) {
    return result(cudaErrorStreamCaptureImplicit);
  } else {
    work();
  }
  return cudaSuccess;
}

template <class T>
void put(char* at, T value) {
  std::memcpy(at, &value, sizeof value);
}
template <class T>
T get(const char* at) {
  T value;
  std::memcpy(&value, at, sizeof value);
  return value;
}

alignas(64) char pretty[2][256];

/// The number of the region of each CTA of a grid that records, in the order of linear indices (docs/formats/drain.md).
std::vector<unsigned> chosen(const Slot& slot, dim3 blocks) {
  std::vector<unsigned> found;
  const std::size_t one = 64 * (64 + std::size_t(slot.capacity) * 8);
  const unsigned* const table = reinterpret_cast<const unsigned*>(slot.region + slot.block[1] * one);
  for (unsigned linear = 0; linear < blocks.x * blocks.y * blocks.z; ++linear) {
    const unsigned at[3] = {linear % blocks.x, linear / blocks.x % blocks.y, linear / (blocks.x * blocks.y)};
    if (slot.block[2] == 0x80000000u) {
      if (linear >= slot.block[0] && linear < slot.block[0] + slot.block[1]) found.push_back(linear - slot.block[0]);
    } else if (slot.block[2] == 0x80000001u) {
      for (unsigned i = 0; i < slot.block[1]; ++i) {
        if (std::memcmp(table + 3 * i, at, sizeof at) == 0) found.push_back(i);
      }
    } else if (std::memcmp(slot.block, at, sizeof at) == 0) {
      found.push_back(0);
    }
  }
  return found;
}

/// What a stamped kernel does in one CTA that records: each warp enters event 1 and exits event 2, `pairs` times.
void run_cta(const Slot& slot, unsigned cta, dim3 threads, dim3 blocks, int pairs, unsigned signature, const char* name) {
  static unsigned long long clock = 0xFFFFFF00u;  // %clock is its low word, %globaltimer all of it
  const std::size_t lane = 64 + std::size_t(slot.capacity) * 8;
  char* const region = reinterpret_cast<char*>(slot.region) + cta * 64 * lane;
  const unsigned warps = (threads.x * threads.y * threads.z + 31) / 32;
  for (unsigned warp = 0; warp < warps; ++warp) {
    char *const main = region + warp * lane, *const single = main + 32 * lane;
    put<unsigned long long>(single, reinterpret_cast<unsigned long long>(name));
    const unsigned geometry[6] = {blocks.x, blocks.y, blocks.z, threads.x, threads.y, threads.z};
    if (warp == 0) std::memcpy(single + 8, geometry, sizeof geometry);
    put<unsigned>(main + 0, static_cast<unsigned>(clock)), put<unsigned>(main + 4, 7u), put<unsigned long long>(main + 16, clock);
    put<unsigned>(main + 40, get<unsigned>(main + 40) + 1);
    int left = static_cast<int>(slot.capacity) * 8;
    for (int i = 0; i < 2 * pairs; ++i, left -= 8) {
      clock += 10;
      if (left < 8) continue;
      put<unsigned>(main + lane - left, static_cast<unsigned>(clock)), put<unsigned>(main + lane - left + 4, 1u + i % 2);
    }
    put<unsigned>(main + 8, static_cast<unsigned>(++clock)), put<unsigned>(main + 12, signature);
    put<unsigned long long>(main + 24, get<unsigned long long>(main + 16) + 20u * pairs + 1);
    put<int>(main + 32, left), put<unsigned>(main + 36, 2u);
    put<unsigned>(main + 44, get<unsigned>(main + 44) + 1);
  }
}

void run_kernel(const Slot& slot, dim3 threads, dim3 blocks, int pairs, unsigned signature, const char* name) {
  if (slot.capacity == 0) return;
  const unsigned ctas = slot.block[2] < 0x80000000u ? 1 : slot.block[1];
  const unsigned long long last = slot.region + ctas * 64 * (64 + slot.capacity * 8ull) - 1;
  if (slot.region >> 32 != last >> 32) std::fprintf(stderr, "a region crosses a boundary\n");
  for (const unsigned cta : chosen(slot, blocks)) run_cta(slot, cta, threads, blocks, pairs, signature, name);
}

}  // namespace

extern "C" {

void** __cudaRegisterFatBinary(void*) {
  static void* handle = nullptr;
  return &handle;
}
void __cudaRegisterFatBinaryEnd(void**) {}
void __cudaUnregisterFatBinary(void**) {
  kernels.clear();
  symbols.clear();
}
char __cudaInitModule(void**) { return 0; }
void __cudaRegisterFunction(void**, const char* host, char*, const char* name, int, uint3*, uint3*, dim3*, dim3*, int*) {
  kernels[host] = name;
}
void __cudaRegisterVar(void**, char* host, char*, const char*, int, std::size_t size, int, int) {
  for (int i = 0; i < devices; ++i) symbols[host][i] = std::vector<char>(size, 0);
}
unsigned __cudaPushCallConfiguration(dim3 grid_, dim3 block_, std::size_t, void* stream) {
  grid = grid_, block = block_, configured_stream = static_cast<cudaStream_t>(stream);
  return 0;
}
cudaError_t __cudaPopCallConfiguration(dim3* grid_, dim3* block_, std::size_t* shared, void* stream) {
  *grid_ = grid, *block_ = block, *shared = 0, *static_cast<cudaStream_t*>(stream) = configured_stream;
  return cudaSuccess;
}
cudaError_t __cudaGetKernel(cudaKernel_t* kernel, const void* host) {
  *kernel = reinterpret_cast<cudaKernel_t>(const_cast<void*>(host));
  return cudaSuccess;
}

/// Arguments: how many pairs of records, the signature, then the slot, or its number in the symbol.
cudaError_t __cudaLaunchKernel(cudaKernel_t kernel, dim3 blocks, dim3 threads, void** args, std::size_t, cudaStream_t stream) {
  const void* const host = kernel;
  if (kernels.count(host) == 0) return result(cudaErrorInvalidDeviceFunction);
  const bool is_param = kernels[host].find("param") != std::string::npos;
  const int pairs = *static_cast<int*>(args[0]);
  const unsigned signature = *static_cast<unsigned*>(args[1]);
  const Slot given = is_param ? *static_cast<Slot*>(args[2]) : Slot{};
  const int number = is_param ? 0 : *static_cast<int*>(args[2]);
  const int on = device;
  std::snprintf(pretty[is_param], sizeof pretty[0], "void %s(int) [with T = float; int N = 4]", is_param ? "ns::param" : "symbol");
  return enqueue(stream, [=] {
    Slot slot = given;
    if (!is_param) std::memcpy(&slot, symbols.begin()->second[on].data() + number * sizeof(Slot), sizeof slot);
    run_kernel(slot, threads, blocks, pairs, signature, pretty[is_param]);
  });
}

cudaError_t cudaGetDevice(int* found) { return *found = device, cudaSuccess; }
cudaError_t cudaSetDevice(int to) {
  if (to < 0 || to >= devices) return result(cudaErrorInvalidDevice);
  return device = to, cudaSuccess;
}
cudaError_t cudaDeviceSynchronize() { return is_forbidden() ? result(cudaErrorStreamCaptureUnsupported) : cudaSuccess; }
cudaError_t cudaDriverGetVersion(int* found) { return *found = 13000, cudaSuccess; }
cudaError_t cudaRuntimeGetVersion(int* found) { return *found = 12090, cudaSuccess; }
cudaError_t cudaGetDeviceProperties(cudaDeviceProp* found, int) {
  std::memset(found, 0, sizeof *found);
  std::strcpy(found->name, "Stand-in \"GPU\"");
  found->major = 9, found->minor = 0, found->multiProcessorCount = 132;
  return cudaSuccess;
}
const char* cudaGetErrorString(cudaError_t error) {
  static thread_local char text[32];
  std::snprintf(text, sizeof text, "error %d", static_cast<int>(error));
  return text;
}
cudaError_t cudaGetLastError() {
  const cudaError_t error = last_error;
  return last_error = cudaSuccess, error;
}
cudaError_t cudaPeekAtLastError() { return last_error; }
cudaError_t cudaThreadExchangeStreamCaptureMode(cudaStreamCaptureMode* mode) { return std::swap(*mode, thread_mode), cudaSuccess; }

cudaError_t cudaMalloc(void** at, std::size_t size) {
  if (is_forbidden()) return result(cudaErrorStreamCaptureUnsupported);
  if (std::getenv("STAND_IN_NO_MEMORY") != nullptr) return result(cudaErrorMemoryAllocation);
  static bool is_first = true;
  if (is_first && std::getenv("STAND_IN_BOUNDARY") != nullptr) {  // an allocation that crosses a multiple of 4 GiB
    void* const below = reinterpret_cast<void*>((0x1234ull << 32) - 8192);
    *at = mmap(below, size, PROT_READ | PROT_WRITE, MAP_PRIVATE | MAP_ANONYMOUS | MAP_FIXED_NOREPLACE, -1, 0);
    return is_first = false, cudaSuccess;
  }
  *at = std::aligned_alloc(256, (size + 255) / 256 * 256);
  std::memset(*at, 0xEE, size);
  return cudaSuccess;
}
cudaError_t cudaMemcpy(void* to, const void* from, std::size_t size, cudaMemcpyKind) { return std::memcpy(to, from, size), cudaSuccess; }
cudaError_t cudaMemcpy2D(void* to, std::size_t to_pitch, const void* from, std::size_t from_pitch, std::size_t width, std::size_t height, cudaMemcpyKind) {
  for (std::size_t row = 0; row < height; ++row) {
    std::memcpy(static_cast<char*>(to) + row * to_pitch, static_cast<const char*>(from) + row * from_pitch, width);
  }
  return cudaSuccess;
}
cudaError_t cudaMemsetAsync(void* at, int value, std::size_t size, cudaStream_t stream) {
  if (size > 1 << 17) std::fprintf(stderr, "a memset of %zu bytes\n", size);  // docs/adr/0014
  return enqueue(stream, [=] { std::memset(at, value, size); });
}
cudaError_t cudaMemcpyAsync(void* to, const void* from, std::size_t size, cudaMemcpyKind, cudaStream_t stream) {
  return enqueue(stream, [=] { std::memcpy(to, from, size); });
}
cudaError_t cudaMemcpyToSymbolAsync(const void* symbol, const void* from, std::size_t size, std::size_t offset, cudaMemcpyKind, cudaStream_t stream) {
  if (symbols.count(symbol) == 0) return result(cudaErrorInvalidSymbol);
  const int on = device;
  ++symbol_copies;
  return enqueue(stream, [=] { std::memcpy(symbols[symbol][on].data() + offset, from, size); });
}
unsigned stand_in_symbol_copies() { return symbol_copies; }
cudaError_t cudaGetSymbolAddress(void** at, const void* symbol) {
  if (symbols.count(symbol) == 0) return result(cudaErrorInvalidSymbol);
  return *at = symbols[symbol][device].data(), cudaSuccess;
}
cudaError_t cudaHostRegister(void*, std::size_t, unsigned) { return is_forbidden() ? result(cudaErrorStreamCaptureUnsupported) : cudaSuccess; }
cudaError_t cudaHostGetDevicePointer(void** at, void* host, unsigned) { return *at = host, cudaSuccess; }

cudaError_t cudaStreamCreateWithFlags(cudaStream_t* stream, unsigned) {
  Stream* const made = new Stream;
  streams.insert(made);
  return *stream = reinterpret_cast<cudaStream_t>(made), cudaSuccess;
}
cudaError_t cudaStreamDestroy(cudaStream_t stream) { return streams.erase(reinterpret_cast<Stream*>(stream)), cudaSuccess; }
cudaError_t cudaStreamSynchronize(cudaStream_t) { return is_forbidden() ? result(cudaErrorStreamCaptureUnsupported) : cudaSuccess; }
cudaError_t cudaStreamIsCapturing(cudaStream_t stream, cudaStreamCaptureStatus* status) {
  if (stream == nullptr && capture != nullptr) return result(cudaErrorStreamCaptureImplicit);
  const bool is_capturing = stream != nullptr && reinterpret_cast<Stream*>(stream)->is_capturing;
  return *status = is_capturing ? cudaStreamCaptureStatusActive : cudaStreamCaptureStatusNone, cudaSuccess;
}
cudaError_t cudaStreamBeginCapture(cudaStream_t stream, cudaStreamCaptureMode) {
  capture = new Graph;
  capturing = reinterpret_cast<Stream*>(stream);
  capturing->is_capturing = true;
  return cudaSuccess;
}
cudaError_t cudaStreamEndCapture(cudaStream_t, cudaGraph_t* graph) {
  *graph = reinterpret_cast<cudaGraph_t>(capture);
  capturing->is_capturing = false;
  capture = nullptr;
  return cudaSuccess;
}
cudaError_t cudaGraphInstantiate(cudaGraphExec_t* made, cudaGraph_t graph, unsigned long long) {
  return *made = reinterpret_cast<cudaGraphExec_t>(graph), cudaSuccess;
}
cudaError_t cudaGraphLaunch(cudaGraphExec_t graph, cudaStream_t) {
  for (const auto& node : reinterpret_cast<Graph*>(graph)->nodes) node();
  return cudaSuccess;
}
}
