// SPDX-License-Identifier: Apache-2.0
//
// The host side of stamps: gives launches their regions, and writes what was recorded when the program ends.
//
// Nothing happens unless AUTOSTAMP_RUN names a folder; autostamp_settings.cuh says what may be set then.
//
// Every program or shared library that holds stamped kernels has a runtime of its own (hence the hidden visibility): a symbol
// or a launch is known to the CUDA runtime of its own binary only. A graph keeps the region that its capture got: replays
// write there, one over the other. POSIX.
#ifndef AUTOSTAMP_HOST_CUH_
#define AUTOSTAMP_HOST_CUH_

#include <fcntl.h>
#include <sys/mman.h>
#include <unistd.h>

#include <cstdio>
#include <cstdlib>
#include <cstring>
#include <deque>
#include <functional>
#include <map>
#include <mutex>
#include <set>
#include <string>
#include <vector>

#include <cuda_runtime.h>

#include "autostamp_settings.cuh"

#define AUTOSTAMP_TEXT_(x) #x
#define AUTOSTAMP_TEXT(x) AUTOSTAMP_TEXT_(x)
#define AUTOSTAMP_PLACE ::autostamp::host::Place{__FILE__ ":" AUTOSTAMP_TEXT(__LINE__), __PRETTY_FUNCTION__}
#define AUTOSTAMP_ARG_ONLY(key, k, ...) \
  ::autostamp::launch_slot(::autostamp::this_unit, AUTOSTAMP_SLOT(key, k), AUTOSTAMP_PLACE, __VA_ARGS__)
#define AUTOSTAMP_ARG(key, k, ...) , AUTOSTAMP_ARG_ONLY(key, k, __VA_ARGS__)
#if defined(__CUDA_ARCH__)  // a function for both sides, which launches on the host alone
#define AUTOSTAMP_PREPARE(...)
#define AUTOSTAMP_PREPARE_AROUND(...) ((
#define AUTOSTAMP_LAUNCHER(...)
#define AUTOSTAMP_LAUNCHER_AROUND(...) ((
#else
#define AUTOSTAMP_PREPARE(...) ::autostamp::prepare(::autostamp::this_unit, AUTOSTAMP_PLACE, __VA_ARGS__);
#define AUTOSTAMP_PREPARE_AROUND(...) (::autostamp::prepare(::autostamp::this_unit, AUTOSTAMP_PLACE, __VA_ARGS__), (
// A call that launches, in a block of its own or as an expression.
#define AUTOSTAMP_LAUNCHER(...) const ::autostamp::host::Launcher autostamp_launcher(AUTOSTAMP_PLACE, __VA_ARGS__);
#define AUTOSTAMP_LAUNCHER_AROUND(...) (::autostamp::host::Launcher(AUTOSTAMP_PLACE, __VA_ARGS__), (
#endif

// What autostamp_unit.cuh may say beyond what it must: where the manifest is, and how many kernels read their slot from the
// symbol (-1: not known).
#ifndef AUTOSTAMP_UNIT_MANIFEST
#define AUTOSTAMP_UNIT_MANIFEST ""
#endif
#ifndef AUTOSTAMP_UNIT_SYMBOLS
#define AUTOSTAMP_UNIT_SYMBOLS -1
#endif

namespace autostamp {
namespace host __attribute__((visibility("hidden"))) {

/// The stamped kernels of one compilation: the symbol with their slots and what autostamp_unit.cuh says.
struct Unit {
  const void* symbol;
  unsigned signature, slots, launches;
  int symbols;
  const char* manifest;

  bool has_symbols() const { return slots != 0 && symbols != 0; }
};

/// Where a launch stands in the source: template instantiations of one place differ in the function.
struct Place {
  const char* line;
  const char* function;
};

struct Before {
  bool operator()(const Place& a, const Place& b) const {
    return a.line != b.line ? std::less<const char*>()(a.line, b.line) : std::less<const char*>()(a.function, b.function);
  }
};

/// Device memory for the records of one kernel, or of one launch: a region for each CTA, one behind the other.
struct Region {
  int device = 0;
  const Unit* unit = nullptr;
  int slot = -1;  // -1: any kernel of the unit
  bool is_param = false;
  std::string place, function, name;
  unsigned long long stream = 0;
  bool is_captured = false;
  unsigned launch = 0;              // of its kernel or unit, from 1: the last one that was given this region
  unsigned long long sequence = 0;  // the same, in the order of all launches of this runtime
  unsigned capacity = 0;
  std::size_t size = 0;            // of all its CTAs' regions
  unsigned long long address = 0;  // on the device
  char* mapped = nullptr;          // the file's first byte, where records are mapped
  std::string path;
};

constexpr unsigned most_launches = 64;
constexpr std::size_t mapped_offset = 65536;  // of the region in a mapped file: a multiple of any page size

/// What launches share. Never destroyed: launches and the drain may come late in the life of a process.
struct State {
  std::mutex mutex;
  std::vector<const Unit*> units;
  std::deque<Region> regions;
  std::map<std::string, Region*> by_key;
  std::map<std::string, unsigned> launches, dropped;
  std::set<Place, Before> launchers;  // calls whose own text prepares its launches
  std::map<int, std::string> devices;
  std::map<std::string, std::vector<Slot>*> current;  // what a symbol holds, by device and unit
  std::map<std::string, cudaStream_t> current_stream;
  std::deque<std::vector<Slot>> values;  // a captured copy reads its source when the graph runs: none ever moves
  std::set<std::string> reported;
  std::vector<std::string> errors;
  std::string drain_path;
  unsigned long long sequence = 0;
  unsigned unused = 0;
  pid_t process = 0;  // 0: nothing to drain yet
};

inline State& state() {
  static State* const only = new State;
  return *only;
}

inline void report(const std::string& text) {
  if (!state().reported.insert(text).second) return;
  state().errors.push_back(text);
  std::fprintf(stderr, "autostamp: %s\n", text.c_str());
}

/// Says what failed and takes the error back, so that the program does not find it.
inline bool failed(cudaError_t error, const char* doing) {
  if (error == cudaSuccess) return false;
  report(std::string("cannot ") + doing + ": " + cudaGetErrorString(error));
  (void)cudaGetLastError();
  return true;
}

/// Holds the lock and, for what we call meanwhile, lifts the restrictions that a stream capture of the program puts on its
/// thread. An error that the program has not taken note of yet is left to it: then no call of ours may follow.
struct Hook {
  const std::lock_guard<std::mutex> lock{state().mutex};
  bool is_ready = false;
  int device = 0;
  cudaStreamCaptureMode mode = cudaStreamCaptureModeRelaxed;

  explicit Hook(const char* doing) {
    const cudaError_t pending = cudaPeekAtLastError();
    if (pending != cudaSuccess) {
      report(std::string("cannot ") + doing + ": the program has an error pending: " + cudaGetErrorString(pending));
      return;
    }
    is_ready = !failed(cudaGetDevice(&device), doing) && !failed(cudaThreadExchangeStreamCaptureMode(&mode), doing);
  }
  ~Hook() {
    if (is_ready) (void)cudaThreadExchangeStreamCaptureMode(&mode);
  }
  Hook(const Hook&) = delete;
  Hook& operator=(const Hook&) = delete;
};

inline std::size_t region_bytes(unsigned capacity) {
  return static_cast<std::size_t>(layout::lanes) * (layout::header_bytes + std::size_t(capacity) * layout::record_bytes);
}

/// The table that is behind a region where CTAs are listed.
inline std::size_t table_bytes() { return settings().listed.size() * sizeof(unsigned); }

inline bool is_capturing(cudaStream_t stream) {
  cudaStreamCaptureStatus status = cudaStreamCaptureStatusNone;
  if (cudaStreamIsCapturing(stream, &status) == cudaSuccess) return status != cudaStreamCaptureStatusNone;
  (void)cudaGetLastError();  // the legacy stream, while another one captures
  return true;
}

}  // namespace host
}  // namespace autostamp

#include "autostamp_drain.cuh"

namespace autostamp {
namespace host __attribute__((visibility("hidden"))) {

/// Stamps move only the low word of an address: a region must not cross a 4 GiB boundary.
inline bool is_crossing(unsigned long long address, std::size_t size) {
  return address >> 32 != (address + size - 1) >> 32;
}

/// The first byte of a new file of the folder, mapped so that the region in it does not cross a boundary; null where it fails.
inline char* map_file(const std::string& path, int file, std::size_t size) {
  void* at = MAP_FAILED;
  if (ftruncate(file, static_cast<off_t>(size)) == 0) at = mmap(nullptr, size, PROT_READ | PROT_WRITE, MAP_SHARED, file, 0);
  if (at != MAP_FAILED && is_crossing(reinterpret_cast<unsigned long long>(at), size)) {
    void* const other = mmap(nullptr, size, PROT_READ | PROT_WRITE, MAP_SHARED, file, 0);  // elsewhere: this one is taken
    munmap(at, size);
    at = other;
  }
  if (at == MAP_FAILED) return report("cannot map " + path), nullptr;
  return static_cast<char*>(at);
}

/// A file of the folder, mapped into this process and into the device. The head goes first: a kill leaves a readable file.
inline bool map_region(Region& region) {
  std::string path;
  const int file = create(path, "mapped");
  if (file < 0) return report("cannot write " + path), false;
  const std::size_t size = mapped_offset + region.size + table_bytes();
  region.mapped = map_file(path, file, size);
  close(file);
  void* on_device = nullptr;
  bool is_done = region.mapped != nullptr;
  is_done = is_done && !failed(cudaHostRegister(region.mapped, size, cudaHostRegisterMapped | cudaHostRegisterPortable),
                               "map a file for the device (AUTOSTAMP_RUN must lie in /dev/shm for it)");
  is_done = is_done && !failed(cudaHostGetDevicePointer(&on_device, region.mapped, 0), "map a file for the device");
  region.address = reinterpret_cast<unsigned long long>(on_device) + mapped_offset;
  is_done = is_done && !is_crossing(region.address, region.size + table_bytes()) && write_mapped(region, "mapped");
  if (is_done && table_bytes() != 0) std::memcpy(region.mapped + mapped_offset + region.size, settings().listed.data(), table_bytes());
  is_done = is_done && std::rename((path + ".tmp").c_str(), path.c_str()) == 0;
  if (!is_done) {
    unlink((path + ".tmp").c_str());
    region.mapped = nullptr;
  }
  region.path = path;
  return is_done;
}

/// Device memory that crosses no boundary. What does is kept, so that the next allocation lies elsewhere.
inline void* allocate_device(std::size_t size) {
  void* at = nullptr;
  for (int i = 0; i < 8; ++i) {
    if (failed(cudaMalloc(&at, size), "allocate a region")) return nullptr;
    if (!is_crossing(reinterpret_cast<unsigned long long>(at), size)) return at;
  }
  return report("cannot allocate a region: all that was found crosses a 4 GiB boundary"), nullptr;
}

/// Bytes that one cudaMemset zeroes: after a larger one kernels of the process may be slower (ADR 0014).
constexpr std::size_t memset_piece = 1 << 17;

/// Zeroes a region in a stream and puts the table of listed CTAs behind it, which outlives every copy.
inline bool clear(const Region& region, cudaStream_t stream) {
  for (std::size_t done = 0; done < region.size; done += memset_piece) {
    const std::size_t size = region.size - done < memset_piece ? region.size - done : memset_piece;
    if (failed(cudaMemsetAsync(reinterpret_cast<void*>(region.address + done), 0, size, stream), "clear a region")) return false;
  }
  if (table_bytes() == 0) return true;
  void* const table = reinterpret_cast<void*>(region.address + region.size);
  const void* const from = settings().listed.data();
  return !failed(cudaMemcpyAsync(table, from, table_bytes(), cudaMemcpyHostToDevice, stream), "list the blocks");
}

/// Zeroed device memory. Zeroing goes with the launch's stream; while that is captured, with one of our own and at once.
inline bool allocate(Region& region, cudaStream_t stream) {
  if (settings().is_mapped && map_region(region)) return true;
  void* const at = allocate_device(region.size + table_bytes());
  if (at == nullptr) return false;
  region.address = reinterpret_cast<unsigned long long>(at);
  if (!is_capturing(stream)) return clear(region, stream);
  cudaStream_t own = nullptr;
  if (failed(cudaStreamCreateWithFlags(&own, cudaStreamNonBlocking), "make a stream")) return false;
  const bool is_clear = clear(region, own) && !failed(cudaStreamSynchronize(own), "clear a region");
  (void)cudaStreamDestroy(own);
  return is_clear;
}

struct Launch {
  const Unit* unit;
  int slot;
  bool is_param;
  Place place;
  cudaStream_t stream;
  int device;
  unsigned ordinal;
};

/// The region under `key`, made on first use. Null where there is none to be had.
inline Region* region_for(const std::string& key, const Launch& launch) {
  State& shared = state();
  Region*& found = shared.by_key[key];
  if (found == nullptr) {
    shared.regions.emplace_back();
    Region& made = shared.regions.back();
    made.device = launch.device, made.unit = launch.unit, made.slot = launch.slot, made.is_param = launch.is_param;
    made.stream = reinterpret_cast<unsigned long long>(launch.stream);
    made.capacity = settings().capacity;
    made.size = settings().ctas * region_bytes(made.capacity);
    made.launch = launch.ordinal, made.sequence = shared.sequence;
    if (!allocate(made, launch.stream)) {
      shared.regions.pop_back();
      shared.by_key.erase(key);
      return nullptr;
    }
    found = &made;
  }
  found->place = launch.place.line, found->function = launch.place.function;  // a launch in a launcher takes over its region
  found->launch = launch.ordinal;
  found->sequence = shared.sequence;
  found->is_captured = is_capturing(launch.stream);
  if (found->mapped != nullptr) write_mapped(*found, "mapped");  // a kill may come at any time
  return found;
}

inline Slot slot_of(const Region* region) {
  if (region == nullptr) return Slot{};
  const Settings& set = settings();
  return Slot{region->address, region->capacity, set.block[0], set.block[1], set.block[2]};
}

/// Counts a launch. False in a process that this one was forked into: CUDA does not work there.
inline bool begin() {
  State& shared = state();
  if (shared.process == 0) {
    shared.process = getpid();
    // After the first call of the CUDA runtime, whose own clean-up was thereby registered before: ours comes first.
    std::atexit(drain_at_exit);
  }
  ++shared.sequence;
  return shared.process == getpid();
}

inline std::string key_of(int device, const Unit& unit, int slot) {
  return std::to_string(device) + ":" + std::to_string(unit.signature) + ":" + std::to_string(slot);
}

inline unsigned count(std::map<std::string, unsigned>& counts, const std::string& key) { return ++counts[key]; }

/// The key of the next launch's region where the last ones are kept: they take turns. With one there is one key.
inline std::string in_turn(const std::string& key) {
  const unsigned turn = (count(state().launches, key + ":turns") - 1) % settings().repeat;
  return turn == 0 ? key : key + ":turn" + std::to_string(turn);
}

/// Fills the slots of one unit for the next launch. That may be of any of its kernels: in `last` each slot has a region, else
/// all slots share one, and the signature in it says whose it is.
inline bool fill(const Unit& unit, const Place& place, cudaStream_t stream, int device, std::vector<Slot>& slots) {
  State& shared = state();
  const Settings& set = settings();
  const std::string of = key_of(device, unit, -1);
  Launch launch{&unit, -1, false, place, stream, device, count(shared.launches, of)};
  if (set.keep != Keep::last) {
    // Which kernel comes is known only afterwards: the launch to keep is chosen when the drain is read.
    if (launch.ordinal > most_launches) return count(shared.dropped, of), true;
    slots.assign(unit.slots, slot_of(region_for(of + ":" + std::to_string(launch.ordinal), launch)));
    return true;
  }
  const std::string at = std::string(place.line) + ":" + place.function;
  bool is_known = shared.launches.count(of + ":" + at) != 0;
  if (!is_known && shared.launches[of + ":regions"] + unit.slots <= most_launches) {
    shared.launches[of + ":regions"] += unit.slots;
    shared.launches[of + ":" + at] = 1;
    is_known = true;
  }
  const std::string turn = in_turn(of + ":" + (is_known ? at : "shared"));
  for (unsigned i = 0; i < unit.slots; ++i) {
    launch.slot = static_cast<int>(i);
    slots[i] = slot_of(region_for(std::to_string(i) + "@" + turn, launch));
  }
  return true;
}

/// Points the symbol of a unit at the regions of the launch that follows in `stream`.
inline bool set_symbol(const Unit& unit, const Place& place, cudaStream_t stream, int device) {
  State& shared = state();
  const Settings& set = settings();
  std::vector<Slot> slots(unit.slots, Slot{});
  if (!fill(unit, place, stream, device, slots)) return false;
  const std::string of = key_of(device, unit, -1);
  std::vector<Slot>*& current = shared.current[of];
  const std::size_t size = slots.size() * sizeof(Slot);
  const bool is_same = current != nullptr && std::memcmp(current->data(), slots.data(), size) == 0;
  if (is_same && shared.current_stream[of] == stream && !is_capturing(stream)) return true;
  if (!is_same) {
    // Where launches take turns the same values come again and again.
    current = nullptr;
    for (std::vector<Slot>& each : shared.values) {
      if (set.repeat > 1 && each.size() == slots.size() && std::memcmp(each.data(), slots.data(), size) == 0) current = &each;
    }
    if (current == nullptr) current = &shared.values.emplace_back(slots);
  }
  shared.current_stream[of] = stream;
  return cudaMemcpyToSymbolAsync(unit.symbol, current->data(), size, 0, cudaMemcpyHostToDevice, stream) == cudaSuccess;
}

inline void prepare_unit(const Unit& unit, const Place& place, cudaStream_t stream, int device) {
  if (!set_symbol(unit, place, stream, device)) failed(cudaPeekAtLastError(), "set the symbol of the stamped kernels");
}

/// A call of a function that launches, as far as its name or its arguments say. Where that function's own text prepares the
/// launch it does so better, as it knows the stream; to prepare it here as well would copy the symbol twice for every launch, and
/// each kernel would wait for copies (ADR 0014). The first call prepares all the same: who launches is known only behind it.
class Launcher {
 public:
  template <class Stream>
  Launcher(const Place& place, Stream&& stream);
  ~Launcher() {
    if (settings().is_on()) innermost() = outer_;
  }
  Launcher(const Launcher&) = delete;
  Launcher& operator=(const Launcher&) = delete;

  /// Remembers the launchers around a launch that is prepared by itself, and takes back what they counted for it.
  static void leave(int device) {
    State& shared = state();
    for (Launcher* each = innermost(); each != nullptr; each = each->outer_) {
      shared.launchers.insert(each->place_);
      if (!each->is_counted_) continue;
      each->is_counted_ = false;
      --shared.sequence;
      for (const Unit* unit : shared.units) {
        if (unit->has_symbols()) --shared.launches[key_of(device, *unit, -1)];
      }
    }
  }

 private:
  static Launcher*& innermost() {
    static thread_local Launcher* at = nullptr;
    return at;
  }

  const Place place_;
  Launcher* outer_ = nullptr;
  bool is_counted_ = false;
};

/// Prepares all units of this binary: a launch that this one's text shows may be of a kernel that another one holds. False where
/// nothing could be counted, or where a launcher's own text is known to prepare what it launches.
inline bool prepare(const Place& place, cudaStream_t stream, bool is_launcher = false) {
  const Hook hook("prepare a launch");
  if (is_launcher && state().launchers.count(place) != 0) return false;
  if (!begin() || !hook.is_ready) return false;
  Launcher::leave(hook.device);
  for (const Unit* unit : state().units) {
    if (unit->has_symbols()) prepare_unit(*unit, place, stream, hook.device);
  }
  return true;
}

/// The slot of a kernel that takes it as a parameter. Kernels that read theirs from a symbol may be launched out of sight: they
/// are prepared on the way.
inline Slot launch_slot(const Unit& unit, unsigned slot, const Place& place, cudaStream_t stream) {
  State& shared = state();
  const Hook hook("prepare a launch");
  if (!begin() || !hook.is_ready) return Slot{};
  const Settings& set = settings();
  for (const Unit* each : shared.units) {
    const bool is_out_of_sight = each->launches == 0 ? each->has_symbols() : each->symbols > 0;
    if (is_out_of_sight && set.keep == Keep::last) prepare_unit(*each, Place{"", ""}, stream, hook.device);
  }
  const std::string of = key_of(hook.device, unit, static_cast<int>(slot));
  Launch launch{&unit, static_cast<int>(slot), true, place, stream, hook.device, count(shared.launches, of)};
  std::string key = of + ":" + std::to_string(launch.ordinal);
  if (set.keep == Keep::one && launch.ordinal != set.launch) return Slot{};
  if (set.keep == Keep::all && launch.ordinal > most_launches) return count(shared.dropped, of), Slot{};
  if (set.keep == Keep::last) {
    // Instantiations of one template share a slot but not the host function that launches them; streams may overlap.
    key = of + ":" + place.line + ":" + place.function + ":" + std::to_string(reinterpret_cast<unsigned long long>(stream));
    if (shared.by_key.count(key) == 0 && count(shared.launches, of + ":regions") > most_launches) key = of + ":shared";
    key = in_turn(key);
  }
  return slot_of(region_for(key, launch));
}

/// Makes a unit known. Units of all translation units are known before any other static object is initialised.
struct Registered {
  explicit Registered(const Unit& unit) {
    State& shared = state();
    const std::lock_guard<std::mutex> lock(shared.mutex);
    for (const Unit* known : shared.units) {
      if (known->symbol == unit.symbol && known->signature == unit.signature) return;  // shared under -rdc
    }
    shared.units.push_back(&unit);
  }
};

/// Sets the slots of units with no launch in sight, in a binary that has none at all. nvcc registers the kernels of a
/// translation unit before its static objects are initialised; under -rdc the last one's turn serves them all.
struct Eager {
  explicit Eager(const Unit&) {
    if (!settings().is_on()) return;
    State& shared = state();
    for (const Unit* known : shared.units) {
      if (known->launches != 0) return;
    }
    const Hook hook("prepare launches");
    if (!begin() || !hook.is_ready) return;
    if (settings().keep != Keep::last) report("no launch of a stamped kernel is in sight: the last one is kept");
    for (const Unit* unit : shared.units) {
      void* at = nullptr;
      if (!unit->has_symbols()) continue;
      if (cudaGetSymbolAddress(&at, unit->symbol) != cudaSuccess) {
        (void)cudaGetLastError();  // not registered yet: another translation unit's turn comes
        continue;
      }
      prepare_unit(*unit, Place{"", ""}, nullptr, hook.device);
    }
    failed(cudaStreamSynchronize(nullptr), "set the symbol of the stamped kernels");
  }
};

inline cudaStream_t stream_of(cudaStream_t stream) { return stream; }
inline cudaStream_t stream_of(int) { return nullptr; }

template <class Stream>
inline Launcher::Launcher(const Place& place, Stream&& stream) : place_(place) {
  if (!settings().is_on()) return;
  is_counted_ = prepare(place, stream_of(stream), true);
  outer_ = innermost();
  innermost() = this;
}

}  // namespace host

namespace {
const host::Unit this_unit{autostamp_slots, AUTOSTAMP_UNIT, AUTOSTAMP_UNIT_SLOTS, AUTOSTAMP_UNIT_LAUNCHES,
                           AUTOSTAMP_UNIT_SYMBOLS, AUTOSTAMP_UNIT_MANIFEST};
__attribute__((init_priority(1000))) const host::Registered this_registered(this_unit);
const host::Eager this_eager(this_unit);
}  // namespace

/// The slot for a launch of the kernel with number `slot` in `unit`, on `stream`: all zero unless it is to be recorded.
template <class Stream>
inline Slot launch_slot(const host::Unit& unit, unsigned slot, const host::Place& place, Stream&& stream) {
  if (!host::settings().is_on()) return Slot{};
  return host::launch_slot(unit, slot, place, host::stream_of(stream));
}

/// Sets the symbols that kernels launched next on `stream` read their slots from.
template <class Stream>
inline void prepare(const host::Unit&, const host::Place& place, Stream&& stream) {
  if (host::settings().is_on()) (void)host::prepare(place, host::stream_of(stream));
}

}  // namespace autostamp

/// Writes what was recorded so far, without waiting for the end of the program.
extern "C" __attribute__((weak, used, visibility("default"))) void autostamp_drain() { ::autostamp::host::drain("request"); }

#endif  // AUTOSTAMP_HOST_CUH_
