// SPDX-License-Identifier: Apache-2.0
//
// A warp-specialized GEMM for Hopper in plain CUDA C++: C[M, N] = A[M, K] * B[N, K]^T.
// A and B are bf16 with K contiguous; C is f32 and row-major, and all sums are f32.
//
// Each CTA computes one 128 x 128 tile of C. Its three warpgroups meet in a ring of shared-memory stages, each with
// a *full* and an *empty* mbarrier:
//
//   consumers (warpgroups 0 and 1)  wait until a stage is full, multiply 64 rows of the tile each with wgmma, and
//                                   release the stage as soon as the tensor cores have read it;
//   producer (a warp of the third)  waits until a stage is empty, then lets TMA fill it.
//
// Build: nvcc -gencode arch=compute_90a,code=sm_90a -std=c++17 -O3 -o gemm_ws gemm_ws.cu
// Run:   ./gemm_ws [M N K] [--repeat R] [--bursts N] [--dump FILE]
// Exit:  0 when C is right, 1 when it is wrong, 2 when the command line is wrong or a CUDA call failed.

#include <cudaTypedefs.h>
#include <cuda_bf16.h>
#include <cuda_runtime.h>

#include <algorithm>
#include <chrono>
#include <cmath>
#include <cstdint>
#include <cstdio>
#include <cstdlib>
#include <cstring>
#include <thread>
#include <vector>

// nvcc 13.0 also makes compute_90 PTX when it links a program with -arch=sm_90a; hence -gencode.
#if defined(__CUDA_ARCH__) && !defined(__CUDA_ARCH_FEAT_SM90_ALL)
#error "wgmma exists on sm_90a alone: compile gemm_ws.cu with -gencode arch=compute_90a,code=sm_90a"
#endif

using bf16 = __nv_bfloat16;

constexpr int TILE_M = 128;
constexpr int TILE_N = 128;
constexpr int TILE_K = 64;  // 128 bytes of bf16: one row of the 128-byte swizzle
constexpr int STAGES = 4;

constexpr int WGMMA_M = 64;
constexpr int WGMMA_K = 16;
constexpr int ACCUMULATORS = WGMMA_M * TILE_N / 128;  // f32 registers per thread of a warpgroup

constexpr int CONSUMER_WARPGROUPS = TILE_M / WGMMA_M;
constexpr int CONSUMER_WARPS = 4 * CONSUMER_WARPGROUPS;
constexpr int CONSUMER_THREADS = 32 * CONSUMER_WARPS;
constexpr int PRODUCER_WARP = CONSUMER_WARPS;
constexpr int THREADS = CONSUMER_THREADS + 128;

// Registers per thread once the roles part: 128 * 40 + 256 * 232 is within the 65536 of an SM.
constexpr int PRODUCER_REGISTERS = 40;
constexpr int CONSUMER_REGISTERS = 232;

constexpr int EPILOGUE_BARRIER = 1;  // named barrier 0 is the one of __syncthreads()

// Eight floats more than a row of C: the rows that a warp writes together then fall into different banks.
constexpr int C_PITCH = TILE_N + 8;

// The swizzle pattern repeats every 1024 bytes and starts where the address is a multiple of that.
struct Stage {
    alignas(1024) bf16 a[TILE_M * TILE_K];
    alignas(1024) bf16 b[TILE_N * TILE_K];
};

struct SharedStorage {
    union {
        Stage stages[STAGES];
        float c[TILE_M][C_PITCH];  // the epilogue reuses the ring
    };
    uint64_t full[STAGES];
    uint64_t empty[STAGES];
};

__device__ __forceinline__ uint32_t shared_address(const void* pointer) {
    return static_cast<uint32_t>(__cvta_generic_to_shared(pointer));
}

// mbarriers: PTX ISA, "Parallel Synchronization and Communication Instructions: mbarrier". A phase completes when
// `arrivals` threads have arrived and all announced bytes have landed; the barrier then is in its next phase.

__device__ __forceinline__ void mbarrier_init(uint64_t* barrier, int arrivals) {
    asm volatile("mbarrier.init.shared::cta.b64 [%0], %1;" ::"r"(shared_address(barrier)), "r"(arrivals) : "memory");
}

// Block until the phase of this parity has completed. "Completed" includes the phase before the first one, so on a
// fresh barrier a wait for parity 1 returns at once.
__device__ __forceinline__ void mbarrier_wait(uint64_t* barrier, uint32_t parity) {
    asm volatile(
        "{ .reg .pred done;\n"
        "retry: mbarrier.try_wait.parity.shared::cta.b64 done, [%0], %1;\n"
        "@!done bra retry; }" ::"r"(shared_address(barrier)),
        "r"(parity)
        : "memory");
}

__device__ __forceinline__ void mbarrier_arrive(uint64_t* barrier) {
    asm volatile("mbarrier.arrive.shared::cta.b64 _, [%0];" ::"r"(shared_address(barrier)) : "memory");
}

// Arrive, and keep the phase open until `bytes` more bytes have been copied.
__device__ __forceinline__ void mbarrier_arrive_expect_tx(uint64_t* barrier, uint32_t bytes) {
    asm volatile("mbarrier.arrive.expect_tx.shared::cta.b64 _, [%0], %1;" ::"r"(shared_address(barrier)), "r"(bytes)
                 : "memory");
}

// TMA, which belongs to the async proxy, must see the mbarriers that ordinary stores have initialised: PTX ISA,
// "membar / fence", fence.proxy.async.
__device__ __forceinline__ void fence_proxy_async() { asm volatile("fence.proxy.async.shared::cta;" ::: "memory"); }

// Copy the box of the tensor map whose first element is (row, column) to shared memory; its bytes count on `barrier`.
__device__ __forceinline__ void tma_load(void* target, const CUtensorMap& map, int column, int row, uint64_t* barrier) {
    asm volatile(
        "cp.async.bulk.tensor.2d.shared::cluster.global.tile.mbarrier::complete_tx::bytes "
        "[%0], [%1, {%2, %3}], [%4];" ::"r"(shared_address(target)),
        "l"(&map), "r"(column), "r"(row), "r"(shared_address(barrier))
        : "memory");
}

// The 64-bit descriptor of an operand in shared memory, K contiguous, in the 128-byte swizzle: PTX ISA, "Asynchronous
// Warpgroup Level Matrix Shared Memory Layout", "Matrix Descriptor Format". Offsets are in units of 16 bytes.
//   bits  0-13  start address
//   bits 16-29  leading dimension offset: unused, since a row of TILE_K elements is no wider than the swizzle
//   bits 32-45  stride dimension offset: 1024 bytes, from eight rows of 128 bytes to the next eight
//   bits 49-51  base offset: 0, since the tiles start at a multiple of 1024 bytes
//   bits 62-63  swizzle mode: 1 is 128 bytes
// The hardware applies the swizzle to the address that it computes. So the next WGMMA_K columns are simply 32 bytes on.
__device__ __forceinline__ uint64_t wgmma_descriptor(const bf16* tile) {
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

// d[64, 128] += a[64, 16] * b[128, 16]^T, asynchronously. The last five operands: accumulate, do not negate a or b,
// do not transpose a or b.
__device__ __forceinline__ void wgmma_m64n128k16(float (&d)[ACCUMULATORS], uint64_t a, uint64_t b) {
    asm volatile(
        "wgmma.mma_async.sync.aligned.m64n128k16.f32.bf16.bf16 "
        "{%0, %1, %2, %3, %4, %5, %6, %7, %8, %9, %10, %11, %12, %13, %14, %15, "
        "%16, %17, %18, %19, %20, %21, %22, %23, %24, %25, %26, %27, %28, %29, %30, %31, "
        "%32, %33, %34, %35, %36, %37, %38, %39, %40, %41, %42, %43, %44, %45, %46, %47, "
        "%48, %49, %50, %51, %52, %53, %54, %55, %56, %57, %58, %59, %60, %61, %62, %63}, "
        "%64, %65, 1, 1, 1, 0, 0;"
        : "+f"(d[0]), "+f"(d[1]), "+f"(d[2]), "+f"(d[3]), "+f"(d[4]), "+f"(d[5]), "+f"(d[6]), "+f"(d[7]), "+f"(d[8]),
          "+f"(d[9]), "+f"(d[10]), "+f"(d[11]), "+f"(d[12]), "+f"(d[13]), "+f"(d[14]), "+f"(d[15]), "+f"(d[16]),
          "+f"(d[17]), "+f"(d[18]), "+f"(d[19]), "+f"(d[20]), "+f"(d[21]), "+f"(d[22]), "+f"(d[23]), "+f"(d[24]),
          "+f"(d[25]), "+f"(d[26]), "+f"(d[27]), "+f"(d[28]), "+f"(d[29]), "+f"(d[30]), "+f"(d[31]), "+f"(d[32]),
          "+f"(d[33]), "+f"(d[34]), "+f"(d[35]), "+f"(d[36]), "+f"(d[37]), "+f"(d[38]), "+f"(d[39]), "+f"(d[40]),
          "+f"(d[41]), "+f"(d[42]), "+f"(d[43]), "+f"(d[44]), "+f"(d[45]), "+f"(d[46]), "+f"(d[47]), "+f"(d[48]),
          "+f"(d[49]), "+f"(d[50]), "+f"(d[51]), "+f"(d[52]), "+f"(d[53]), "+f"(d[54]), "+f"(d[55]), "+f"(d[56]),
          "+f"(d[57]), "+f"(d[58]), "+f"(d[59]), "+f"(d[60]), "+f"(d[61]), "+f"(d[62]), "+f"(d[63])
        : "l"(a), "l"(b));
}

// A barrier of `threads` threads, in whole warps: PTX ISA, "bar / barrier".
__device__ __forceinline__ void named_barrier_sync(int id, int threads) {
    asm volatile("bar.sync %0, %1;" ::"r"(id), "r"(threads) : "memory");
}

// All warps of a warpgroup must give registers back, or take them, together: PTX ISA, "setmaxnreg".
template <int REGISTERS>
__device__ __forceinline__ void setmaxnreg_dec() {
    asm volatile("setmaxnreg.dec.sync.aligned.u32 %0;" ::"n"(REGISTERS));
}

template <int REGISTERS>
__device__ __forceinline__ void setmaxnreg_inc() {
    asm volatile("setmaxnreg.inc.sync.aligned.u32 %0;" ::"n"(REGISTERS));
}

__global__ void __launch_bounds__(THREADS, 1)
    gemm_ws(const __grid_constant__ CUtensorMap map_a, const __grid_constant__ CUtensorMap map_b, float* c, int n,
            int k) {
    extern __shared__ __align__(1024) unsigned char shared_bytes[];
    SharedStorage& shared = *reinterpret_cast<SharedStorage*>(shared_bytes);

    const int warp = __shfl_sync(0xffffffff, threadIdx.x / 32, 0);  // the shuffle tells the compiler: equal in a warp
    const int lane = threadIdx.x % 32;
    const int first_row = blockIdx.y * TILE_M;
    const int first_column = blockIdx.x * TILE_N;
    const int k_tiles = k / TILE_K;

    if (threadIdx.x == 0) {
        for (int stage = 0; stage < STAGES; ++stage) {
            mbarrier_init(&shared.full[stage], 1);                // the producer
            mbarrier_init(&shared.empty[stage], CONSUMER_WARPS);  // one lane of each consumer warp
        }
        fence_proxy_async();
    }
    __syncthreads();

    if (warp >= PRODUCER_WARP) {
        setmaxnreg_dec<PRODUCER_REGISTERS>();
        if (warp == PRODUCER_WARP) {
#pragma unroll 1
            for (int k_tile = 0; k_tile < k_tiles; ++k_tile) {
                const int stage = k_tile % STAGES;
                const int round = k_tile / STAGES;
                // In round 0 this returns at once; later it waits for the release of the round before.
                mbarrier_wait(&shared.empty[stage], (round & 1) ^ 1);
                if (lane == 0) {
                    mbarrier_arrive_expect_tx(&shared.full[stage], sizeof(Stage));
                    tma_load(shared.stages[stage].a, map_a, k_tile * TILE_K, first_row, &shared.full[stage]);
                    tma_load(shared.stages[stage].b, map_b, k_tile * TILE_K, first_column, &shared.full[stage]);
                }
                __syncwarp();
            }
        }
    } else {
        setmaxnreg_inc<CONSUMER_REGISTERS>();
        const int a_offset = warp / 4 * WGMMA_M * TILE_K;  // this warpgroup's rows of the A tile
        float sums[ACCUMULATORS] = {};
#pragma unroll 1
        for (int k_tile = 0; k_tile < k_tiles; ++k_tile) {
            const int stage = k_tile % STAGES;
            const int round = k_tile / STAGES;
            mbarrier_wait(&shared.full[stage], round & 1);
            wgmma_fence();
#pragma unroll
            for (int column = 0; column < TILE_K; column += WGMMA_K) {
                wgmma_m64n128k16(sums, wgmma_descriptor(shared.stages[stage].a + a_offset + column),
                                 wgmma_descriptor(shared.stages[stage].b + column));
            }
            wgmma_commit_group();
            // Leave this stage's wgmmas in flight. Those of the stage before have then read all of it.
            wgmma_wait_group<1>();
            if (k_tile > 0 && lane == 0) {
                mbarrier_arrive(&shared.empty[(k_tile - 1) % STAGES]);
            }
        }
        wgmma_wait_group<0>();  // no one waits for the release of the last stage

        // Through shared memory, so that a warp stores whole rows. Both warpgroups must have read the ring first.
        named_barrier_sync(EPILOGUE_BARRIER, CONSUMER_THREADS);
        // Where a lane's sums are: PTX ISA, "Register Fragments for wgmma.mma_async.m64nNk16", accumulator D.
        const int warp_row = warp * 16;
#pragma unroll
        for (int i = 0; i < ACCUMULATORS; i += 4) {
            const int row = warp_row + lane / 4;
            const int column = i / 4 * 8 + lane % 4 * 2;
            *reinterpret_cast<float2*>(&shared.c[row][column]) = make_float2(sums[i], sums[i + 1]);
            *reinterpret_cast<float2*>(&shared.c[row + 8][column]) = make_float2(sums[i + 2], sums[i + 3]);
        }
        __syncwarp();  // a warp stores the 16 rows that it wrote itself
        for (int row = warp_row; row < warp_row + 16; ++row) {
            const float4 values = *reinterpret_cast<const float4*>(&shared.c[row][4 * lane]);
            float* target = c + static_cast<size_t>(first_row + row) * n + first_column + 4 * lane;
            *reinterpret_cast<float4*>(target) = values;
        }
    }
}

#define CUDA_CHECK(call) check_cuda((call), #call, __LINE__)

void check_cuda(cudaError_t status, const char* call, int line) {
    if (status != cudaSuccess) {
        std::fprintf(stderr, "%s:%d: %s: %s\n", __FILE__, line, call, cudaGetErrorString(status));
        std::exit(2);
    }
}

// Describe a row-major bf16 matrix to TMA: boxes of box_rows x TILE_K, which it writes in the 128-byte swizzle.
// The driver's encoder is looked up at run time, so that the program needs no -lcuda.
CUtensorMap make_tensor_map(bf16* matrix, int rows, int columns, int box_rows) {
    void* encoder = nullptr;
    cudaDriverEntryPointQueryResult found;
#if CUDART_VERSION >= 12050
    CUDA_CHECK(cudaGetDriverEntryPointByVersion("cuTensorMapEncodeTiled", &encoder, 12000, cudaEnableDefault, &found));
#else
    CUDA_CHECK(cudaGetDriverEntryPoint("cuTensorMapEncodeTiled", &encoder, cudaEnableDefault, &found));
#endif
    CUDA_CHECK(found == cudaDriverEntryPointSuccess ? cudaSuccess : cudaErrorNotSupported);

    // Innermost dimension first; its stride is implied.
    const cuuint64_t extents[] = {static_cast<cuuint64_t>(columns), static_cast<cuuint64_t>(rows)};
    const cuuint64_t row_bytes[] = {columns * sizeof(bf16)};
    const cuuint32_t box[] = {TILE_K, static_cast<cuuint32_t>(box_rows)};
    const cuuint32_t steps[] = {1, 1};
    CUtensorMap map;
    const CUresult status = reinterpret_cast<PFN_cuTensorMapEncodeTiled_v12000>(encoder)(
        &map, CU_TENSOR_MAP_DATA_TYPE_BFLOAT16, 2, matrix, extents, row_bytes, box, steps,
        CU_TENSOR_MAP_INTERLEAVE_NONE, CU_TENSOR_MAP_SWIZZLE_128B, CU_TENSOR_MAP_L2_PROMOTION_L2_128B,
        CU_TENSOR_MAP_FLOAT_OOB_FILL_NONE);
    CUDA_CHECK(static_cast<cudaError_t>(status));  // the runtime numbers the driver's errors as the driver does
    return map;
}

// A 64-bit hash, the finalizer of splitmix64: the same numbers on every machine.
uint64_t mix(uint64_t x) {
    x = (x ^ (x >> 30)) * 0xbf58476d1ce4e5b9;
    x = (x ^ (x >> 27)) * 0x94d049bb133111eb;
    return x ^ (x >> 31);
}

// Numbers from -1 to 1.
std::vector<bf16> make_matrix(size_t size, uint64_t seed) {
    std::vector<bf16> values(size);
    for (size_t i = 0; i < size; ++i) {
        const uint64_t bits = mix((seed << 48) + i) >> 40;
        values[i] = __float2bfloat16(static_cast<float>(bits) / (1 << 23) - 1.0f);
    }
    return values;
}

bf16* copy_to_device(const std::vector<bf16>& values) {
    bf16* copy;
    CUDA_CHECK(cudaMalloc(&copy, values.size() * sizeof(bf16)));
    CUDA_CHECK(cudaMemcpy(copy, values.data(), values.size() * sizeof(bf16), cudaMemcpyHostToDevice));
    return copy;
}

// Compare up to 65536 elements of C, one from each of as many equal intervals, with sums in double. The products are
// exact there. For f32 sums the PTX ISA promises "at least single precision" in no stated order; we allow each step of
// WGMMA_K columns an error of 2^-22 of the sum of the magnitudes, which is four roundings to nearest.
bool check_result(const std::vector<bf16>& a, const std::vector<bf16>& b, const std::vector<float>& c, int n, int k) {
    const size_t samples = std::min<size_t>(c.size(), 65536);
    const double relative = static_cast<double>(k) / WGMMA_K / (1 << 22);
    double max_error = 0, max_allowed = 0;
    size_t wrong = 0;
    for (size_t sample = 0; sample < samples; ++sample) {
        const size_t begin = c.size() * sample / samples, end = c.size() * (sample + 1) / samples;
        const size_t index = begin + mix(sample) % (end - begin);
        const bf16* a_row = &a[index / n * k];
        const bf16* b_row = &b[index % n * k];
        double expected = 0, magnitude = 0;
        for (int i = 0; i < k; ++i) {
            const double product = static_cast<double>(__bfloat162float(a_row[i])) * __bfloat162float(b_row[i]);
            expected += product;
            magnitude += std::fabs(product);
        }
        const double error = std::isnan(c[index]) ? INFINITY : std::fabs(c[index] - expected);
        const double allowed = relative * magnitude;
        max_error = std::max(max_error, error);
        max_allowed = std::max(max_allowed, allowed);
        if (error > allowed && wrong++ == 0) {
            const size_t row = index / n, column = index % n;
            std::printf("first wrong: C[%zu][%zu] = %.9g, expected %.9g within %.2g (tile %zu,%zu at %zu,%zu)\n", row,
                        column, c[index], expected, allowed, row / TILE_M, column / TILE_N, row % TILE_M,
                        column % TILE_N);
        }
    }
    std::printf("max error %.3g (up to %.3g allowed), %zu of %zu checked outputs are wrong: %s\n", max_error,
                max_allowed, wrong, samples, wrong == 0 ? "ok" : "FAILED");
    return wrong == 0;
}

int main(int argc, char** argv) {
    int sizes[] = {1024, 1024, 1024};
    int given = 0, repeat = 1, bursts = 1;
    const char* dump = nullptr;
    bool understood = true;
    for (int i = 1; i < argc; ++i) {
        if (std::strcmp(argv[i], "--repeat") == 0 && i + 1 < argc) {
            repeat = std::atoi(argv[++i]);
        } else if (std::strcmp(argv[i], "--bursts") == 0 && i + 1 < argc) {
            bursts = std::atoi(argv[++i]);
        } else if (std::strcmp(argv[i], "--dump") == 0 && i + 1 < argc) {
            dump = argv[++i];
        } else if (given < 3) {
            sizes[given++] = std::atoi(argv[i]);
        } else {
            understood = false;
        }
    }
    const auto [m, n, k] = sizes;
    const bool whole_tiles = m > 0 && n > 0 && k > 0 && m % TILE_M == 0 && n % TILE_N == 0 && k % TILE_K == 0;
    if (!understood || given % 3 != 0 || repeat < 1 || bursts < 1 || !whole_tiles) {
        std::fprintf(stderr, "usage: %s [M N K] [--repeat R] [--bursts N] [--dump FILE]\n", argv[0]);
        std::fprintf(stderr, "M, N and K are multiples of %d, %d and %d\n", TILE_M, TILE_N, TILE_K);
        return 2;
    }

    constexpr int smem = sizeof(SharedStorage);
    CUDA_CHECK(cudaFuncSetAttribute(gemm_ws, cudaFuncAttributeMaxDynamicSharedMemorySize, smem));

    const std::vector<bf16> a = make_matrix(static_cast<size_t>(m) * k, 1);
    const std::vector<bf16> b = make_matrix(static_cast<size_t>(n) * k, 2);
    std::vector<float> c(static_cast<size_t>(m) * n);
    const size_t c_bytes = c.size() * sizeof(float);
    float* device_c;
    CUDA_CHECK(cudaMalloc(&device_c, c_bytes));
    CUDA_CHECK(cudaMemset(device_c, 0xff, c_bytes));  // NaNs, so that an element never written is found

    const CUtensorMap map_a = make_tensor_map(copy_to_device(a), m, k, TILE_M);
    const CUtensorMap map_b = make_tensor_map(copy_to_device(b), n, k, TILE_N);
    const dim3 grid(n / TILE_N, m / TILE_M);
    const dim3 block(THREADS);

    cudaStream_t stream;
    cudaEvent_t start, stop;
    CUDA_CHECK(cudaStreamCreate(&stream));
    CUDA_CHECK(cudaEventCreate(&start));
    CUDA_CHECK(cudaEventCreate(&stop));
    CUDA_CHECK(cudaDeviceSynchronize());  // the stream must not overtake the memset
    std::vector<float> times(bursts);
    for (float& milliseconds : times) {
        // A GPU at rest most of the time is not limited by its power, and times of one kernel agree.
        if (bursts > 1) std::this_thread::sleep_for(std::chrono::milliseconds(4));
        for (int launch = 0; launch < repeat; ++launch) {
            // The first of several is not timed: it also loads the kernel and, stamped, allocates what it records into.
            if (launch == (repeat > 1 ? 1 : 0)) CUDA_CHECK(cudaEventRecord(start, stream));
            gemm_ws<<<grid, block, smem, stream>>>(map_a, map_b, device_c, n, k);
            CUDA_CHECK(cudaGetLastError());
        }
        CUDA_CHECK(cudaEventRecord(stop, stream));
        CUDA_CHECK(cudaStreamSynchronize(stream));
        CUDA_CHECK(cudaEventElapsedTime(&milliseconds, start, stop));
    }
    std::sort(times.begin(), times.end());
    const float milliseconds = times[times.size() / 2];
    CUDA_CHECK(cudaMemcpy(c.data(), device_c, c_bytes, cudaMemcpyDeviceToHost));

    const int timed_launches = std::max(repeat - 1, 1);
    const double microseconds = 1e3 * milliseconds / timed_launches;
    std::printf("M=%d N=%d K=%d: %.2f us a launch (mean of %d), %.1f TFLOP/s\n", m, n, k, microseconds, timed_launches,
                2e-6 * m * n * k / microseconds);
    if (dump) {
        FILE* file = std::fopen(dump, "wb");
        if (!file || std::fwrite(c.data(), 1, c_bytes, file) != c_bytes || std::fclose(file) != 0) {
            std::perror(dump);
            return 2;
        }
    }
    return check_result(a, b, c, n, k) ? 0 : 1;
}
