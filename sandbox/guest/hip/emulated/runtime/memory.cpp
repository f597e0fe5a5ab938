// Known global memory: tensors whose ranges were told, what kernels' host code allocated, and the access hooks.
#include <link.h>

#include <algorithm>
#include <cstdio>
#include <cstring>
#include <shared_mutex>

#include "runtime.h"

namespace kw {

extern thread_local uint64_t writes;

struct Named : Range {
  std::string name;
  int rank;
  bool tensor;
};
static std::vector<Named> ranges;  // by begin
static std::shared_mutex ranging;
static int tensors = 0;

struct Cached {
  const void* code;
  Range range;
};
// On the heap: thread-local memory of a library that is loaded late is scarce.
static thread_local Cached* cache = nullptr;

void forget_cached_ranges() {
  delete[] cache;
  cache = new Cached[256]{};
}
void drop_cached_ranges() {
  delete[] cache;
  cache = nullptr;
}
bool strict_ranges() { return tensors > 0; }

static const Named* find(uintptr_t address) {
  auto after = std::upper_bound(ranges.begin(), ranges.end(), address,
                                [](uintptr_t value, const Named& range) { return value < range.begin; });
  // Views of one storage may nest; the one before holds it or none does, since ranges are whole storages.
  for (auto at = after; at != ranges.begin();) {
    --at;
    if (address < at->end) return &*at;
    if (at->begin + (1ull << 36) < address) break;
  }
  return nullptr;
}

Range find_range(uintptr_t address) {
  std::shared_lock guard(ranging);
  const Named* range = find(address);
  return range ? Range{range->begin, range->end} : Range{0, 0};
}

std::string describe(uintptr_t address, int rank) {
  std::shared_lock guard(ranging);
  char text[256];
  if (const Named* range = find(address)) {
    snprintf(text, sizeof text, "byte %zu of %s (%zu bytes%s%s)", size_t(address - range->begin), range->name.c_str(),
             size_t(range->end - range->begin), range->rank >= 0 && range->rank != rank ? ", of rank " : "",
             range->rank >= 0 && range->rank != rank ? std::to_string(range->rank).c_str() : "");
    return text;
  }
  const Named *below = nullptr, *above = nullptr;
  for (const Named& range : ranges) {
    if (range.end <= address && (!below || range.end > below->end)) below = &range;
    if (range.begin > address && !above) above = &range;
  }
  if (below && (!above || address - below->end <= above->begin - address))
    snprintf(text, sizeof text, "%zu bytes past the end of %s (%zu bytes)", size_t(address - below->end),
             below->name.c_str(), size_t(below->end - below->begin));
  else if (above)
    snprintf(text, sizeof text, "%zu bytes before %s (%zu bytes)", size_t(above->begin - address),
             above->name.c_str(), size_t(above->end - above->begin));
  else
    snprintf(text, sizeof text, "address 0x%zx, which is in no known memory", size_t(address));
  return text;
}

/** Code and constants of loaded programs: `__constant__`, `__device__` variables, tables. */
static bool in_a_program(uintptr_t address) {
  struct Query {
    uintptr_t address;
    bool found;
  } query{address, false};
  dl_iterate_phdr(
      [](dl_phdr_info* info, size_t, void* data) {
        auto& query = *static_cast<Query*>(data);
        for (int i = 0; i < info->dlpi_phnum; i++) {
          const auto& part = info->dlpi_phdr[i];
          uintptr_t begin = info->dlpi_addr + part.p_vaddr;
          query.found |= part.p_type == PT_LOAD && query.address - begin < part.p_memsz;
        }
        return int(query.found);
      },
      &query);
  return query.found;
}

static __attribute__((noinline)) void slow(Lane& lane, uintptr_t address, size_t bytes, bool write, const void* code) {
  Range range = find_range(address);
  const Launch& launch = *lane.block->launch;
  uintptr_t closure = reinterpret_cast<uintptr_t>(launch.closure);
  if (range.begin == range.end) {
    if (address - closure < launch.closure_bytes) range = {closure, closure + launch.closure_bytes};
    else if (address - reinterpret_cast<uintptr_t>(&launch) < sizeof launch) return;
    else if (address > 4096 && (!strict_ranges() || in_a_program(address))) range = {address, address + bytes};
  }
  if (range.begin < range.end && address + bytes <= range.end) {
    cache[reinterpret_cast<uintptr_t>(code) >> 2 & 255] = {code, range};
    return;
  }
  auto& block = static_cast<Resident&>(*lane.block);
  if (uintptr_t(lane.stack) - address <= stack_bytes) {
    fault("too much private memory", code, "more than %zu bytes of local variables in one thread", stack_bytes);
    stop_lane();
  }
  bool private_to_another = address - reinterpret_cast<uintptr_t>(block.stacks) < block.stacks_bytes;
  std::string where = private_to_another ? "the private memory of another thread"
                      : range.begin < range.end
                          ? describe(address, launch.rank) + ", of which the last are past its end"
                          : describe(address, launch.rank);
  fault("out of bounds", code, "%s of %zu bytes: %s", write ? "write" : "read", bytes, where.c_str());
  stop_lane();
}

static inline __attribute__((always_inline)) void access(uintptr_t address, size_t bytes, bool write, const void* code,
                                                         bool is_atomic = false, int scope = 0) {
  Lane* lane = current;
  if (!lane || address - reinterpret_cast<uintptr_t>(lane->stack) < stack_bytes) return;
  auto& block = static_cast<Resident&>(*lane->block);
  size_t offset = address - reinterpret_cast<uintptr_t>(block.lds);
  if (offset < block.lds_bytes) {
    uint8_t* shadow = block.shadow + offset;
    if (!shadow[0] || !shadow[bytes - 1]) [[unlikely]] {
      fault("out of bounds", code, "%s of %zu bytes in shared memory, outside every __shared__ array", write ? "write" : "read", bytes);
      stop_lane();
    }
  } else {
    const Cached& seen = cache[reinterpret_cast<uintptr_t>(code) >> 2 & 255];
    if (seen.code != code || address < seen.range.begin || address + bytes > seen.range.end) [[unlikely]]
      slow(*lane, address, bytes, write, code);
    if (write) writes++;
  }
  if (options.check) [[unlikely]] {
    if (offset < block.lds_bytes) {
      if (write) memset(block.shadow + offset, 2, bytes);
      else lds_read(*lane, offset, bytes, code);
    }
    race_access(*lane, address, bytes, write, is_atomic, scope, code);
  }
  if (++lane->steps > 1u << 14) [[unlikely]] {
    // The same place again after so many accesses: it waits for another to write there. Else it computes.
    bool waits = lane->polled == address && lane->polled_at == code;
    lane->polled = address;
    lane->polled_at = code;
    (waits ? block.polled : block.computing) = true;
    kw_give_way(nullptr);
  }
}

}  // namespace kw

using namespace kw;

// What `-fsanitize=kernel-address` calls before each access. All of it is ours: no runtime of the sanitizer is linked.
#define KW_HOOK(bytes)                                                                                            \
  KW_RUNTIME void __asan_load##bytes##_noabort(uintptr_t at) { access(at, bytes, false, __builtin_return_address(0)); } \
  KW_RUNTIME void __asan_store##bytes##_noabort(uintptr_t at) { access(at, bytes, true, __builtin_return_address(0)); }
KW_HOOK(1) KW_HOOK(2) KW_HOOK(4) KW_HOOK(8) KW_HOOK(16)
KW_RUNTIME void __asan_loadN_noabort(uintptr_t at, size_t bytes) {
  if (bytes) access(at, bytes, false, __builtin_return_address(0));
}
KW_RUNTIME void __asan_storeN_noabort(uintptr_t at, size_t bytes) {
  if (bytes) access(at, bytes, true, __builtin_return_address(0));
}
KW_RUNTIME void* __asan_memcpy(void* to, const void* from, size_t bytes) {
  if (bytes) access(uintptr_t(from), bytes, false, __builtin_return_address(0));
  if (bytes) access(uintptr_t(to), bytes, true, __builtin_return_address(0));
  return memcpy(to, from, bytes);
}
KW_RUNTIME void* __asan_memmove(void* to, const void* from, size_t bytes) {
  if (bytes) access(uintptr_t(from), bytes, false, __builtin_return_address(0));
  if (bytes) access(uintptr_t(to), bytes, true, __builtin_return_address(0));
  return memmove(to, from, bytes);
}
KW_RUNTIME void* __asan_memset(void* to, int value, size_t bytes) {
  if (bytes) access(uintptr_t(to), bytes, true, __builtin_return_address(0));
  return memset(to, value, bytes);
}
KW_RUNTIME void __asan_handle_no_return() {}
KW_RUNTIME void __asan_register_globals(void*, size_t) {}
KW_RUNTIME void __asan_unregister_globals(void*, size_t) {}

/** An access that no hook sees: of an atomic operation (`atomic_scope` from 1) or of a builtin (0). */
void kw_touch(const void* address, size_t bytes, int write, int atomic_scope) {
  access(uintptr_t(address), bytes, write != 0, __builtin_return_address(0), atomic_scope != 0, atomic_scope);
}

KW_RUNTIME void kw_range(const void* begin, uint64_t bytes, const char* name, int rank, int tensor) {
  std::unique_lock guard(ranging);
  Named range{{uintptr_t(begin), uintptr_t(begin) + bytes}, name, rank, tensor != 0};
  auto at = std::lower_bound(ranges.begin(), ranges.end(), range, [](auto& a, auto& b) { return a.begin < b.begin; });
  ranges.insert(at, range);
  tensors += tensor != 0;
}

KW_RUNTIME void kw_forget_range(const void* begin) {
  std::unique_lock guard(ranging);
  std::erase_if(ranges, [&](const Named& range) { return range.begin == uintptr_t(begin) && !range.tensor; });
}

KW_RUNTIME void kw_forget_tensors() {
  std::unique_lock guard(ranging);
  std::erase_if(ranges, [](const Named& range) { return range.tensor; });
  tensors = 0;
}
