// Methods: the object is the barrier where its class holds nothing else, and `wait` means what the object's class says.
#include <cstdint>

namespace host {
struct Stream {
  void wait(int event);
};
void overlap(Stream& stream, Stream* other) {
  stream.wait(1);
  other->wait(2);
}
}  // namespace host

struct Barrier {
  uint64_t word;
  __device__ void wait(uint32_t phase) {
    asm volatile("L: mbarrier.try_wait.parity.shared.b64 p, [%0], %1; @!p bra L;" ::"r"(
                     (uint32_t)__cvta_generic_to_shared(&this->word)), "r"(phase));
  }
  __device__ void arrive() const {
    asm volatile("mbarrier.arrive.shared.b64 _, [%0];" ::"r"((uint32_t)__cvta_generic_to_shared(&word)));
  }
};

class Ring {
  int stage_;
  uint64_t* words_;

 public:
  __device__ void wait(uint32_t phase) {
    asm volatile("L: mbarrier.try_wait.parity.shared.b64 p, [%0], %1; @!p bra L;" ::"r"(
                     (uint32_t)__cvta_generic_to_shared(words_ + stage_)), "r"(phase));
  }
  __device__ void next() { wait(stage_ & 1); }
};

template <int N>
struct Group {
  static __device__ void sync(int id);
};

template <int N>
__device__ void Group<N>::sync(int id) {
  asm volatile("barrier.cta.sync %0, %1;" ::"r"(id), "n"(N));
}

struct Timer {
  __device__ void wait(uint32_t cycles) { last = cycles; }
  uint32_t last;
};

__device__ void use(Barrier* full, Barrier (&empty)[2], Ring& ring, Timer& timer, int s) {
  full->wait(0);
  empty[s].wait(1);
  empty[s + 1].arrive();
  ring.wait(1);
  ring.next();
  Group<128>::sync(5);
  timer.wait(100);
}
