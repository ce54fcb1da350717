// Roles by how the conditions are written.
using Barrier = cutlass::arch::ClusterBarrier;
enum class WarpRole { Load, Mma, Epilogue, Softmax0, Softmax1 };

__global__ void by_enumerator(Barrier* full, int s, int p, WarpRole role) {
  if (role == WarpRole::Load) {
    full[s].wait(p);                    //~ wait statement full[s] role=load guard='role == WarpRole::Load'
    if (elect_one_sync()) full[s].arrive();  //~ signal branch full[s] role=load guard='elect_one_sync()'
  } else if (role == WarpRole::Mma) {
    full[s].wait(p);                    //~ wait statement full[s] role=mma conditions='role != WarpRole::Load; role == WarpRole::Mma'
  } else if (role == WarpRole::Softmax0 || role == WarpRole::Softmax1) {
    full[s].wait(p);                    //~ wait statement full[s] role=softmax
  } else {
    full[s].wait(p);                    //~ wait statement full[s] role=
  }
  switch (role) {
    case WarpRole::Epilogue:
      full[s].wait(p);                  //~ wait statement full[s] role=epilogue guard='role == WarpRole::Epilogue'
      break;
    default:
      full[s].wait(p);                  //~ wait statement full[s] role=
  }
}

__global__ void by_number(Barrier* full, int s, int p) {
  int warp_idx = threadIdx.x / 32;
  if (warp_idx == 0) {
    full[s].wait(p);                    //~ wait statement full[s] role='warp 0'
  }
  if (warp_idx == 1 && cute::elect_one_sync()) {  // MMA issue warp
    full[s].wait(p);                    //~ wait statement full[s] role=mma
  }
  if (threadIdx.x / 128 == 2) full[s].wait(p);  //~ wait branch full[s] role='warpgroup 2'
  if (threadIdx.x == 0) full[s].wait(p);  //~ wait branch full[s] role='thread 0'
  if (p == 0) full[s].wait(p);          //~ wait branch full[s] role= guard= conditions='p == 0'
  if (warp_idx >= 4) full[s].wait(p);   //~ wait branch full[s] role= guard='warp_idx >= 4'
  full[s].wait(p);                      //~ wait statement full[s] role= guard= conditions=
}

__global__ void by_registers(Barrier* full, Barrier* empty, int s, int p, bool is_producer, int wg_idx) {
  if (wg_idx == 0) {
    cutlass::arch::warpgroup_reg_dealloc<40>();
    empty[s].wait(p);                   //~ wait statement empty[s] role=load
  } else {
    asm volatile("setmaxnreg.inc.sync.aligned.u32 232;");
    full[s].wait(p);                    //~ wait statement full[s] role=mma guard='wg_idx != 0'
  }
  if (is_producer) empty[s].wait(p); else full[s].wait(p);  //~ wait branch empty[s] role=load ~ wait branch full[s] role=mma guard=!is_producer
  if (wg_idx == 0) {
    // TMA load warps
    empty[s].wait(p);                   //~ wait statement empty[s] role=load
  }
  if (wg_idx == 1) {
    wgmma_m64n128k16(s);
    full[s].wait(p);                    //~ wait statement full[s] role=mma
  }
}

__global__ void by_leaving(Barrier* full, int s, int p, WarpRole role) {
  if (role == WarpRole::Load) {
    full[s].wait(p);                    //~ wait statement full[s] role=load
    return;
  }
  if (role != WarpRole::Mma) return;
  full[s].wait(p);                      //~ wait statement full[s] conditions='role != WarpRole::Load; role == WarpRole::Mma' role=mma
}

__device__ void load(Barrier* full, int s, int p) {
  work(s);
  full[s].wait(p);                      //~ wait statement full[s] role=load guard=
  full[s + 1].wait(p);                  //~ wait statement 'full[s + 1]' role=load
}
__device__ void helper(Barrier* full, int s, int p) {
  work(s);
  full[s].wait(p);                      //~ wait statement full[s] role=
  full[s + 1].wait(p);                  //~ wait statement 'full[s + 1]' role=
}
struct consumer {
  static __device__ void step(Barrier* full, int s, int p) {
    work(s);
    full[s].wait(p);                    //~ wait statement full[s] role=mma
    full[s + 1].wait(p);                //~ wait statement 'full[s + 1]' role=mma
  }
};
