// The runtime's own view: what its parts tell each other. Nothing here is seen by kernels.
#pragma once
#include <atomic>
#include <cstdarg>
#include <mutex>
#include <string>
#include <vector>

#include "emulated/lane.h"

namespace kw {

constexpr size_t stack_bytes = 64 << 10;
constexpr unsigned wave_size = 64;

/** What happened to a kernel. Fixed sizes: read from Python with ctypes. */
struct Place {
  uint64_t address;  // of the code
  uint32_t block[3], thread[3];
  int32_t rank;
  int32_t lane;
};
struct Fault {
  char kind[40];
  char kernel[512];
  char message[2048];
  uint32_t places;
  Place at[8];
};

/** A block with its fibers: what a worker keeps for it. */
struct Resident : Block {
  std::vector<Lane> lanes;
  std::vector<Wave> waves;
  char* stacks = nullptr;
  size_t stacks_bytes = 0;
  size_t lds_bytes = 0, shadow_bytes = 0, lds_used = 0, lds_end = 0;
  std::vector<int> offsets;  // by Site::number; -1: not yet
  void* scheduler = nullptr;
  unsigned alive = 0;
  bool polled = false;     // a lane gave way to others while it waited for memory
  bool computing = false;  // a lane gave way because it had its turn
  uint64_t passes = 0;
  void* cells = nullptr;  // of the checking mode
  struct {
    Place place;
    std::string message;
  } early_read{};  // the first read of LDS that nobody had written

  explicit Resident(const Launch& launch);
  ~Resident();
  Resident(const Resident&) = delete;
  void begin(const Launch& launch, uint64_t number);
  enum class State { finished, paused, stopped };
  /** Runs until it has finished, or nothing in it can go on without the rest of the world. */
  State run();

 private:
  void release_barrier();
  void divergent(const Wave& wave) const;
};

void fault(const char* kind, const void* code, const char* format, ...) __attribute__((format(printf, 3, 4)));
void fault_at(const char* kind, const Launch& launch, const std::vector<Place>& places, const std::string& message);
Place place(const Lane& lane, const void* code);
[[noreturn]] void stop_lane();
bool stopping();
std::string describe(uintptr_t address, int rank);

/** Set up by the options of a library. */
struct Options {
  int run = 1;            // 0: launches are reported and not run
  int check = 0;          // 1: races and uninitialised LDS too
  int workers = 0;        // OS threads a launch; 0: as many as there are cores
  int lds_limit = 65536;  // bytes
  int compute_units = 304;
  int exited_lanes_arrive = 0;
  double deadlock_s = 3.0;
};
extern Options options;
/** Another process's memory is mapped: what a kernel waits for may be in that process's hands, and take long. */
extern std::atomic<bool> has_peers;

/** Whether an address lies in such memory. */
bool of_a_peer(uintptr_t address);

/** Counts writes to global memory and ends of blocks, over all ranks: while it moves, nobody is deadlocked. */
extern std::atomic<uint64_t> progress;

void switch_to_scheduler(Lane& lane);
void leave(Lane& lane);

struct Range {
  uintptr_t begin, end;
};
/** The range of known memory that holds an address; begin == end: none. */
Range find_range(uintptr_t address);
void forget_cached_ranges();
void drop_cached_ranges();
bool strict_ranges();

// Checking mode.
void race_access(Lane& lane, uintptr_t address, size_t bytes, bool write, bool is_atomic, int scope, const void* code);
void race_barrier(Resident& block);
void race_begin_block(Resident& block, uint64_t number);
void race_end_block(Resident& block);
void race_drop_block(Resident& block);
void race_begin_launch(const Launch& launch);
void race_end_launch(const Launch& launch);
void lds_read(Lane& lane, uintptr_t offset, size_t bytes, const void* code);

}  // namespace kw
