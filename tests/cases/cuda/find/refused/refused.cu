// Positions that are not stamped, each with its reason.
using Barrier = cutlass::arch::ClusterBarrier;
#define CHECK(x) check((x), #x)
#define TWICE(x) x; x
#define STEP(full, n) (full).wait(n); number(n); number(n + 1)  //~ AS2112
#define JOIN(full) (full).wait(0)       //~ AS2103
#define SYNC __syncthreads()            //~ AS2112

__device__ bool check(bool, const char*);
__device__ int number(int);

struct Holder {
  Barrier bar;
  int first = __syncthreads_or(1);      //~ AS2105
  __device__ Holder() : first(__syncthreads_or(2)) { __syncthreads(); number(1); }  //~ AS2105 ~ wait statement CTA
  __device__ int take(int x = __syncthreads_or(3)) { return x; }  //~ AS2105
};

template <class T>
__global__ void positions(Barrier* full, Barrier* empty, int s, int p) {
  CHECK(full[s].try_wait(p));           //~ AS2101
  CHECK(__syncthreads_or(p));           //~ AS2112
  TWICE(full[s].wait(p));               //~ AS2112
  ASSERT_ALL(__syncthreads_and(p));     //~ AS2112
  static_assert(sizeof(__syncthreads_or(1)) == 4);  //~ AS2114
  if constexpr (noexcept(__syncthreads_or(1))) number(1);  //~ AS2114
  constexpr int size = sizeof(__syncthreads_or(p));  //~ AS2114
  asm volatile("mov.u32 %0, %1;" : "=r"(s) : "r"(__syncthreads_or(p)));  //~ AS2105
  full[s].wait(p);                      //~ wait statement full[s]
  return;
  empty[s].arrive();                    //~ AS2105
}

__global__ void macros(Barrier* full, int s, int p) {
  STEP(full[s], p);
  JOIN(full[s]);                        //~ wait statement full[s]
  if (p) JOIN(full[s]);                 //~ wait branch full[s]
  p ? JOIN(full[s]) : void();           //~ AS2112
}

__global__ void after_jumps(Barrier* full, int s, int p) {
  for (int i = 0; i < s; ++i) {
    if (i == p) { break; full[i].wait(p); }  //~ AS2105
    continue;
    full[i].wait(p);                    //~ AS2105
  }
  goto end;
  end: full[s].wait(p);                 //~ wait statement full[s]
}

__global__ void switched_off(Barrier* full, Barrier* empty, int s, int p) {
  full[s].wait(p);  // autostamp: off //~ AS2109
  // autostamp: off
  full[s].wait(p);                      //~ AS2109
  while (!full[s].try_wait(p)) {}       //~ AS2109
  // autostamp: on
  empty[s].arrive();                    //~ signal statement empty[s]
  const char* text = "// autostamp: off"; full[s].wait(p);  //~ wait statement full[s]
  __threadfence();                      //~ AS2102
}

void host(Barrier* full) {
  full[0].wait(0);
}

void launches(Barrier* full) {
  for_each(4, [=] __device__(int i) { full[i].wait(0); });  //~ AS2105
  for_each(4, [=](int i) { full[i].wait(0); });
}
