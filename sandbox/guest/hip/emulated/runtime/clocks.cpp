// What orders waves in the checking mode: launches, barriers, atomic operations, fences.
#include "clocks.h"

#include <map>
#include <tuple>

namespace kw {

std::mutex checking;
static std::vector<Agent> agents;
static std::unordered_map<uint64_t, uint64_t> ended;  // by number of the launch: when
static std::unordered_map<const Launch*, std::pair<uint64_t, uint64_t>> running;  // number, and when it began
static uint64_t ticks = 0, launches = 0, blocks = 0;

/** What waves handed on at an address, by how far it reaches from where. */
struct Message {
  std::map<std::tuple<int, int, uint64_t>, std::pair<Clock, Clock>> handed;  // real and wide
  Clock loose;
};
static std::unordered_map<uintptr_t, Message> messages;

static void join(Clock& into, const Clock& from) {
  for (const auto& [who, at] : from) {
    uint32_t& mine = into[who];
    if (mine < at) mine = at;
  }
}

const Agent& agent(uint32_t number) { return agents[number]; }

bool before(const Clocks& now, uint32_t other, uint32_t clock, Way way) {
  if (other == now.agent) return true;
  auto over = ended.find(agents[other].launch_number);
  if (over != ended.end() && over->second < now.launch_begun) return true;
  auto seen = now.seen[way].find(other);
  return seen != now.seen[way].end() && seen->second >= clock;
}

int needed(const Agent& a, const Agent& b) {
  return a.rank != b.rank ? of_system : a.block_number != b.block_number ? of_device : of_block;
}

void race_begin_launch(const Launch& launch) {
  std::lock_guard guard(checking);
  running[&launch] = {++launches, ++ticks};
}

void race_end_launch(const Launch& launch) {
  std::lock_guard guard(checking);
  ended[running[&launch].first] = ++ticks;
  running.erase(&launch);
  if (!running.empty()) return;
  // Nothing runs: all of it is the past of whatever comes.
  forget_accesses();
  messages.clear();
  agents.clear();
  ended.clear();
}

void race_begin_block(Resident& block, uint64_t) {
  std::lock_guard guard(checking);
  const Launch& launch = *block.launch;
  auto [number, begun] = running[&launch];
  blocks++;
  for (Wave& wave : block.waves) {
    delete wave.clocks;
    wave.clocks = new Clocks{uint32_t(agents.size()), begun, {}, {}, 0, {}, {}};
    for (Clock& seen : wave.clocks->seen) seen[wave.clocks->agent] = 1;
    agents.push_back({&launch, number, blocks, block.id, block.size, wave.number, launch.rank});
  }
}

void race_drop_block(Resident& block) {
  race_end_block(block);
  for (Wave& wave : block.waves) {
    delete wave.clocks;
    wave.clocks = nullptr;
  }
}

void race_barrier(Resident& block) {
  std::lock_guard guard(checking);
  for (int way = 0; way < ways; way++) {
    Clock all;
    for (Wave& wave : block.waves) join(all, wave.clocks->seen[way]);
    for (Wave& wave : block.waves) {
      wave.clocks->seen[way] = all;
      wave.clocks->seen[way][wave.clocks->agent]++;
    }
  }
}

static bool releases(int order) { return order >= __ATOMIC_RELEASE; }
static bool acquires(int order) { return order == __ATOMIC_ACQUIRE || order == __ATOMIC_CONSUME || order >= __ATOMIC_ACQ_REL; }

static void tick(Clocks& clocks) {
  for (Clock& seen : clocks.seen) seen[clocks.agent]++;
}

static void hand_on(Clocks& clocks, Message& message, int order, int scope, bool replaces) {
  const Agent& self = agents[clocks.agent];
  if (replaces) message.handed.clear();
  const Clock* what = releases(order) ? clocks.seen : clocks.fence_scope ? clocks.fenced : nullptr;
  if (what) {
    int reach = releases(order) ? scope : std::min(scope, clocks.fence_scope);
    auto& [narrow, broad] = message.handed[{reach, self.rank, self.block_number}];
    join(narrow, what[real]);
    join(broad, what[wide]);
  }
  join(message.loose, clocks.seen[loose]);
  tick(clocks);
}

static void take_in(Clocks& clocks, const Message& message, int order, int scope) {
  const Agent& self = agents[clocks.agent];
  for (const auto& [from, handed] : message.handed) {
    auto [reach, rank, block] = from;
    int need = rank != self.rank ? of_system : block != self.block_number ? of_device : of_block;
    bool arrives = reach >= need;
    if (acquires(order)) {
      if (arrives && scope >= need) join(clocks.seen[real], handed.first);
      join(clocks.seen[wide], handed.second);
    } else {
      if (arrives && scope >= need) join(clocks.loaded[need], handed.first);
      join(clocks.loaded_wide, handed.second);
    }
  }
  join(clocks.seen[loose], message.loose);
}

}  // namespace kw

using namespace kw;

/** `what`: 1 after a read, 2 before a write, 3 before one that reads too. */
void kw_synchronise(const void* address, size_t, int order, int scope, int what) {
  if (!options.check || !current) return;
  std::lock_guard guard(checking);
  Clocks& clocks = *current->wave->clocks;
  auto at = uintptr_t(address);
  if (what & 2) hand_on(clocks, messages[at], order, scope, what == 2);
  else if (auto found = messages.find(at); found != messages.end()) take_in(clocks, found->second, order, scope);
}

void kw_fence(int order, int scope) {
  if (!options.check || !current) return;
  std::lock_guard guard(checking);
  Clocks& clocks = *current->wave->clocks;
  if (acquires(order)) {
    for (int need = of_block; need <= scope; need++) join(clocks.seen[real], clocks.loaded[need]);
    join(clocks.seen[wide], clocks.loaded_wide);
  }
  if (releases(order)) {
    for (int way = real; way <= wide; way++) clocks.fenced[way] = clocks.seen[way];
    clocks.fence_scope = scope;
    tick(clocks);
  }
}
