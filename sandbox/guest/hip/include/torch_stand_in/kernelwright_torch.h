// torch's C++ interface as far as kernel launchers use it: tensors by number, everything they can do asked of Python.
//
// Stands in for torch/extension.h where a source is compiled for a chip that is not there, or run on the CPU: hundreds
// of times less text, `is_cuda()` is true as on the board, and a tensor without data has a null pointer. Names and
// semantics: PyTorch C++ API reference. What is missing here is told apart from what torch does not have either by
// compiling against torch's own headers (`inline`).
#pragma once
#include <algorithm>
#include <array>
#include <cassert>
#include <cmath>
#include <cstdio>
#include <cstdlib>
#include <cstring>
#include <initializer_list>
#include <iostream>
#include <limits>
#include <map>
#include <memory>
#include <mutex>
#include <numeric>
#include <optional>
#include <sstream>
#include <stdexcept>
#include <string>
#include <string_view>
#include <tuple>
#include <type_traits>
#include <unordered_map>
#include <utility>
#include <vector>

#include "kernelwright_values.h"
#include "kernelwright_scalars.h"

namespace c10 {
using std::nullopt;
using std::optional;
using nullopt_t = std::nullopt_t;

struct Error : std::runtime_error {
  using std::runtime_error::runtime_error;
};

template <class T>
class ArrayRef {
  const T* data_ = nullptr;
  size_t size_ = 0;

 public:
  using value_type = T;
  ArrayRef() = default;
  ArrayRef(const T& one) : data_(&one), size_(1) {}
  ArrayRef(const T* data, size_t size) : data_(data), size_(size) {}
  ArrayRef(const std::vector<T>& from) : data_(from.data()), size_(from.size()) {}
  ArrayRef(const std::initializer_list<T>& from) : data_(from.begin()), size_(from.size()) {}
  template <size_t N>
  ArrayRef(const std::array<T, N>& from) : data_(from.data()), size_(N) {}
  const T* begin() const { return data_; }
  const T* end() const { return data_ + size_; }
  const T* data() const { return data_; }
  size_t size() const { return size_; }
  bool empty() const { return size_ == 0; }
  const T& operator[](size_t i) const { return data_[i]; }
  const T& at(size_t i) const { return data_[i]; }
  const T& front() const { return data_[0]; }
  const T& back() const { return data_[size_ - 1]; }
  ArrayRef slice(size_t from) const { return {data_ + from, size_ - from}; }
  ArrayRef slice(size_t from, size_t count) const { return {data_ + from, count}; }
  std::vector<T> vec() const { return {begin(), end()}; }
  bool equals(ArrayRef other) const { return std::equal(begin(), end(), other.begin(), other.end()); }
  bool operator==(ArrayRef other) const { return equals(other); }
  bool operator!=(ArrayRef other) const { return !equals(other); }
};
template <class T>
std::ostream& operator<<(std::ostream& out, ArrayRef<T> values) {
  out << "[";
  for (size_t i = 0; i < values.size(); ++i) out << (i ? ", " : "") << values[i];
  return out << "]";
}
using IntArrayRef = ArrayRef<int64_t>;

enum class DeviceType : int8_t { CPU = 0, CUDA = 1, HIP = 1 };
using DeviceIndex = int8_t;
struct Device {
  DeviceType kind = DeviceType::CPU;
  DeviceIndex number = 0;
  Device(DeviceType type, DeviceIndex index = 0) : kind(type), number(index) {}
  Device(const std::string& name) : kind(name.rfind("cpu", 0) == 0 ? DeviceType::CPU : DeviceType::CUDA) {}
  Device(const char* name) : Device(std::string(name)) {}
  DeviceType type() const { return kind; }
  DeviceIndex index() const { return number; }
  bool is_cuda() const { return kind == DeviceType::CUDA; }
  bool is_hip() const { return is_cuda(); }
  bool is_cpu() const { return kind == DeviceType::CPU; }
  std::string str() const { return is_cuda() ? "cuda:0" : "cpu"; }
  bool operator==(const Device& other) const { return kind == other.kind; }
  bool operator!=(const Device& other) const { return kind != other.kind; }
};
inline std::ostream& operator<<(std::ostream& out, const Device& device) { return out << device.str(); }
inline constexpr DeviceType kCPU = DeviceType::CPU, kCUDA = DeviceType::CUDA, kHIP = DeviceType::HIP;
enum class Layout : int8_t { Strided };
inline constexpr Layout kStrided = Layout::Strided;
enum class MemoryFormat : int8_t { Contiguous, Preserve, ChannelsLast };

struct TensorOptions {
  std::optional<ScalarType> type_;
  std::optional<Device> device_;
  TensorOptions() = default;
  TensorOptions(ScalarType type) : type_(type) {}
  TensorOptions(TypeMeta type) : type_(type) {}
  TensorOptions(Device device) : device_(device) {}
  TensorOptions(DeviceType device) : device_(Device(device)) {}
  TensorOptions dtype(ScalarType type) const { auto made = *this; made.type_ = type; return made; }
  TensorOptions dtype(TypeMeta type) const { return dtype(static_cast<ScalarType>(type)); }
  TensorOptions device(Device device) const { auto made = *this; made.device_ = device; return made; }
  TensorOptions device(DeviceType kind, DeviceIndex = 0) const { return device(Device(kind)); }
  TensorOptions layout(Layout) const { return *this; }
  TensorOptions requires_grad(bool = true) const { return *this; }
  TensorOptions pinned_memory(bool) const { return *this; }
  TensorOptions memory_format(MemoryFormat) const { return *this; }
  TypeMeta dtype() const { return type_.value_or(ScalarType::Float); }
  Device device() const { return device_.value_or(Device(kCPU)); }
};
inline TensorOptions dtype(ScalarType type) { return TensorOptions(type); }
inline TensorOptions dtype(TypeMeta type) { return TensorOptions(type); }
inline TensorOptions device(Device device) { return TensorOptions(device); }

struct Scalar {
  bool whole_;
  int64_t whole;
  double real;
  template <class T, std::enable_if_t<std::is_arithmetic_v<T>, int> = 0>
  Scalar(T value) : whole_(std::is_integral_v<T>), whole(static_cast<int64_t>(value)), real(static_cast<double>(value)) {}
  template <class T>
  T to() const { return whole_ ? static_cast<T>(whole) : static_cast<T>(real); }
  float toFloat() const { return to<float>(); }
  double toDouble() const { return to<double>(); }
  int64_t toLong() const { return to<int64_t>(); }
  int toInt() const { return to<int>(); }
};

template <class... Parts>
std::string str(const Parts&... parts) {
  std::ostringstream out;
  (out << ... << parts);
  return out.str();
}
}  // namespace c10

#define TORCH_CHECK(condition, ...)                                                                          \
  do {                                                                                                       \
    if (!(condition))                                                                                        \
      throw ::c10::Error(sizeof(#__VA_ARGS__) > 1 ? ::c10::str(__VA_ARGS__) : "Expected " #condition " to be true"); \
  } while (false)
#define TORCH_INTERNAL_ASSERT TORCH_CHECK
#define TORCH_INTERNAL_ASSERT_DEBUG_ONLY TORCH_CHECK
#define TORCH_CHECK_EQ(a, b, ...) TORCH_CHECK((a) == (b), #a " == " #b ": ", a, " vs ", b)
#define TORCH_CHECK_NE(a, b, ...) TORCH_CHECK((a) != (b), #a " != " #b)
#define TORCH_CHECK_LT(a, b, ...) TORCH_CHECK((a) < (b), #a " < " #b)
#define TORCH_CHECK_LE(a, b, ...) TORCH_CHECK((a) <= (b), #a " <= " #b)
#define TORCH_CHECK_GT(a, b, ...) TORCH_CHECK((a) > (b), #a " > " #b)
#define TORCH_CHECK_GE(a, b, ...) TORCH_CHECK((a) >= (b), #a " >= " #b)
#define TORCH_CHECK_VALUE TORCH_CHECK
#define TORCH_CHECK_TYPE TORCH_CHECK
#define TORCH_CHECK_NOT_IMPLEMENTED TORCH_CHECK
#define TORCH_WARN(...) (std::cerr << ::c10::str(__VA_ARGS__) << std::endl)
#define TORCH_WARN_ONCE TORCH_WARN
#define AT_ASSERT(condition) TORCH_CHECK(condition, #condition)
#define AT_ASSERTM TORCH_CHECK
#define AT_ERROR(...) throw ::c10::Error(::c10::str(__VA_ARGS__))
#define C10_UNUSED __attribute__((unused))
#define C10_HOST_DEVICE __host__ __device__
#define C10_DEVICE __device__
#define C10_HOST __host__

#include "kernelwright_tensor.h"
#include "kernelwright_binding.h"
