// SPDX-License-Identifier: Apache-2.0
//
// The payload of a record: what a stamp's operand says about its barrier. A part of autostamp.cuh, which includes it.
#ifndef AUTOSTAMP_PAYLOAD_CUH_
#define AUTOSTAMP_PAYLOAD_CUH_

// Operands call what may be device code only, from templates that must also parse for the host.
#if defined(__NVCC__) || defined(__CUDACC_RTC__)
#define AUTOSTAMP_UNCHECKED _Pragma("nv_exec_check_disable")
#else
#define AUTOSTAMP_UNCHECKED
#endif

namespace autostamp {

// Payloads times 8, to be shifted into the upper half of a word (`high`). An address divided by 8 is below 0x8000 (256 KiB),
// which leaves a bit to mark a stage.
constexpr unsigned no_payload = 0;
constexpr unsigned is_stage = 0x8000u << 3;

/// The payload at its place in a record's second word.
AUTOSTAMP_BOTH unsigned high(unsigned payload) { return payload << 13; }

template <int N>
struct Choice : Choice<N - 1> {};
template <>
struct Choice<0> {};

template <class T>
struct Bare {
  using type = T;
};
template <class T>
struct Bare<T&> : Bare<T> {};
template <class T>
struct Bare<T&&> : Bare<T> {};
template <class T>
struct Bare<const T> : Bare<T> {};
template <class T>
struct Bare<volatile T> : Bare<T> {};
template <class T>
struct Bare<const volatile T> : Bare<T> {};

// Only the low 18 bits of the shared address count. Nothing is read through the pointer. It is converted rather than cut: the
// kernel converts it as well, and ptxas then need not find out where the shared window begins.
template <class T>
AUTOSTAMP_BOTH unsigned of_pointer(const volatile T* pointer) {
#if defined(__CUDA_ARCH__)
  const unsigned at = static_cast<unsigned>(__cvta_generic_to_shared(const_cast<const T*>(pointer)));
#else
  const unsigned at = static_cast<unsigned>(reinterpret_cast<unsigned long long>(pointer));
#endif
  if constexpr (alignof(T) < 8) return at & ~7u;
  return at;
}
AUTOSTAMP_BOTH unsigned of_pointer(const volatile void* pointer) {
  return of_pointer(static_cast<const volatile unsigned char*>(pointer));
}

/// The payload of a barrier operand: an mbarrier object of 8 bytes, a pointer to one (also one that hands out its pointer by
/// `get()`), or its shared address as a 32-bit integer. Of anything else: no_payload.
template <class T>
struct Operand {
  AUTOSTAMP_UNCHECKED
  template <class U>
  static AUTOSTAMP_BOTH auto of(U& object, Choice<1>) -> decltype(of_pointer(object.get())) {
    return of_pointer(object.get());
  }
  template <class U>
  static AUTOSTAMP_BOTH unsigned of(U& object, Choice<0>) {
    if constexpr (sizeof(T) == 8) {
      const volatile void* const at = &reinterpret_cast<const volatile unsigned char&>(object);
      return of_pointer(static_cast<const volatile unsigned long long*>(at));
    } else {
      return (void)object, no_payload;
    }
  }
};
template <class T>
struct Operand<T*> {
  template <class U>
  static AUTOSTAMP_BOTH unsigned of(U& pointer, Choice<1>) {
    return of_pointer(pointer);
  }
};
template <class T, decltype(sizeof(0)) N>
struct Operand<T[N]> {
  template <class U>
  static AUTOSTAMP_BOTH unsigned of(U& array, Choice<1>) {
    return of_pointer(&array[0]);
  }
};
struct OperandAddress {
  template <class U>
  static AUTOSTAMP_BOTH unsigned of(U& at, Choice<1>) {
    return static_cast<unsigned>(at);
  }
};
template <>
struct Operand<unsigned> : OperandAddress {};
template <>
struct Operand<int> : OperandAddress {};

template <class T>
AUTOSTAMP_BOTH unsigned address(T&& operand) {
  return Operand<typename Bare<T>::type>::of(operand, Choice<1>());
}

AUTOSTAMP_UNCHECKED
template <class State>
AUTOSTAMP_BOTH auto stage(const State& state, Choice<1>) -> decltype(static_cast<unsigned>(state.index())) {
  return static_cast<unsigned>(state.index());
}
AUTOSTAMP_UNCHECKED
template <class State>
AUTOSTAMP_BOTH auto stage(const State& state, Choice<0>) -> decltype(static_cast<unsigned>(state)) {
  return static_cast<unsigned>(state);
}

// CUTLASS pipelines hand out the full barrier of a stage (include/cutlass/pipeline/sm90_pipeline.hpp): in public by state, in
// some classes by index too.
AUTOSTAMP_UNCHECKED
template <class Pipe, class State>
AUTOSTAMP_BOTH auto pipe_of(Pipe& pipeline, const State& state, Choice<2>)
    -> decltype(of_pointer(pipeline.producer_get_barrier(state))) {
  return of_pointer(pipeline.producer_get_barrier(state));
}
AUTOSTAMP_UNCHECKED
template <class Pipe, class State>
AUTOSTAMP_BOTH auto pipe_of(Pipe& pipeline, const State& state, Choice<1>)
    -> decltype(of_pointer(pipeline.producer_get_barrier(state.index()))) {
  return of_pointer(pipeline.producer_get_barrier(state.index()));
}
AUTOSTAMP_UNCHECKED
template <class Pipe, class State>
AUTOSTAMP_BOTH unsigned pipe_of(Pipe&, const State& state, Choice<0>) {
  return (stage(state, Choice<1>()) << 3) | is_stage;
}

/// The payload of a pipeline's call: the address of the stage's full barrier, else 0x8000 | stage.
AUTOSTAMP_UNCHECKED
template <class Pipe, class State>
AUTOSTAMP_BOTH unsigned pipe(Pipe&& pipeline, const State& state) {
  return pipe_of(pipeline, state, Choice<2>());
}
AUTOSTAMP_UNCHECKED
template <class Pipe, class State>
AUTOSTAMP_BOTH unsigned pipe(Pipe* pipeline, const State& state) {
  return pipe_of(*pipeline, state, Choice<2>());
}

/// The payload of a hardware barrier: its number.
template <class Id>
AUTOSTAMP_BOTH unsigned number(Id id) {
  return static_cast<unsigned>(id) << 3;
}

}  // namespace autostamp

#endif  // AUTOSTAMP_PAYLOAD_CUH_
