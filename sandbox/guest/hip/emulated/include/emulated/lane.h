// What kernels and the runtime share: one lane per HIP thread, a fiber each; 64 lanes a wave; waves of a block on one OS thread.
#pragma once
#include <cstddef>
#include <cstdint>

// Accesses through address space 1 are ordinary on a CPU, and the access hooks leave them out: for the runtime's own data.
#define KW_UNSEEN __attribute__((address_space(1)))
// A lane move must stay where it is written: no copy of it into two branches, or lanes would no longer meet.
#define KW_CONVERGENT __attribute__((convergent))
#define KW_RUNTIME extern "C" __attribute__((visibility("default")))

namespace kw {

struct Index {
  unsigned x, y, z;
};

struct Wave;
struct Block;
struct Launch;
struct Clocks;

/** What runs a wave operation once its lanes are there: `lanes` has a bit for each that takes part. */
using Operation = void (*)(Wave&, uint64_t lanes);

/** One thread of a kernel. The first fields are read by kernels. */
struct Lane {
  Index thread;
  unsigned lane;    // 0..63 in its wave
  unsigned number;  // in its block
  Wave* wave;
  Block* block;
  Operation operation;  // the wave operation or barrier it waits at
  void* operands;
  const void* site;  // the code's address
  int place;         // line and column of a barrier: one that the compiler copied has several addresses
  void* stack_pointer;
  char* stack;
  unsigned steps;  // accesses since it last gave way
  unsigned polls;  // atomic loads since it last wrote anything
  uintptr_t polled;
  const void* polled_at;
  unsigned met;  // number of the last meeting of its wave that it was at
};

struct Wave {
  Lane* lanes;
  Block* block;
  unsigned number;
  uint64_t live, ready, waiting, at_barrier, spinning;
  unsigned meetings;
  Clocks* clocks;  // of the checking mode
};

/** Where a block stands, and what it shares. */
struct Block {
  Index id, size, grid;
  Launch* launch;
  char* lds;
  uint8_t* shadow;  // per byte of `lds`: 0 nobody's, 1 never written, 2 written
  size_t dynamic_bytes;
  Lane* all;
  unsigned count;
};

/** A `__shared__` variable. */
struct Site {
  size_t bytes, align;
  const char* name;
  int line;
  int number;  // given at its first use
};

/** An argument of a launch. */
struct Scalar {
  char kind;  // 'i' signed, 'u' unsigned, 'f' floating, 'p' pointer, 's' a structure
  union {
    int64_t i;
    uint64_t u;
    double f;
  };
};

struct Launch {
  const char* kernel;
  const void* address;
  Index grid, block;
  size_t dynamic_bytes;
  const Scalar* arguments;
  int argument_count;
  bool cooperative;
  void (*body)(void*);
  void* closure;
  size_t closure_bytes;
  int rank;  // filled in by the runtime
  uint64_t arrived;  // at barriers of the whole grid
};

extern __thread Lane* current __attribute__((tls_model("initial-exec"), visibility("default")));

}  // namespace kw

KW_RUNTIME KW_CONVERGENT void kw_meet(kw::Operation, void* operands);
KW_RUNTIME KW_CONVERGENT void kw_barrier(kw::Operation, void* operands, int place);
KW_RUNTIME void kw_give_way(const void* address);
KW_RUNTIME void* kw_shared(kw::Site*);
KW_RUNTIME void* kw_dynamic_shared();
KW_RUNTIME int kw_launch(kw::Launch*);
KW_RUNTIME void kw_touch(const void* address, size_t bytes, int write, int atomic_scope);
KW_RUNTIME void kw_synchronise(const void* address, size_t bytes, int order, int scope, int what);
KW_RUNTIME void kw_fence(int order, int scope);
KW_RUNTIME __attribute__((noreturn)) void kw_refuse(const char* what);

namespace kw {

inline __attribute__((always_inline)) KW_UNSEEN Lane* lane() {
  return (KW_UNSEEN Lane*)*(Lane * KW_UNSEEN*)&current;
}
inline __attribute__((always_inline)) KW_UNSEEN Block* block() { return (KW_UNSEEN Block*)lane()->block; }

}  // namespace kw
