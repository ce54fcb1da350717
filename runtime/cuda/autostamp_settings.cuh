// SPDX-License-Identifier: Apache-2.0
//
// What the environment says of a run, read once. autostamp_host.cuh includes this; it is no header by itself.
//
// Nothing happens unless AUTOSTAMP_RUN names a folder. What is set then (`autostamp run` sets it all):
//   AUTOSTAMP_RUN=FOLDER               where drain files go; docs/formats/drain.md describes them
//   AUTOSTAMP_CAPACITY=N               records a warp may write, 4096
//   AUTOSTAMP_BLOCK=x,y,z              index of the CTA that records, 0,0,0
//   AUTOSTAMP_BLOCK=A..B               CTAs of linear index A to B: x + grid.x * (y + grid.y * z)
//   AUTOSTAMP_BLOCK=x,y,z;x,y,z;...    several by their indices
//   AUTOSTAMP_LAUNCH=last|all|N        which launch of a kernel is kept, last; `all` keeps the first 64
//   AUTOSTAMP_REPEAT=N                 with `last`, how many are kept, 1
//   AUTOSTAMP_MEMORY=device|mapped     mapped: records go to files at once, and outlive a kill or a hang
#ifndef AUTOSTAMP_SETTINGS_CUH_
#define AUTOSTAMP_SETTINGS_CUH_

#include <cstdio>
#include <cstdlib>
#include <cstring>
#include <string>
#include <vector>

namespace autostamp {
namespace host __attribute__((visibility("hidden"))) {

enum class Keep { last, all, one };

/// The environment, read once.
struct Settings {
  std::string folder;
  unsigned capacity = 4096;
  unsigned block[3] = {0, 0, 0};  // as a slot holds it
  unsigned ctas = 1;
  std::vector<unsigned> listed;  // three for each CTA
  std::string blocks;            // what was asked for, where it is several
  Keep keep = Keep::last;
  unsigned launch = 0, repeat = 1;
  bool is_mapped = false;

  bool is_on() const { return !folder.empty(); }
};

/// One CTA, a range, or a list. What cannot be read is CTA 0,0,0.
inline void read_blocks(Settings& settings, const char* text) {
  unsigned* const to = settings.block;
  unsigned last = 0;
  if (std::sscanf(text, "%u..%u", &to[0], &last) == 2 && last >= to[0]) {
    settings.ctas = to[1] = last - to[0] + 1, to[2] = block_range;
    settings.blocks = text;
  } else if (std::strchr(text, ';') != nullptr) {
    for (const char* at = text; at != nullptr && *at != 0; at = std::strchr(at, ';'), at += at != nullptr) {
      unsigned each[3] = {0, 0, 0};
      if (std::sscanf(at, "%u,%u,%u", &each[0], &each[1], &each[2]) >= 1) settings.listed.insert(settings.listed.end(), each, each + 3);
    }
    settings.ctas = static_cast<unsigned>(settings.listed.size() / 3);
    to[0] = 0, to[1] = settings.ctas, to[2] = block_list;
    settings.blocks = text;
  } else {
    to[0] = 0;
    (void)std::sscanf(text, "%u,%u,%u", &to[0], &to[1], &to[2]);
  }
}

inline Settings read_settings() {
  Settings settings;
  const char* const folder = std::getenv("AUTOSTAMP_RUN");
  if (folder == nullptr || *folder == 0) return settings;
  settings.folder = folder;
  if (const char* text = std::getenv("AUTOSTAMP_CAPACITY")) {
    const unsigned long value = std::strtoul(text, nullptr, 10);
    if (value >= 1 && value <= (1ul << 20)) settings.capacity = static_cast<unsigned>(value);
  }
  if (const char* text = std::getenv("AUTOSTAMP_BLOCK")) read_blocks(settings, text);
  if (const char* text = std::getenv("AUTOSTAMP_REPEAT")) {
    const unsigned long value = std::strtoul(text, nullptr, 10);
    if (value >= 1 && value <= 1024) settings.repeat = static_cast<unsigned>(value);
  }
  if (const char* text = std::getenv("AUTOSTAMP_LAUNCH")) {
    settings.launch = static_cast<unsigned>(std::strtoul(text, nullptr, 10));
    settings.keep = settings.launch != 0 ? Keep::one : std::strcmp(text, "all") == 0 ? Keep::all : Keep::last;
  }
  const char* const memory = std::getenv("AUTOSTAMP_MEMORY");
  settings.is_mapped = memory != nullptr && std::strcmp(memory, "mapped") == 0;
  return settings;
}

inline const Settings& settings() {
  static const Settings* const read = new Settings(read_settings());
  return *read;
}

}  // namespace host
}  // namespace autostamp

#endif  // AUTOSTAMP_SETTINGS_CUH_
