// Guards of a caller hold for what it calls, in another file too.
#include "mainloop.cuh"

enum class Role { Producer, Consumer };

template <class Mainloop>
__global__ void kernel(Mainloop mainloop, Barrier* full, Barrier* empty, Role role, int n) {
  auto refill = [&](int s) {
    work(s);
    empty[s].wait(0);                   //~ wait statement empty[s] role=load conditions='role == Role::Producer; n > 1'
  };
  if (role == Role::Producer) {
    mainloop.fill(full, empty, n);
    both(full, n);
    if (n > 1) refill(n);
  } else if (role == Role::Consumer) {
    mainloop.drain(full, empty, n);
    both(full, n);
  }
}
