// SPDX-License-Identifier: Apache-2.0
// A warp-specialized bf16 GEMM out of CUTLASS's own collectives: D[M,N] = A[M,K] * B[N,K]^T, float accumulators.
// Nothing of CUTLASS is edited; compile with its include folder and -DSCHEDULE=Pingpong or -DSCHEDULE=Cooperative.
//
//   cutlass_gemm M N K [--repeat R] [--bursts N] [--dump FILE]
//
// With -DCUTLASS_ENABLE_SYNCLOG the kernel logs CUTLASS's own synchronisation events. CUTLASS prints the log at the end of every
// launch, from the kernel; here the timed launches go past that, so that logging alone is timed, and the log is counted.
//
// prints the time per launch and writes D as raw floats, so that two builds can be compared bit for bit.

#include <algorithm>
#include <chrono>
#include <cstdint>
#include <cstdio>
#include <cstdlib>
#include <cstring>
#include <numeric>
#include <thread>
#include <vector>

#include "cute/tensor.hpp"
#include "cutlass/cutlass.h"
#include "cutlass/epilogue/collective/collective_builder.hpp"
#include "cutlass/gemm/collective/collective_builder.hpp"
#include "cutlass/gemm/device/gemm_universal_adapter.h"
#include "cutlass/gemm/kernel/gemm_universal.hpp"

#ifndef SCHEDULE
#define SCHEDULE Pingpong
#endif

using namespace cute;

struct Pingpong {
    using Mainloop = cutlass::gemm::KernelTmaWarpSpecializedPingpong;
    using Epilogue = cutlass::epilogue::TmaWarpSpecialized;
};
struct Cooperative {
    using Mainloop = cutlass::gemm::KernelTmaWarpSpecializedCooperative;
    using Epilogue = cutlass::epilogue::TmaWarpSpecializedCooperative;
};
using Schedules = SCHEDULE;

using Element = cutlass::bfloat16_t;
using TileShape = Shape<_128, _128, _64>;
using ClusterShape = Shape<_1, _1, _1>;

using Epilogue = typename cutlass::epilogue::collective::CollectiveBuilder<
    cutlass::arch::Sm90, cutlass::arch::OpClassTensorOp, TileShape, ClusterShape,
    cutlass::epilogue::collective::EpilogueTileAuto, float, float, float, cutlass::layout::RowMajor, 4, float,
    cutlass::layout::RowMajor, 4, Schedules::Epilogue>::CollectiveOp;

using Mainloop = typename cutlass::gemm::collective::CollectiveBuilder<
    cutlass::arch::Sm90, cutlass::arch::OpClassTensorOp, Element, cutlass::layout::RowMajor, 8, Element,
    cutlass::layout::ColumnMajor, 8, float, TileShape, ClusterShape,
    cutlass::gemm::collective::StageCountAutoCarveout<static_cast<int>(sizeof(typename Epilogue::SharedStorage))>,
    Schedules::Mainloop>::CollectiveOp;

using Kernel = cutlass::gemm::kernel::GemmUniversal<Shape<int, int, int, int>, Mainloop, Epilogue>;
using Gemm = cutlass::gemm::device::GemmUniversalAdapter<Kernel>;

static void check(cudaError_t status, const char* what) {
    if (status != cudaSuccess) {
        std::fprintf(stderr, "%s: %s\n", what, cudaGetErrorString(status));
        std::exit(1);
    }
}

static void check(cutlass::Status status, const char* what) {
    if (status != cutlass::Status::kSuccess) {
        std::fprintf(stderr, "%s: %s\n", what, cutlass::cutlassGetStatusString(status));
        std::exit(1);
    }
}

template <class T>
static T* device_copy(const std::vector<T>& host) {
    T* device = nullptr;
    check(cudaMalloc(&device, host.size() * sizeof(T)), "cudaMalloc");
    check(cudaMemcpy(device, host.data(), host.size() * sizeof(T), cudaMemcpyHostToDevice), "cudaMemcpy");
    return device;
}

#if defined(CUTLASS_ENABLE_SYNCLOG)
// As cutlass::device_kernel, but for synclog_print().
__global__ void __launch_bounds__(Kernel::MaxThreadsPerBlock, Kernel::MinBlocksPerMultiprocessor)
    logged_kernel(const __grid_constant__ Kernel::Params params) {
    extern __shared__ char shared[];
    Kernel kernel;
    kernel(params, shared);
}

static void run_logged(const Kernel::Params& params) {
    logged_kernel<<<Kernel::get_grid_shape(params), Kernel::get_block_shape(), Kernel::SharedStorageSize>>>(params);
    check(cudaGetLastError(), "logged launch");
}

// Words of a record of this kind, as far as a kernel for Hopper writes it.
static uint32_t log_length(uint32_t kind) {
    using namespace cutlass::arch;
    switch (kind) {
#define LOG_LENGTH(name) \
    case synclog_header_##name: return synclog_length_##name
        LOG_LENGTH(syncthreads);
        LOG_LENGTH(syncwarp);
        LOG_LENGTH(named_barrier_arrive_and_wait);
        LOG_LENGTH(named_barrier_arrive);
        LOG_LENGTH(cluster_barrier_init);
        LOG_LENGTH(cluster_barrier_wait);
        LOG_LENGTH(cluster_barrier_test_wait);
        LOG_LENGTH(cluster_barrier_try_wait);
        LOG_LENGTH(cluster_barrier_arrive_cluster);
        LOG_LENGTH(cluster_barrier_arrive);
        LOG_LENGTH(cluster_barrier_invalidate);
        LOG_LENGTH(cluster_transaction_barrier_arrive_and_expect_tx);
        LOG_LENGTH(cluster_transaction_barrier_arrive_and_expect_tx_cluster);
        LOG_LENGTH(cluster_transaction_barrier_expect_transaction);
        LOG_LENGTH(cluster_transaction_barrier_complete_transaction);
        LOG_LENGTH(fence_barrier_init);
        LOG_LENGTH(fence_view_async_shared);
        LOG_LENGTH(tma_load);
        LOG_LENGTH(tma_store);
        LOG_LENGTH(tma_store_arrive);
        LOG_LENGTH(tma_store_wait);
        LOG_LENGTH(warpgroup_arrive);
        LOG_LENGTH(warpgroup_wait);
        LOG_LENGTH(warpgroup_commit_batch);
        LOG_LENGTH(wgmma_reg_smem);
        LOG_LENGTH(wgmma_smem_smem);
#undef LOG_LENGTH
        default: std::fprintf(stderr, "unknown record %u\n", kind); std::exit(1);
    }
}

// The log is a count of words and the records; each begins with its kind, a line, and the time in ns.
static void summarise_log() {
    check(cudaDeviceSynchronize(), "logged launch");
    uint32_t words = 0;
    const uint32_t* log = cutlass::arch::synclog_buf_list.at(0);
    check(cudaMemcpy(&words, log, sizeof(words), cudaMemcpyDeviceToHost), "log");
    std::vector<uint32_t> records(words);
    check(cudaMemcpy(records.data(), log + 1, words * sizeof(uint32_t), cudaMemcpyDeviceToHost), "log");
    using namespace cutlass::arch;
    size_t events = 0, at = 0;
    uint64_t step = 0, previous = 0;
    while (at + synclog_length_prefix <= words && records[at] != synclog_header_none) {
        const uint64_t time = uint64_t(records[at + 3]) << 32 | records[at + 2];
        const uint64_t gap = events == 0 ? 0 : time > previous ? time - previous : previous - time;
        step = std::gcd(step, gap);
        previous = time;
        ++events;
        at += log_length(records[at]);
    }
    std::printf("log_events %zu log_bytes %zu clock_step_ns %llu\n", events, 4 * at, (unsigned long long)step);
}
#endif

static std::vector<Element> random_matrix(size_t size, uint32_t seed) {
    std::vector<Element> values(size);
    for (auto& value : values) {
        seed = seed * 1664525u + 1013904223u;  // Numerical Recipes' linear congruential generator
        value = Element(static_cast<float>(static_cast<int>(seed >> 24) - 128) / 64.0f);
    }
    return values;
}

int main(int argc, char** argv) {
    int shape[3] = {1024, 1024, 1024};
    int repeat = 1, bursts = 1;
    const char* dump = nullptr;
    for (int at = 1, dimension = 0; at < argc; ++at) {
        if (!std::strcmp(argv[at], "--repeat") && at + 1 < argc) {
            repeat = std::atoi(argv[++at]);
        } else if (!std::strcmp(argv[at], "--bursts") && at + 1 < argc) {
            bursts = std::atoi(argv[++at]);
        } else if (!std::strcmp(argv[at], "--dump") && at + 1 < argc) {
            dump = argv[++at];
        } else if (dimension < 3) {
            shape[dimension++] = std::atoi(argv[at]);
        }
    }
    const auto [m, n, k] = shape;
    Element* a = device_copy(random_matrix(size_t(m) * k, 1));
    Element* b = device_copy(random_matrix(size_t(n) * k, 2));
    float* d = device_copy(std::vector<float>(size_t(m) * n));

    using Stride = cutlass::gemm::TagToStrideA_t<cutlass::layout::RowMajor>;
    const Stride stride_a = make_stride(int64_t(k), Int<1>{}, int64_t(0));
    const Stride stride_b = make_stride(int64_t(k), Int<1>{}, int64_t(0));
    const Stride stride_d = make_stride(int64_t(n), Int<1>{}, int64_t(0));
    typename Gemm::Arguments arguments{
        cutlass::gemm::GemmUniversalMode::kGemm,
        {m, n, k, 1},
        {a, stride_a, b, stride_b},
        {{1.0f, 0.0f}, d, stride_d, d, stride_d},
        cutlass::KernelHardwareInfo::make_kernel_hardware_info<Kernel>(0)};

    Gemm gemm;
    void* workspace = nullptr;
    check(cudaMalloc(&workspace, Gemm::get_workspace_size(arguments) + 1), "cudaMalloc");
    check(Gemm::can_implement(arguments), "can_implement");
    check(gemm.initialize(arguments, workspace), "initialize");
#if defined(CUTLASS_ENABLE_SYNCLOG)
    cutlass::arch::synclog_setup();
    check(cudaFuncSetAttribute(logged_kernel, cudaFuncAttributeMaxDynamicSharedMemorySize, Kernel::SharedStorageSize),
          "cudaFuncSetAttribute");
    run_logged(gemm.params());
    summarise_log();
#else
    check(gemm.run(), "run");
#endif
    check(cudaDeviceSynchronize(), "first launch");

    cudaEvent_t begin, end;
    check(cudaEventCreate(&begin), "cudaEventCreate");
    check(cudaEventCreate(&end), "cudaEventCreate");
    const auto run = [&] {
#if defined(CUTLASS_ENABLE_SYNCLOG)
        run_logged(gemm.params());
#else
        check(gemm.run(), "run");
#endif
    };
    // Of several bursts the median, and one launch before each. A GPU at rest most of the time is not limited by its power.
    std::vector<float> times(bursts);
    for (float& milliseconds : times) {
        if (bursts > 1) {
            std::this_thread::sleep_for(std::chrono::milliseconds(4));
            run();
        }
        check(cudaEventRecord(begin), "cudaEventRecord");
        for (int round = 0; round < repeat; ++round) run();
        check(cudaEventRecord(end), "cudaEventRecord");
        check(cudaDeviceSynchronize(), "launches");
        check(cudaEventElapsedTime(&milliseconds, begin, end), "cudaEventElapsedTime");
    }
    std::sort(times.begin(), times.end());
    std::printf("us_per_launch %.3f\n", times[times.size() / 2] * 1000 / repeat);

    if (dump != nullptr) {
        std::vector<float> result(size_t(m) * n);
        check(cudaMemcpy(result.data(), d, result.size() * sizeof(float), cudaMemcpyDeviceToHost), "cudaMemcpy");
        std::FILE* file = std::fopen(dump, "wb");
        if (file == nullptr || std::fwrite(result.data(), sizeof(float), result.size(), file) != result.size() ||
            std::fclose(file) != 0) {
            std::perror(dump);
            return 1;
        }
    }
    return 0;
}
