// SPDX-License-Identifier: Apache-2.0
//
// Stamps for kernels with warps that gave nearly all registers away. A part of autostamp.cuh, which includes it.
//
// A usual stamp keeps five registers alive: the address of the next record, the limit of the lane, the step that follows from
// it, and the shifted address of the barrier at hand. Here it is two, the number of the next record and that of the first
// behind the lane. Where the region begins is read from the slot in constant memory each time, at an address that seems to hang
// on the cursor: what ptxas takes for a constant it would read once and keep in two registers. The clock is read before that,
// the stores wait for it. docs/adr/0007-cuda-stamp-form.md has the figures.
#ifndef AUTOSTAMP_LEAN_CUH_
#define AUTOSTAMP_LEAN_CUH_

namespace autostamp {

/// False in CTAs that do not record, but for a range or a list of CTAs: where one records, the others ask no more than this.
__device__ __forceinline__ bool may_record(const Slot& slot) {
  return __builtin_expect(elsewhere(slot) == 0 || slot.block_z >= block_range, 0);
}

/// What Lane is to other kernels. The slot must lie in constant memory.
///   autostamp_next  number of the next record, counted in units of 8 bytes from the beginning of the region; with the sign bit
///                   in other threads than lane 0 of a warp
///   autostamp_end   number of the first record that the lane has no place for, with the same bit; 0 where nothing is recorded
///   autostamp_slot  address of the slot, a constant
///   autostamp_room  every record of this thread did fit, and so does the next
///   autostamp_own   this thread writes the records of the stamp at hand
template <unsigned Signature>
struct Lane<Signature, true> {
  const Slot& slot;

  __device__ __forceinline__ Lane(const Slot& slot_, const char* name) : slot(slot_) {
#if defined(__CUDA_ARCH__)
    unsigned next = 0, end = 0;
    if (may_record(slot)) {
      const unsigned thread = (threadIdx.z * blockDim.y + threadIdx.y) * blockDim.x + threadIdx.x;
      const unsigned cta = slot.capacity != 0 ? cta_of(slot) : no_cta;
      const bool is_first = thread % 32 == 0;
      if (cta != no_cta) {
        const unsigned room = slot.capacity * layout::record_bytes, lane_bytes = layout::header_bytes + room;
        const unsigned lane = cta * layout::lanes + thread / 32;
        const unsigned long long main = slot.region + lane * static_cast<unsigned long long>(lane_bytes);
        if (is_first) open_lane(main, main + layout::warps * lane_bytes, room, thread, name);
        // A region is smaller than 4 GiB: three bits of a number are free.
        next = (lane + (is_first ? 0 : layout::warps)) * (lane_bytes / layout::record_bytes) + (is_first ? 0u : 0x80000000u);
        next += layout::header_bytes / layout::record_bytes;
        end = next + slot.capacity;
      }
    }
    asm volatile(
        ".reg .b32 autostamp_next, autostamp_end;\n\t"
        ".reg .b64 autostamp_slot;\n\t"
        ".reg .pred autostamp_room, autostamp_own;\n\t"
        "mov.b32 autostamp_next, %0;\n\t"
        "mov.b32 autostamp_end, %1;\n\t"
        "mov.b64 autostamp_slot, %2;\n\t"
        "setp.ne.u32 autostamp_room, %1, 0;\n\t"
        "setp.ne.u32 autostamp_own, %1, %1;" ::"r"(next),
        "r"(end), "l"(__cvta_generic_to_constant(&slot))
        : "memory");
#else
    (void)name;
#endif
  }

  __device__ __forceinline__ ~Lane() {
#if defined(__CUDA_ARCH__)
    unsigned last;
    asm volatile("mov.u32 %0, autostamp_end;" : "=r"(last)::"memory");
    if (__builtin_expect(last == 0, 1)) return;
    asm volatile(
        "{ .reg .pred p, q; .reg .u32 c, end, left, bound, done; .reg .b64 g, h, n;\n\t"
        "// autostamp release\n\t"
        "mov.u32 c, %%clock;\n\t"
        "mov.u64 g, %%globaltimer;\n\t"
        "setp.gt.s32 p, autostamp_end, 0;\n\t"
        "setp.lt.s32 q, autostamp_end, 0;\n\t"
        "sub.u32 left, autostamp_end, autostamp_next;\n\t"
        "setp.ne.and.u32 q, left, %0, q;\n\t"
        "shl.b32 left, left, 3;\n\t"
        "and.b32 end, autostamp_end, 0x7fffffff;\n\t"
        "sub.u32 end, end, %0;\n\t"
        "mad.wide.u32 h, end, 8, %10;\n\t"
        "sub.u64 h, h, %1;\n\t" AUTOSTAMP_RELEASE_ ::"r"(slot.capacity),
        "n"(layout::header_bytes), "n"(layout::exit_ns), "n"(layout::exit_clock), "n"(Signature),
        "n"(layout::remaining), "n"(layout::released), "n"(layout::writers), "n"(layout::binds), "n"(layout::overlap),
        "l"(slot.region)
        : "memory");
#endif
  }

  Lane(const Lane&) = delete;
  Lane& operator=(const Lane&) = delete;
};

#if defined(__CUDA_ARCH__)
namespace lean {

#define AUTOSTAMP_LEAN_BEGIN_ "{ .reg .pred p, q; .reg .u32 c, w, z, lo, hi; .reg .b64 a, b;\n\t// autostamp %0\n\t"
// What a thread without a record skips: ptxas makes predicated instructions of it. A predicate on the clock read alone it turns
// into a read by all threads and a select (docs/adr/0007-cuda-stamp-form.md).
#define AUTOSTAMP_LEAN_SKIP_ "@!p bra past;\n\t"
#define AUTOSTAMP_LEAN_PAST_ "past:\n\t"
#define AUTOSTAMP_LEAN_CLOCK_ "mov.u32 c, %%clock;\n\t"
// The address of the next record. Neither a record's number nor a limit has the bit that both are asked for, but ptxas can't know.
// Eight times the number has no sign bit any more, and the sum no carry: a region crosses no 4 GiB boundary.
#define AUTOSTAMP_LEAN_PLACE_                     \
  "and.b32 z, autostamp_next, autostamp_end;\n\t" \
  "and.b32 z, z, 0x40000000;\n\t"                 \
  "cvt.u64.u32 b, z;\n\t"                         \
  "add.u64 b, b, autostamp_slot;\n\t"             \
  "ld.const.v2.u32 {lo, hi}, [b];\n\t"            \
  "mad.lo.u32 lo, autostamp_next, 8, lo;\n\t"     \
  "mov.b64 a, {lo, hi};\n\t"
// The clock first, for the place takes a while. Before the exit of a wait that the warp may run ahead of comes a store that marks
// the record unused (docs/adr/0009), and so the place.
#define AUTOSTAMP_LEAN_SOON_ AUTOSTAMP_LEAN_SKIP_ AUTOSTAMP_LEAN_CLOCK_ AUTOSTAMP_LEAN_PLACE_
#define AUTOSTAMP_LEAN_DEFERRED_ \
  AUTOSTAMP_LEAN_SKIP_ AUTOSTAMP_LEAN_PLACE_ "st.volatile.global.b32 [a+4], 0;\n\t" AUTOSTAMP_LEAN_CLOCK_
// The payload goes to its place in a way that ptxas does not take for a shift: that, it would keep from one stamp to the next.
#define AUTOSTAMP_LEAN_WORD_ "shf.l.wrap.b32 w, 0, %1, 13;\n\tadd.u32 w, w, %0;\n\t"
#define AUTOSTAMP_LEAN_ADVANCE_(who)                          \
  "@" who " add.u32 autostamp_next, autostamp_next, 1;\n\t" \
  "setp.lt.and.u32 autostamp_room, autostamp_next, autostamp_end, autostamp_room; }"

// Of a whole warp lane 0 writes, which has no sign bit.
#define AUTOSTAMP_LEAN_WARP_(place)                                                                           \
  asm volatile(AUTOSTAMP_LEAN_BEGIN_ "setp.ge.and.s32 p, autostamp_next, 0, autostamp_room;\n\t" place        \
               AUTOSTAMP_LEAN_WORD_ "st.global.v2.b32 [a], {c, w};\n\t" AUTOSTAMP_LEAN_PAST_                  \
               "setp.ge.s32 q, autostamp_next, 0;\n\t" AUTOSTAMP_LEAN_ADVANCE_("q") ::"n"(Event), "r"(payload) \
               : "memory")
// Lane 0 writes or, where it is not active, the threads that are.
#define AUTOSTAMP_LEAN_OWN_                  \
  "activemask.b32 z;\n\t"                    \
  "and.b32 z, z, 1;\n\t"                     \
  "setp.ge.s32 p, autostamp_next, 0;\n\t"    \
  "setp.eq.or.u32 autostamp_own, z, 0, p;\n\t"
// Any threads. Two stores, for one of both words would need registers side by side. The second makes the record valid.
#define AUTOSTAMP_LEAN_OWNED_(place, find, word)                        \
  "and.pred p, autostamp_own, autostamp_room;\n\t" place                \
  "st.global.b32 [a], c;\n\t" find                                      \
  "st.global.b32 [a+4], " word ";\n\t" AUTOSTAMP_LEAN_PAST_ AUTOSTAMP_LEAN_ADVANCE_("autostamp_own")

/// Any stamp that the whole warp executes, or lane 0 alone.
template <unsigned Event, bool IsDeferred>
__device__ __forceinline__ void warp_stamp(unsigned payload) {
  if constexpr (IsDeferred) {
    AUTOSTAMP_LEAN_WARP_(AUTOSTAMP_LEAN_DEFERRED_);
  } else {
    AUTOSTAMP_LEAN_WARP_(AUTOSTAMP_LEAN_SOON_);
  }
}

/// The enter of a wait, or a signal, by any threads of a warp.
template <unsigned Event>
__device__ __forceinline__ void enter(unsigned payload) {
  asm volatile(AUTOSTAMP_LEAN_BEGIN_ AUTOSTAMP_LEAN_OWN_ AUTOSTAMP_LEAN_OWNED_(AUTOSTAMP_LEAN_SOON_, AUTOSTAMP_LEAN_WORD_, "w") ::"n"(Event),
               "r"(payload)
               : "memory");
}

/// The exit of a wait, written by the threads that wrote its enter.
template <unsigned Event, bool IsDeferred>
__device__ __forceinline__ void leave() {
  if constexpr (IsDeferred) {
    asm volatile(AUTOSTAMP_LEAN_BEGIN_ AUTOSTAMP_LEAN_OWNED_(AUTOSTAMP_LEAN_DEFERRED_, "", "%0") ::"n"(Event) : "memory");
  } else {
    asm volatile(AUTOSTAMP_LEAN_BEGIN_ AUTOSTAMP_LEAN_OWNED_(AUTOSTAMP_LEAN_SOON_, "", "%0") ::"n"(Event) : "memory");
  }
}

/// The exit of a wait whose enter has no stamp.
template <unsigned Event, bool IsDeferred>
__device__ __forceinline__ void alone() {
#define AUTOSTAMP_LEAN_ALONE_(place)                                                                              \
  asm volatile(AUTOSTAMP_LEAN_BEGIN_ AUTOSTAMP_LEAN_OWN_ AUTOSTAMP_LEAN_OWNED_(place, "", "%0") ::"n"(Event) : "memory")
  if constexpr (IsDeferred) {
    AUTOSTAMP_LEAN_ALONE_(AUTOSTAMP_LEAN_DEFERRED_);
  } else {
    AUTOSTAMP_LEAN_ALONE_(AUTOSTAMP_LEAN_SOON_);
  }
}

}  // namespace lean
#endif

}  // namespace autostamp

#endif  // AUTOSTAMP_LEAN_CUH_
