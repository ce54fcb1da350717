// SPDX-License-Identifier: Apache-2.0
//
// The host side that all variants share: tensor maps, launches, and a program that checks C and times the launches.
// Exit status of the program: 0 when C is right, 1 when it is wrong, 2 when the command line is wrong or a CUDA call
// failed.

#pragma once

#include <cudaTypedefs.h>
#include <cuda_bf16.h>
#include <cuda_runtime.h>

#include <algorithm>
#include <array>
#include <chrono>
#include <cstdio>
#include <cstdlib>
#include <cstring>
#include <string>
#include <thread>
#include <vector>

#include "operands.h"
#include "tile.cuh"

#define CUDA_CHECK(call) check_cuda((call), #call, __LINE__)

inline void check_cuda(cudaError_t status, const char* call, int line) {
    if (status != cudaSuccess) {
        std::fprintf(stderr, "line %d: %s: %s\n", line, call, cudaGetErrorString(status));
        std::exit(2);
    }
}

struct Maps {
    CUtensorMap a, b, c;
};

using Launch = void (*)(const Maps&, Shape, int repeat, cudaStream_t);

// One variant: the tile of a CTA, how many CTAs of consecutive rows share a part of B, and its kernels.
struct Variant {
    int tile_m, tile_n, cluster;
    Launch launch_tf32, launch_bf16;
};

// What TMA needs to know of a row-major matrix: its element type and the box that one copy moves.
struct Layout {
    CUtensorMapDataType type;
    int bytes;  // of an element
    int rows, columns;
    int box_rows, box_columns;
};

// The driver's encoder is looked up at run time, so that the program needs no -lcuda.
inline CUtensorMap make_tensor_map(const void* matrix, const Layout& layout) {
    void* encoder = nullptr;
    cudaDriverEntryPointQueryResult found;
#if CUDART_VERSION >= 12050
    CUDA_CHECK(cudaGetDriverEntryPointByVersion("cuTensorMapEncodeTiled", &encoder, 12000, cudaEnableDefault, &found));
#else
    CUDA_CHECK(cudaGetDriverEntryPoint("cuTensorMapEncodeTiled", &encoder, cudaEnableDefault, &found));
#endif
    CUDA_CHECK(found == cudaDriverEntryPointSuccess ? cudaSuccess : cudaErrorNotSupported);

    // Innermost dimension first; its stride is implied.
    const cuuint64_t extents[] = {static_cast<cuuint64_t>(layout.columns), static_cast<cuuint64_t>(layout.rows)};
    const cuuint64_t row_bytes[] = {static_cast<cuuint64_t>(layout.columns) * layout.bytes};
    const cuuint32_t box[] = {static_cast<cuuint32_t>(layout.box_columns), static_cast<cuuint32_t>(layout.box_rows)};
    const cuuint32_t steps[] = {1, 1};
    CUtensorMap map;
    const CUresult status = reinterpret_cast<PFN_cuTensorMapEncodeTiled_v12000>(encoder)(
        &map, layout.type, 2, const_cast<void*>(matrix), extents, row_bytes, box, steps, CU_TENSOR_MAP_INTERLEAVE_NONE,
        CU_TENSOR_MAP_SWIZZLE_128B, CU_TENSOR_MAP_L2_PROMOTION_L2_256B, CU_TENSOR_MAP_FLOAT_OOB_FILL_NONE);
    CUDA_CHECK(static_cast<cudaError_t>(status));  // the runtime numbers the driver's errors as the driver does
    return map;
}

// Launch `repeat` times. `sizes` are M, N and K, multiples of what the variant needs.
inline void run(const Variant& variant, const void* a, const void* b, float* c, const int* sizes, Dtype dtype,
                int repeat, cudaStream_t stream) {
    const auto [m, n, k] = std::array{sizes[0], sizes[1], sizes[2]};
    // By a tensor map of TF32, TMA rounds what it copies; by one of float it would not, and the tensor cores would cut.
    const CUtensorMapDataType type =
        dtype == Dtype::BF16 ? CU_TENSOR_MAP_DATA_TYPE_BFLOAT16 : CU_TENSOR_MAP_DATA_TYPE_TFLOAT32;
    const int bytes = dtype == Dtype::BF16 ? 2 : 4;
    const int tile_k = ROW_BYTES / bytes;
    const Maps maps = {
        make_tensor_map(a, {type, bytes, m, k, variant.tile_m, tile_k}),
        make_tensor_map(b, {type, bytes, n, k, variant.tile_n / variant.cluster, tile_k}),
        make_tensor_map(c, {CU_TENSOR_MAP_DATA_TYPE_FLOAT32, 4, m, n, C_ROWS, C_COLUMNS}),
    };
    const Shape shape = {m / (variant.tile_m * variant.cluster), n / variant.tile_n, k / tile_k};
    const Launch launch = dtype == Dtype::BF16 ? variant.launch_bf16 : variant.launch_tf32;
    launch(maps, shape, repeat, stream);
}

// How many CTAs of one to an SM there are room for, in whole clusters.
inline int resident_ctas(int cluster) {
    int device = 0, processors = 0;
    CUDA_CHECK(cudaGetDevice(&device));
    CUDA_CHECK(cudaDeviceGetAttribute(&processors, cudaDevAttrMultiProcessorCount, device));
    return processors / cluster * cluster;
}

struct Arguments {
    int sizes[3] = {1024, 1024, 1024};
    Dtype dtype = Dtype::TF32;
    uint64_t seed = fresh_seed();
    int repeat = 1;
    int bursts = 1;
    const char* dump = nullptr;
};

// Whether the command line is understood and the sizes fit the variant.
inline bool parse(int argc, char** argv, Arguments& arguments, const Variant& variant) {
    int given = 0;
    for (int i = 1; i < argc; ++i) {
        const std::string word = argv[i];
        const char* value = i + 1 < argc ? argv[i + 1] : "";
        if (word == "--dtype" && (std::strcmp(value, "tf32") == 0 || std::strcmp(value, "bf16") == 0)) {
            arguments.dtype = *value == 'b' ? Dtype::BF16 : Dtype::TF32;
        } else if (word == "--seed" && *value) {
            arguments.seed = std::strtoull(value, nullptr, 10);
        } else if (word == "--repeat" && *value) {
            arguments.repeat = std::atoi(value);
        } else if (word == "--bursts" && *value) {
            arguments.bursts = std::atoi(value);
        } else if (word == "--dump" && *value) {
            arguments.dump = value;
        } else if (given < 3 && std::atoi(argv[i]) > 0) {
            arguments.sizes[given++] = std::atoi(argv[i]);
            continue;
        } else {
            return false;
        }
        ++i;
    }
    const auto& [m, n, k] = arguments.sizes;
    const bool whole_tiles = m % (variant.tile_m * variant.cluster) == 0 && n % variant.tile_n == 0 &&
                             k % (arguments.dtype == Dtype::BF16 ? TILE_K<__nv_bfloat16> : TILE_K<float>) == 0;
    return given % 3 == 0 && arguments.repeat > 0 && arguments.bursts > 0 && whole_tiles;
}

inline void* copy_to_device(const std::vector<float>& values, Dtype dtype) {
    std::vector<__nv_bfloat16> narrow;
    const void* source = values.data();
    size_t bytes = values.size() * sizeof(float);
    if (dtype == Dtype::BF16) {
        narrow.assign(values.begin(), values.end());
        source = narrow.data();
        bytes /= 2;
    }
    void* copy;
    CUDA_CHECK(cudaMalloc(&copy, bytes));
    CUDA_CHECK(cudaMemcpy(copy, source, bytes, cudaMemcpyHostToDevice));
    return copy;
}

// Of several launches the first is not timed: it also loads the kernel and, in a stamped program, allocates what it records into.
inline int timed_launches(int repeat) { return std::max(repeat - 1, 1); }

// Microseconds a launch, as the mean of those that are timed; of several bursts the median. Between bursts the GPU rests: at rest
// most of the time it is not limited by its power, and times of one kernel agree.
inline double timed(const Variant& variant, const Arguments& arguments, const void* a, const void* b, float* c) {
    cudaStream_t stream;
    cudaEvent_t start, stop;
    CUDA_CHECK(cudaStreamCreate(&stream));
    CUDA_CHECK(cudaEventCreate(&start));
    CUDA_CHECK(cudaEventCreate(&stop));
    CUDA_CHECK(cudaDeviceSynchronize());  // the stream must not overtake the copies
    const int repeat = timed_launches(arguments.repeat);
    std::vector<float> times(arguments.bursts);
    for (float& milliseconds : times) {
        if (times.size() > 1) std::this_thread::sleep_for(std::chrono::milliseconds(4));
        if (arguments.repeat > 1) run(variant, a, b, c, arguments.sizes, arguments.dtype, 1, stream);
        CUDA_CHECK(cudaEventRecord(start, stream));
        run(variant, a, b, c, arguments.sizes, arguments.dtype, repeat, stream);
        CUDA_CHECK(cudaEventRecord(stop, stream));
        CUDA_CHECK(cudaStreamSynchronize(stream));
        CUDA_CHECK(cudaEventElapsedTime(&milliseconds, start, stop));
    }
    std::sort(times.begin(), times.end());
    return 1e3 * times[times.size() / 2] / repeat;
}

inline int program(const Variant& variant, int argc, char** argv) {
    Arguments arguments;
    if (!parse(argc, argv, arguments, variant)) {
        std::fprintf(stderr, "usage: %s [M N K] [--dtype tf32|bf16] [--seed S] [--repeat R] [--bursts N] [--dump FILE]\n",
                     argv[0]);
        std::fprintf(stderr, "M, N and K are multiples of %d, %d and %d (bf16: %d)\n", variant.tile_m * variant.cluster,
                     variant.tile_n, TILE_K<float>, TILE_K<__nv_bfloat16>);
        return 2;
    }
    const auto& [m, n, k] = arguments.sizes;
    const std::vector<float> a = make_matrix(static_cast<size_t>(m) * k, 2 * arguments.seed, arguments.dtype);
    const std::vector<float> b = make_matrix(static_cast<size_t>(n) * k, 2 * arguments.seed + 1, arguments.dtype);
    std::vector<float> c(static_cast<size_t>(m) * n);
    const size_t c_bytes = c.size() * sizeof(float);
    float* device_c;
    CUDA_CHECK(cudaMalloc(&device_c, c_bytes));
    CUDA_CHECK(cudaMemset(device_c, 0xff, c_bytes));  // NaNs, so that an element never written is found
    const void* device_a = copy_to_device(a, arguments.dtype);
    const void* device_b = copy_to_device(b, arguments.dtype);

    const double microseconds = timed(variant, arguments, device_a, device_b, device_c);
    CUDA_CHECK(cudaMemcpy(c.data(), device_c, c_bytes, cudaMemcpyDeviceToHost));
    std::printf("M=%d N=%d K=%d %s, seed %llu: %.2f us a launch (mean of %d), %.1f TFLOP/s\n", m, n, k,
                arguments.dtype == Dtype::BF16 ? "bf16" : "tf32", static_cast<unsigned long long>(arguments.seed),
                microseconds, timed_launches(arguments.repeat), 2e-6 * m * n * k / microseconds);
    if (arguments.dump) {
        FILE* file = std::fopen(arguments.dump, "wb");
        if (!file || std::fwrite(c.data(), 1, c_bytes, file) != c_bytes || std::fclose(file) != 0) {
            std::perror(arguments.dump);
            return 2;
        }
    }
    const bool is_right = check_result(as_multiplied(a, arguments.dtype), as_multiplied(b, arguments.dtype), c, n, k,
                                       arguments.dtype);
    return is_right ? 0 : 1;
}
