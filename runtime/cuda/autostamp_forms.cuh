// SPDX-License-Identifier: Apache-2.0
//
// Waits with one stamp (placements): what their macros stand for. Included by autostamp.cuh alone, at its end.

#ifndef AUTOSTAMP_FORMS_CUH_
#define AUTOSTAMP_FORMS_CUH_

#if !AUTOSTAMP_IS_ON

#define AUTOSTAMP_ALONE(key, n)
#define AUTOSTAMP_BEFORE(key, n)
#define AUTOSTAMP_BEFORE_AT(key, n, ...)
#define AUTOSTAMP_BEFORE_PIPE(key, n, ...)
#define AUTOSTAMP_BEFORE_ID(key, n, ...)
#define AUTOSTAMP_BEHIND(key, n)

#else

// The exit of a wait whose enter has no stamp.
#define AUTOSTAMP_ALONE(key, n) ::autostamp::alone<AUTOSTAMP_LEFT_(key, n)>();
// One stamp of a wait inside an expression: of its enter, or of its exit.
#define AUTOSTAMP_BEFORE_(key, n, payload) (::autostamp::Before<AUTOSTAMP_EVENT(key, n)>(payload), (
#define AUTOSTAMP_BEFORE(key, n) AUTOSTAMP_BEFORE_(key, n, ::autostamp::no_payload)
#define AUTOSTAMP_BEFORE_AT(key, n, ...) AUTOSTAMP_BEFORE_(key, n, AUTOSTAMP_PAYLOAD_(address, __VA_ARGS__))
#define AUTOSTAMP_BEFORE_PIPE(key, n, ...) AUTOSTAMP_BEFORE_(key, n, AUTOSTAMP_PAYLOAD_(pipe, __VA_ARGS__))
#define AUTOSTAMP_BEFORE_ID(key, n, ...) AUTOSTAMP_BEFORE_(key, n, AUTOSTAMP_PAYLOAD_(number, __VA_ARGS__))
#define AUTOSTAMP_BEHIND(key, n) (::autostamp::Behind<AUTOSTAMP_LEFT_(key, n)>(), (

namespace autostamp {

#if defined(__CUDA_ARCH__)
#define AUTOSTAMP_ALONE_(first)                                                   \
  asm volatile(                                                                   \
      "{ .reg .pred p, q; .reg .u32 c, m, s, lo, hi; .reg .b64 t;\n\t"            \
      "// autostamp %0\n\t"                                                       \
      "activemask.b32 m;\n\t"                                                     \
      "and.b32 m, m, autostamp_gate;\n\t"                                         \
      "and.b32 m, m, 1;\n\t"                                                      \
      "setp.eq.u32 autostamp_own, m, 0;\n\t" AUTOSTAMP_OWNED_(first, "%0") ::"n"(Event) \
      : "memory")
#endif

/// The exit of a wait whose enter has no stamp: lane 0 writes or, where lane 0 is not active, the threads that are.
template <unsigned Event, bool IsDeferred>
AUTOSTAMP_BOTH void alone() {
#if defined(__CUDA_ARCH__)
  if constexpr (is_lean(Event)) {
    lean::alone<Event, IsDeferred>();
  } else if constexpr (IsDeferred) {
    AUTOSTAMP_ALONE_(AUTOSTAMP_SETTLE_("p"));
  } else {
    AUTOSTAMP_ALONE_("");
  }
#endif
}

/// The enter of a wait inside an expression whose exit has no stamp.
template <unsigned Event>
struct Before {
  AUTOSTAMP_BOTH explicit Before(unsigned high) { enter<Event>(high); }
};

/// The exit of a wait inside an expression whose enter has no stamp: written at the end of the full expression.
template <unsigned Exit, bool IsDeferred>
struct Behind {
  AUTOSTAMP_BOTH Behind() {}
  AUTOSTAMP_BOTH ~Behind() { alone<Exit, IsDeferred>(); }
  Behind(const Behind&) = delete;
  Behind& operator=(const Behind&) = delete;
};

}  // namespace autostamp

#endif  // AUTOSTAMP_IS_ON
#endif  // AUTOSTAMP_FORMS_CUH_
