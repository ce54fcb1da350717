// Preprocessor conditionals around statements: what stands before one depends on what is compiled.
using Barrier = cutlass::arch::ClusterBarrier;

__device__ void work(int);

__global__ void lists(Barrier* full, int s, int p) {
#if A
  full[s].wait(p);                      //~ wait statement full[s]
#else
  full[s].wait(p ^ 1);                  //~ wait statement full[s]
#endif
  full[s].wait(p);                      //~ wait statement full[s]
  if (p) {
#ifdef B
    full[s].wait(p);                    //~ wait statement full[s]
#endif
    full[s].wait(p);                    //~ wait statement full[s]
  }
}

__global__ void split_if(Barrier* full, int s, int p) {
  if (p)
#if A
    full[s].wait(p);                    //~ wait branch full[s]
#else
    full[s].wait(p ^ 1);                //~ wait branch full[s]
#endif
  work(s);
}

__global__ void optional_header(Barrier* full, int s, int p) {
#if A
  if (p)
#endif
    full[s].wait(p);                    //~ wait branch full[s]
  work(s);
#if A
  if (p) work(p); else
#elif defined(B) && \
    defined(C)
  for (int i = 0; i < 4; ++i)
#endif
    full[s].wait(p);                    //~ wait branch full[s]
}

__global__ void left_open(Barrier* full, int s, int p) {
  int x =
#if A
      s;
#else
      p;
  full[s].wait(p);                      //~ wait statement full[s]
#endif
  x =
#if A
      __syncthreads_or(p);              //~ wait around CTA
#else
      __syncthreads_or(s);              //~ AS2105
#endif
}

__global__ void after_a_macro(Barrier* full, int s, int p) {
  FOR_EACH(i, 4)
  full[s].wait(p);                      //~ wait branch full[s]
}
