// Several equal ops in exclusive arms are one op; in a row they are several.
#include <cutlass/arch/barrier.h>

__device__ inline void sync_by_id(int id) {
  if (id == 0) {
    cutlass::arch::NamedBarrier::sync(128, 0);
  } else {
    cutlass::arch::NamedBarrier::sync(128, 1);
  }
}

__device__ inline void sync_switch(int n) {
  switch (n) {
    case 0:
      asm volatile("cp.async.wait_group 0;");
      break;
    default:
      asm volatile("cp.async.wait_group 1;");
  }
}

__device__ inline void start_both() {
  cutlass::arch::NamedBarrier::arrive(128, 1);
  cutlass::arch::NamedBarrier::arrive(128, 2);
}

__device__ inline void cluster_sync_all(bool is_cluster) { is_cluster ? cute::cluster_sync() : __syncthreads(); }

__device__ inline void cluster_round() {
  asm volatile("barrier.cluster.arrive.release.aligned;");
  asm volatile("barrier.cluster.wait.acquire.aligned;");
}

__device__ inline void many(unsigned long long* bars) {
  for (int i = 0; i < 4; i++) cutlass::arch::ClusterBarrier::arrive(bars + i);
}

__global__ void kernel(unsigned long long* bars) {
  sync_by_id(1);
  sync_switch(0);
  start_both();
  cluster_sync_all(true);
  cluster_round();
  many(bars);
}
