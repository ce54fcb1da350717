// SPDX-License-Identifier: Apache-2.0
//
// Every form of operand that a stamp may be given, every macro, and every place of a slot. Barriers of the shapes that are found
// in public code; the numbers of sites are what test_cuda_header.py looks for.
#include "autostamp.cuh"
#line 1
#include <cstdint>

#ifdef BIND_BY_SYMBOL  // as lean kernels do
#undef AUTOSTAMP_BIND_PARAM
#define AUTOSTAMP_BIND_PARAM(key, k) AUTOSTAMP_BIND(key, k)
#endif

struct Barrier { uint64_t bits; __device__ void wait(int) const {} };
struct View { uint64_t* pointer; __device__ uint64_t* get() const { return pointer; } };
struct State { unsigned number; __device__ unsigned index() const { return number; } };
struct Ring {  // by state in public, by index in private: as in CUTLASS
  uint64_t* full;
  __device__ uint64_t* producer_get_barrier(State state) { return producer_get_barrier(state.index()); }
 private:
  __device__ uint64_t* producer_get_barrier(unsigned stage) { return full + stage; }
};
struct ByIndex { uint64_t* full; __device__ uint64_t* producer_get_barrier(unsigned stage) const { return full + stage; } };
struct WithoutBarriers { int depth; };
struct Large { int words[7]; };
enum class Id : int { epilogue = 3 };

__device__ AUTOSTAMP_INLINE uint64_t* probe(uint64_t* at) { asm volatile("// probe"); return at; }
template <class T> __device__ AUTOSTAMP_INLINE void in_template(T& barrier) { AUTOSTAMP_ENTER_AT(aa,1,(barrier)) __syncwarp(); AUTOSTAMP_EXIT(aa,1) }
__device__ AUTOSTAMP_ALWAYS_INLINE inline bool waits() { __syncthreads(); return true; }
__host__ __device__ AUTOSTAMP_INLINE void on_both_sides(int id) { AUTOSTAMP_SIGNAL_ID(aa,2,(id)) }

__global__ void addresses(int n AUTOSTAMP_PARAM) { AUTOSTAMP_BIND_PARAM(aa,1)
  __shared__ uint64_t barriers[8];
  __shared__ Barrier object;
  volatile uint64_t* const by_volatile = barriers;
  const uint64_t* const by_const = barriers + 2;
  (void)by_volatile, (void)by_const;
  asm volatile("" ::"l"(barriers), "l"(&object) : "memory"); AUTOSTAMP_SIGNAL_AT(aa,3,(barriers)) AUTOSTAMP_SIGNAL_AT(aa,4,(barriers[n]))
  AUTOSTAMP_SIGNAL_AT(aa,5,(by_volatile)) AUTOSTAMP_SIGNAL_AT(aa,6,(by_const)) AUTOSTAMP_SIGNAL_AT(aa,7,(object)) AUTOSTAMP_SIGNAL_AT(aa,8,(&barriers[1]))
  AUTOSTAMP_SIGNAL_AT(aa,9,(static_cast<uint64_t*>(nullptr))) AUTOSTAMP_SIGNAL_AT(aa,10,(0x400u)) AUTOSTAMP_SIGNAL_AT(aa,11,(0x408)) AUTOSTAMP_SIGNAL_AT(aa,12,(Large{}))
  AUTOSTAMP_SIGNAL_AT(aa,13,(View{barriers + 1})) AUTOSTAMP_SIGNAL_AT(aa,14,(static_cast<void*>(barriers))) AUTOSTAMP_SIGNAL_AT(aa,15,(probe(barriers)))
  in_template(barriers[1]);
}

__global__ void rings(int n) { AUTOSTAMP_BIND(aa,2)
  __shared__ uint64_t barriers[8];
  Ring ring{barriers};
  Ring* const pointer = &ring;
  const ByIndex by_index{barriers};
  WithoutBarriers plain{4};
  const State state{5};
  asm volatile("" ::"l"(barriers), "l"(pointer), "l"(&by_index), "r"(plain.depth), "r"(state.number) : "memory"); AUTOSTAMP_SIGNAL_PIPE(aa,16,(ring),(state)) AUTOSTAMP_SIGNAL_PIPE(aa,17,(pointer),(state))
  AUTOSTAMP_SIGNAL_PIPE(aa,18,(by_index),(state)) AUTOSTAMP_SIGNAL_PIPE(aa,19,(plain),(State{5})) AUTOSTAMP_SIGNAL_PIPE(aa,20,(plain),(6))
  AUTOSTAMP_SIGNAL_ID(aa,21,(7)) AUTOSTAMP_SIGNAL_ID(aa,22,(Id::epilogue))
  on_both_sides(n);
  if (AUTOSTAMP_AROUND_AT(aa,23,(barriers[n])) waits() AUTOSTAMP_AROUND_END) ++n;
  n > 3 ? AUTOSTAMP_AROUND(aa,24) __syncthreads() AUTOSTAMP_AROUND_END : AUTOSTAMP_AFTER_ID(aa,25,(n)) __syncwarp() AUTOSTAMP_AROUND_END;
  while (AUTOSTAMP_AROUND_PIPE(aa,26,(ring),(state)) __syncthreads_or(n--) AUTOSTAMP_AROUND_END) {}
  if (n == 2) return;
  if (n == 3) AUTOSTAMP_OPEN AUTOSTAMP_ENTER_ID(aa,27,(n)) __syncwarp(); AUTOSTAMP_EXIT(aa,27) AUTOSTAMP_CLOSE else { AUTOSTAMP_ENTER_PIPE(aa,28,(ring),(state)) __syncwarp(); AUTOSTAMP_EXIT(aa,28) }
}

__global__ void whole_warps(int n) { AUTOSTAMP_BIND(aa,2)
  __shared__ uint64_t barriers[8];
  Ring ring{barriers};
  const State state{5};
  asm volatile("" ::"l"(barriers), "l"(&ring), "r"(state.number) : "memory"); AUTOSTAMP_WARP_SIGNAL(aa,31) AUTOSTAMP_WARP_SIGNAL_AT(aa,32,(barriers[n])) AUTOSTAMP_WARP_SIGNAL_PIPE(aa,33,(ring),(state)) AUTOSTAMP_WARP_SIGNAL_ID(aa,34,(7))
  AUTOSTAMP_WARP_ENTER(aa,35) __syncthreads(); AUTOSTAMP_WARP_EXIT(aa,35) AUTOSTAMP_WARP_ENTER_AT(aa,36,(0x400u)) __syncthreads(); AUTOSTAMP_WARP_EXIT(aa,36)
  AUTOSTAMP_WARP_ENTER_PIPE(aa,37,(ring),(state)) __syncthreads(); AUTOSTAMP_WARP_EXIT(aa,37) AUTOSTAMP_WARP_ENTER_ID(aa,38,(n)) __syncthreads(); AUTOSTAMP_WARP_EXIT(aa,38)
}

template <class T> __global__ void without_parameters(AUTOSTAMP_PARAM_ONLY) { AUTOSTAMP_BIND_PARAM(aa,3) AUTOSTAMP_ENTER(aa,29) __syncthreads(); AUTOSTAMP_EXIT(aa,29) }
template <class T> __global__ void with_default(T value = T() AUTOSTAMP_PARAM_DEFAULT) { AUTOSTAMP_BIND_PARAM(aa,4) (void)value; AUTOSTAMP_ENTER(aa,30) __syncthreads(); AUTOSTAMP_EXIT(aa,30) }

void launch(cudaStream_t stream) {
  addresses<<<1, 32, 0, stream>>>(3 AUTOSTAMP_ARG(aa,1,(stream)));
  without_parameters<int><<<1, 32>>>( AUTOSTAMP_ARG_ONLY(aa,3,(0)));
  with_default<float><<<1, 32>>>(1.0f AUTOSTAMP_ARG(aa,4,(0)));
  AUTOSTAMP_PREPARE((stream)) rings<<<1, 32, 0, stream>>>(2);
  rings<<<AUTOSTAMP_PREPARE_AROUND((nullptr)) 1 AUTOSTAMP_AROUND_END, 32>>>(2);
  on_both_sides(1);
}
