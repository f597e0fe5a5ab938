// A block: its lanes, its LDS, its barrier, and the order in which its waves run.
#include <sys/mman.h>

#include <bit>
#include <cstring>
#include <new>

#include "runtime.h"

namespace kw {

void prepare(Lane& lane);
void enter(Resident& block, Lane& lane);

constexpr size_t redzone = 256;
constexpr uint8_t nobodys = 0, unwritten = 1, written = 2;

static char* reserve(size_t bytes) {
  void* at = mmap(nullptr, bytes, PROT_READ | PROT_WRITE, MAP_PRIVATE | MAP_ANONYMOUS | MAP_NORESERVE, -1, 0);
  if (at == MAP_FAILED) throw std::bad_alloc();
  return static_cast<char*>(at);
}

Resident::Resident(const Launch& spec) {
  unsigned count = spec.block.x * spec.block.y * spec.block.z;
  lanes.resize(count);
  all = lanes.data();
  this->count = count;
  waves.resize((count + wave_size - 1) / wave_size);
  // One more below the first: where a thread's variables overflow, it is told and does not crash.
  stacks_bytes = (count + 1) * stack_bytes;
  stacks = reserve(stacks_bytes);
  lds_bytes = 2 * options.lds_limit + (64 << 10);
  lds = reserve(lds_bytes);
  shadow_bytes = lds_bytes;
  shadow = reinterpret_cast<uint8_t*>(reserve(shadow_bytes));
  for (unsigned i = 0; i < count; i++) {
    Lane& lane = lanes[i];
    lane.thread = {i % spec.block.x, i / spec.block.x % spec.block.y, i / spec.block.x / spec.block.y};
    lane.lane = i % wave_size;
    lane.number = i;
    lane.wave = &waves[i / wave_size];
    lane.block = this;
    lane.stack = stacks + (i + 1) * stack_bytes;
  }
  for (unsigned i = 0; i < waves.size(); i++) {
    waves[i] = {&lanes[i * wave_size], this, i, 0, 0, 0, 0, 0, 0, nullptr};
  }
}

Resident::~Resident() {
  if (options.check) race_drop_block(*this);
  munmap(stacks, stacks_bytes);
  munmap(lds, lds_bytes);
  munmap(shadow, shadow_bytes);
}

void Resident::begin(const Launch& spec, uint64_t index) {
  launch = const_cast<Launch*>(&spec);
  grid = spec.grid;
  size = spec.block;
  id = {unsigned(index % grid.x), unsigned(index / grid.x % grid.y), unsigned(index / grid.x / grid.y)};
  // What LDS holds at first is undefined: NaN in every format, so that a read of it shows.
  if (lds_end) memset(lds, 0xff, lds_end), memset(shadow, nobodys, lds_end);
  dynamic_bytes = spec.dynamic_bytes;
  memset(lds, 0xff, dynamic_bytes);
  memset(shadow, unwritten, dynamic_bytes);
  lds_used = dynamic_bytes;
  lds_end = (dynamic_bytes + redzone + 127) & ~size_t(127);
  offsets.clear();
  alive = unsigned(lanes.size());
  polled = computing = false;
  passes = 0;
  for (Wave& wave : waves) {
    unsigned count = std::min<unsigned>(wave_size, alive - wave.number * wave_size);
    wave.live = wave.ready = count == 64 ? ~0ull : (1ull << count) - 1;
    wave.waiting = wave.at_barrier = wave.spinning = wave.meetings = 0;
  }
  for (Lane& lane : lanes) {
    lane.steps = lane.polls = lane.met = 0;
    lane.polled = 0;
    prepare(lane);
  }
  if (options.check) race_begin_block(*this, index);
}

/** Every lane alive is there; in one wave all at the same barrier. Waves may stand at different ones: s_barrier counts. */
void Resident::release_barrier() {
  for (Wave& wave : waves) {
    if (!wave.live) continue;
    int place = wave.lanes[std::countr_zero(wave.live)].place;
    for (uint64_t left = wave.live; left; left &= left - 1)
      if (wave.lanes[std::countr_zero(left)].place != place) return divergent(wave);
    unsigned count = std::min<unsigned>(wave_size, unsigned(lanes.size()) - wave.number * wave_size);
    if (!options.exited_lanes_arrive && unsigned(std::popcount(wave.live)) != count) return divergent(wave);
  }
  for (Wave& wave : waves) {
    if (!wave.live) continue;
    const Lane& first = wave.lanes[std::countr_zero(wave.live)];
    if (first.operation) first.operation(wave, wave.live);
    break;
  }
  if (options.check) race_barrier(*this);
  for (Wave& wave : waves) wave.ready = wave.live, wave.at_barrier = 0, wave.meetings++;
  for (Lane& lane : lanes) lane.met = lane.wave->meetings;
}

void Resident::divergent(const Wave& wave) const {
  std::vector<Place> places;
  std::string message;
  const Lane& first = wave.lanes[std::countr_zero(wave.live)];
  places.push_back(place(first, first.site));
  for (unsigned i = 0; i < wave_size && wave.number * wave_size + i < lanes.size(); i++) {
    const Lane& lane = wave.lanes[i];
    bool gone = !(wave.live >> i & 1);
    if (!gone && lane.place == first.place) continue;
    places.push_back(place(lane, gone ? nullptr : lane.site));
    message = "lane " + std::to_string(first.lane) + " waits at a barrier that lane " + std::to_string(i) +
              (gone ? " left the kernel without reaching" : " is not at: it waits at another");
    break;
  }
  fault_at("divergent barrier", *launch, places, message);
}

Resident::State Resident::run() {
  for (unsigned pass = 0;; pass++) {
    bool moved = false;
    for (Wave& wave : waves) {
      if (!wave.ready) continue;
      wave.spinning = 0;
      unsigned before = alive;
      enter(*this, wave.lanes[std::countr_zero(wave.ready)]);
      if (stopping()) return State::stopped;
      moved |= before != alive || !wave.ready;
    }
    moved |= computing;
    computing = false;
    if (!alive) return State::finished;
    bool held = true;
    for (Wave& wave : waves) held &= !wave.ready;
    if (held) {
      release_barrier();
      if (stopping()) return State::stopped;
      moved = true;
    }
    passes++;
    if (!moved || (polled && pass > 64)) return State::paused;
  }
}

static std::mutex numbering;
static int numbered = 0;

static void number(Site& site) {
  std::lock_guard guard(numbering);
  if (!site.number) __atomic_store_n(&site.number, ++numbered, __ATOMIC_RELEASE);
}

static void* place_site(Resident& block, const Site& site) {
  size_t offset = block.lds_end;
  block.lds_used += site.bytes;
  if (block.lds_used > size_t(options.lds_limit) || offset + site.bytes + redzone > block.lds_bytes) {
    fault("too much shared memory", nullptr, "%zu bytes of LDS with '%s', and a block has %d", block.lds_used, site.name,
          options.lds_limit);
    stop_lane();
  }
  block.lds_end = (offset + site.bytes + redzone + 127) & ~size_t(127);
  memset(block.lds + offset, 0xff, site.bytes);
  memset(block.shadow + offset, unwritten, site.bytes);
  if (block.offsets.size() <= size_t(site.number)) block.offsets.resize(site.number + 1, -1);
  block.offsets[site.number] = int(offset);
  return block.lds + offset;
}

}  // namespace kw

using namespace kw;

void* kw_shared(Site* site) {
  if (!current) return nullptr;
  auto& block = static_cast<Resident&>(*current->block);
  int number_of = __atomic_load_n(&site->number, __ATOMIC_ACQUIRE);
  if (!number_of) number(*site), number_of = site->number;
  if (block.offsets.size() > size_t(number_of) && block.offsets[number_of] >= 0)
    return block.lds + block.offsets[number_of];
  return place_site(block, *site);
}

void* kw_dynamic_shared() { return current ? current->block->lds : nullptr; }
