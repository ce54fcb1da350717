// Loops that only poll are one wait each; a poll by itself is none.
using Barrier = cutlass::arch::ClusterBarrier;

__device__ int ld_acquire(int* p) {
  int v;
  asm volatile("ld.acquire.gpu.b32 %0, [%1];" : "=r"(v) : "l"(p) : "memory");
  return v;
}
__device__ void work(int);

__global__ void loops(Barrier* full, int s, int p, int* flag, int n) {
  while (!full[s].try_wait(p)) {}       //~ wait loop full[s] span='while (!full[s].try_wait(p)) {}' operand=full[s] shape=wait-loop
  while (!full[s].try_wait(p));         //~ wait loop full[s]
  while (ld_acquire(flag) != n);        //~ wait loop flag side=flag
  while (true) {
    if (full[s].try_wait(p)) break;     //~ wait loop full[s] loop_depth=0
  }
  for (int i = 0; i < 100; ++i) {
    if (full[s].test_wait(p)) break;    //~ wait loop full[s] operand=full[s]
    __nanosleep(20);
  }
  bool ok = full[s].try_wait(p);        //~ AS2101
  while (!ok) { ok = full[s].try_wait(p); }  //~ wait loop full[s]
  do { ok = full[s].try_wait(p); } while (!ok);  //~ wait loop full[s] span='do { ok = full[s].try_wait(p); } while (!ok);'
  int done = 0;
  while (!done) {
    asm volatile("{ .reg .pred q; mbarrier.try_wait.parity.shared.b64 q, [%1], %2; selp.u32 %0, 1, 0, q; }"  //~ wait loop 'bar + 8'
                 : "=r"(done) : "r"(bar + 8), "r"(p));
  }
  if (p) while (!full[s].try_wait(p)) {}  //~ wait branch full[s] shape=wait-loop span='while (!full[s].try_wait(p)) {}'
  long start = clock64();
  while (!full[s].try_wait(p)) {        //~ wait loop full[s]
    if (clock64() - start > 1000000) { printf("time-out %d\n", s); __trap(); }
  }
  #pragma unroll 1
  while (!full[s].try_wait(p)) {}       //~ wait loop full[s] span='#pragma unroll 1 while (!full[s].try_wait(p)) {}'
  for (int k = 0; k < n; ++k) {
    Barrier& mine = full[k];
    while (!mine.try_wait(p)) {}        //~ wait loop mine loop_depth=1 operand=mine
  }
}

__global__ void declared_inside(Barrier* full, int n, int p) {
  for (int i = 0; !full[i].try_wait(p);) {}  //~ wait loop full[i] operand=
  while (true) {
    int i = n & 3;
    if (full[i].try_wait(p)) break;     //~ wait loop full[i] operand=
  }
}

__global__ void no_waits(Barrier* full, int s, int p, int n) {
  while (!full[s].try_wait(p)) { work(s); }  //~ AS2101
  if (full[s].try_wait(p)) work(s);     //~ AS2101
  while (true) {
    if (full[s].try_wait(p)) return;    //~ AS2101
  }
  for (int i = 0; i < n; ++i) {
    bool ready = full[i].try_wait(p);   //~ AS2101
    if (ready) n -= 1;
  }
}

__global__ void memory(volatile int* flag, int* lock, int n) {
  while (*flag != n);                   //~ wait loop flag side=flag kind=wait
  while (flag[3] == 0) {}               //~ wait loop flag[3]
  while (atomicCAS(lock, 0, 1) != 0);   //~ wait loop lock
  while (n--) {}
  int seen = 0;
  do { seen = atomicAdd(lock, 0); } while (seen < n);  //~ wait loop lock
  while (work_left(n)) work(n);
}
