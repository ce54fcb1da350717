// Which use of a barrier it is: the stage and the iteration, where the source shows them.
using Barrier = cutlass::arch::ClusterBarrier;
constexpr int STAGES = 4;

__global__ void shown_in_the_parity(Barrier* full, int n) {
  for (int it = 0; it < n; ++it) {
    full[it % STAGES].wait((it / STAGES) & 1);   //~ wait statement 'full[it % STAGES]' iteration=it stage='it % STAGES' loop_depth=1
    full[it % STAGES].wait((it / STAGES) % 2);   //~ wait statement 'full[it % STAGES]' iteration=it
    full[it & 3].wait((it >> 2) & 1);            //~ wait statement 'full[it & 3]' iteration=it stage='it & 3'
    full[it & 3].wait(((it + 1) / STAGES) & 1);  //~ wait statement 'full[it & 3]' iteration='it + 1'
  }
}

__global__ void shown_by_the_loop(Barrier* full, Barrier* empty, int n, int p) {
  int stage = 0, phase = 0;
  for (int k = 0; k < n; ++k) {
    full[k].wait(p);                    //~ wait statement full[k] iteration=k stage=k
    const int slot = k % STAGES;
    empty[slot].wait(p);                //~ wait statement empty[slot] iteration=k stage=slot
    full[stage].wait(phase);            //~ wait statement full[stage] iteration=k stage=stage
    if (++stage == STAGES) { stage = 0; phase ^= 1; }
  }
  for (int k = 0; k < n; ++k, ++stage) {
    for (int j = 0; j < 4; ++j) {
      full[stage].wait(phase);          //~ wait statement full[stage] iteration=k stage=stage loop_depth=2
    }
  }
  full[stage].wait(phase);              //~ wait statement full[stage] iteration= stage=stage loop_depth=0
  full->wait(phase);                    //~ wait statement full iteration= stage=
}

template <class Pipeline, class State>
__global__ void shown_by_the_state(Pipeline& pipeline, State state) {
  pipeline.consumer_wait(state);        //~ wait statement pipeline iteration=state.count() stage=state.index()
}

__global__ void by_address(uint32_t bar, int n) {
  for (int s = 0; s < n; ++s) {
    asm volatile("mbarrier.arrive.shared.b64 _, [%0];" :: "r"(bar + 8 * s));  //~ signal statement 'bar + 8 * s' stage=s iteration=s
  }
}
