// What pybind11 does for an extension: functions by name, their arguments made from Python's values, their result sent.
#pragma once

namespace kw {
template <class T>
struct From {
  static_assert(sizeof(T) == 0, "no argument of this type can come from Python here");
};
template <class T>
  requires std::is_arithmetic_v<T>
struct From<T> {
  static T take(const KwValue& value) {
    if (value.kind == KW_REAL && std::is_integral_v<T>) throw c10::Error("a whole number is wanted, not a float");
    if (value.kind != KW_REAL && value.kind != KW_INT && value.kind != KW_BOOL) throw c10::Error("a number is wanted");
    return value.kind == KW_REAL ? static_cast<T>(value.real) : static_cast<T>(value.whole);
  }
};
template <class T>
struct From<T*> {
  static T* take(const KwValue& value) { return reinterpret_cast<T*>(value.whole); }
};
template <>
struct From<at::Tensor> {
  static at::Tensor take(const KwValue& value) {
    if (value.kind != KW_TENSOR && value.kind != KW_NONE) throw c10::Error("a tensor is wanted");
    return made(value);
  }
};
template <>
struct From<std::string> {
  static std::string take(const KwValue& value) { return as_text(value); }
};
template <>
struct From<c10::ScalarType> {
  static c10::ScalarType take(const KwValue& value) { return static_cast<c10::ScalarType>(value.whole); }
};
template <>
struct From<c10::Device> {
  static c10::Device take(const KwValue& value) { return static_cast<c10::DeviceType>(value.whole); }
};
template <>
struct From<c10::Scalar> {
  static c10::Scalar take(const KwValue& value) {
    return value.kind == KW_REAL ? c10::Scalar(value.real) : c10::Scalar(value.whole);
  }
};
template <class T>
struct From<std::optional<T>> {
  static std::optional<T> take(const KwValue& value) {
    if (value.kind == KW_NONE) return std::nullopt;
    return From<T>::take(value);
  }
};
template <class T>
struct From<std::vector<T>> {
  static std::vector<T> take(const KwValue& value) {
    if (value.kind != KW_LIST) throw c10::Error("a list is wanted");
    std::vector<T> made;
    for (int32_t i = 0; i < value.length; ++i) made.push_back(From<T>::take(items(value)[i]));
    return made;
  }
};
// A view of a list needs somebody to own it.
template <class T>
struct Owner {
  using type = T;
};
template <class T>
struct Owner<c10::ArrayRef<T>> {
  using type = std::vector<T>;
};
template <class T>
using Owned = typename Owner<std::remove_cv_t<std::remove_reference_t<T>>>::type;

static std::vector<at::Tensor> kept;
inline KwValue send(const at::Tensor& tensor) {
  kept.push_back(tensor);
  return value(tensor);
}
template <class T>
KwValue send(const T& plain) { return value(plain); }
inline KwValue send(const std::vector<at::Tensor>& tensors) {
  kept.insert(kept.end(), tensors.begin(), tensors.end());
  return value(tensors);
}
template <class... T>
KwValue send(const std::tuple<T...>& parts) {
  return std::apply([](const auto&... part) { return list({send(part)...}); }, parts);
}
template <class A, class B>
KwValue send(const std::pair<A, B>& pair) { return list({send(pair.first), send(pair.second)}); }

template <class R, class... A, size_t... I>
KwValue run(const std::function<R(A...)>& function, const KwValue* given, std::index_sequence<I...>) {
  std::tuple<Owned<A>...> owned{From<Owned<A>>::take(given[I])...};
  if constexpr (std::is_void_v<R>) {
    function(static_cast<A>(std::get<I>(owned))...);
    return {};
  } else {
    return send(function(static_cast<A>(std::get<I>(owned))...));
  }
}
template <class R, class... A>
void define(const std::string& name, std::function<R(A...)> function, std::vector<Parameter> parameters) {
  auto run_it = [function](const KwValue* given) { return run(function, given, std::index_sequence_for<A...>{}); };
  functions.push_back({name, static_cast<int32_t>(sizeof...(A)), run_it, std::move(parameters)});
}
}  // namespace kw

namespace pybind11 {
struct none {};
struct arg {
  kw::Parameter held;
  explicit arg(const char* name) { held.name = name; }
  template <class T>
  arg operator=(const T& value) const {
    arg made = *this;
    made.held.optional = true;
    made.held.value = kw::value(value);
    // A default outlives every call: its text and lists are never cleared.
    kw::arena = {};
    return made;
  }
  arg operator=(std::nullopt_t) const { return none(); }
  arg operator=(const pybind11::none&) const { return none(); }
  arg none(bool = true) const {
    arg made = *this;
    made.held.optional = true;
    return made;
  }
  arg noconvert(bool = true) const { return *this; }
};
template <class T>
struct call_guard {};
struct gil_scoped_release {};
struct gil_scoped_acquire {};
namespace literals {
inline arg operator""_a(const char* name, size_t) { return arg(name); }
}  // namespace literals

struct module_ {
  template <class F, class... Extra>
  module_& def(const char* name, F&& function, const Extra&... extra) {
    std::vector<kw::Parameter> parameters;
    (add(parameters, extra), ...);
    kw::define(name, std::function(std::forward<F>(function)), std::move(parameters));
    return *this;
  }
  std::string doc() const { return {}; }

 private:
  static void add(std::vector<kw::Parameter>& to, const arg& one) { to.push_back(one.held); }
  template <class T>
  static void add(std::vector<kw::Parameter>&, const T&) {}
};
using module = module_;
}  // namespace pybind11
namespace py = pybind11;
namespace torch {
template <class F>
F* wrap_pybind_function(F* function) { return function; }
}  // namespace torch

// Operators of a library, as `torch.ops` shows them: functions whose name begins with the library's.
namespace torch {
class Library {
  std::string space_;

 public:
  explicit Library(const char* space) : space_(space) {}
  Library& def(const char*) { return *this; }
  template <class F>
  Library& def(const char* name, F&& function) { return impl(name, std::forward<F>(function)); }
  template <class F>
  Library& impl(const char* name, F&& function) {
    const std::string plain(name, std::string_view(name).find_first_of("( ") == std::string_view::npos
                                      ? std::strlen(name) : std::string_view(name).find_first_of("( "));
    kw::define(space_ + "::" + plain, std::function(std::forward<F>(function)), {});
    return *this;
  }
  template <class Key, class F>
  Library& impl(const char* name, Key, F&& function) { return impl(name, std::forward<F>(function)); }
};
template <class Key, class F>
F* dispatch(Key, F* function) { return function; }
}  // namespace torch
namespace c10 {
enum class DispatchKey { CPU, CUDA, HIP, CompositeExplicitAutograd, Meta };
}  // namespace c10
#define TORCH_FN(function) function
#define TORCH_BOX(function) function
#define TORCH_LIBRARY(space, variable) KW_LIBRARY(space, variable, __COUNTER__)
#define TORCH_LIBRARY_FRAGMENT(space, variable) KW_LIBRARY(space, variable, __COUNTER__)
#define TORCH_LIBRARY_IMPL(space, key, variable) KW_LIBRARY(space, variable, __COUNTER__)
#define TORCH_LIBRARY_EXPAND(space, variable) KW_LIBRARY(space, variable, __COUNTER__)
#define KW_LIBRARY(space, variable, number) KW_LIBRARY_OF(space, variable, number)
#define KW_LIBRARY_OF(space, variable, number)                              \
  static void kw_library_##number(::torch::Library& variable);              \
  namespace {                                                               \
  const int kw_library_defined_##number = [] {                              \
    ::torch::Library made(#space);                                          \
    kw_library_##number(made);                                              \
    return 0;                                                               \
  }();                                                                      \
  }                                                                         \
  static void kw_library_##number(::torch::Library& variable)

#define PYBIND11_MODULE(name, variable)                                     \
  static void kw_define_module(::pybind11::module_& variable);              \
  namespace {                                                               \
  const int kw_defined = [] {                                               \
    ::pybind11::module_ made;                                               \
    kw_define_module(made);                                                 \
    return 0;                                                               \
  }();                                                                      \
  }                                                                         \
  static void kw_define_module(::pybind11::module_& variable)

#define KW_EXPORT extern "C" __attribute__((visibility("default"), used)) inline
KW_EXPORT void kw_torch_bind(const KwTorch* table) { kw::torch = *table; }
KW_EXPORT int32_t kw_torch_list(int32_t at, const char** name, int32_t* count) {
  if (at < static_cast<int32_t>(kw::functions.size())) {
    *name = kw::functions[at].name.c_str();
    *count = kw::functions[at].count;
  }
  return static_cast<int32_t>(kw::functions.size());
}
// The `place`-th parameter of a function: 0 where it has no name, 1 where it has one, 2 where it has a default too.
KW_EXPORT int32_t kw_torch_parameter(int32_t at, int32_t place, const char** name, KwValue* value) {
  const auto& known = kw::functions[at].parameters;
  if (place >= static_cast<int32_t>(known.size())) return 0;
  *name = known[place].name.c_str();
  *value = known[place].value;
  return known[place].optional ? 2 : 1;
}
// 0, or 1 where it raised: the result is the text then.
KW_EXPORT int32_t kw_torch_run(int32_t at, const KwValue* arguments, KwValue* result) {
  try {
    *result = kw::functions[at].run(arguments);
    return 0;
  } catch (const std::exception& error) {
    *result = kw::text(error.what());
    return 1;
  }
}
KW_EXPORT void kw_torch_clear() {
  kw::kept.clear();
  kw::arena.clear();
}
