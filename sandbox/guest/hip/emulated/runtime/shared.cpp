// Memory that ranks share: what hipMalloc gives is a file's, so that another process can map it by its handle.
#include <fcntl.h>
#include <sys/mman.h>
#include <unistd.h>

#include <algorithm>
#include <cstdio>
#include <cstring>
#include <map>
#include <vector>

#include "runtime.h"

KW_RUNTIME void kw_range(const void*, uint64_t, const char*, int, int);
KW_RUNTIME void kw_forget_range(const void*);
KW_RUNTIME int kw_device();

namespace kw {

constexpr size_t page = 4096;

struct Allocation {
  size_t bytes, mapped;
  std::string path;
  int rank;
};
static std::map<uintptr_t, Allocation> allocations;
static std::mutex allocating;
static int made = 0, devices = 8;
std::atomic<bool> has_peers{false};

static const char* folder() {
  const char* told = getenv("KW_HIP_SHARED");
  return told ? told : "/tmp";
}

static char* map_file(const std::string& path, size_t bytes, int flags, void* at = nullptr, int how = 0) {
  int file = open(path.c_str(), flags, 0600);
  if (file < 0) return nullptr;
  if ((flags & O_CREAT) && ftruncate(file, off_t(bytes))) return close(file), nullptr;
  void* mapped = mmap(at, bytes, PROT_READ | PROT_WRITE, MAP_SHARED | how, file, 0);
  close(file);
  return mapped == MAP_FAILED ? nullptr : static_cast<char*>(mapped);
}

static std::string new_path() {
  return std::string(folder()) + "/kw-hip-" + std::to_string(getpid()) + "-" + std::to_string(++made);
}

struct Handle {
  char path[44];
  uint32_t rank;
  uint64_t bytes, offset;
};
static_assert(sizeof(Handle) == 64);

}  // namespace kw

using namespace kw;

KW_RUNTIME int kw_devices() { return devices; }
KW_RUNTIME void kw_set_devices(int count) { devices = count; }
KW_RUNTIME int kw_faulted() { return stopping(); }
KW_RUNTIME int kw_compute_units() { return options.compute_units; }
KW_RUNTIME int kw_lds_limit() { return options.lds_limit; }

KW_RUNTIME int kw_allocate(void** at, size_t bytes) {
  std::lock_guard guard(allocating);
  size_t mapped = (std::max<size_t>(bytes, 1) + page - 1) & ~(page - 1);
  void* got = mmap(nullptr, mapped, PROT_READ | PROT_WRITE, MAP_PRIVATE | MAP_ANONYMOUS | MAP_NORESERVE, -1, 0);
  if (got == MAP_FAILED) return 2;
  *at = got;
  allocations[uintptr_t(got)] = {bytes, mapped, "", kw_device()};
  kw_range(got, bytes, ("allocation " + std::to_string(++made)).c_str(), kw_device(), 0);
  return 0;
}

KW_RUNTIME int kw_release(void* at) {
  std::lock_guard guard(allocating);
  auto found = allocations.find(uintptr_t(at));
  if (found == allocations.end()) return at ? 1 : 0;
  kw_forget_range(at);
  munmap(at, found->second.mapped);
  if (!found->second.path.empty()) unlink(found->second.path.c_str());
  allocations.erase(found);
  return 0;
}

namespace kw {

static std::vector<Range> imported;

bool of_a_peer(uintptr_t address) {
  if (!has_peers) return false;
  std::lock_guard guard(allocating);
  return std::any_of(imported.begin(), imported.end(), [&](auto& range) { return range.begin <= address && address < range.end; });
}

/** The allocation that holds an address, or what is made of the tensor there: whole pages, with whatever else they hold. */
static std::pair<uintptr_t, Allocation*> holder(uintptr_t at) {
  auto after = allocations.upper_bound(at);
  if (after != allocations.begin()) {
    auto& [begin, allocation] = *std::prev(after);
    if (at < begin + allocation.mapped) return {begin, &allocation};
  }
  Range range = find_range(at);
  if (range.begin == range.end) return {0, nullptr};
  uintptr_t begin = range.begin & ~(page - 1), end = (range.end + page - 1) & ~(page - 1);
  // Kernels reach it by pointers from now on, also where no tensor of the call tells of it.
  kw_range(reinterpret_cast<void*>(range.begin), range.end - range.begin, "memory shared with peers", kw_device(), 0);
  return {begin, &(allocations[begin] = {end - begin, end - begin, "", kw_device()})};
}

}  // namespace kw

/** A handle for another process. Memory becomes a file's when it is first handed out: its pages are put in its place. */
KW_RUNTIME int kw_export(char* out, void* at) {
  std::lock_guard guard(allocating);
  auto [begin, found] = holder(uintptr_t(at));
  if (!found) return 1;
  Allocation& allocation = *found;
  if (allocation.path.empty()) {
    allocation.path = new_path();
    char* file = map_file(allocation.path, allocation.mapped, O_RDWR | O_CREAT | O_EXCL);
    if (!file) return 2;
    memcpy(file, reinterpret_cast<void*>(begin), allocation.mapped);
    munmap(file, allocation.mapped);
    if (!map_file(allocation.path, allocation.mapped, O_RDWR, reinterpret_cast<void*>(begin), MAP_FIXED)) return 2;
  }
  Handle handle{};
  if (allocation.path.size() >= sizeof handle.path) return 2;
  strcpy(handle.path, allocation.path.c_str());
  handle.rank = uint32_t(allocation.rank), handle.bytes = allocation.bytes, handle.offset = uintptr_t(at) - begin;
  memcpy(out, &handle, sizeof handle);
  return 0;
}

KW_RUNTIME int kw_import(void** at, const char* from) {
  Handle handle;
  memcpy(&handle, from, sizeof handle);
  handle.path[sizeof handle.path - 1] = 0;
  {
    // Ranks of one process: the memory is here already.
    std::lock_guard guard(allocating);
    for (auto& [begin, allocation] : allocations)
      if (allocation.path == handle.path) return *at = reinterpret_cast<void*>(begin + handle.offset), 0;
  }
  char* mapped = map_file(handle.path, (handle.bytes + page - 1) & ~(page - 1), O_RDWR);
  if (!mapped) return 1;
  kw_range(mapped, handle.bytes, "memory of a peer", int(handle.rank), 0);
  {
    std::lock_guard guard(allocating);
    imported.push_back({uintptr_t(mapped), uintptr_t(mapped) + handle.bytes});
  }
  has_peers = true;
  *at = mapped + handle.offset;
  return 0;
}
