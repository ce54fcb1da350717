// CUTLASS by name alone: nothing of it is in the project.
#include <cutlass/arch/barrier.h>

using Full = cutlass::arch::ClusterTransactionBarrier;
using MainloopPipeline = cutlass::PipelineTmaAsync<4>;

enum Bars { kEmpty, kFull };

template <class Epilogue>
__device__ void run(MainloopPipeline pipeline, Epilogue epi_pipe, cutlass::PipelineState<4> read, Full* full, int w) {
  auto token = pipeline.consumer_try_wait(read);
  pipeline.consumer_wait(read, token);
  pipeline.consumer_release(read);
  epi_pipe.producer_acquire(read);
  epi_pipe.producer_commit(read);
  full[w].wait(0);
  full->arrive_and_expect_tx(1024);
  Full::arrive(full);
  cutlass::arch::NamedBarrier::sync(128, kEmpty + w);
  cutlass::arch::NamedBarrier(256, kFull).arrive();
  cutlass::arch::fence_barrier_init();
  cute::cluster_arrive_relaxed();
  cute::cluster_wait();
  cutlass::arch::umma_arrive(full);
  cute::warpgroup_wait<0>();
  tma_store_arrive();
  tma_store_wait<1>();
  cp_async_wait<0>();
  cutlass::arch::wait_on_dependent_grids();
}
