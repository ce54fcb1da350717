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
#include <cmath>
#include <cstdint>
#include <cstdio>
#include <cstdlib>
#include <cstring>
#include <functional>
#include <random>
#include <string>
#include <vector>

#include "ladder.cuh"
#include "ring.cuh"

#define CUDA_CHECK(call) check_cuda((call), #call, __LINE__)

void check_cuda(cudaError_t status, const char* call, int line) {
    if (status != cudaSuccess) {
        std::fprintf(stderr, "%s:%d: %s: %s\n", __FILE__, line, call, cudaGetErrorString(status));
        std::exit(2);
    }
}

// A 64-bit hash, the finalizer of splitmix64: the same numbers on every machine.
__host__ __device__ uint64_t mix(uint64_t x) {
    x = (x ^ (x >> 30)) * 0xbf58476d1ce4e5b9;
    x = (x ^ (x >> 27)) * 0x94d049bb133111eb;
    return x ^ (x >> 31);
}

// Random bytes; scales are finite and not negative, as those of NVFP4 are: 0 to 0x7e.
__global__ void fill(uint8_t* bytes, size_t size, uint64_t seed, bool are_scales) {
    for (size_t i = blockIdx.x * size_t{blockDim.x} + threadIdx.x; i < size; i += size_t{gridDim.x} * blockDim.x) {
        const uint32_t random = mix(seed + i) >> 32;
        bytes[i] = are_scales ? random % 0x7f : random;
    }
}

// Reads `count` times 16 bytes and keeps nothing.
template <int UNROLL>
__global__ void __launch_bounds__(512) read(const uint4* from, size_t count, uint32_t* sink) {
    uint32_t bits = 0;
    const size_t step = size_t{gridDim.x} * blockDim.x;
    size_t i = blockIdx.x * size_t{blockDim.x} + threadIdx.x;
    for (; i + (UNROLL - 1) * step < count; i += UNROLL * step) {
        uint4 values[UNROLL];
#pragma unroll
        for (int j = 0; j < UNROLL; ++j) {
            values[j] = Streamed::wide(from + i + j * step);
        }
#pragma unroll
        for (int j = 0; j < UNROLL; ++j) {
            bits ^= values[j].x ^ values[j].y ^ values[j].z ^ values[j].w;
        }
    }
    for (; i < count; i += step) {
        bits ^= Streamed::wide(from + i).x;
    }
    if (bits == 0x9e3779b9) {  // seldom, but the compiler cannot know
        *sink = bits;
    }
}

constexpr int COPY_BYTES = 16384;
constexpr int COPIES = 12;  // on their way at a time

// The same with bulk copies: one thread of each CTA starts one whenever an earlier one has come.
__global__ void __launch_bounds__(WARP) read_by_copies(const uint8_t* from, size_t size) {
    extern __shared__ __align__(128) uint8_t shared[];
    uint64_t* full = reinterpret_cast<uint64_t*>(shared + COPIES * COPY_BYTES);
    if (threadIdx.x == 0) {
        for (int i = 0; i < COPIES; ++i) {
            mbarrier_init(&full[i], 1);
        }
        asm volatile("fence.proxy.async.shared::cta;" ::: "memory");
        const Share share(static_cast<int>(size / 16), blockIdx.x, gridDim.x);  // in units that a copy can have
        const size_t last = size_t{16} * share.last;
        const uint64_t policy = evict_first();
        size_t at = size_t{16} * share.first;
        int started = 0, finished = 0;
        while (at < last || finished < started) {
            if (at < last && started - finished < COPIES) {
                const uint32_t bytes = static_cast<uint32_t>(min(size_t{COPY_BYTES}, last - at));
                const int slot = started++ % COPIES;
                mbarrier_arrive_expect_tx(&full[slot], bytes);
                bulk_load(shared + slot * COPY_BYTES, from + at, bytes, &full[slot], policy);
                at += bytes;
            } else {
                mbarrier_wait(&full[finished % COPIES], finished / COPIES & 1);
                ++finished;
            }
        }
    }
}

struct Options {
    int m = 7168, k = 16384, l = 1;
    std::string rung;
    int repeat = 1;
    uint64_t seed = std::random_device{}();
    const char* dump = nullptr;
};

struct Device {
    int sms = 0;
    int shared = 0;
};

struct Rung {
    std::string name;
    std::function<void(const Problem&, cudaStream_t)> launch;
};

using Kernel = void (*)(Problem);

Rung by_row(const char* name, Kernel kernel, int threads_of_row) {
    return {name, [=](const Problem& p, cudaStream_t stream) {
                const int threads = 256;
                const int64_t all = static_cast<int64_t>(p.m) * p.l * threads_of_row;
                kernel<<<static_cast<unsigned>((all + threads - 1) / threads), threads, 0, stream>>>(p);
            }};
}

int team_warps_of(const Problem& p) { return p.k / TEAM_NUMBERS; }

int partial_bytes(const Problem& p, int ctas) {
    return (p.m * p.l + ctas - 1) / ctas * team_warps_of(p) * static_cast<int>(sizeof(float));
}

template <int ROWS, int CTAS>
Rung by_registers(const char* name, const Device& device) {
    return {name, [=](const Problem& p, cudaStream_t stream) {
                const int teams = MOST_TEAM_WARPS / team_warps_of(p);
                const int ctas = CTAS * device.sms;
                const auto kernel = gemv_registers<ROWS, CTAS>;
                kernel<<<ctas, teams * team_warps_of(p) * WARP, partial_bytes(p, ctas), stream>>>(p);
            }};
}

template <int ROWS>
Rung by_ring(const char* name, const Device& device) {
    return {name, [=](const Problem& p, cudaStream_t stream) {
                const int teams = MOST_TEAM_WARPS / team_warps_of(p);
                Ring ring;
                ring.stage_rows = ROWS * teams;
                ring.stage_bytes = ring.stage_rows * (p.k / 2 + p.k / BLOCK);
                const int partial = partial_bytes(p, device.sms);
                ring.stages = (device.shared - partial) / (ring.stage_bytes + 16);
                const int shared = ring.partial_offset() + partial;
                const auto kernel = gemv_ring<ROWS>;
                CUDA_CHECK(cudaFuncSetAttribute(kernel, cudaFuncAttributeMaxDynamicSharedMemorySize, shared));
                kernel<<<device.sms, (teams * team_warps_of(p) + 1) * WARP, shared, stream>>>(p, ring);
            }};
}

std::vector<Rung> ladder(const Device& device) {
    return {
        by_row("naive", gemv_naive, 1),
        by_row("coalesced", gemv_coalesced, WARP),
        by_row("wide", gemv_wide, WARP),
        by_row("integer", gemv_integer, WARP),
        by_row("cached", gemv_cached, WARP),
        by_registers<4, 1>("registers", device),
        by_ring<2>("ring", device),
#ifdef VARIANTS
        by_registers<2, 1>("registers2x1", device),
        by_registers<8, 1>("registers8x1", device),
        by_registers<2, 2>("registers2x2", device),
        by_registers<4, 2>("registers4x2", device),
        by_ring<1>("ring1", device),
        by_ring<4>("ring4", device),
        by_ring<8>("ring8", device),
#endif
    };
}

double value_of_e2m1(int bits) {
    const double magnitudes[] = {0, 0.5, 1, 1.5, 2, 3, 4, 6};
    return bits & 8 ? -magnitudes[bits & 7] : magnitudes[bits & 7];
}

double value_of_e4m3(int bits) {
    const int exponent = bits >> 3 & 15, mantissa = bits & 7;
    const double magnitude = exponent ? std::ldexp(8 + mantissa, exponent - 10) : std::ldexp(mantissa, -9);
    return bits & 128 ? -magnitude : magnitude;
}

// The product in double, and the sums of the blocks' magnitudes.
struct Reference {
    std::vector<double> c, magnitude;
};

struct Data {
    std::vector<uint8_t> a, a_scales, b, b_scales;
};

Reference make_reference(const Data& data, const Options& o) {
    std::vector<double> scale(256);
    std::vector<float> product(65536);  // of two bytes, two numbers in each: a multiple of 1/4 below 72, and so exact
    for (int i = 0; i < 256; ++i) {
        scale[i] = value_of_e4m3(i);
        for (int j = 0; j < 256; ++j) {
            product[256 * i + j] = static_cast<float>(value_of_e2m1(i & 15) * value_of_e2m1(j & 15) +
                                                      value_of_e2m1(i >> 4) * value_of_e2m1(j >> 4));
        }
    }
    const int blocks = o.k / BLOCK;
    Reference reference;
    for (int row = 0; row < o.m * o.l; ++row) {
        const size_t a_block = static_cast<size_t>(row) * blocks, b_block = static_cast<size_t>(row / o.m) * blocks;
        double sum = 0, magnitude = 0;
        for (int block = 0; block < blocks; ++block) {
            double dot = 0;
            for (int i = 0; i < BLOCK_BYTES; ++i) {
                dot += product[256 * data.a[(a_block + block) * BLOCK_BYTES + i] +
                               data.b[(b_block + block) * BLOCK_BYTES + i]];
            }
            dot *= scale[data.a_scales[a_block + block]] * scale[data.b_scales[b_block + block]];
            sum += dot;
            magnitude += std::fabs(dot);
        }
        reference.c.push_back(sum);
        reference.magnitude.push_back(magnitude);
    }
    return reference;
}

// All rungs add exact products of blocks, and each addition rounds to f32: no more than one for each block, and a few dozen where
// threads meet.
bool check(const char* name, const std::vector<float>& c, const Reference& reference, const Options& o) {
    const double relative = std::ldexp(o.k / BLOCK + 64, -24);
    size_t wrong = 0;
    double worst = 0;
    for (size_t i = 0; i < c.size(); ++i) {
        const double error = std::isnan(c[i]) ? INFINITY : std::fabs(c[i] - reference.c[i]);
        const double allowed = relative * reference.magnitude[i];
        worst = std::max(worst, allowed > 0 ? error / allowed : error);
        if (error > allowed && wrong++ == 0) {
            std::fprintf(stderr, "%s: c[%zu] = %.9g, expected %.9g within %.2g\n", name, i, c[i], reference.c[i], allowed);
        }
    }
    std::printf(" max_error_of_allowed %.4f wrong %zu\n", worst, wrong);
    return wrong == 0;
}

struct Timer {
    cudaStream_t stream;
    cudaEvent_t start, stop;
    const uint4* cold;
    size_t cold_count;
    uint32_t* sink;
    int sms;

    // Microseconds of single launches, sorted. Before each one, other memory is read, so that L2 holds nothing of the data and no
    // line that must be written back.
    std::vector<float> times(const std::function<void()>& launch, int repeat) const {
        std::vector<float> found;
        for (int i = 0; i < repeat; ++i) {
            read<8><<<2 * sms, 512, 0, stream>>>(cold, cold_count, sink);
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

void print_times(const std::string& name, const std::vector<float>& times) {
    const size_t last = times.size() - 1;
    std::printf("%s us_per_launch %.2f p10 %.2f p90 %.2f least %.2f", name.c_str(), times[last / 2], times[last / 10],
                times[last * 9 / 10], times[0]);
}

int main(int argc, char** argv) {
    Options o;
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
            (given == 0 ? o.m : given == 1 ? o.k : o.l) = std::atoi(argv[i]);
            ++given;
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
    const bool fits = o.m > 0 && o.l > 0 && o.k > 0 && o.k % TEAM_NUMBERS == 0 && o.k / TEAM_NUMBERS <= MOST_TEAM_WARPS;
    if (!understood || given % 3 != 0 || o.repeat < 1 || !is_known || !fits) {
        std::fprintf(stderr, "usage: %s [M K L] [--rung NAME] [--repeat R] [--seed S] [--dump FILE]\n", argv[0]);
        std::fprintf(stderr, "K is a multiple of %d up to %d; rungs: %s\n", TEAM_NUMBERS, TEAM_NUMBERS * MOST_TEAM_WARPS,
                     names.c_str());
        return 2;
    }

    Device device;
    CUDA_CHECK(cudaDeviceGetAttribute(&device.sms, cudaDevAttrMultiProcessorCount, 0));
    CUDA_CHECK(cudaDeviceGetAttribute(&device.shared, cudaDevAttrMaxSharedMemoryPerBlockOptin, 0));
    int l2 = 0;
    CUDA_CHECK(cudaDeviceGetAttribute(&l2, cudaDevAttrL2CacheSize, 0));

    // The matrix and its scales lie side by side, so that one read kernel reads the very same bytes.
    const size_t rows = static_cast<size_t>(o.m) * o.l;
    const size_t a_size = rows * o.k / 2, a_scales_size = rows * o.k / BLOCK;
    const size_t b_size = static_cast<size_t>(o.l) * o.k / 2, b_scales_size = static_cast<size_t>(o.l) * o.k / BLOCK;
    const size_t bytes = a_size + a_scales_size + b_size + b_scales_size;
    uint8_t* memory;
    CUDA_CHECK(cudaMalloc(&memory, bytes));
    Timer timer{};
    timer.sms = device.sms;
    timer.cold_count = size_t{4} * l2 / sizeof(uint4);
    CUDA_CHECK(cudaMalloc(reinterpret_cast<void**>(const_cast<uint4**>(&timer.cold)), timer.cold_count * sizeof(uint4)));
    CUDA_CHECK(cudaMemset(const_cast<uint4*>(timer.cold), 0, timer.cold_count * sizeof(uint4)));
    CUDA_CHECK(cudaMalloc(&timer.sink, sizeof(uint32_t)));
    CUDA_CHECK(cudaStreamCreate(&timer.stream));
    CUDA_CHECK(cudaEventCreate(&timer.start));
    CUDA_CHECK(cudaEventCreate(&timer.stop));

    Problem p{memory, memory + a_size, memory + a_size + a_scales_size, memory + a_size + a_scales_size + b_size, nullptr,
              o.m,    o.k,             o.l};
    CUDA_CHECK(cudaMalloc(&p.c, rows * sizeof(float)));
    Data data{std::vector<uint8_t>(a_size), std::vector<uint8_t>(a_scales_size), std::vector<uint8_t>(b_size),
              std::vector<uint8_t>(b_scales_size)};
    size_t at = 0;
    for (auto* part : {&data.a, &data.a_scales, &data.b, &data.b_scales}) {
        const bool are_scales = part == &data.a_scales || part == &data.b_scales;
        fill<<<4 * device.sms, 512>>>(memory + at, part->size(), mix(o.seed) + at, are_scales);
        CUDA_CHECK(cudaGetLastError());
        CUDA_CHECK(cudaMemcpy(part->data(), memory + at, part->size(), cudaMemcpyDeviceToHost));
        at += part->size();
    }
    std::printf("M %d K %d L %d bytes %zu seed %llu repeat %d\n", o.m, o.k, o.l, bytes,
                static_cast<unsigned long long>(o.seed), o.repeat);
    const Reference reference = make_reference(data, o);

    if (o.rung.empty() || o.rung == "floor") {
        const auto from = reinterpret_cast<const uint4*>(memory);
        std::vector<float> best;
        for (int ctas = 1; ctas <= 4; ctas *= 2) {
            const auto narrow = timer.times(
                [&] { read<4><<<ctas * device.sms, 512, 0, timer.stream>>>(from, bytes / 16, timer.sink); }, o.repeat);
            const auto deep = timer.times(
                [&] { read<8><<<ctas * device.sms, 512, 0, timer.stream>>>(from, bytes / 16, timer.sink); }, o.repeat);
            const int shared = COPIES * (COPY_BYTES + 8);
            CUDA_CHECK(cudaFuncSetAttribute(read_by_copies, cudaFuncAttributeMaxDynamicSharedMemorySize, shared));
            const auto copies = timer.times(
                [&] { read_by_copies<<<device.sms, WARP, shared, timer.stream>>>(memory, bytes); }, o.repeat);
#ifdef VARIANTS
            std::printf("read ctas %d unroll4 %.2f unroll8 %.2f copies %.2f\n", ctas, narrow[(o.repeat - 1) / 2], deep[(o.repeat - 1) / 2],
                        copies[(o.repeat - 1) / 2]);
#endif
            for (const auto& times : {narrow, deep, copies}) {
                if (best.empty() || times[(times.size() - 1) / 2] < best[(best.size() - 1) / 2]) {
                    best = times;
                }
            }
        }
        print_times("floor", best);
        std::printf("\n");
    }
    bool all_right = true;
    std::vector<float> c(rows);
    for (const Rung& rung : ladder(device)) {
        if (!o.rung.empty() && rung.name != o.rung) {
            continue;
        }
        CUDA_CHECK(cudaMemset(p.c, 0xff, rows * sizeof(float)));  // NaNs, so that a row never written is found
        CUDA_CHECK(cudaDeviceSynchronize());
        print_times(rung.name, timer.times([&] { rung.launch(p, timer.stream); }, o.repeat));
        CUDA_CHECK(cudaMemcpy(c.data(), p.c, rows * sizeof(float), cudaMemcpyDeviceToHost));
        all_right = check(rung.name.c_str(), c, reference, o) && all_right;
    }
    if (o.dump) {
        FILE* file = std::fopen(o.dump, "wb");
        if (!file || std::fwrite(c.data(), sizeof(float), c.size(), file) != c.size() || std::fclose(file) != 0) {
            std::fprintf(stderr, "cannot write %s\n", o.dump);
            return 2;
        }
    }
    return all_right ? 0 : 1;
}
