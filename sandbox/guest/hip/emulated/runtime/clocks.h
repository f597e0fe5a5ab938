// The checking mode's idea of time: vector clocks of waves.
//
// Every wave has three. `real` follows barriers, and release and acquire as written where both scopes reach the other side;
// `wide` the same as if every scope were the system's; `loose` takes every atomic operation for a release and an acquire of the
// system. Accesses that `real` leaves unordered race. That `wide` orders them says that a scope is too narrow, that `loose`
// does says that a fence or an order is missing. The lanes of one wave run in step.
#pragma once
#include <unordered_map>

#include "runtime.h"

namespace kw {

enum Scopes { of_lane = 1, of_wave, of_block, of_device, of_system };
enum Way { real, wide, loose, ways };
using Clock = std::unordered_map<uint32_t, uint32_t>;  // by agent

/** A wave of one block of one launch. */
struct Agent {
  const Launch* launch;
  uint64_t launch_number, block_number;
  Index block, block_size;
  unsigned wave;
  int rank;
};

struct Clocks {
  uint32_t agent;
  uint64_t launch_begun;  // launches that ended before are past
  Clock seen[ways];
  Clock fenced[2];  // real and wide, as of the last releasing fence: what a relaxed write after it hands on
  int fence_scope = 0;
  Clock loaded[of_system + 1];  // what relaxed reads met, by the scope it takes: for an acquiring fence
  Clock loaded_wide;
};

extern std::mutex checking;
const Agent& agent(uint32_t number);
/** Whether what `other` did at its time `clock` comes before what this wave does now. */
bool before(const Clocks& now, uint32_t other, uint32_t clock, Way way);
/** The scope that reaches from one wave to another. */
int needed(const Agent& a, const Agent& b);
void forget_accesses();

}  // namespace kw
