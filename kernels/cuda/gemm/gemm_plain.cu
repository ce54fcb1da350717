// SPDX-License-Identifier: Apache-2.0
//
// Warp-specialized GEMM for Hopper, variant "plain": one producer warp, one consumer warpgroup.
//
//   producer (warp 4)        waits until a stage is empty, then lets TMA fill it;
//   consumer (warps 0 to 3)  waits until a stage is full, multiplies the 128 x 128 tile's part of it with wgmma, and
//                            releases the stage as soon as the tensor cores have read it. Then it stores the tile.
//
// Two CTAs fit on an SM: while one fills its ring or stores its tile, the other's wgmmas keep the tensor cores busy.
//
// Build: nvcc -gencode arch=compute_90a,code=sm_90a -std=c++17 -O3 -o gemm_plain gemm_plain.cu
// Run:   ./gemm_plain [M N K] [--dtype tf32|bf16] [--seed S] [--repeat R] [--dump FILE]

#include "driver.cuh"
#include "tile.cuh"

constexpr int TILE_M = 128;
constexpr int TILE_N = 128;
constexpr int STAGES = 3;
constexpr int GROUP = 16;
constexpr int CTAS_PER_SM = 2;

constexpr int BLOCKS = TILE_M / WGMMA_M;
constexpr int CONSUMER_WARPS = 4;
constexpr int PRODUCER_WARP = CONSUMER_WARPS;
constexpr int THREADS = 32 * (CONSUMER_WARPS + 1);

template <typename T>
struct SharedStorage {
    Stage<T, TILE_M, TILE_N> stages[STAGES];
    Staging staging[CONSUMER_WARPS];
    uint64_t full[STAGES];
    uint64_t empty[STAGES];
};

template <typename T>
__global__ void __launch_bounds__(THREADS, CTAS_PER_SM)
    gemm_plain(const __grid_constant__ CUtensorMap map_a, const __grid_constant__ CUtensorMap map_b,
               const __grid_constant__ CUtensorMap map_c, Shape shape) {
    extern __shared__ __align__(1024) unsigned char shared_bytes[];
    SharedStorage<T>& shared = *reinterpret_cast<SharedStorage<T>*>(shared_bytes);

    const int warp = __shfl_sync(0xffffffff, threadIdx.x / 32, 0);  // the shuffle tells the compiler: equal in a warp
    const int lane = threadIdx.x % 32;
    const TileIndex tile = tile_at<GROUP>(blockIdx.x, shape);
    const int first_row = tile.m * TILE_M;
    const int first_column = tile.n * TILE_N;

    if (threadIdx.x == 0) {
        for (int stage = 0; stage < STAGES; ++stage) {
            mbarrier_init(&shared.full[stage], 1);                // the producer
            mbarrier_init(&shared.empty[stage], CONSUMER_WARPS);  // one lane of each consumer warp
        }
        fence_mbarrier_init();
        prefetch_maps(map_a, map_b, map_c);
    }
    __syncthreads();

    if (warp == PRODUCER_WARP) {
        if (lane == 0) {
            int stage = 0;
            uint32_t parity = 0;
#pragma unroll 1
            for (int k_tile = 0; k_tile < shape.k_tiles; ++k_tile) {
                // In the first round this returns at once; later it waits for the release of the round before.
                mbarrier_wait(&shared.empty[stage], parity ^ 1);
                mbarrier_arrive_expect_tx(&shared.full[stage], sizeof(shared.stages[stage]));
                tma_load(shared.stages[stage].a, map_a, k_tile * TILE_K<T>, first_row, &shared.full[stage]);
                tma_load(shared.stages[stage].b, map_b, k_tile * TILE_K<T>, first_column, &shared.full[stage]);
                if (++stage == STAGES) {
                    stage = 0;
                    parity ^= 1;
                }
            }
        }
    } else {
        float sums[BLOCKS][TILE_N / 2];
        int stage = 0, previous = 0;
        uint32_t parity = 0;
#pragma unroll 1
        for (int k_tile = 0; k_tile < shape.k_tiles; ++k_tile) {
            mbarrier_wait(&shared.full[stage], parity);
            wgmma_fence();
            start_stage<T, BLOCKS, TILE_N>(sums, shared.stages[stage].a, shared.stages[stage].b, k_tile > 0);
            wgmma_commit_group();
            // Leave this stage's wgmmas in flight. Those of the stage before have then read all of it.
            wgmma_wait_group<1>();
            if (k_tile > 0 && lane == 0) {
                mbarrier_arrive(&shared.empty[previous]);
            }
            previous = stage;
            if (++stage == STAGES) {
                stage = 0;
                parity ^= 1;
            }
        }
        wgmma_wait_group<0>();  // no one waits for the release of the last stage
#pragma unroll
        for (int block = 0; block < BLOCKS; ++block) {
            const int row = first_row + block * WGMMA_M + warp * C_ROWS;
            store_rows<TILE_N>(sums[block], shared.staging[warp], map_c, row, first_column, lane);
        }
        if (lane == 0) {
            tma_store_wait_group_read<0>();  // shared memory must outlive the stores that read it
        }
    }
}

template <typename T>
void launch(const Maps& maps, Shape shape, int repeat, cudaStream_t stream) {
    constexpr int smem = sizeof(SharedStorage<T>);
    CUDA_CHECK(cudaFuncSetAttribute(gemm_plain<T>, cudaFuncAttributeMaxDynamicSharedMemorySize, smem));
    const dim3 grid(shape.tiles_m * shape.tiles_n);
    for (int i = 0; i < repeat; ++i) {
        gemm_plain<T><<<grid, THREADS, smem, stream>>>(maps.a, maps.b, maps.c, shape);
        CUDA_CHECK(cudaGetLastError());
    }
}

const Variant VARIANT = {TILE_M, TILE_N, 1, launch<float>, launch<__nv_bfloat16>};

extern "C" void gemm(const void* a, const void* b, float* c, const int* sizes, int dtype, int repeat,
                     void* stream) {
    run(VARIANT, a, b, c, sizes, Dtype{dtype}, repeat, static_cast<cudaStream_t>(stream));
}

int main(int argc, char** argv) { return program(VARIANT, argc, argv); }
