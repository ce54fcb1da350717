// SPDX-License-Identifier: Apache-2.0
//
// A ladder of matrix-vector products in NVFP4: c[l] = A[l] b[l], with e2m1 numbers, an e4m3 scale for every 16 of them, and f32
// sums. The product is bound by memory, so what counts is how near a rung comes to reading the same bytes and doing nothing else;
// that floor is measured in the same run. Kernels are in ladder.cuh and ring.cuh, the number format is in nvfp4.cuh.
//
// Build: nvcc -gencode arch=compute_90a,code=sm_90a -std=c++17 -O3 -o gemv gemv.cu     (any target from sm_90 on)
// Run:   ./gemv [M K L] [--rung NAME] [--repeat R] [--seed S] [--dump FILE]            (NAME: see --help; without: all)
// Exit:  0 when all results are right, 1 when one is wrong, 2 when the command line is wrong or a CUDA call failed.

#include <cuda_runtime.h>

#include <algorithm>
#include <cstdint>
#include <cstdio>
#include <cstdlib>
#include <cstring>
#include <functional>
#include <random>
#include <string>
#include <vector>

#include "floor.cuh"
#include "ladder.cuh"
#include "reference.hpp"
#include "ring.cuh"

#define CUDA_CHECK(call) check_cuda((call), #call, __LINE__)

void check_cuda(cudaError_t status, const char* call, int line) {
    if (status != cudaSuccess) {
        std::fprintf(stderr, "%s:%d: %s: %s\n", __FILE__, line, call, cudaGetErrorString(status));
        std::exit(2);
    }
}

// A 64-bit hash, the finalizer of splitmix64.
__host__ __device__ uint64_t mix(uint64_t x) {
    x = (x ^ (x >> 30)) * 0xbf58476d1ce4e5b9;
    x = (x ^ (x >> 27)) * 0x94d049bb133111eb;
    return x ^ (x >> 31);
}

// Random bytes. Scales are finite and not negative, as those of NVFP4 are: 0 to 0x7e.
__global__ void fill(uint8_t* bytes, size_t size, uint64_t seed, bool are_scales) {
    for (size_t i = blockIdx.x * size_t{blockDim.x} + threadIdx.x; i < size; i += size_t{gridDim.x} * blockDim.x) {
        const uint32_t random = mix(seed + i) >> 32;
        bytes[i] = are_scales ? random % 0x7f : random;
    }
}

struct Options {
    Shape shape;
    std::string rung;
    int repeat = 1;
    uint64_t seed = std::random_device{}();
    const char* dump = nullptr;
};

struct Device {
    int sms = 0;
    int shared = 0;  // bytes that a CTA can have
    int l2 = 0;
};

Device find_device() {
    Device device;
    CUDA_CHECK(cudaDeviceGetAttribute(&device.sms, cudaDevAttrMultiProcessorCount, 0));
    CUDA_CHECK(cudaDeviceGetAttribute(&device.shared, cudaDevAttrMaxSharedMemoryPerBlockOptin, 0));
    CUDA_CHECK(cudaDeviceGetAttribute(&device.l2, cudaDevAttrL2CacheSize, 0));
    return device;
}

struct Rung {
    std::string name;
    std::function<void(const Problem&, cudaStream_t)> launch;
};

Rung by_row(const char* name, void (*kernel)(Problem), int threads_of_row) {
    return {name, [=](const Problem& p, cudaStream_t stream) {
                const int threads = 256;
                const int64_t all = static_cast<int64_t>(p.m) * p.l * threads_of_row;
                kernel<<<static_cast<unsigned>((all + threads - 1) / threads), threads, 0, stream>>>(p);
            }};
}

int team_warps_of(const Problem& p) { return p.k / TEAM_NUMBERS; }

int teams_of(const Problem& p) { return MOST_TEAM_WARPS / team_warps_of(p); }

// Threads of all teams of a CTA.
int team_threads_of(const Problem& p) { return teams_of(p) * team_warps_of(p) * WARP; }

// Shared memory for what the warps of a team add to each row.
int partial_bytes(const Problem& p, int ctas) {
    return (p.m * p.l + ctas - 1) / ctas * team_warps_of(p) * static_cast<int>(sizeof(float));
}

// Rows that a team would have with one CTA on each SM. The more rows a thread takes at a time, the more it has under way, and the
// more of its last group is idle: the rungs below take as many as leave a team several groups.
int rows_of_team(const Problem& p, const Device& device) { return p.m * p.l / (device.sms * teams_of(p)); }

template <int ROWS, int CTAS>
void launch_registers(const Problem& p, const Device& device, cudaStream_t stream) {
    const int ctas = CTAS * device.sms;
    const auto kernel = gemv_registers<ROWS, CTAS>;
    kernel<<<ctas, team_threads_of(p), partial_bytes(p, ctas), stream>>>(p);
}

template <int ROWS>
void launch_ring(const Problem& p, const Device& device, cudaStream_t stream) {
    Ring ring;
    ring.stage_rows = ROWS * teams_of(p);
    ring.stage_bytes = ring.stage_rows * (p.k / 2 + p.k / BLOCK);
    const int partial = partial_bytes(p, device.sms);
    ring.stages = (device.shared - partial) / (ring.stage_bytes + 16);
    const int shared = ring.partial_offset() + partial;
    const auto kernel = gemv_ring<ROWS>;
    CUDA_CHECK(cudaFuncSetAttribute(kernel, cudaFuncAttributeMaxDynamicSharedMemorySize, shared));
    kernel<<<device.sms, team_threads_of(p) + WARP, shared, stream>>>(p, ring);
}

Rung by_registers(const char* name, const Device& device) {
    return {name, [=](const Problem& p, cudaStream_t stream) {
                const auto launch = rows_of_team(p, device) >= 48 ? launch_registers<8, 1> : launch_registers<2, 2>;
                launch(p, device, stream);
            }};
}

Rung by_ring(const char* name, const Device& device) {
    return {name, [=](const Problem& p, cudaStream_t stream) {
                const int rows = rows_of_team(p, device);
                const auto launch = rows >= 96 ? launch_ring<8> : rows >= 48 ? launch_ring<4> : launch_ring<2>;
                launch(p, device, stream);
            }};
}

std::vector<Rung> ladder(const Device& device) {
    return {
        by_row("naive", gemv_naive, 1),
        by_row("coalesced", gemv_coalesced, WARP),
        by_row("wide", gemv_wide, WARP),
        by_row("integer", gemv_integer, WARP),
        by_row("cached", gemv_cached, WARP),
        by_registers("registers", device),
        by_ring("ring", device),
    };
}

// Times launches one by one. Before each, other memory is read, so that L2 holds nothing of the data and no line that must be
// written back.
struct Timer {
    cudaStream_t stream;
    cudaEvent_t start, stop;
    uint4* cold;
    size_t cold_count;
    uint32_t* sink;
    int sms;

    explicit Timer(const Device& device) : cold_count(size_t{4} * device.l2 / sizeof(uint4)), sms(device.sms) {
        CUDA_CHECK(cudaMalloc(&cold, cold_count * sizeof(uint4)));
        CUDA_CHECK(cudaMemset(cold, 0, cold_count * sizeof(uint4)));
        CUDA_CHECK(cudaMalloc(&sink, sizeof(uint32_t)));
        CUDA_CHECK(cudaStreamCreate(&stream));
        CUDA_CHECK(cudaEventCreate(&start));
        CUDA_CHECK(cudaEventCreate(&stop));
    }

    // Microseconds, sorted.
    std::vector<float> times(int repeat, const std::function<void()>& launch) const {
        std::vector<float> found;
        for (int i = 0; i < repeat; ++i) {
            read<8><<<2 * sms, READ_THREADS, 0, stream>>>(cold, cold_count, sink);
            CUDA_CHECK(cudaEventRecord(start, stream));
            launch();
            CUDA_CHECK(cudaGetLastError());
            CUDA_CHECK(cudaEventRecord(stop, stream));
            CUDA_CHECK(cudaStreamSynchronize(stream));
            float milliseconds = 0;
            CUDA_CHECK(cudaEventElapsedTime(&milliseconds, start, stop));
            found.push_back(1e3f * milliseconds);
        }
        std::sort(found.begin(), found.end());
        return found;
    }
};

float median(const std::vector<float>& times) { return times[(times.size() - 1) / 2]; }

void print_times(const std::string& name, const std::vector<float>& times) {
    const size_t last = times.size() - 1;
    std::printf("%s us_per_launch %.2f p10 %.2f p90 %.2f least %.2f", name.c_str(), median(times), times[last / 10],
                times[last * 9 / 10], times[0]);
}

// The best of several read kernels.
std::vector<float> measure_floor(const Timer& timer, const uint8_t* memory, size_t bytes, int repeat) {
    const auto wide = reinterpret_cast<const uint4*>(memory);
    constexpr int shared = COPIES * (COPY_BYTES + sizeof(uint64_t));
    CUDA_CHECK(cudaFuncSetAttribute(read_by_copies, cudaFuncAttributeMaxDynamicSharedMemorySize, shared));
    std::vector<std::vector<float>> all = {timer.times(
        repeat, [&] { read_by_copies<<<timer.sms, WARP, shared, timer.stream>>>(memory, bytes); })};
    for (const int ctas : {timer.sms, 2 * timer.sms, 4 * timer.sms}) {
        all.push_back(timer.times(
            repeat, [&] { read<4><<<ctas, READ_THREADS, 0, timer.stream>>>(wide, bytes / 16, timer.sink); }));
        all.push_back(timer.times(
            repeat, [&] { read<8><<<ctas, READ_THREADS, 0, timer.stream>>>(wide, bytes / 16, timer.sink); }));
    }
    return *std::min_element(all.begin(), all.end(), [](const auto& a, const auto& b) { return median(a) < median(b); });
}

Options parse(int argc, char** argv) {
    Options o;
    int* const extents[] = {&o.shape.m, &o.shape.k, &o.shape.l};
    int given = 0;
    bool understood = true;
    for (int i = 1; i < argc; ++i) {
        const bool has_value = i + 1 < argc;
        if (std::strcmp(argv[i], "--repeat") == 0 && has_value) {
            o.repeat = std::atoi(argv[++i]);
        } else if (std::strcmp(argv[i], "--rung") == 0 && has_value) {
            o.rung = argv[++i];
        } else if (std::strcmp(argv[i], "--seed") == 0 && has_value) {
            o.seed = std::strtoull(argv[++i], nullptr, 10);
        } else if (std::strcmp(argv[i], "--dump") == 0 && has_value) {
            o.dump = argv[++i];
        } else if (given < 3) {
            *extents[given++] = std::atoi(argv[i]);
        } else {
            understood = false;
        }
    }
    std::string names = "floor";
    bool is_known = o.rung.empty() || o.rung == "floor";
    for (const Rung& rung : ladder({})) {
        names += ", " + rung.name;
        is_known = is_known || rung.name == o.rung;
    }
    const auto [m, k, l] = o.shape;
    const bool fits = m > 0 && l > 0 && k > 0 && k % TEAM_NUMBERS == 0 && k / TEAM_NUMBERS <= MOST_TEAM_WARPS;
    if (!understood || given % 3 != 0 || o.repeat < 1 || !is_known || !fits) {
        std::fprintf(stderr, "usage: %s [M K L] [--rung NAME] [--repeat R] [--seed S] [--dump FILE]\n", argv[0]);
        std::fprintf(stderr, "K is a multiple of %d up to %d; rungs: %s\n", TEAM_NUMBERS, TEAM_NUMBERS * MOST_TEAM_WARPS,
                     names.c_str());
        std::exit(2);
    }
    return o;
}

// Fills the device's copy, part by part, and fetches it.
Data fill_all(uint8_t* memory, const size_t (&sizes)[4], const Device& device, uint64_t seed) {
    Data data;
    std::vector<uint8_t>* const parts[] = {&data.a, &data.a_scales, &data.b, &data.b_scales};
    size_t at = 0;
    for (int i = 0; i < 4; ++i) {
        fill<<<4 * device.sms, 512>>>(memory + at, sizes[i], mix(seed) + at, i % 2 == 1);
        CUDA_CHECK(cudaGetLastError());
        parts[i]->resize(sizes[i]);
        CUDA_CHECK(cudaMemcpy(parts[i]->data(), memory + at, sizes[i], cudaMemcpyDeviceToHost));
        at += sizes[i];
    }
    return data;
}

int main(int argc, char** argv) {
    const Options o = parse(argc, argv);
    const Device device = find_device();
    const auto [m, k, l] = o.shape;
    // All lies side by side, so that a read kernel reads the very same bytes.
    const size_t sizes[] = {o.shape.rows() * k / 2, o.shape.rows() * k / BLOCK, size_t{1} * l * k / 2,
                            size_t{1} * l * k / BLOCK};
    const size_t bytes = sizes[0] + sizes[1] + sizes[2] + sizes[3];
    const size_t c_bytes = o.shape.rows() * sizeof(float);
    uint8_t* memory;
    CUDA_CHECK(cudaMalloc(&memory, bytes));
    Problem p{memory, memory + sizes[0], memory + sizes[0] + sizes[1], memory + bytes - sizes[3], nullptr, m, k, l};
    CUDA_CHECK(cudaMalloc(&p.c, c_bytes));
    const Data data = fill_all(memory, sizes, device, o.seed);
    const Reference reference = make_reference(data, o.shape);
    const Timer timer(device);
    std::printf("M %d K %d L %d bytes %zu seed %llu repeat %d\n", m, k, l, bytes, static_cast<unsigned long long>(o.seed),
                o.repeat);
    if (o.rung.empty() || o.rung == "floor") {
        print_times("empty", timer.times(o.repeat, [&] { empty<<<device.sms, READ_THREADS, 0, timer.stream>>>(); }));
        std::printf("\n");
        print_times("floor", measure_floor(timer, memory, bytes, o.repeat));
        std::printf("\n");
    }
    bool all_right = true;
    std::vector<float> c(o.shape.rows());
    for (const Rung& rung : ladder(device)) {
        if (!o.rung.empty() && rung.name != o.rung) {
            continue;
        }
        CUDA_CHECK(cudaMemset(p.c, 0xff, c_bytes));  // NaNs, so that a row never written is found
        CUDA_CHECK(cudaDeviceSynchronize());
        print_times(rung.name, timer.times(o.repeat, [&] { rung.launch(p, timer.stream); }));
        CUDA_CHECK(cudaMemcpy(c.data(), p.c, c_bytes, cudaMemcpyDeviceToHost));
        all_right = check(rung.name.c_str(), c, reference, o.shape) && all_right;
    }
    if (o.dump) {
        FILE* file = std::fopen(o.dump, "wb");
        if (!file || std::fwrite(c.data(), 1, c_bytes, file) != c_bytes || std::fclose(file) != 0) {
            std::fprintf(stderr, "cannot write %s\n", o.dump);
            return 2;
        }
    }
    return all_right ? 0 : 1;
}
