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

[[nodiscard]] __device__ int with_attribute(int* out) {
  __syncthreads();
  out[0] = 1;
  __syncwarp();
  return out[1];
}

struct Member {
  explicit __device__ Member(int* out) { __syncthreads(); out[0] = 1; __syncwarp(); }
  __device__ ~Member() { __syncthreads(); __syncwarp(); }
  static __device__ int pass(int* out) { return with_attribute(out) + 3; }
  template <class T>
  __device__ int operator()(T* out) const { return pass(out) + 1; }
  __device__ int later(int* out);
};
__device__ int Member::later(int* out) { return with_attribute(out) + 4; }

template <class F>
X_INLINE __device__ int apply(F f, int* out) { return f(out) + 5; }

X_FORCED int by_macro(int* out) { return with_attribute(out) + 6; }

__device__ int apart(int* out) { return out[5] + 7; }

__global__ void inlining(int* out, int n) {
  never(out);
  n += around_itself(out, n);
  Base* object = n ? new Base : new Derived;
  n += object->go(n);
  void (*pointer)(int*) = &pointed_at;
  pointer(out);
  above(out);
  Member member(out);
  n += apply(member, out) + member.later(out) + by_macro(out) + apart(out);
  auto meet = [&](int k) { __syncthreads(); return k * n; };
  out[0] = meet(2);
}

void host(int* out) { inlining<<<1, 32>>>(out, 3); }
