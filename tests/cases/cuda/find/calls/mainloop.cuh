#pragma once
using Barrier = cutlass::arch::ClusterBarrier;

__device__ void work(int);

__device__ void deeper(Barrier* empty, int s, bool last) {
  if (last) empty[s].wait(0);           //~ wait branch empty[s] role=load conditions='role == Role::Producer; s > 0; last'
  work(s);
  empty[s].wait(1);                     //~ wait statement empty[s] role=load conditions='role == Role::Producer; s > 0'
}

struct Mainloop {
  __device__ void fill(Barrier* full, Barrier* empty, int n) {
    for (int s = 0; s < n; ++s) {
      empty[s].wait(0);                 //~ wait statement empty[s] role=load conditions='role == Role::Producer' guard='role == Role::Producer' loop_depth=1
      full[s].arrive();                 //~ signal statement full[s] role=load
      if (s > 0) deeper(empty, s, s == n - 1);
    }
  }
  __device__ void drain(Barrier* full, Barrier* empty, int n) {
    work(n);
    full[0].wait(0);                    //~ wait statement full[0] role=consumer conditions='role != Role::Producer; role == Role::Consumer'
    empty[0].arrive();                  //~ signal statement empty[0] role=consumer
  }
};

__device__ void both(Barrier* full, int n) {
  work(n);
  full[n].wait(0);                      //~ wait statement full[n] role= conditions=
  full[n].wait(1);                      //~ wait statement full[n] role= conditions=
}
