// libcu++ and cooperative groups: the object's type, declared or deduced, says who waits for whom.
#include <cooperative_groups.h>
#include <cuda/barrier>
#include <cuda/pipeline>
namespace cg = cooperative_groups;
using barrier = cuda::barrier<cuda::thread_scope_block>;

__global__ void kernel(cg::grid_group everyone) {
  __shared__ barrier ready[2], done;
  auto block = cg::this_thread_block();
  auto cluster = cg::this_cluster();
  cg::thread_block_tile<32> tile = cg::tiled_partition<32>(block);
  block.sync();
  everyone.sync();
  cluster.sync();
  tile.sync();
  cg::sync(block);
  cg::this_grid().sync();
  barrier::arrival_token token = ready[0].arrive();
  ready[0].wait(std::move(token));
  done.arrive_and_wait();
  cuda::device::barrier_arrive_tx(ready[1], 1, 64);
  cuda::pipeline<cuda::thread_scope_thread> pipe = cuda::make_pipeline();
  pipe.producer_acquire();
  pipe.producer_commit();
  pipe.consumer_wait();
  pipe.consumer_release();
  __pipeline_commit();
  __pipeline_wait_prior(0);
  __syncwarp();
  if (__syncthreads_or(threadIdx.x)) cudaTriggerProgrammaticLaunchCompletion();
  cudaGridDependencySynchronize();
}

void host(cudaStream_t stream, cg::grid_group everyone) {
  cudaStreamSynchronize(stream);
  everyone.sync();
}
