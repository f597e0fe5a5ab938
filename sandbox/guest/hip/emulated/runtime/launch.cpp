// Launches: blocks shared out among OS threads, blocks that wait set aside for others, deadlocks found.
#include <unistd.h>

#include <chrono>
#include <cstring>
#include <deque>
#include <memory>
#include <thread>

#include "runtime.h"

namespace kw {

Options options;
std::atomic<uint64_t> progress{0};
thread_local uint64_t writes = 0;  // to global memory, by this worker, not yet in `progress`
static std::atomic<int> working{0};  // workers, of all launches, that have something to do
static thread_local int device = 0;
static void (*on_launch)(const Launch*) = nullptr;

static double now_s() {
  return std::chrono::duration<double>(std::chrono::steady_clock::now().time_since_epoch()).count();
}

/** One OS thread of a launch, and the blocks it has begun. */
class Worker {
 public:
  Worker(const Launch& launch, std::atomic<uint64_t>& next, std::atomic<unsigned>& resident, unsigned capacity)
      : launch_(launch), next_(next), resident_(resident), capacity_(capacity) {}

  void run() {
    working++;
    forget_cached_ranges();
    for (unsigned turn = 0; !stopping(); turn++) {
      bool moved = rotate();
      // Blocks that wait may wait for one that has not begun; those that get on do so best alone.
      if (!moved || begun_.empty() || turn % 64 == 63) moved |= take();
      if (begun_.empty()) break;
      publish(moved);
      if (!moved) wait();
    }
    if (!idle_) working--;
    drop_cached_ranges();
    progress += writes + 1;
    writes = 0;
  }

 private:
  // Every begun block gets its turn; whether one finished or wrote something.
  bool rotate() {
    bool moved = false;
    for (size_t i = 0; i < begun_.size() && !stopping();) {
      if (begun_[i]->run() != Resident::State::finished) {
        i++;
        continue;
      }
      if (options.check) race_end_block(*begun_[i]);
      spare_ = std::move(begun_[i]);
      begun_.erase(begun_.begin() + long(i));
      resident_--;
      moved = true;
    }
    return moved || writes;
  }

  // A block more, when all begun ones wait and the device has room for it.
  bool take() {
    if (next_.load(std::memory_order_relaxed) >= blocks()) return false;
    if (resident_.fetch_add(1) >= capacity_) return resident_--, false;
    uint64_t index = next_++;
    if (index >= blocks()) return resident_--, false;
    auto block = spare_ ? std::move(spare_) : std::make_unique<Resident>(launch_);
    block->begin(launch_, index);
    begun_.push_back(std::move(block));
    return true;
  }

  void publish(bool moved) {
    if (writes || moved) progress += writes + moved;
    writes = 0;
    if (moved == idle_) idle_ = !moved, moved ? working++ : working--;
  }

  void wait() {
    uint64_t seen = progress;
    double now = now_s();
    if (seen != seen_ || working > 0) seen_ = seen, since_s_ = now;
    if (now - since_s_ > options.deadlock_s * (has_peers ? 20 : 1)) return deadlock();
    std::this_thread::sleep_for(std::chrono::microseconds(50));
  }

  void deadlock() const {
    std::vector<Place> places;
    std::string message = "nothing was written for " + std::to_string(options.deadlock_s) + " s while ";
    for (const auto& block : begun_)
      for (const Lane& lane : block->lanes) {
        if (!lane.polled || places.size() >= 6) continue;
        if (places.size()) message += "; ";
        message += "thread " + std::to_string(lane.number) + " of block " + std::to_string(block->id.x) + " on rank " +
                   std::to_string(launch_.rank) + " waits for " + describe(lane.polled, launch_.rank);
        places.push_back(place(lane, lane.polled_at));
        break;
      }
    fault_at("deadlock", launch_, places, message);
  }

  uint64_t blocks() const { return uint64_t(launch_.grid.x) * launch_.grid.y * launch_.grid.z; }

  const Launch& launch_;
  std::atomic<uint64_t>& next_;
  std::atomic<unsigned>& resident_;
  unsigned capacity_;
  std::deque<std::unique_ptr<Resident>> begun_;
  std::unique_ptr<Resident> spare_;
  bool idle_ = false;
  uint64_t seen_ = 0;
  double since_s_ = now_s();
};

/** How many blocks of a launch the device holds at once: 2048 threads a compute unit, LDS as asked for at launch. */
static unsigned capacity(const Launch& launch) {
  unsigned threads = launch.block.x * launch.block.y * launch.block.z;
  unsigned each = std::max(1u, 2048 / ((threads + 63) / 64 * 64));
  if (launch.dynamic_bytes) each = std::min<unsigned>(each, unsigned(options.lds_limit / launch.dynamic_bytes));
  return std::max(1u, std::min(each, 32u)) * unsigned(options.compute_units);
}

static int refuse_launch(const Launch& launch) {
  uint64_t threads = uint64_t(launch.block.x) * launch.block.y * launch.block.z;
  if (!threads || threads > 1024 || !launch.grid.x || !launch.grid.y || !launch.grid.z) return 9;
  if (launch.dynamic_bytes > size_t(options.lds_limit)) return 1;
  uint64_t blocks = uint64_t(launch.grid.x) * launch.grid.y * launch.grid.z;
  if (launch.cooperative && blocks > capacity(launch)) return 720;
  return 0;
}

static void run_workers(const Launch& launch) {
  std::atomic<uint64_t> next{0};
  std::atomic<unsigned> resident{0};
  uint64_t blocks = uint64_t(launch.grid.x) * launch.grid.y * launch.grid.z;
  unsigned cores = options.workers > 0 ? unsigned(options.workers) : std::max(1u, std::thread::hardware_concurrency());
  unsigned count = unsigned(std::min<uint64_t>(blocks, cores));
  std::vector<std::thread> threads;
  for (unsigned i = 0; i < count; i++)
    threads.emplace_back([&] { Worker(launch, next, resident, capacity(launch)).run(); });
  for (auto& thread : threads) thread.join();
}

}  // namespace kw

using namespace kw;

int kw_launch(Launch* launch) {
  launch->rank = device;
  if (on_launch) on_launch(launch);
  if (stopping()) return 719;
  if (!options.run) return 0;
  if (int error = refuse_launch(*launch)) return error;
  if (options.check) race_begin_launch(*launch);
  run_workers(*launch);
  if (options.check) race_end_launch(*launch);
  return stopping() ? 719 : 0;
}

KW_RUNTIME void kw_on_launch(void (*callback)(const Launch*)) { on_launch = callback; }
KW_RUNTIME Options* kw_options() { return &options; }
KW_RUNTIME void kw_set_device(int number) { device = number; }
KW_RUNTIME int kw_device() { return device; }
