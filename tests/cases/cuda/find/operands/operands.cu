// What a stamp may evaluate once more: the operand's text, or nothing.
using Barrier = cutlass::arch::ClusterBarrier;

__device__ uint32_t smem_u32(const void* p) { return static_cast<uint32_t>(__cvta_generic_to_shared(p)); }
__device__ Barrier& at(Barrier* bars, int i) { return bars[i]; }
__device__ Barrier& next(Barrier* bars, int& i) { return bars[i++]; }
#define SLOT(full, i) (full + (i))
#define NEXT(full, i) (full + (i)++)

__device__ void step(Barrier& bar, int& stage) {
  bar.arrive();                         //~ AS2103
  stage ^= 1;
}

__global__ void pure(Barrier* full, Barrier (&grid)[2][4], int s, int p, Params* plan) {
  full[s].wait(p);                      //~ wait statement full[s] operand=full[s]
  (*full).wait(p);                      //~ wait statement full operand=(*full)
  grid[s & 1][(s + 1) % 4].wait(p);     //~ wait statement 'grid[s & 1][(s + 1) % 4]' operand='grid[s & 1][(s + 1) % 4]'
  plan->bars.full[s].wait(p);           //~ wait statement plan->bars.full[s] operand=plan->bars.full[s]
  at(full, s).wait(p);                  //~ wait statement 'at(full, s)' operand='at(full, s)'
  reinterpret_cast<Barrier*>(full + 1)->wait(p);  //~ wait statement 'full + 1' operand='reinterpret_cast<Barrier*>(full + 1)'
  SLOT(full, s)->wait(p);               //~ wait statement 'SLOT(full, s)' operand='SLOT(full, s)'
  full[  // the stage //~ wait statement full[s] operand='full[ s]'
      s].wait(p ^ 1);
}

__global__ void impure(Barrier* full, int s, int p) {
  full[s++].wait(p);                    //~ wait statement full[s++] operand=
  full[s = p].wait(p);                  //~ wait statement 'full[s = p]' operand=
  next(full, s).wait(p);                //~ wait statement 'next(full, s)' operand=
  NEXT(full, s)->wait(p);               //~ wait statement 'NEXT(full, s)' operand=
  full[unknown(s)].wait(p);             //~ wait statement full[unknown(s)] operand=
  [&]() -> Barrier& { return full[s]; }().wait(p);  //~ wait statement '[&]()->Barrier& { return full[s]; }()' operand=
}

__global__ void changed_by_the_signal(Barrier* full, int s, int p) {
  step(full[s], s);                     //~ signal statement full[s] operand=
  step(full[p], s);                     //~ signal statement full[p] operand=full[p]
  s = full[s].arrive();                 //~ signal statement full[s] operand=
  p = full[s].arrive();                 //~ signal statement full[s] operand=full[s]
}

__global__ void named(int wg) {
  cutlass::arch::NamedBarrier::sync(128, 2 + wg);        //~ wait statement '2 + wg' operand='2 + wg' payload=barrier-id
  cutlass::arch::NamedBarrier::sync(128, static_cast<int>(Ids::Full) + wg);  //~ wait statement 'Ids::Full + wg' operand='static_cast<int>(Ids::Full) + wg'
  cutlass::arch::NamedBarrier::arrive(128, wg++);        //~ signal statement wg++ operand= payload=none
}

template <class Pipeline, class State>
__global__ void pipelines(Pipeline& pipeline, State state, int k) {
  pipeline.consumer_wait(state);        //~ wait statement pipeline operand='pipeline; state' payload=address side=full
  pipeline.consumer_release(state);     //~ signal statement pipeline operand='pipeline; state' side=empty
  pipeline.producer_acquire(++state);   //~ wait statement pipeline operand= payload=none side=empty
  pipeline.producer_commit(make(state));  //~ signal statement pipeline operand=
}
