// What an operand goes back to, and pairs of a full and an empty barrier.
using Barrier = cutlass::arch::ClusterTransactionBarrier;

struct Storage {
  Barrier bar_full[4];
  Barrier bar_empty[4];
  Barrier bar_q;
};

__device__ void pass(Barrier* a, int s, int p) {
  work(s);
  a[s].wait(p);                         //~ wait statement a[s] root=roots.cu:44:full/empty side=full
  a[s + 1].wait(p);                     //~ wait statement 'a[s + 1]' root=roots.cu:44:full/empty side=full
}
__device__ void either(Barrier* b, int s, int p) {
  work(s);
  b[s].wait(p);                         //~ wait statement b[s] root=roots.cu:15:b side=mbarrier
  b[s + 1].wait(p);                     //~ wait statement 'b[s + 1]' root=roots.cu:15:b
}
__device__ void by_storage(Storage& shared, int s, int p) {
  work(s);
  shared.bar_full[s].wait(p);           //~ wait statement shared.bar_full[s] root=roots.cu:5:bar_full/bar_empty side=full
  shared.bar_empty[s].arrive();         //~ signal statement shared.bar_empty[s] root=roots.cu:5:bar_full/bar_empty side=empty
}

__global__ void members(int s, int p) {
  extern __shared__ char smem[];
  Storage& plan = *reinterpret_cast<Storage*>(smem);
  plan.bar_full[s].wait(p);             //~ wait statement plan.bar_full[s] root=roots.cu:5:bar_full/bar_empty side=full
  plan.bar_q.wait(p);                   //~ wait statement plan.bar_q root=roots.cu:7:bar_q side=mbarrier
  auto& mine = plan.bar_empty[s];
  mine.arrive();                        //~ signal statement mine root=roots.cu:5:bar_full/bar_empty side=empty
  Barrier* q = &plan.bar_q;
  q->wait(p);                           //~ wait statement q root=roots.cu:7:bar_q
  Barrier* ready_bar = reinterpret_cast<Barrier*>(smem + 512);
  Barrier* free_bar = reinterpret_cast<Barrier*>(smem + 640);
  ready_bar[s].wait(p);                 //~ wait statement ready_bar[s] root=roots.cu:35:ready_bar/free_bar side=full
  free_bar[s].arrive();                 //~ signal statement free_bar[s] root=roots.cu:35:ready_bar/free_bar side=empty
  Barrier* other_bar = reinterpret_cast<Barrier*>(smem + 768);
  other_bar->wait(p);                   //~ wait statement other_bar root=roots.cu:39:other_bar side=mbarrier
}

__global__ void locals(int s, int p) {
  __shared__ Barrier full[4], empty[4];
  full[s].wait(p);                      //~ wait statement full[s] root=roots.cu:44:full/empty side=full stage=s
  empty[s].arrive();                    //~ signal statement empty[s] root=roots.cu:44:full/empty side=empty
  pass(full, s, p);
  either(full, s, p);
  either(empty, s, p);
  {
    __shared__ Barrier full[4];
    full[s].wait(p);                    //~ wait statement full[s] root=roots.cu:51:full side=mbarrier
  }
  auto release = [&](Barrier& bar) { work(s); bar.arrive(); };  //~ signal statement bar root=roots.cu:44:full/empty side=empty
  release(empty[s]);
}

// Named after who signals or after who waits: what a copy fills is the full one.
__global__ void by_use(Barrier* producer_bar, Barrier* consumer_bar, int s, int p) {
  producer_bar[s].arrive_and_expect_tx(128);  //~ signal statement producer_bar[s] side=full root=roots.cu:59:producer_bar/consumer_bar
  producer_bar[s].wait(p);              //~ wait statement producer_bar[s] side=full root=roots.cu:59:producer_bar/consumer_bar
  consumer_bar[s].wait(p);              //~ wait statement consumer_bar[s] side=empty root=roots.cu:59:producer_bar/consumer_bar
}

__global__ void groups(int wg) {
  __syncthreads();                      //~ wait statement CTA root=CTA
  cutlass::arch::NamedBarrier::sync(128, 3);   //~ wait statement 3 root='named barrier 3' side=named
  cutlass::arch::NamedBarrier::sync(128, Ids::Math);  //~ wait statement Ids::Math root='named barrier Ids::Math'
}
