// Fibers: the change from one lane to the next, and how the lanes of a wave meet.
#include <bit>

#include "runtime.h"

namespace kw {

__thread Lane* current __attribute__((tls_model("initial-exec"))) = nullptr;

extern "C" void kw_switch(void** from, void* to);

#if defined(__x86_64__)
// Callee-saved registers of the System V ABI; the floating-point control words are the same in all fibers.
asm(R"(
.globl kw_switch
.hidden kw_switch
.type kw_switch,@function
kw_switch:
  push %rbp
  push %rbx
  push %r12
  push %r13
  push %r14
  push %r15
  mov %rsp,(%rdi)
  mov %rsi,%rsp
  pop %r15
  pop %r14
  pop %r13
  pop %r12
  pop %rbx
  pop %rbp
  ret
)");
static constexpr int saved_words = 6;
#elif defined(__aarch64__)
// Callee-saved registers of AAPCS64: x19 to x30 and d8 to d15.
asm(R"(
.globl kw_switch
.hidden kw_switch
.type kw_switch,@function
kw_switch:
  sub sp, sp, #176
  stp x19, x20, [sp, #0]
  stp x21, x22, [sp, #16]
  stp x23, x24, [sp, #32]
  stp x25, x26, [sp, #48]
  stp x27, x28, [sp, #64]
  stp x29, x30, [sp, #80]
  stp d8, d9, [sp, #96]
  stp d10, d11, [sp, #112]
  stp d12, d13, [sp, #128]
  stp d14, d15, [sp, #144]
  mov x9, sp
  str x9, [x0]
  mov sp, x1
  ldp x19, x20, [sp, #0]
  ldp x21, x22, [sp, #16]
  ldp x23, x24, [sp, #32]
  ldp x25, x26, [sp, #48]
  ldp x27, x28, [sp, #64]
  ldp x29, x30, [sp, #80]
  ldp d8, d9, [sp, #96]
  ldp d10, d11, [sp, #112]
  ldp d12, d13, [sp, #128]
  ldp d14, d15, [sp, #144]
  add sp, sp, #176
  ret
)");
#else
#error "fibers are written for x86-64 and aarch64"
#endif

[[noreturn]] static void lane_main() {
  Launch& launch = *current->block->launch;
  launch.body(launch.closure);
  stop_lane();
}

/** A fresh stack for a lane. Starts are spread over 4 KiB: else all lanes' frames fall into the same cache sets. */
void prepare(Lane& lane) {
  char* top = lane.stack + stack_bytes - 256 - (lane.lane * 7 & 15) * 256;
  void** at = reinterpret_cast<void**>(top);
#if defined(__x86_64__)
  *--at = nullptr;
  *--at = reinterpret_cast<void*>(lane_main);
  for (int i = 0; i < saved_words; i++) *--at = nullptr;
#else
  at -= 22;
  for (int i = 0; i < 22; i++) at[i] = nullptr;
  at[11] = reinterpret_cast<void*>(lane_main);
#endif
  lane.stack_pointer = at;
}

static void change(Lane& from, Lane& to) {
  current = &to;
  kw_switch(&from.stack_pointer, to.stack_pointer);
}

void enter(Resident& block, Lane& lane) {
  current = &lane;
  kw_switch(&block.scheduler, lane.stack_pointer);
  current = nullptr;
}

void switch_to_scheduler(Lane& lane) {
  auto& block = static_cast<Resident&>(*lane.block);
  kw_switch(&lane.stack_pointer, block.scheduler);
}

/** Runs the operation that the lowest waiting site asks for.
 *
 * Lanes that took different ways wait at different places. As on the machine the way that comes first in the code runs
 * first, so that the lanes meet again behind it; the order of code addresses stands for that.
 */
static void resolve(Wave& wave) {
  uint64_t waiting = wave.waiting;
  const Lane& first = wave.lanes[std::countr_zero(waiting)];
  const void* site = first.site;
  uint64_t group = 0;
  for (uint64_t left = waiting; left; left &= left - 1) {
    int lane = std::countr_zero(left);
    const void* at = wave.lanes[lane].site;
    if (at < site) site = at, group = 0;
    if (at == site) group |= 1ull << lane;
  }
  Lane& leader = wave.lanes[std::countr_zero(group)];
  leader.operation(wave, group);
  if (options.check) {
    wave.meetings++;
    for (uint64_t left = group; left; left &= left - 1) wave.lanes[std::countr_zero(left)].met = wave.meetings;
  }
  wave.waiting &= ~group;
  wave.ready |= group;
}

/** The lane cannot go on now: another one of its wave does, or the scheduler. */
void leave(Lane& lane) {
  Wave& wave = *lane.wave;
  if (!wave.ready && wave.waiting) resolve(wave);
  uint64_t next = wave.ready & ~wave.spinning;
  if (!next) {
    switch_to_scheduler(lane);
    return;
  }
  uint64_t after = next & (~0ull << lane.lane);
  Lane& to = wave.lanes[std::countr_zero(after ? after : next)];
  if (&to != &lane) change(lane, to);
}

}  // namespace kw

using namespace kw;

// The operands are on the lane's stack and stay where they are while it waits.
KW_CONVERGENT void kw_meet(Operation run, void* operands) {
  Lane& lane = *current;
  lane.operation = run;
  lane.operands = operands;
  lane.site = __builtin_return_address(0);
  uint64_t bit = 1ull << lane.lane;
  lane.wave->ready &= ~bit;
  lane.wave->waiting |= bit;
  lane.steps = 0;
  leave(lane);
}

KW_CONVERGENT void kw_barrier(Operation run, void* operands, int place) {
  Lane& lane = *current;
  lane.place = place;
  lane.operation = run;
  lane.operands = operands;
  lane.site = __builtin_return_address(0);
  uint64_t bit = 1ull << lane.lane;
  lane.wave->ready &= ~bit;
  lane.wave->at_barrier |= bit;
  lane.steps = 0;
  leave(lane);
}

void kw_give_way(const void* address) {
  Lane* lane = current;
  if (!lane) return;
  if (address) {
    lane->polled = reinterpret_cast<uintptr_t>(address);
    lane->polled_at = __builtin_return_address(0);
    static_cast<Resident*>(lane->block)->polled = true;
  }
  lane->steps = 0;
  lane->wave->spinning |= 1ull << lane->lane;
  leave(*lane);
  if (stopping()) stop_lane();
}
