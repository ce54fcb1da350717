// SPDX-License-Identifier: Apache-2.0
//
// Reading what was recorded and writing it to drain files (docs/formats/drain.md). A part of autostamp_host.cuh, which includes
// it once the types and the state that it reads stand.
#ifndef AUTOSTAMP_DRAIN_CUH_
#define AUTOSTAMP_DRAIN_CUH_

namespace autostamp {
namespace host __attribute__((visibility("hidden"))) {

inline std::string json_text(const std::string& text) {
  std::string out = "\"";
  for (const char each : text) {
    const unsigned char code = static_cast<unsigned char>(each);
    char escape[8];
    if (each == '"' || each == '\\') {
      out += '\\';
      out += each;
    } else if (code < 0x20) {
      std::snprintf(escape, sizeof escape, "\\u%04x", code);
      out += escape;
    } else {
      out += each;
    }
  }
  return out + '"';
}

inline std::string number(unsigned long long value) { return std::to_string(value); }

inline const std::string& of_device(int device) {
  std::string& text = state().devices[device];
  if (!text.empty()) return text;
  cudaDeviceProp found;
  int driver = 0, runtime = 0;
  (void)cudaDriverGetVersion(&driver);
  (void)cudaRuntimeGetVersion(&runtime);
  std::string name, capability;
  int count = 0;
  if (!failed(cudaGetDeviceProperties(&found, device), "read the properties of the device")) {
    name = found.name, count = found.multiProcessorCount;
    capability = std::to_string(found.major) + "." + std::to_string(found.minor);
  }
  text = "{\"device\":" + std::to_string(device) + ",\"name\":" + json_text(name) + ",\"compute_capability\":" +
         json_text(capability) + ",\"sm_count\":" + std::to_string(count) + ",\"driver\":" + std::to_string(driver) +
         ",\"runtime\":" + std::to_string(runtime) + "}";
  return text;
}

inline std::string of_region(const Region& region, std::size_t offset, std::size_t size) {
  return "{\"device\":" + std::to_string(region.device) + ",\"unit\":" + number(region.unit->signature) +
         ",\"slot\":" + std::to_string(region.slot) + ",\"carrier\":" + (region.is_param ? "\"param\"" : "\"symbol\"") +
         ",\"place\":" + json_text(region.place) + ",\"function\":" + json_text(region.function) +
         ",\"name\":" + json_text(region.name) + ",\"stream\":" + number(region.stream) +
         ",\"is_captured\":" + (region.is_captured ? "true" : "false") + ",\"launch\":" + number(region.launch) +
         ",\"sequence\":" + number(region.sequence) + ",\"capacity\":" + number(region.capacity) +
         ",\"ctas\":" + number(size / region_bytes(region.capacity)) + ",\"offset\":" + number(offset) +
         ",\"size\":" + number(size) + "}";
}

/// The file's head: a line with the length of the JSON text, then that text.
inline std::string head(const std::string& how, const std::vector<const Region*>& regions, const std::vector<std::size_t>& offsets,
                        const std::vector<std::size_t>& sizes) {
  const State& shared = state();
  const Settings& set = settings();
  char program[4096] = "";
  const ssize_t length = readlink("/proc/self/exe", program, sizeof program - 1);
  program[length > 0 ? length : 0] = 0;
  const unsigned none[3] = {0, 0, 0};  // of a range no CTA's index is known
  const unsigned* const first = set.blocks.empty() ? set.block : set.listed.empty() ? none : set.listed.data();
  const char* const keep = set.keep == Keep::last ? "last" : set.keep == Keep::all ? "all" : "one";
  std::string text = "{\"version\":1,\"pid\":" + std::to_string(getpid()) + ",\"program\":" + json_text(program) +
                     ",\"drained\":" + json_text(how) + ",\"keep\":" + json_text(keep) + ",\"launch\":" + number(set.launch) +
                     ",\"repeat\":" + number(set.repeat) + ",\"block\":[" + number(first[0]) + "," + number(first[1]) + "," +
                     number(first[2]) + "],\"blocks\":" + json_text(set.blocks);
  std::string units, devices, entries, drops, errors;
  for (const Unit* unit : shared.units) {
    units += (units.empty() ? "" : ",");
    units += "{\"signature\":" + number(unit->signature) + ",\"slots\":" + number(unit->slots) +
             ",\"launches\":" + number(unit->launches) + ",\"manifest\":" + json_text(unit->manifest) + "}";
  }
  std::set<int> numbers;
  for (const Region* region : regions) numbers.insert(region->device);
  for (const int device : numbers) devices += (devices.empty() ? "" : ",") + of_device(device);
  for (std::size_t i = 0; i < regions.size(); ++i) entries += (i == 0 ? "" : ",") + of_region(*regions[i], offsets[i], sizes[i]);
  for (const auto& item : shared.dropped) {
    drops += (drops.empty() ? "" : ",");
    drops += "{\"of\":" + json_text(item.first) + ",\"count\":" + number(item.second) + "}";
  }
  for (const std::string& error : shared.errors) errors += (errors.empty() ? "" : ",") + json_text(error);
  text += ",\"units\":[" + units + "],\"devices\":[" + devices + "],\"regions\":[" + entries + "],\"dropped\":[" + drops +
          "],\"unused\":" + number(shared.unused) + ",\"errors\":[" + errors + "]}";
  char line[64];
  std::snprintf(line, sizeof line, "autostamp drain 1 %zu\n", text.size());
  return line + text;
}

/// The kernel's own name, which its first thread left a pointer to. Read in pieces that never cross a multiple of 64 bytes,
/// and in smaller ones where the driver refuses: how far the module's memory goes is not known.
inline std::string read_name(unsigned long long at) {
  std::string name;
  while (at != 0 && name.size() < 16384) {
    char piece[64];
    std::size_t size = 64 - at % 64;
    while (size > 0 && cudaMemcpy(piece, reinterpret_cast<const void*>(at), size, cudaMemcpyDeviceToHost) != cudaSuccess) {
      (void)cudaGetLastError();
      size /= 2;
    }
    if (size == 0) break;
    const std::size_t length = strnlen(piece, size);
    name.append(piece, length);
    if (length < size) break;
    at += size;
  }
  return name;
}

inline bool write_all(int file, const char* bytes, std::size_t size) {
  while (size > 0) {
    const ssize_t done = write(file, bytes, size);
    if (done <= 0) return false;
    bytes += done, size -= static_cast<std::size_t>(done);
  }
  return true;
}

/// A name in the folder that no other runtime of this process took, and the open file of its temporary form.
inline int create(std::string& path, const char* stem) {
  for (unsigned n = 0; n < 10000; ++n) {
    path = settings().folder + "/" + stem + "-" + std::to_string(getpid()) + "-" + std::to_string(n) + ".bin";
    if (access(path.c_str(), F_OK) == 0) continue;
    const int file = open((path + ".tmp").c_str(), O_RDWR | O_CREAT | O_EXCL | O_CLOEXEC, 0666);
    if (file >= 0) return file;
    if (access((path + ".tmp").c_str(), F_OK) != 0) break;
  }
  return -1;
}

/// Where the kernel's name is: the first CTA that ran noted it.
inline unsigned long long name_address(const char* regions, std::size_t size, unsigned capacity) {
  unsigned long long at = 0;
  const std::size_t one = region_bytes(capacity), single = one / layout::lanes * layout::warps + layout::name;
  for (std::size_t begin = 0; at == 0 && begin < size; begin += one) std::memcpy(&at, regions + begin + single, sizeof at);
  return at;
}

inline bool write_mapped(Region& region, const char* how) {
  const std::string text = head(how, {&region}, {mapped_offset}, {region.size});
  if (text.size() > mapped_offset) return false;
  std::memcpy(region.mapped, text.data(), text.size());
  return true;
}

/// How many CTAs' regions there are up to the last one that a warp was bound to. None: the region was given to a launch that did
/// not come, or to a kernel that was not launched. What cannot be read counts as used.
inline unsigned used_ctas(const Region& region) {
  const std::size_t lane_bytes = region_bytes(region.capacity) / layout::lanes, lanes = region.size / lane_bytes;
  std::vector<char> headers(lanes * layout::header_bytes);
  if (cudaMemcpy2D(headers.data(), layout::header_bytes, reinterpret_cast<const void*>(region.address), lane_bytes,
                   layout::header_bytes, lanes, cudaMemcpyDeviceToHost) != cudaSuccess) {
    (void)cudaGetLastError();
    return static_cast<unsigned>(lanes / layout::lanes);
  }
  for (std::size_t lane = lanes; lane-- > 0;) {
    unsigned found = 0;
    std::memcpy(&found, headers.data() + lane * layout::header_bytes + layout::state, sizeof found);
    if (lane % layout::lanes < layout::warps && found != 0) return static_cast<unsigned>(lane / layout::lanes) + 1;
  }
  return 0;
}

/// Reads the regions in device memory and writes them to the drain file; mapped ones get their final head.
inline void drain_device(int device, std::vector<const Region*>& kept, std::vector<std::vector<char>>& bytes, const char* how) {
  if (failed(cudaSetDevice(device), "select the device")) return;
  // Sticky errors of the program end here: what a kernel wrote before it failed is readable only where it is mapped.
  const bool is_lost = failed(cudaDeviceSynchronize(), "wait for the device");
  for (Region& region : state().regions) {
    if (region.device != device) continue;
    if (region.mapped != nullptr) {
      if (!is_lost) region.name = read_name(name_address(region.mapped + mapped_offset, region.size, region.capacity));
      write_mapped(region, how);
      continue;
    }
    if (is_lost) continue;
    const unsigned ctas = used_ctas(region);
    if (ctas == 0) {
      ++state().unused;
      continue;
    }
    std::vector<char> copy(ctas * region_bytes(region.capacity));
    const void* const from = reinterpret_cast<const void*>(region.address);
    if (failed(cudaMemcpy(copy.data(), from, copy.size(), cudaMemcpyDeviceToHost), "read a region")) continue;
    region.name = read_name(name_address(copy.data(), copy.size(), region.capacity));
    kept.push_back(&region);
    bytes.push_back(std::move(copy));
  }
}

inline void write_drain(const std::vector<const Region*>& kept, const std::vector<std::vector<char>>& bytes, const char* how) {
  State& shared = state();
  std::vector<std::size_t> offsets(kept.size(), 0), sizes;
  for (const std::vector<char>& each : bytes) sizes.push_back(each.size());
  std::string text;
  for (std::size_t length = 0, last = 1; length != last;) {  // the offsets' own digits count
    last = length;
    std::size_t offset = (length + 63) / 64 * 64;
    for (std::size_t i = 0; i < kept.size(); ++i) offsets[i] = offset, offset += sizes[i];
    text = head(how, kept, offsets, sizes);
    length = text.size();
  }
  int file = -1;
  if (shared.drain_path.empty()) {
    file = create(shared.drain_path, "drain");
  } else {
    file = open((shared.drain_path + ".tmp").c_str(), O_RDWR | O_CREAT | O_TRUNC | O_CLOEXEC, 0666);
  }
  const std::string path = shared.drain_path, temporary = path + ".tmp";
  const std::string gap(offsets.empty() ? 0 : offsets[0] - text.size(), '\0');
  bool is_whole = file >= 0 && write_all(file, text.data(), text.size()) && write_all(file, gap.data(), gap.size());
  for (const std::vector<char>& each : bytes) is_whole = is_whole && write_all(file, each.data(), each.size());
  if (file >= 0 && close(file) != 0) is_whole = false;
  if (!is_whole || std::rename(temporary.c_str(), path.c_str()) != 0) report("cannot write " + path);
}

/// Writes what was recorded so far. The file replaces the one of an earlier drain.
inline void drain(const char* how) {
  State& shared = state();
  if (shared.process != getpid()) return;  // nothing was launched, or this is a fork
  const Hook hook("read the records");
  std::set<int> devices;
  for (const Region& region : shared.regions) {
    if (hook.is_ready) devices.insert(region.device);
  }
  std::vector<const Region*> kept;
  std::vector<std::vector<char>> bytes;
  shared.unused = 0;
  for (const int each : devices) drain_device(each, kept, bytes, how);
  if (hook.is_ready) (void)cudaSetDevice(hook.device);
  write_drain(kept, bytes, how);
}

inline void drain_at_exit() {
  (void)cudaGetLastError();  // what the program did not ask for by now it never will
  drain("exit");
}

}  // namespace host
}  // namespace autostamp

#endif  // AUTOSTAMP_DRAIN_CUH_
