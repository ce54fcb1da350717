// SPDX-License-Identifier: Apache-2.0
//
// What the stamps of a CUDA C++ file stand for. Without AUTOSTAMP defined non-zero every macro below is empty, and a stamped
// file preprocesses to the very tokens of the original. With it, each stamp is one volatile asm block that appends a record
// {clock, event} to the lane of its warp.
//
// docs/formats/records.md describes what is written, docs/adr/0007-cuda-stamp-form.md says why the asm reads as it does.
// C++17, no dependency; nvcc, NVRTC and clang; compute capability 7.0 and later, with and without -rdc.
#ifndef AUTOSTAMP_CUH_
#define AUTOSTAMP_CUH_

#if defined(AUTOSTAMP) && (AUTOSTAMP + 0) && (defined(__CUDACC__) || defined(__CUDACC_RTC__) || defined(__CUDA__))
#define AUTOSTAMP_IS_ON 1
#else
#define AUTOSTAMP_IS_ON 0
#endif

#if !AUTOSTAMP_IS_ON

#define AUTOSTAMP_ENTER(key, n)
#define AUTOSTAMP_ENTER_AT(key, n, ...)
#define AUTOSTAMP_ENTER_PIPE(key, n, ...)
#define AUTOSTAMP_ENTER_ID(key, n, ...)
#define AUTOSTAMP_EXIT(key, n)
#define AUTOSTAMP_SIGNAL(key, n)
#define AUTOSTAMP_SIGNAL_AT(key, n, ...)
#define AUTOSTAMP_SIGNAL_PIPE(key, n, ...)
#define AUTOSTAMP_SIGNAL_ID(key, n, ...)
#define AUTOSTAMP_WARP_ENTER(key, n)
#define AUTOSTAMP_WARP_ENTER_AT(key, n, ...)
#define AUTOSTAMP_WARP_ENTER_PIPE(key, n, ...)
#define AUTOSTAMP_WARP_ENTER_ID(key, n, ...)
#define AUTOSTAMP_WARP_EXIT(key, n)
#define AUTOSTAMP_WARP_SIGNAL(key, n)
#define AUTOSTAMP_WARP_SIGNAL_AT(key, n, ...)
#define AUTOSTAMP_WARP_SIGNAL_PIPE(key, n, ...)
#define AUTOSTAMP_WARP_SIGNAL_ID(key, n, ...)
#define AUTOSTAMP_OPEN
#define AUTOSTAMP_CLOSE
#define AUTOSTAMP_AROUND(key, n)
#define AUTOSTAMP_AROUND_AT(key, n, ...)
#define AUTOSTAMP_AROUND_PIPE(key, n, ...)
#define AUTOSTAMP_AROUND_ID(key, n, ...)
#define AUTOSTAMP_AFTER(key, n)
#define AUTOSTAMP_AFTER_AT(key, n, ...)
#define AUTOSTAMP_AFTER_PIPE(key, n, ...)
#define AUTOSTAMP_AFTER_ID(key, n, ...)
#define AUTOSTAMP_AROUND_END
#define AUTOSTAMP_BIND(key, k)
#define AUTOSTAMP_BIND_PARAM(key, k)
#define AUTOSTAMP_PARAM
#define AUTOSTAMP_PARAM_ONLY
#define AUTOSTAMP_PARAM_DEFAULT
#define AUTOSTAMP_ARG(key, k, ...)
#define AUTOSTAMP_ARG_ONLY(key, k, ...)
#define AUTOSTAMP_PREPARE(...)
#define AUTOSTAMP_PREPARE_AROUND(...)
#define AUTOSTAMP_LAUNCHER(...)
#define AUTOSTAMP_LAUNCHER_AROUND(...)
#define AUTOSTAMP_INLINE
#define AUTOSTAMP_ALWAYS_INLINE

#else

#include "autostamp_unit.cuh"

#ifndef AUTOSTAMP_UNIT_LAUNCHES
#define AUTOSTAMP_UNIT_LAUNCHES 0
#endif

// Site n of a file enters (or signals) as event E + 2n - 1 and exits as E + 2n; kernel k has slot K + k - 1.
#define AUTOSTAMP_EVENT(key, n) (AUTOSTAMP_EVENTS_##key + 2 * (n) - 1)
#define AUTOSTAMP_SLOT(key, k) (AUTOSTAMP_KERNELS_##key + (k) - 1)
#define AUTOSTAMP_SIGNATURE(key, k) (AUTOSTAMP_UNIT + AUTOSTAMP_SLOT(key, k))

// With AUTOSTAMP_NO_PAYLOAD a record says no more than its event: operands are not evaluated, which frees registers.
#ifdef AUTOSTAMP_NO_PAYLOAD
#define AUTOSTAMP_PAYLOAD_(of, ...) ::autostamp::no_payload
#else
#define AUTOSTAMP_PAYLOAD_(of, ...) ::autostamp::of(__VA_ARGS__)
#endif
#define AUTOSTAMP_ENTER_(key, n, payload) ::autostamp::enter<AUTOSTAMP_EVENT(key, n)>(payload);
#define AUTOSTAMP_ENTER(key, n) AUTOSTAMP_ENTER_(key, n, ::autostamp::no_payload)
#define AUTOSTAMP_ENTER_AT(key, n, ...) AUTOSTAMP_ENTER_(key, n, AUTOSTAMP_PAYLOAD_(address, __VA_ARGS__))
#define AUTOSTAMP_ENTER_PIPE(key, n, ...) AUTOSTAMP_ENTER_(key, n, AUTOSTAMP_PAYLOAD_(pipe, __VA_ARGS__))
#define AUTOSTAMP_ENTER_ID(key, n, ...) AUTOSTAMP_ENTER_(key, n, AUTOSTAMP_PAYLOAD_(number, __VA_ARGS__))
#define AUTOSTAMP_LEFT_(key, n) AUTOSTAMP_EVENT(key, n) + 1, ::autostamp::is_deferred(AUTOSTAMP_EVENT(key, n) + 1)
#define AUTOSTAMP_EXIT(key, n) ::autostamp::leave<AUTOSTAMP_LEFT_(key, n)>();
#define AUTOSTAMP_SIGNAL(key, n) AUTOSTAMP_ENTER(key, n)
#define AUTOSTAMP_SIGNAL_AT(key, n, ...) AUTOSTAMP_ENTER_AT(key, n, __VA_ARGS__)
#define AUTOSTAMP_SIGNAL_PIPE(key, n, ...) AUTOSTAMP_ENTER_PIPE(key, n, __VA_ARGS__)
#define AUTOSTAMP_SIGNAL_ID(key, n, ...) AUTOSTAMP_ENTER_ID(key, n, __VA_ARGS__)
// The same where the whole warp, or lane 0 alone, is known to execute the stamp.
#define AUTOSTAMP_WARP_ENTER_(key, n, payload) ::autostamp::warp_stamp<AUTOSTAMP_EVENT(key, n)>(payload);
#define AUTOSTAMP_WARP_ENTER(key, n) AUTOSTAMP_WARP_ENTER_(key, n, ::autostamp::no_payload)
#define AUTOSTAMP_WARP_ENTER_AT(key, n, ...) AUTOSTAMP_WARP_ENTER_(key, n, AUTOSTAMP_PAYLOAD_(address, __VA_ARGS__))
#define AUTOSTAMP_WARP_ENTER_PIPE(key, n, ...) AUTOSTAMP_WARP_ENTER_(key, n, AUTOSTAMP_PAYLOAD_(pipe, __VA_ARGS__))
#define AUTOSTAMP_WARP_ENTER_ID(key, n, ...) AUTOSTAMP_WARP_ENTER_(key, n, AUTOSTAMP_PAYLOAD_(number, __VA_ARGS__))
#define AUTOSTAMP_WARP_EXIT(key, n) ::autostamp::warp_stamp<AUTOSTAMP_LEFT_(key, n)>(::autostamp::no_payload);
#define AUTOSTAMP_WARP_SIGNAL(key, n) AUTOSTAMP_WARP_ENTER(key, n)
#define AUTOSTAMP_WARP_SIGNAL_AT(key, n, ...) AUTOSTAMP_WARP_ENTER_AT(key, n, __VA_ARGS__)
#define AUTOSTAMP_WARP_SIGNAL_PIPE(key, n, ...) AUTOSTAMP_WARP_ENTER_PIPE(key, n, __VA_ARGS__)
#define AUTOSTAMP_WARP_SIGNAL_ID(key, n, ...) AUTOSTAMP_WARP_ENTER_ID(key, n, __VA_ARGS__)
#define AUTOSTAMP_OPEN {
#define AUTOSTAMP_CLOSE }

#define AUTOSTAMP_AROUND_(key, n, payload) (::autostamp::Around<AUTOSTAMP_LEFT_(key, n)>(payload), (
#define AUTOSTAMP_AROUND(key, n) AUTOSTAMP_AROUND_(key, n, ::autostamp::no_payload)
#define AUTOSTAMP_AROUND_AT(key, n, ...) AUTOSTAMP_AROUND_(key, n, AUTOSTAMP_PAYLOAD_(address, __VA_ARGS__))
#define AUTOSTAMP_AROUND_PIPE(key, n, ...) AUTOSTAMP_AROUND_(key, n, AUTOSTAMP_PAYLOAD_(pipe, __VA_ARGS__))
#define AUTOSTAMP_AROUND_ID(key, n, ...) AUTOSTAMP_AROUND_(key, n, AUTOSTAMP_PAYLOAD_(number, __VA_ARGS__))
#define AUTOSTAMP_AFTER_(key, n, payload) (::autostamp::After<AUTOSTAMP_EVENT(key, n)>(payload), (
#define AUTOSTAMP_AFTER(key, n) AUTOSTAMP_AFTER_(key, n, ::autostamp::no_payload)
#define AUTOSTAMP_AFTER_AT(key, n, ...) AUTOSTAMP_AFTER_(key, n, AUTOSTAMP_PAYLOAD_(address, __VA_ARGS__))
#define AUTOSTAMP_AFTER_PIPE(key, n, ...) AUTOSTAMP_AFTER_(key, n, AUTOSTAMP_PAYLOAD_(pipe, __VA_ARGS__))
#define AUTOSTAMP_AFTER_ID(key, n, ...) AUTOSTAMP_AFTER_(key, n, AUTOSTAMP_PAYLOAD_(number, __VA_ARGS__))
#define AUTOSTAMP_AROUND_END ))

#define AUTOSTAMP_BIND_(key, k, lean, slot) \
  ::autostamp::Lane<AUTOSTAMP_SIGNATURE(key, k), lean> autostamp_lane(slot, __PRETTY_FUNCTION__);
#define AUTOSTAMP_BIND(key, k) \
  AUTOSTAMP_BIND_(key, k, ::autostamp::is_lean_kernel(AUTOSTAMP_SLOT(key, k)), autostamp_slots[AUTOSTAMP_SLOT(key, k)])
#define AUTOSTAMP_BIND_PARAM(key, k) AUTOSTAMP_BIND_(key, k, false, autostamp_slot)
#define AUTOSTAMP_PARAM_ONLY const ::autostamp::Slot autostamp_slot
#define AUTOSTAMP_PARAM , AUTOSTAMP_PARAM_ONLY
#define AUTOSTAMP_PARAM_DEFAULT AUTOSTAMP_PARAM = {}
// nvcc ignores the attribute without `inline`, which in turn may stand in a declaration once.
#define AUTOSTAMP_INLINE __forceinline__
#define AUTOSTAMP_ALWAYS_INLINE __attribute__((always_inline))

#define AUTOSTAMP_BOTH __host__ __device__ __forceinline__
#include "autostamp_payload.cuh"

namespace autostamp {

// Exits of waits whose instruction only asks the warp to wait: BAR.SYNC and UCGABAR_WAIT let it go on to what touches no
// memory, so a clock read behind them comes before the wait (docs/adr/0009).
#ifdef AUTOSTAMP_UNIT_DEFERRED
static constexpr unsigned deferred_exits[] = {AUTOSTAMP_UNIT_DEFERRED};
AUTOSTAMP_BOTH static constexpr bool is_deferred(unsigned event) {
  for (unsigned exit : deferred_exits) {
    if (exit == event) return true;
  }
  return false;
}
#else
AUTOSTAMP_BOTH static constexpr bool is_deferred(unsigned) { return false; }
#endif

// Kernels with warps that have next to no registers, by slot, and what they come to, by the event of an enter or a signal: their
// stamps have a form of their own (autostamp_lean.cuh).
#ifdef AUTOSTAMP_UNIT_LEAN_KERNELS
static constexpr unsigned lean_kernels[] = {AUTOSTAMP_UNIT_LEAN_KERNELS}, lean_events[] = {AUTOSTAMP_UNIT_LEAN_EVENTS};
AUTOSTAMP_BOTH static constexpr bool is_lean_kernel(unsigned slot) {
  for (unsigned kernel : lean_kernels) {
    if (kernel == slot) return true;
  }
  return false;
}
AUTOSTAMP_BOTH static constexpr bool is_lean(unsigned event) {
  for (unsigned enter : lean_events) {
    if (enter == ((event - 1) | 1)) return true;  // enters are odd, and the exit is the number after
  }
  return false;
}
#else
AUTOSTAMP_BOTH static constexpr bool is_lean_kernel(unsigned) { return false; }
AUTOSTAMP_BOTH static constexpr bool is_lean(unsigned) { return false; }
#endif

/// Where a launch records: all zero for nowhere. `block` is the index of the one CTA that records. Where several do, block_z is no
/// index: with block_range CTAs do from linear index block_x on, block_y of them; with block_list those in the table of block_y
/// indices (x, y, z) behind the regions. Each has a region of its own, one behind the other.
struct Slot {
  unsigned long long region;
  unsigned capacity;
  unsigned block_x, block_y, block_z;
};
constexpr unsigned block_range = 0x80000000u, block_list = 0x80000001u, no_cta = 0xffffffffu;

// layout: begin
namespace layout {
constexpr unsigned warps = 32;
constexpr unsigned lanes = 64;
constexpr unsigned header_bytes = 64;
constexpr unsigned record_bytes = 8;
constexpr unsigned entered = 1;
constexpr unsigned released = 2;
constexpr unsigned entry_clock = 0;
constexpr unsigned smid = 4;
constexpr unsigned exit_clock = 8;
constexpr unsigned signature = 12;
constexpr unsigned entry_ns = 16;
constexpr unsigned exit_ns = 24;
constexpr unsigned remaining = 32;
constexpr unsigned state = 36;
constexpr unsigned launch = 52;
constexpr unsigned binds = 40;
constexpr unsigned releases = 44;
constexpr unsigned overlap = 48;
constexpr unsigned name = 0;
constexpr unsigned grid = 8;
constexpr unsigned block = 20;
constexpr unsigned writers = 40;
}  // namespace layout
// layout: end

}  // namespace autostamp

// A cubin that is loaded by hand must show the symbol under its plain name: without -rdc it has C linkage, and its host
// shadow is static all the same. Under -rdc translation units are linked: one variable for each unit, shared by those that
// have the same one.
#if defined(__CUDACC_RDC__) && !defined(AUTOSTAMP_EXPORT_SLOTS)
#define AUTOSTAMP_JOINED_(a, b) a##b
#define AUTOSTAMP_JOINED(a, b) AUTOSTAMP_JOINED_(a, b)
#define autostamp_slots AUTOSTAMP_JOINED(autostamp_slots_, AUTOSTAMP_UNIT)
inline __constant__ ::autostamp::Slot autostamp_slots[AUTOSTAMP_UNIT_SLOTS > 0 ? AUTOSTAMP_UNIT_SLOTS : 1];
#else
extern "C" {
__constant__ ::autostamp::Slot autostamp_slots[AUTOSTAMP_UNIT_SLOTS > 0 ? AUTOSTAMP_UNIT_SLOTS : 1];
}
#endif

namespace autostamp {

/// 0 in the CTA whose index the slot holds.
__device__ __forceinline__ unsigned elsewhere(const Slot& slot) {
#if defined(__CUDA_ARCH__)
  return (blockIdx.x ^ slot.block_x) | (blockIdx.y ^ slot.block_y) | (blockIdx.z ^ slot.block_z);
#else
  (void)slot;
  return 1;
#endif
}

/// The number of the running CTA among those that record; no_cta in any other.
__device__ __forceinline__ unsigned cta_of(const Slot& slot) {
#if defined(__CUDA_ARCH__)
  if (slot.block_z < block_range) return elsewhere(slot) == 0 ? 0 : no_cta;
  if (slot.block_z == block_range) {
    const unsigned at = blockIdx.x + gridDim.x * (blockIdx.y + gridDim.y * blockIdx.z) - slot.block_x;
    return at < slot.block_y ? at : no_cta;
  }
  const unsigned long long lane_bytes = layout::header_bytes + slot.capacity * layout::record_bytes;
  const unsigned* table = reinterpret_cast<const unsigned*>(slot.region + slot.block_y * layout::lanes * lane_bytes);
#pragma unroll 1
  for (unsigned at = 0; at < slot.block_y; ++at, table += 3) {
    if (table[0] == blockIdx.x && table[1] == blockIdx.y && table[2] == blockIdx.z) return at;
  }
#else
  (void)slot;
#endif
  return no_cta;
}

#if defined(__CUDA_ARCH__)
// The end of a release: the header at `h` gets its clocks where p holds, and q holds for other threads than lane 0 that recorded.
#define AUTOSTAMP_RELEASE_                          \
  "@p st.global.u64 [h+%2], g;\n\t"                 \
  "@p st.global.v2.u32 [h+%3], {c, %4};\n\t"        \
  "@p st.global.v2.u32 [h+%5], {left, %6};\n\t"     \
  "@q st.global.v2.u32 [h+%5], {left, %6};\n\t"     \
  "mov.u32 end, %%laneid;\n\t"                      \
  "shl.b32 end, 1, end;\n\t"                        \
  "@q red.global.or.b32 [h+%7], end;\n\t"           \
  "mov.b64 n, 1;\n\t"                               \
  "@p atom.global.add.u64 n, [h+%8], 0x100000000;\n\t" \
  "mov.b64 {bound, done}, n;\n\t"                   \
  "add.u32 done, done, 1;\n\t"                      \
  "setp.ne.and.u32 p, bound, done, p;\n\t"          \
  "@p st.global.u32 [h+%9], 1; }"
#endif

/// Writes the header of a warp's lane, and empties that of its single threads.
__device__ __forceinline__ void open_lane(unsigned long long main, unsigned long long single, unsigned room, unsigned thread,
                                          const char* name) {
#if defined(__CUDA_ARCH__)
  asm volatile(
      "{ .reg .pred p; .reg .u32 c, s; .reg .u64 g;\n\t"
      "// autostamp bind\n\t"
      "setp.eq.u32 p, %3, 0;\n\t"
      "@p st.global.u64 [%1+%11], %4;\n\t"
      "@p st.global.v2.u32 [%1+%12], {%5, %6};\n\t"
      "@p st.global.v4.u32 [%1+%12+8], {%7, %8, %9, %10};\n\t"
      "st.global.v2.u32 [%1+%13], {%2, 0};\n\t"
      "st.global.u32 [%1+%18], 0;\n\t"
      "red.global.add.u64 [%0+%14], 1;\n\t"
      "mov.u32 s, %%smid;\n\t"
      "mov.u64 g, %%globaltimer;\n\t"
      "mov.u32 c, %%clock;\n\t"
      "st.global.u64 [%0+%15], g;\n\t"
      "st.global.v2.u32 [%0+%16], {c, s};\n\t"
      "st.global.v2.u32 [%0+%13], {%2, %17}; }" ::"l"(main),
      "l"(single), "r"(room), "r"(thread), "l"(name), "r"(gridDim.x), "r"(gridDim.y),
      "r"(gridDim.z), "r"(blockDim.x), "r"(blockDim.y), "r"(blockDim.z), "n"(layout::name), "n"(layout::grid),
      "n"(layout::remaining), "n"(layout::binds), "n"(layout::entry_ns), "n"(layout::entry_clock),
      "n"(layout::entered), "n"(layout::writers)
      : "memory");
#else
  (void)main, (void)single, (void)room, (void)thread, (void)name;
#endif
}

/// Binds the warp's lane in its constructor and releases it on every way out of the kernel.
///
/// The last asm of the constructor stands in no braces, so its registers belong to the PTX function of the kernel, and every
/// stamp inlined below it can name them (PTX ISA, "Scope of names"): no function needs a parameter for the lane.
///   autostamp_at    address of the next record; its high word never changes
///   autostamp_gate  a record fits while the low word of autostamp_at is below this; odd: this thread is not lane 0 of its warp
///   autostamp_room  this is lane 0, and its next record fits: found out by the stamp before, so that none waits for it
///   autostamp_own   this thread writes the records of the stamp at hand
/// In a CTA that does not record the gate is 0, so nothing is written. The destructor finds the lane by these alone:
/// nothing else has to stay alive through the kernel.
template <unsigned Signature, bool IsLean>
struct Lane {
  const Slot& slot;

  __device__ __forceinline__ Lane(const Slot& slot_, const char* name) : slot(slot_) {
#if defined(__CUDA_ARCH__)
    const unsigned thread = (threadIdx.z * blockDim.y + threadIdx.y) * blockDim.x + threadIdx.x;
    const unsigned cta = slot.capacity != 0 ? cta_of(slot) : no_cta;
    const bool is_first = thread % 32 == 0;
    unsigned long long at = layout::record_bytes;
    unsigned gate = 0;
    if (cta != no_cta) {
      const unsigned room = slot.capacity * layout::record_bytes, lane_bytes = layout::header_bytes + room;
      const unsigned lane = cta * layout::lanes + thread / 32 + (is_first ? 0 : layout::warps);
      const unsigned long long main = slot.region + lane * static_cast<unsigned long long>(lane_bytes);
      at = main + layout::header_bytes;
      // The low word of the last record's address, and a bit that makes it a limit. A region does not cross a 4 GiB boundary.
      gate = static_cast<unsigned>(at) + room - layout::record_bytes + (is_first ? 2 : 3);
      if (is_first) {
        open_lane(main, main + layout::warps * lane_bytes, room, thread, name);
      }
    }
    asm volatile(
        ".reg .b64 autostamp_at;\n\t"
        ".reg .u32 autostamp_gate;\n\t"
        ".reg .pred autostamp_room, autostamp_own;\n\t"
        "mov.b64 autostamp_at, %0;\n\t"
        "mov.u32 autostamp_gate, %1;\n\t"
        "setp.ne.u32 autostamp_room, %2, 0;\n\t"
        "setp.ne.u32 autostamp_own, %1, %1;" ::"l"(at), "r"(gate), "r"(is_first ? gate : 0u)
        : "memory");
#else
    (void)name;
#endif
  }

  __device__ __forceinline__ ~Lane() {
#if defined(__CUDA_ARCH__)
    // What was bound and released before must be equal but for this launch: otherwise another one writes here too.
    asm volatile(
        "{ .reg .pred here, p, q; .reg .u32 c, lo, hi, end, left, room, bound, done; .reg .b64 g, h, n;\n\t"
        "// autostamp release\n\t"
        "mov.u32 c, %%clock;\n\t"
        "mov.u64 g, %%globaltimer;\n\t"
        "setp.ne.u32 here, autostamp_gate, 0;\n\t"
        "mov.b64 {lo, hi}, autostamp_at;\n\t"
        "shl.b32 room, %0, 3;\n\t"
        "and.b32 end, autostamp_gate, 0xfffffff8;\n\t"
        "add.u32 end, end, 8;\n\t"
        "sub.u32 left, end, lo;\n\t"
        "sub.u32 end, end, room;\n\t"
        "sub.u32 end, end, %1;\n\t"
        "mov.b64 h, {end, hi};\n\t"
        "and.b32 end, autostamp_gate, 1;\n\t"
        "setp.eq.and.u32 p, end, 0, here;\n\t"
        "setp.ne.and.u32 q, end, 0, here;\n\t"
        "setp.ne.and.u32 q, left, room, q;\n\t"
        AUTOSTAMP_RELEASE_ ::"r"(slot.capacity),
        "n"(layout::header_bytes), "n"(layout::exit_ns), "n"(layout::exit_clock), "n"(Signature),
        "n"(layout::remaining), "n"(layout::released), "n"(layout::writers), "n"(layout::binds), "n"(layout::overlap)
        : "memory");
#endif
  }

  Lane(const Lane&) = delete;
  Lane& operator=(const Lane&) = delete;
};

#if defined(__CUDA_ARCH__)
// Moves the cursor by `s` bytes. It goes on past the end, so that lost records are counted, and could wrap; so once no record
// fits, none does again.
#define AUTOSTAMP_ADVANCE_                \
  "cvt.u64.u32 t, s;\n\t"                 \
  "add.u64 autostamp_at, autostamp_at, t;\n\t" \
  "mov.b64 {lo, hi}, autostamp_at;\n\t"   \
  "setp.lt.and.u32 autostamp_room, lo, autostamp_gate, autostamp_room; }"

// A record of whichever threads own the stamp, which is known before the clock is read. The cursor of another thread than
// lane 0 stops short of the 4 GiB boundary beyond which it would be below the gate again.
#define AUTOSTAMP_OWNED_(first, word)                                 \
  "mov.b64 {lo, hi}, autostamp_at;\n\t"                               \
  "and.b32 s, autostamp_gate, 1;\n\t"                                 \
  "setp.ne.or.u32 q, s, 0, autostamp_room;\n\t"                       \
  "setp.lt.and.u32 p, lo, autostamp_gate, autostamp_own;\n\t"         \
  "and.pred p, p, q;\n\t" first                                       \
  "mov.u32 c, %%clock;\n\t"                                           \
  "@p st.global.v2.b32 [autostamp_at], {c, " word "};\n\t"            \
  "min.u32 lo, lo, 0xfffffff0;\n\t"                                   \
  "mov.b64 autostamp_at, {lo, hi};\n\t"                               \
  "selp.u32 s, 8, 0, autostamp_own;\n\t" AUTOSTAMP_ADVANCE_

// A store cannot be issued before the warp's wait is over, so one that marks the record unused comes before the clock.
#define AUTOSTAMP_SETTLE_(own) "@" own " st.volatile.global.b32 [autostamp_at+4], 0;\n\t"
#define AUTOSTAMP_WARP_STAMP_(first)                                     \
  asm volatile(                                                          \
      "{ .reg .u32 c, s, lo, hi; .reg .b64 t;\n\t"                       \
      "// autostamp %0\n\t" first                                        \
      "mov.u32 c, %%clock;\n\t"                                          \
      "@autostamp_room st.global.v2.b32 [autostamp_at], {c, %1};\n\t"    \
      "and.b32 s, autostamp_gate, 1;\n\t"                                \
      "mad.lo.s32 s, s, -8, 8;\n\t" AUTOSTAMP_ADVANCE_ ::"n"(Event),     \
      "r"(high(payload) + Event)                                         \
      : "memory")
#define AUTOSTAMP_LEAVE_(first)                                                  \
  asm volatile(                                                                  \
      "{ .reg .pred p, q; .reg .u32 c, s, lo, hi; .reg .b64 t;\n\t"              \
      "// autostamp %0\n\t" AUTOSTAMP_OWNED_(first, "%0") ::"n"(Event)           \
      : "memory")
#endif

}  // namespace autostamp

#include "autostamp_lean.cuh"

namespace autostamp {

/// Any stamp that the whole warp executes, or lane 0 alone: lane 0 writes.
/// No instruction between the clock and the store waits for another, and every cursor is a new register: one that the store
/// still reads could not be written for some hundred cycles (docs/adr/0007-cuda-stamp-form.md).
template <unsigned Event, bool IsDeferred = false>
AUTOSTAMP_BOTH void warp_stamp(unsigned payload) {
#if defined(__CUDA_ARCH__)
  if constexpr (is_lean(Event)) {
    lean::warp_stamp<Event, IsDeferred>(payload);
  } else if constexpr (IsDeferred) {
    AUTOSTAMP_WARP_STAMP_(AUTOSTAMP_SETTLE_("autostamp_room"));
  } else {
    AUTOSTAMP_WARP_STAMP_("");
  }
#else
  (void)payload;
#endif
}

/// The enter of a wait, or a signal, by any threads of a warp: lane 0 writes or, where lane 0 is not active, those that are.
template <unsigned Event>
AUTOSTAMP_BOTH void enter(unsigned payload) {
#if defined(__CUDA_ARCH__)
  if constexpr (is_lean(Event)) {
    lean::enter<Event>(payload);
  } else {
    asm volatile(
        "{ .reg .pred p, q; .reg .u32 c, m, s, lo, hi; .reg .b64 t;\n\t"
        "// autostamp %0\n\t"
        "activemask.b32 m;\n\t"
        "and.b32 m, m, autostamp_gate;\n\t"
        "and.b32 m, m, 1;\n\t"
        "setp.eq.u32 autostamp_own, m, 0;\n\t" AUTOSTAMP_OWNED_("", "%1") ::"n"(Event),
        "r"(high(payload) + Event)
        : "memory");
  }
#else
  (void)payload;
#endif
}

/// The exit of a wait, written by the threads that wrote its enter: they alone know that no other thread did.
template <unsigned Event, bool IsDeferred>
AUTOSTAMP_BOTH void leave() {
#if defined(__CUDA_ARCH__)
  if constexpr (is_lean(Event)) {
    lean::leave<Event, IsDeferred>();
  } else if constexpr (IsDeferred) {
    AUTOSTAMP_LEAVE_(AUTOSTAMP_SETTLE_("p"));
  } else {
    AUTOSTAMP_LEAVE_("");
  }
#endif
}

/// A wait inside an expression: enters here, exits at the end of the full expression, as `Exit`.
template <unsigned Exit, bool IsDeferred>
struct Around {
  AUTOSTAMP_BOTH explicit Around(unsigned payload) { enter<Exit - 1>(payload); }
  AUTOSTAMP_BOTH ~Around() { leave<Exit, IsDeferred>(); }
  Around(const Around&) = delete;
  Around& operator=(const Around&) = delete;
};

/// A signal inside an expression: its record is written at the end of the full expression.
template <unsigned Event>
struct After {
  const unsigned payload;
  AUTOSTAMP_BOTH explicit After(unsigned payload_) : payload(payload_) {}
  AUTOSTAMP_BOTH ~After() { enter<Event>(payload); }
  After(const After&) = delete;
  After& operator=(const After&) = delete;
};

}  // namespace autostamp

#if defined(__CUDACC_RTC__)
// Compiled at run time: who loads the cubin sets autostamp_slots, and no launch is in this text.
#define AUTOSTAMP_ARG(key, k, ...) , ::autostamp::Slot{}
#define AUTOSTAMP_ARG_ONLY(key, k, ...) ::autostamp::Slot{}
#define AUTOSTAMP_PREPARE(...)
#define AUTOSTAMP_PREPARE_AROUND(...) ((
#else
#include "autostamp_host.cuh"
#endif
#endif  // AUTOSTAMP_IS_ON
#include "autostamp_forms.cuh"
#endif  // AUTOSTAMP_CUH_
