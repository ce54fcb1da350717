#include "autostamp.cuh"
#line 1
// Sites that are statements of their own, with each kind of operand, and the functions on the way to them.
#include "sync.cuh"

AUTOSTAMP_INLINE __device__ int plain(uint64_t* bar, int sum) {
  AUTOSTAMP_WARP_ENTER_AT(KEY,1,(bar)) mbar_wait(bar, 0); AUTOSTAMP_WARP_EXIT(KEY,1)  // a remark
  for (int i = 0; i < 9; ++i) sum += i * sum;
  AUTOSTAMP_WARP_ENTER(KEY,2) __syncthreads(); AUTOSTAMP_WARP_EXIT(KEY,2)
  return sum;
}

AUTOSTAMP_ALWAYS_INLINE inline __device__ int said_inline(uint64_t* bar, int n) { return plain(bar, n) + plain(bar + 1, n); }

static __device__ __forceinline__ int forced(uint64_t* bar) { return said_inline(bar, 3) / 2; }

__device__ int untouched(int x) { return x * x; }

__global__ void statements(int* out AUTOSTAMP_PARAM) { AUTOSTAMP_BIND_PARAM(KEY,1)
  __shared__ uint64_t bars[4];
  AUTOSTAMP_WARP_ENTER(KEY,3) __syncthreads(); AUTOSTAMP_WARP_EXIT(KEY,3)
  for (int i = 0; i < 4; ++i) {
    AUTOSTAMP_ENTER_AT(KEY,4,(&bars[i % 4])) mbar_wait(&bars[i % 4],
              i / 4 & 1); AUTOSTAMP_EXIT(KEY,4)
    mbar_arrive(&bars[i % 4]); AUTOSTAMP_SIGNAL_AT(KEY,5,(&bars[i % 4]))
  }
  AUTOSTAMP_WARP_ENTER_ID(KEY,6,(1)) bar_sync(1, 128); AUTOSTAMP_WARP_EXIT(KEY,6) out[0] = forced(bars) + untouched(3);
  if (out[1]) {AUTOSTAMP_WARP_ENTER(KEY,7) __syncwarp(); AUTOSTAMP_WARP_EXIT(KEY,7)}
}

void host(int* out) { statements<<<1, 128>>>(out AUTOSTAMP_ARG(KEY,1,(0))); }
