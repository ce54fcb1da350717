// ThunderKittens by name alone.
#include "kittens.cuh"
using namespace kittens;

__global__ void kernel(int tic, int toc) {
  __shared__ semaphore inputs_arrived[2], inputs_finished[2];
  tma::expect_bytes(inputs_arrived[tic], 4096);
  wait(inputs_arrived[tic], toc);
  warpgroup::mma_async_wait();
  arrive(inputs_finished[tic], 1);
  warpgroup::sync(warpgroup::groupid() + 1);
  group<8>::sync(7);
  tma::store_async_wait<0>();
  tma::store_async_read_wait();
  tma::cluster::arrive(inputs_finished[tic], 0);
  tma::cluster::wait(inputs_arrived[tic], toc);
  everyone::tma::cluster::sync();
  tensor_load_wait();
}
