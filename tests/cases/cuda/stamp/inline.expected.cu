#include "autostamp.cuh"
#line 1
// Functions between a kernel and a site become part of the kernel; those that can't be keep their text, and what they call, too.
#include "sync.cuh"
#define X_INLINE inline
#define X_FORCED __device__ __forceinline__

__device__ __noinline__ void never(int* out) { __syncthreads(); out[0] = 1; __syncwarp(); }

__device__ int around_itself(int* out, int n) {
  __syncthreads();
  if (n > 0) return around_itself(out, n - 1) + 1;
  __syncwarp();
  return out[n];
}

struct Base {
  __device__ virtual int go(int n) { __syncthreads(); for (int i = 0; i < n; ++i) n ^= i; __syncwarp(); return n; }
};
struct Derived : Base {
  __device__ int go(int n) override { __syncthreads(); for (int i = 0; i < n; ++i) n ^= 2 * i; __syncwarp(); return n; }
};

__device__ void pointed_at(int* out) { __syncthreads(); out[0] = 2; __syncwarp(); }

__device__ void below_never(int* out) { __syncthreads(); out[1] = 2; __syncwarp(); }
__device__ __noinline__ void above(int* out) { below_never(out); out[2] = 3; }

[[nodiscard]] AUTOSTAMP_INLINE __device__ int with_attribute(int* out) {
  AUTOSTAMP_WARP_ENTER(KEY,13) __syncthreads(); AUTOSTAMP_WARP_EXIT(KEY,13)
  out[0] = 1;
  AUTOSTAMP_WARP_ENTER(KEY,14) __syncwarp(); AUTOSTAMP_WARP_EXIT(KEY,14)
  return out[1];
}

struct Member {
  AUTOSTAMP_INLINE explicit __device__ Member(int* out) { AUTOSTAMP_WARP_ENTER(KEY,15) __syncthreads(); AUTOSTAMP_WARP_EXIT(KEY,15) out[0] = 1; AUTOSTAMP_WARP_ENTER(KEY,16) __syncwarp(); AUTOSTAMP_WARP_EXIT(KEY,16) }
  AUTOSTAMP_INLINE __device__ ~Member() { AUTOSTAMP_WARP_ENTER(KEY,17) __syncthreads(); AUTOSTAMP_WARP_EXIT(KEY,17) AUTOSTAMP_WARP_ENTER(KEY,18) __syncwarp(); AUTOSTAMP_WARP_EXIT(KEY,18) }
  AUTOSTAMP_INLINE static __device__ int pass(int* out) { return with_attribute(out) + 3; }
  template <class T>
  AUTOSTAMP_INLINE __device__ int operator()(T* out) const { return pass(out) + 1; }
  __device__ int later(int* out);
};
AUTOSTAMP_INLINE __device__ int Member::later(int* out) { return with_attribute(out) + 4; }

template <class F>
X_INLINE AUTOSTAMP_ALWAYS_INLINE __device__ int apply(F f, int* out) { return f(out) + 5; }

X_FORCED int by_macro(int* out) { return with_attribute(out) + 6; }

__device__ int apart(int* out) { return out[5] + 7; }

__global__ void inlining(int* out, int n AUTOSTAMP_PARAM) { AUTOSTAMP_BIND_PARAM(KEY,1)
  never(out);
  n += around_itself(out, n);
  Base* object = n ? new Base : new Derived;
  n += object->go(n);
  void (*pointer)(int*) = &pointed_at;
  pointer(out);
  above(out);
  Member member(out);
  n += apply(member, out) + member.later(out) + by_macro(out) + apart(out);
  auto meet = [&](int k) { AUTOSTAMP_WARP_ENTER(KEY,19) __syncthreads(); AUTOSTAMP_WARP_EXIT(KEY,19) return k * n; };
  out[0] = meet(2);
}

void host(int* out) { inlining<<<1, 32>>>(out, 3 AUTOSTAMP_ARG(KEY,1,(0))); }
