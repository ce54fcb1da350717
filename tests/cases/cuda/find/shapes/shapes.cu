// What stands where, and how it is bracketed.
using Barrier = cutlass::arch::ClusterTransactionBarrier;

__device__ int other(int);

template <int N>
__global__ void statements(Barrier* full, Barrier* empty, int s, int p) {
  full[s].wait(p);                      //~ wait statement full[s] span='full[s].wait(p);'
  full[s]  //~ wait statement full[s] span='full[s] .wait( p);'
      .wait(  // the phase
          p);
  (void)empty[s].arrive();              //~ signal statement empty[s] span='(void)empty[s].arrive();'
  { full[0].wait(p); empty[0].arrive(); }  //~ wait statement full[0] ~ signal statement empty[0]
  __syncthreads();                      //~ wait statement CTA shape=statement
  asm volatile("bar.sync 1, 64;" ::: "memory");  //~ wait statement 1 shape=asm
  again: full[s].wait(p);               //~ wait statement full[s] span='full[s].wait(p);'
  if (p > N) goto again;
}

__global__ void bodies(Barrier* full, Barrier* empty, int s, int p) {
  if (p) full[s].wait(p); else empty[s].arrive();  //~ wait branch full[s] span='full[s].wait(p);' ~ signal branch empty[s]
  if (p) { full[s].wait(p); } else { empty[s].arrive(); }  //~ wait statement full[s] ~ signal statement empty[s]
  for (int i = 0; i < 4; ++i) empty[i].arrive();   //~ signal branch empty[i] shape=branch
  while (p--) full[s].wait(0);          //~ wait branch full[s]
  do full[s].wait(p); while (other(p)); //~ wait branch full[s]
  if constexpr (sizeof(int) == 4) full[s].wait(p);  //~ wait branch full[s]
  else if (p == 2)
    empty[s].arrive();                  //~ signal branch empty[s] span='empty[s].arrive();'
  for (int i : {0, 1}) empty[i].arrive();  //~ signal branch empty[i]
  if (p) asm volatile("bar.sync 1, 64;");  //~ wait branch 1 shape=branch
  if (p) [[likely]] full[s].wait(p);    //~ wait branch full[s] span='full[s].wait(p);'
  [[maybe_unused]] int x = 0;
}

__global__ void cases(Barrier* full, Barrier* empty, int s, int p) {
  switch (s) {
    case 0: full[s].wait(p); break;     //~ wait statement full[s] shape=case
    case 1:
      empty[s].arrive();                //~ signal statement empty[s] shape=case
      full[s].wait(p);                  //~ wait statement full[s] shape=statement
      break;
    case 2: { full[s].wait(p); }        //~ wait statement full[s] shape=statement
    default: empty[s].arrive();         //~ signal statement empty[s] shape=case
  }
}

__global__ void expressions(Barrier* full, Barrier* empty, int s, int p) {
  p ? full[s].wait(p) : void();         //~ wait around full[s] shape=ternary span='full[s].wait(p)'
  p ? other(1), empty[s].arrive() : void();  //~ signal around empty[s] shape=ternary
  other(p), full[s].wait(p);            //~ wait around full[s] shape=comma
  if (__syncthreads_or(p)) other(p);    //~ wait around CTA shape=condition span='__syncthreads_or(p)'
  while (__syncthreads_and(p)) { p = other(p); }  //~ wait around CTA shape=condition
  for (int i = 0; __syncthreads_count(i) < 4; ++i) other(i);  //~ wait around CTA shape=condition
  other(__syncthreads_or(p));           //~ wait around CTA shape=argument
  int any = __syncthreads_or(p);        //~ wait around CTA shape=assigned
  any = __syncthreads_or(p);            //~ wait around CTA shape=assigned
  any += 1 + __syncthreads_or(p);       //~ wait around CTA shape=expression
  if (int n = __syncthreads_or(p)) other(n);  //~ wait around CTA shape=condition
  auto token = full[s].arrive();        //~ signal statement full[s] shape=assigned span='auto token = full[s].arrive();'
  token = full[s].arrive();             //~ signal statement full[s] shape=assigned
  auto one = full[0].arrive(), two = full[1].arrive();  //~ signal around full[0] ~ signal around full[1]
  if (p) token = full[s].arrive();      //~ signal branch full[s]
  full[s].wait(full[s].arrive());       //~ wait statement full[s] ~ signal statement full[s] shape=argument span=
  if (p) full[s].wait(full[s].arrive());  //~ wait branch full[s] ~ AS2105
  full[s].wait(p ? full[s].arrive() : token);  //~ wait statement full[s] ~ AS2105
  empty[s].arrive(), full[s].wait(p);   //~ signal statement empty[s] span= ~ wait around full[s] shape=comma
  full[s].wait(p), empty[s].arrive();   //~ wait around full[s] ~ signal around empty[s]
}

__device__ int returned(Barrier* full, int s, int p) {
  if (s) return __syncthreads_or(p);    //~ wait around CTA shape=returned span='__syncthreads_or(p)'
  other(s);
  return other(p) + __syncthreads_or(s);  //~ wait around CTA shape=returned
}

template <int... I>
__global__ void folded(Barrier* full, int p) {
  (full[I].wait(p), ...);               //~ wait around full[I] shape=expression
}

__global__ void lambdas(Barrier* full, Barrier* empty, int s, int p) {
  auto wait = [&](int i) { other(i); full[i].wait(p); };  //~ wait statement full[i] span='full[i].wait(p);'
  auto test = [=](int i) { return full[i].wait(i); };  //~ wait around full[i] shape=returned
  auto leave = [&] { if (p) empty[s].arrive(); };   //~ signal branch empty[s]
  auto taken = [t = full[s].arrive()] { return t; };  //~ signal around full[s]
  wait(s), test(s), leave(), taken();
  other([&] { full[s].wait(p); return 1; }());      //~ wait statement full[s]
}
