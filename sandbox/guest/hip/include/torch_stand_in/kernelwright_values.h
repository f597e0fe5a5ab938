// What crosses between Python and a built extension: plain values, one table of callbacks, one list of functions.
#pragma once
#include <cstdint>
#include <functional>
#include <stdexcept>
#include <string>
#include <vector>

extern "C" {
enum KwKind : int32_t { KW_NONE, KW_TENSOR, KW_INT, KW_REAL, KW_BOOL, KW_TEXT, KW_LIST, KW_DTYPE, KW_DEVICE, KW_NAMED };
// `whole`: a tensor's number, a whole number, a scalar type, a device type. `at`: characters, or values; a named value
// is two of them, the name first.
struct KwValue {
  int32_t kind;
  int32_t length;
  int64_t whole;
  double real;
  const void* at;
};
struct KwTensor {
  void* data;
  int64_t numel;
  int32_t dims, dtype, device, item_bytes;
  int64_t sizes[16], strides[16];
};
struct KwTorch {
  void (*describe)(int64_t tensor, KwTensor* out);
  // A method of the first argument where that is a tensor, else a function of torch; 1 where it raised, with a text.
  int (*call)(const char* name, const KwValue* arguments, int32_t count, KwValue* out);
  void (*release)(int64_t tensor);
};
}

namespace kw {
static KwTorch torch{};

// Values on their way out live until the caller has read them.
struct Arena {
  std::vector<std::vector<KwValue>*> lists;
  std::vector<std::string*> texts;
  void clear() {
    for (auto* list : lists) delete list;
    for (auto* text : texts) delete text;
    lists.clear();
    texts.clear();
  }
};
static Arena arena;

inline KwValue whole(KwKind kind, int64_t value) { return {kind, 0, value, 0, nullptr}; }
inline KwValue text(const std::string& value) {
  arena.texts.push_back(new std::string(value));
  return {KW_TEXT, static_cast<int32_t>(value.size()), 0, 0, arena.texts.back()->data()};
}
inline KwValue list(const std::vector<KwValue>& values) {
  arena.lists.push_back(new std::vector<KwValue>(values));
  return {KW_LIST, static_cast<int32_t>(values.size()), 0, 0, arena.lists.back()->data()};
}
inline KwValue named(const char* name, const KwValue& value) {
  arena.lists.push_back(new std::vector<KwValue>{text(name), value});
  return {KW_NAMED, 2, 0, 0, arena.lists.back()->data()};
}
inline std::string as_text(const KwValue& value) {
  return value.at ? std::string(static_cast<const char*>(value.at), value.length) : std::string();
}
inline const KwValue* items(const KwValue& value) { return static_cast<const KwValue*>(value.at); }

struct Parameter {
  std::string name;
  bool optional = false;
  KwValue value{};
};
struct Function {
  std::string name;
  int32_t count = 0;
  std::function<KwValue(const KwValue*)> run;
  std::vector<Parameter> parameters;
};
static std::vector<Function> functions;
}  // namespace kw
