// SPDX-License-Identifier: Apache-2.0
//
// Warp-specialized GEMM for Hopper, variant "cooperative": one producer warp, two consumer warpgroups on one tile.
//
//   producer (warp 8)         waits until a stage is empty in all CTAs of the cluster, then lets TMA fill it: with its
//                             own rows of A and, for all CTAs, its share of B;
//   consumers (warps 0 to 7)  wait until a stage is full, multiply 64 rows of the 128 x 256 tile each, and release the
//                             stage to the producers of all CTAs. Then they store the tile.
//
// CTAs are persistent: one to an SM, each with every so-many-th tile. While the consumers store, the producer fills the
// ring for the next tile.
//
// Build: nvcc -gencode arch=compute_90a,code=sm_90a -std=c++17 -O3 -o gemm_cooperative gemm_cooperative.cu
// Run:   ./gemm_cooperative [M N K] [--dtype tf32|bf16] [--seed S] [--repeat R] [--dump FILE]

#include "driver.cuh"
#include "tile.cuh"

constexpr int TILE_M = 128;
constexpr int TILE_N = 256;
constexpr int STAGES = 4;
constexpr int CLUSTER = 2;
constexpr int GROUP = 8;

constexpr int CONSUMERS = 2;
constexpr int BLOCKS = TILE_M / CONSUMERS / WGMMA_M;  // of one consumer
constexpr int CONSUMER_WARPS = 4 * CONSUMERS;
constexpr int PRODUCER_WARP = CONSUMER_WARPS;
constexpr int THREADS = 32 * CONSUMER_WARPS + 128;
constexpr int SHARE_N = TILE_N / CLUSTER;  // the rows of B that this CTA loads for the cluster

// Registers per thread once the roles part: 128 * 40 + 256 * 232 is within the 65536 of an SM.
constexpr int PRODUCER_REGISTERS = 40;
constexpr int CONSUMER_REGISTERS = 232;

template <typename T>
struct SharedStorage {
    Stage<T, TILE_M, TILE_N> stages[STAGES];
    Staging staging[CONSUMER_WARPS];
    uint64_t full[STAGES];
    uint64_t empty[STAGES];
};

template <typename T>
__global__ void __cluster_dims__(CLUSTER, 1, 1) __launch_bounds__(THREADS, 1)
    gemm_cooperative(const __grid_constant__ CUtensorMap map_a, const __grid_constant__ CUtensorMap map_b,
                     const __grid_constant__ CUtensorMap map_c, Shape shape) {
    extern __shared__ __align__(1024) unsigned char shared_bytes[];
    SharedStorage<T>& shared = *reinterpret_cast<SharedStorage<T>*>(shared_bytes);

    const int warp = __shfl_sync(0xffffffff, threadIdx.x / 32, 0);  // the shuffle tells the compiler: equal in a warp
    const int lane = threadIdx.x % 32;
    const int rank = cluster_rank();
    const int tiles = shape.tiles_m * shape.tiles_n;
    const int first_tile = blockIdx.x / CLUSTER;
    const int clusters = gridDim.x / CLUSTER;

    if (threadIdx.x == 0) {
        for (int stage = 0; stage < STAGES; ++stage) {
            mbarrier_init(&shared.full[stage], 1);                          // the producer
            mbarrier_init(&shared.empty[stage], CLUSTER * CONSUMER_WARPS);  // one lane of each, in each CTA
        }
        fence_mbarrier_init();
        prefetch_maps(map_a, map_b, map_c);
    }
    cluster_sync();

    if (warp >= PRODUCER_WARP) {
        setmaxnreg_dec<PRODUCER_REGISTERS>();
        if (warp == PRODUCER_WARP && lane == 0) {
            int stage = 0;
            uint32_t parity = 0;
#pragma unroll 1
            for (int index = first_tile; index < tiles; index += clusters) {
                const TileIndex tile = tile_at<GROUP>(index, shape);
                const int first_row = (tile.m * CLUSTER + rank) * TILE_M;
                const int share_row = tile.n * TILE_N + rank * SHARE_N;
#pragma unroll 1
                for (int k_tile = 0; k_tile < shape.k_tiles; ++k_tile) {
                    // In the first round this returns at once; later it waits for the release of the round before.
                    mbarrier_wait(&shared.empty[stage], parity ^ 1);
                    mbarrier_arrive_expect_tx(&shared.full[stage], sizeof(shared.stages[stage]));
                    tma_load(shared.stages[stage].a, map_a, k_tile * TILE_K<T>, first_row, &shared.full[stage]);
                    tma_load_multicast(shared.stages[stage].b + rank * SHARE_N * TILE_K<T>, map_b, k_tile * TILE_K<T>,
                                       share_row, &shared.full[stage], (1 << CLUSTER) - 1);
                    if (++stage == STAGES) {
                        stage = 0;
                        parity ^= 1;
                    }
                }
            }
        }
    } else {
        setmaxnreg_inc<CONSUMER_REGISTERS>();
        const int consumer_row = warp / 4 * BLOCKS * WGMMA_M;  // of the tile
        int stage = 0, previous = 0;
        uint32_t parity = 0;
        float sums[BLOCKS][TILE_N / 2];
#pragma unroll 1
        for (int index = first_tile; index < tiles; index += clusters) {
            const TileIndex tile = tile_at<GROUP>(index, shape);
#pragma unroll 1
            for (int k_tile = 0; k_tile < shape.k_tiles; ++k_tile) {
                mbarrier_wait(&shared.full[stage], parity);
                wgmma_fence();
                start_stage<T, BLOCKS, TILE_N>(sums, shared.stages[stage].a + consumer_row * TILE_K<T>,
                                               shared.stages[stage].b, k_tile > 0);
                wgmma_commit_group();
                // Leave this stage's wgmmas in flight. Those of the stage before have then read all of it.
                wgmma_wait_group<1>();
                if (k_tile > 0 && lane < CLUSTER) {
                    mbarrier_arrive_cluster(&shared.empty[previous], lane);
                }
                previous = stage;
                if (++stage == STAGES) {
                    stage = 0;
                    parity ^= 1;
                }
            }
            wgmma_wait_group<0>();
            if (lane < CLUSTER) {
                mbarrier_arrive_cluster(&shared.empty[previous], lane);
            }

#pragma unroll
            for (int block = 0; block < BLOCKS; ++block) {
                const int row = (tile.m * CLUSTER + rank) * TILE_M + consumer_row + block * WGMMA_M + warp % 4 * C_ROWS;
                store_rows<TILE_N>(sums[block], shared.staging[warp], map_c, row, tile.n * TILE_N, lane);
            }
        }
        if (lane == 0) {
            tma_store_wait_group_read<0>();  // shared memory must outlive the stores that read it
        }
    }
    __syncwarp();
    cluster_sync();  // and what other CTAs of the cluster do to it
}

template <typename T>
void launch(const Maps& maps, Shape shape, int repeat, cudaStream_t stream) {
    constexpr int smem = sizeof(SharedStorage<T>);
    CUDA_CHECK(cudaFuncSetAttribute(gemm_cooperative<T>, cudaFuncAttributeMaxDynamicSharedMemorySize, smem));
    const dim3 grid(std::min(CLUSTER * shape.tiles_m * shape.tiles_n, resident_ctas(CLUSTER)));
    for (int i = 0; i < repeat; ++i) {
        gemm_cooperative<T><<<grid, THREADS, smem, stream>>>(maps.a, maps.b, maps.c, shape);
        CUDA_CHECK(cudaGetLastError());
    }
}

const Variant VARIANT = {TILE_M, TILE_N, CLUSTER, launch<float>, launch<__nv_bfloat16>};

extern "C" void gemm(const void* a, const void* b, float* c, const int* sizes, int dtype, int repeat, void* stream) {
    run(VARIANT, a, b, c, sizes, Dtype{dtype}, repeat, static_cast<cudaStream_t>(stream));
}

int main(int argc, char** argv) { return program(VARIANT, argc, argv); }
