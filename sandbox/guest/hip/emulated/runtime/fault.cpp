// What went wrong in a kernel: the first fault is kept, and every lane stops.
#include <cstdio>
#include <cstring>

#include "runtime.h"

namespace kw {

static Fault first;
static std::atomic<int> faults{0};
static std::mutex keeping;

bool stopping() { return faults.load(std::memory_order_relaxed) != 0; }

Place place(const Lane& lane, const void* code) {
  const Block& block = *lane.block;
  // The address is where a call returns to; the call itself is what has the line.
  return {code ? reinterpret_cast<uint64_t>(code) - 1 : 0,
          {block.id.x, block.id.y, block.id.z},
          {lane.thread.x, lane.thread.y, lane.thread.z},
          block.launch->rank,
          int(lane.lane)};
}

void fault_at(const char* kind, const Launch& launch, const std::vector<Place>& places, const std::string& message) {
  std::lock_guard guard(keeping);
  if (faults++) return;
  snprintf(first.kind, sizeof first.kind, "%s", kind);
  snprintf(first.kernel, sizeof first.kernel, "%s", launch.kernel);
  snprintf(first.message, sizeof first.message, "%s", message.c_str());
  first.places = uint32_t(std::min<size_t>(places.size(), std::size(first.at)));
  for (uint32_t i = 0; i < first.places; i++) first.at[i] = places[i];
}

void fault(const char* kind, const void* code, const char* format, ...) {
  char text[1024];
  va_list arguments;
  va_start(arguments, format);
  vsnprintf(text, sizeof text, format, arguments);
  va_end(arguments);
  fault_at(kind, *current->block->launch, {place(*current, code)}, text);
}

/** The lane returns from the kernel, or is given up after a fault. */
void stop_lane() {
  Lane& lane = *current;
  Wave& wave = *lane.wave;
  uint64_t bit = 1ull << lane.lane;
  auto& block = static_cast<Resident&>(*lane.block);
  // Fresh pages are zero and the lowest one is never used: reading it costs no memory, as writing a mark would.
  if (*reinterpret_cast<volatile uint64_t*>(lane.stack))
    fault("too much private memory", nullptr, "more than %zu bytes of local variables in one thread", stack_bytes),
        *reinterpret_cast<volatile uint64_t*>(lane.stack) = 0;
  wave.live &= ~bit;
  wave.ready &= ~bit;
  block.alive--;
  if (stopping()) switch_to_scheduler(lane);
  leave(lane);
  __builtin_unreachable();
}

}  // namespace kw

using namespace kw;

void kw_refuse(const char* what) {
  const void* code = __builtin_return_address(0);
  if (!current) {
    fprintf(stderr, "%s is not emulated\n", what);
    abort();
  }
  fault("not emulated", code, "%s", what);
  stop_lane();
}

/** The first fault since it was last cleared, or null. */
KW_RUNTIME const Fault* kw_fault() { return stopping() ? &first : nullptr; }
KW_RUNTIME int* kw_last_error() {
  static thread_local int error = 0;
  return &error;
}
KW_RUNTIME void kw_clear_fault() {
  faults = 0;
  *kw_last_error() = 0;
}

/** Sources that exit by themselves at a failed launch leave nobody to ask. */
static __attribute__((destructor)) void tell_at_exit() {
  if (stopping()) fprintf(stderr, "%s in %s: %s\n", first.kind, first.kernel, first.message);
}
