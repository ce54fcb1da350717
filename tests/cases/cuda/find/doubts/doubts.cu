// What can't be read is said, and not stamped.
using Barrier = cutlass::arch::ClusterBarrier;
#define BEGIN_LOOP(n) for (int i = 0; i < n; ++i) {

__device__ void wait(Barrier& bar, int p);

__global__ void unreadable(Barrier* full, int s, int p) {
  full[s].wait(p);                      //~ wait statement full[s]
  full[s].wait(p +);                    //~ AS1011 finding=AS1011
  full[s].wait(p);                      //~ wait statement full[s]
}

__global__ void reads_like_a_declaration(Barrier* full, int p) {
  UNKNOWN wait(full, p);                //~ finding=AS1012
}

int text(const char* s = "bar.sync 0; mbarrier.arrive");
