// The checking mode's memory of accesses: who wrote and read each byte last, and whether the next one comes after it.
#include "clocks.h"

namespace kw {

struct Access {
  const void* code = nullptr;
  uint32_t agent = 0, clock = 0;  // clock 0: nobody yet
  uint8_t lane = 0, scope = 0;    // scope 0: not atomic
  uint32_t meetings = 0;          // its wave had had
};
struct Read : Access {
  uint8_t bytes;
};
/** Four bytes. */
struct Cell {
  Access write[4];
  std::vector<Read> reads;  // since they were written
};
using Cells = std::unordered_map<uintptr_t, Cell>;

static Cells global;

void forget_accesses() { global.clear(); }

static Place place_of(const Access& access) {
  const Agent& who = agent(access.agent);
  unsigned number = who.wave * wave_size + access.lane, x = who.block_size.x, y = who.block_size.y;
  return {uint64_t(access.code) - 1,
          {who.block.x, who.block.y, who.block.z},
          {number % x, number / x % y, number / x / y},
          who.rank,
          access.lane};
}

static void report(Lane& lane, const Access& now, const Access& then, bool write, bool wrote, uintptr_t address) {
  const Clocks& clocks = *lane.wave->clocks;
  const Agent &self = agent(now.agent), &other = agent(then.agent);
  const char* kind = "race";
  if (self.block_number == other.block_number && now.agent == then.agent) {
    // Where a block has other waves, what one of them is missing all are: a barrier.
    fault_at(lane.block->count > 64 ? "missing barrier" : "lanes out of step", *lane.block->launch, {place(lane, now.code), place_of(then)},
             "two lanes of one wave share LDS and nothing is between; the machine's lanes go in step, the emulation's do "
             "not: put __builtin_amdgcn_wave_barrier() or a wait there");
    return;
  }
  if (now.scope && then.scope) kind = "wrong scope";
  else if (before(clocks, then.agent, then.clock, wide)) kind = "wrong scope";
  else if (before(clocks, then.agent, then.clock, loose)) kind = "missing fence";
  else if (self.block_number == other.block_number) kind = "missing barrier";
  auto& block = static_cast<Resident&>(*lane.block);
  size_t offset = address - uintptr_t(block.lds);
  std::string where = offset < block.lds_bytes ? "byte " + std::to_string(offset) + " of the block's LDS"
                                               : describe(address, self.rank);
  std::string message = std::string(write ? "a write" : "a read") + " of " + where + " is not ordered after " +
                        (wrote ? "a write" : "a read") + " by wave " + std::to_string(other.wave) + " of block " +
                        std::to_string(other.block.x) + (other.rank != self.rank ? " on rank " + std::to_string(other.rank) : "");
  fault_at(kind, *lane.block->launch, {place(lane, now.code), place_of(then)}, message);
}

/** Two lanes of one wave, LDS, no meeting since: on the machine they go in step, here one after the other. */
static bool out_of_step(const Lane& lane, const Access& now, const Access& then) {
  return then.clock && then.agent == now.agent && then.lane != now.lane && !now.scope && !then.scope && lane.met <= then.meetings;
}

/** Whether an earlier access and this one, of which one writes, may meet. */
static bool conflict(const Clocks& clocks, const Access& now, const Access& then) {
  if (!then.clock || before(clocks, then.agent, then.clock, real)) return false;
  if (!now.scope || !then.scope) return true;
  int need = needed(agent(now.agent), agent(then.agent));
  return now.scope < need || then.scope < need;
}

static bool touch(Lane& lane, Cell& cell, uint8_t bytes, const Access& now, bool write, bool shared, uintptr_t address) {
  const Clocks& clocks = *lane.wave->clocks;
  for (int i = 0; i < 4; i++) {
    const Access& then = cell.write[i];
    // Lanes that write one place at once are no fault: which of them wins is not defined, often all write the same.
    bool strays = shared && !write && out_of_step(lane, now, then);
    if (!(bytes >> i & 1) || !(strays || conflict(clocks, now, then))) continue;
    report(lane, now, cell.write[i], write, true, address + i);
    return false;
  }
  if (!write) {
    for (Read& read : cell.reads)
      if (read.agent == now.agent && read.bytes == bytes && read.scope == now.scope && (!shared || read.lane == now.lane))
        return static_cast<Access&>(read) = now, true;
    cell.reads.push_back({now, bytes});
    return true;
  }
  for (Read& read : cell.reads) {
    if (!(read.bytes & bytes)) continue;
    if (conflict(clocks, now, read) || (shared && out_of_step(lane, now, read))) return report(lane, now, read, true, false, address), false;
    read.bytes &= uint8_t(~bytes);
  }
  std::erase_if(cell.reads, [](const Read& read) { return !read.bytes; });
  for (int i = 0; i < 4; i++)
    if (bytes >> i & 1) cell.write[i] = now;
  return true;
}

void race_access(Lane& lane, uintptr_t address, size_t bytes, bool write, bool is_atomic, int scope, const void* code) {
  // A peer is another process, whose accesses nobody sees here: what does not reach it cannot be ordered with them.
  if (is_atomic && scope < of_system && of_a_peer(address)) {
    fault_at("wrong scope", *lane.block->launch, {place(lane, code)},
             "an atomic that reaches no further than its own device, in " + describe(address, lane.block->launch->rank));
    stop_lane();
    return;
  }
  bool ordered = true;
  {
    std::lock_guard guard(checking);
    const Clocks& clocks = *lane.wave->clocks;
    auto& block = static_cast<Resident&>(*lane.block);
    bool shared = address - uintptr_t(block.lds) < block.lds_bytes;
    if (shared && !block.cells) block.cells = new Cells;
    Cells& cells = shared ? *static_cast<Cells*>(block.cells) : global;
    Access now{code, clocks.agent, clocks.seen[real].at(clocks.agent), uint8_t(lane.lane),
               uint8_t(is_atomic ? scope : 0), lane.wave->meetings};
    for (uintptr_t at = address & ~uintptr_t(3); at < address + bytes && ordered; at += 4) {
      uint8_t mask = 15;
      if (at < address) mask &= uint8_t(15 << (address - at));
      if (at + 4 > address + bytes) mask &= uint8_t(15 >> (at + 4 - address - bytes));
      ordered = touch(lane, cells[at], mask, now, write, shared, at);
    }
  }
  if (!ordered) stop_lane();
}

void race_end_block(Resident& block) {
  if (!block.early_read.message.empty() && !stopping())
    fault_at("uninitialised shared memory", *block.launch, {block.early_read.place}, block.early_read.message);
  block.early_read.message.clear();
  std::lock_guard guard(checking);
  delete static_cast<Cells*>(block.cells);
  block.cells = nullptr;
}

// Told at the end of the block: where another wave writes those bytes yet, a barrier is missing, and that is told instead.
void lds_read(Lane& lane, uintptr_t offset, size_t bytes, const void* code) {
  auto& block = static_cast<Resident&>(*lane.block);
  const uint8_t* shadow = block.shadow + offset;
  for (size_t i = 0; i < bytes && block.early_read.message.empty(); i++) {
    if (shadow[i] != 1) continue;
    block.early_read.place = place(lane, code);
    block.early_read.message = "a read of " + std::to_string(bytes) + " bytes at byte " + std::to_string(offset) +
                              " of the block's LDS, where nothing was written";
  }
}

}  // namespace kw
