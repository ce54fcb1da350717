// A local lambda that is one sync op is stamped where it is called, so that each call has its own barrier.
using Barrier = cutlass::arch::ClusterBarrier;

template <class Pipeline, class State>
__global__ void pipelines(Pipeline pipeline_k, Pipeline pipeline_v, State state, State other) {
  auto consumer_wait = [](auto& pipeline, auto& state) {
    auto token = pipeline.consumer_try_wait(state);  //~ AS2103
    pipeline.consumer_wait(state, token);            //~ AS2103
  };
  consumer_wait(pipeline_k, state);     //~ wait statement pipeline_k root=lambdas.cu:5:pipeline_k operand='pipeline_k; state' stage=state.index()
  if (state.valid()) consumer_wait(pipeline_v, other);  //~ wait branch pipeline_v operand='pipeline_v; other' span='consumer_wait(pipeline_v, other);'
  consumer_wait(pipeline_v, next(other));  //~ wait statement pipeline_v operand=
}

__global__ void captured(Barrier* full, Barrier* empty, int s, int p) {
  auto ready = [&](int i) { full[i + s].wait(p); };  //~ AS2103
  ready(p + 1);                         //~ wait statement 'full[(p + 1) + s]' operand='full[(p + 1) + s]'
  ready(2);                             //~ wait statement 'full[2 + s]'
}

__global__ void not_so(Barrier* full, Barrier* empty, int s, int p) {
  auto copied = [=](int i) { full[i + s].wait(p); };  //~ wait statement 'full[i + s]'
  auto renamed = [bar = full](int i) { bar[i].wait(0); };  //~ wait statement bar[i]
  auto both = [&](int i) { full[i].wait(p); empty[i].arrive(); };  //~ wait statement full[i] ~ signal statement empty[i]
  auto fixed = [&] { full[s].wait(p); };  //~ wait statement full[s]
  auto unused = [&](int i) { full[i].wait(p); };  //~ wait statement full[i]
  auto working = [&](int i) { full[i].wait(work(i)); };  //~ wait statement full[i]
  copied(s), renamed(s), both(s), fixed(), working(s);
}
