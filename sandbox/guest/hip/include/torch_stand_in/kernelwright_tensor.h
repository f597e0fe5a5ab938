// at::Tensor: a number that Python knows, with its shape. Methods without a body of their own are Python's of that name.
#pragma once

namespace at {
class Tensor;
}
namespace kw {
inline KwValue value(const at::Tensor& tensor);
inline KwValue value(bool x) { return whole(KW_BOOL, x); }
inline KwValue value(int x) { return whole(KW_INT, x); }
inline KwValue value(int64_t x) { return whole(KW_INT, x); }
inline KwValue value(size_t x) { return whole(KW_INT, static_cast<int64_t>(x)); }
inline KwValue value(double x) { return {KW_REAL, 0, 0, x, nullptr}; }
inline KwValue value(float x) { return value(static_cast<double>(x)); }
inline KwValue value(const c10::Scalar& x) { return x.whole_ ? value(x.whole) : value(x.real); }
inline KwValue value(c10::ScalarType x) { return whole(KW_DTYPE, static_cast<int64_t>(x)); }
inline KwValue value(c10::TypeMeta x) { return value(x.type); }
inline KwValue value(const c10::Device& x) { return whole(KW_DEVICE, static_cast<int64_t>(x.kind)); }
inline KwValue value(const std::string& x) { return text(x); }
inline KwValue value(const char* x) { return text(x); }
template <class T>
KwValue values(const T* from, size_t count) {
  std::vector<KwValue> made;
  for (size_t i = 0; i < count; ++i) made.push_back(value(from[i]));
  return list(made);
}
template <class T>
KwValue value(c10::ArrayRef<T> x) { return values(x.data(), x.size()); }
template <class T>
KwValue value(const std::vector<T>& x) { return values(x.data(), x.size()); }
template <class T>
KwValue value(const std::optional<T>& x) { return x ? value(*x) : KwValue{}; }

// Options as named arguments, those that are set.
inline std::vector<KwValue> options(const c10::TensorOptions& from) {
  std::vector<KwValue> made;
  if (from.type_) made.push_back(named("dtype", value(*from.type_)));
  if (from.device_) made.push_back(named("device", value(*from.device_)));
  return made;
}
inline KwValue call(const char* name, const std::vector<KwValue>& arguments) {
  KwValue out{};
  if (torch.call == nullptr) throw c10::Error("torch is not there");
  if (torch.call(name, arguments.data(), static_cast<int32_t>(arguments.size()), &out) != 0)
    throw c10::Error(as_text(out));
  return out;
}
inline at::Tensor made(const KwValue& value);
template <class... A>
inline at::Tensor ask(const char* name, const A&... arguments);
}  // namespace kw

namespace at {
using namespace c10;

class Tensor {
  struct Held {
    int64_t number;
    KwTensor info;
    ~Held() {
      if (kw::torch.release) kw::torch.release(number);
    }
  };
  std::shared_ptr<Held> held_;
  const KwTensor& info() const {
    if (!held_) throw c10::Error("an undefined tensor was used");
    return held_->info;
  }
  int64_t at_dim(int64_t dim) const {
    const int64_t dims = info().dims, found = dim < 0 ? dim + dims : dim;
    if (found < 0 || found >= dims) throw c10::Error(c10::str("Dimension out of range: ", dim, " of ", dims));
    return found;
  }

 public:
  Tensor() = default;
  static Tensor of(int64_t number) {
    Tensor tensor;
    tensor.held_ = std::make_shared<Held>();
    tensor.held_->number = number;
    kw::torch.describe(number, &tensor.held_->info);
    return tensor;
  }
  int64_t number() const { return held_ ? held_->number : -1; }
  bool defined() const { return held_ != nullptr; }
  void reset() { held_.reset(); }

  int64_t dim() const { return info().dims; }
  int64_t ndimension() const { return dim(); }
  int64_t numel() const { return info().numel; }
  int64_t size(int64_t dim) const { return info().sizes[at_dim(dim)]; }
  int64_t stride(int64_t dim) const { return info().strides[at_dim(dim)]; }
  IntArrayRef sizes() const { return {info().sizes, static_cast<size_t>(info().dims)}; }
  IntArrayRef strides() const { return {info().strides, static_cast<size_t>(info().dims)}; }
  ScalarType scalar_type() const { return static_cast<ScalarType>(info().dtype); }
  TypeMeta dtype() const { return scalar_type(); }
  Device device() const { return static_cast<DeviceType>(info().device); }
  Layout layout() const { return kStrided; }
  TensorOptions options() const { return TensorOptions(scalar_type()).device(device()); }
  DeviceIndex get_device() const { return is_cuda() ? 0 : -1; }
  bool is_cuda() const { return device().is_cuda(); }
  bool is_hip() const { return is_cuda(); }
  bool is_cpu() const { return !is_cuda(); }
  bool is_sparse() const { return false; }
  bool requires_grad() const { return false; }
  size_t element_size() const { return info().item_bytes; }
  size_t itemsize() const { return element_size(); }
  size_t nbytes() const { return element_size() * numel(); }
  bool is_floating_point() const { return kw::call("is_floating_point", {kw::value(*this)}).whole != 0; }
  bool is_contiguous(MemoryFormat = MemoryFormat::Contiguous) const {
    int64_t expected = 1;
    for (int64_t i = dim() - 1; i >= 0; --i) {
      if (size(i) != 1 && stride(i) != expected) return numel() == 0;
      expected *= size(i);
    }
    return true;
  }
  bool is_same(const Tensor& other) const { return held_ == other.held_; }

  void* data_ptr() const { return info().data; }
  void* mutable_data_ptr() const { return info().data; }
  const void* const_data_ptr() const { return info().data; }
  template <class T>
  T* data_ptr() const {
    using Plain = std::remove_cv_t<T>;
    const ScalarType wanted = CppTypeToScalarType<Plain>::value;
    if (wanted != scalar_type())
      throw c10::Error(c10::str("expected scalar type ", wanted, " but found ", scalar_type()));
    return static_cast<T*>(info().data);
  }
  template <class T>
  T* mutable_data_ptr() const { return data_ptr<T>(); }
  template <class T>
  const T* const_data_ptr() const { return data_ptr<T>(); }
  template <class T>
  T item() const {
    const KwValue found = kw::call("item", {kw::value(*this)});
    return found.kind == KW_REAL ? static_cast<T>(found.real) : static_cast<T>(found.whole);
  }

#define KW_METHOD_0(name) \
  Tensor name() const { return kw::ask(#name, *this); }
  KW_METHOD_0(clone) KW_METHOD_0(detach) KW_METHOD_0(t) KW_METHOD_0(cpu) KW_METHOD_0(cuda) KW_METHOD_0(flatten)
  KW_METHOD_0(sigmoid) KW_METHOD_0(relu) KW_METHOD_0(exp) KW_METHOD_0(log) KW_METHOD_0(sqrt) KW_METHOD_0(rsqrt)
  KW_METHOD_0(abs) KW_METHOD_0(neg) KW_METHOD_0(zero_) KW_METHOD_0(max) KW_METHOD_0(min) KW_METHOD_0(argmax)
  KW_METHOD_0(sum) KW_METHOD_0(mean) KW_METHOD_0(squeeze) KW_METHOD_0(nonzero) KW_METHOD_0(tanh)
  Tensor contiguous(MemoryFormat = MemoryFormat::Contiguous) const { return kw::ask("contiguous", *this); }
#define KW_METHOD_DIMS(name) \
  Tensor name(IntArrayRef dims) const { return kw::ask(#name, *this, dims); }
  KW_METHOD_DIMS(view) KW_METHOD_DIMS(reshape) KW_METHOD_DIMS(permute) KW_METHOD_DIMS(expand) KW_METHOD_DIMS(repeat)
  KW_METHOD_DIMS(resize_)
  Tensor view(ScalarType type) const { return kw::ask("view", *this, type); }
  Tensor flatten(int64_t first, int64_t last = -1) const { return kw::ask("flatten", *this, first, last); }
  Tensor transpose(int64_t a, int64_t b) const { return kw::ask("transpose", *this, a, b); }
  Tensor unsqueeze(int64_t dim) const { return kw::ask("unsqueeze", *this, dim); }
  Tensor squeeze(int64_t dim) const { return kw::ask("squeeze", *this, dim); }
  Tensor select(int64_t dim, int64_t at) const { return kw::ask("select", *this, dim, at); }
  Tensor operator[](int64_t at) const { return select(0, at); }
  Tensor narrow(int64_t dim, int64_t from, int64_t count) const { return kw::ask("narrow", *this, dim, from, count); }
  Tensor slice(int64_t dim = 0, std::optional<int64_t> from = {}, std::optional<int64_t> to = {}, int64_t step = 1) const {
    return kw::ask("kernelwright_slice", *this, dim, from, to, step);
  }
  Tensor as_strided(IntArrayRef sizes, IntArrayRef strides) const { return kw::ask("as_strided", *this, sizes, strides); }
  Tensor index_select(int64_t dim, const Tensor& at) const { return kw::ask("index_select", *this, dim, at); }
  Tensor gather(int64_t dim, const Tensor& at) const { return kw::ask("gather", *this, dim, at); }
  Tensor argsort(int64_t dim = -1, bool down = false) const { return kw::ask("argsort", *this, dim, down); }
  Tensor cumsum(int64_t dim) const { return kw::ask("cumsum", *this, dim); }
  Tensor softmax(int64_t dim) const { return kw::ask("softmax", *this, dim); }
  Tensor sum(int64_t dim) const { return kw::ask("sum", *this, dim); }
  Tensor argmax(int64_t dim) const { return kw::ask("argmax", *this, dim); }
  Tensor matmul(const Tensor& other) const { return kw::ask("matmul", *this, other); }
  Tensor mm(const Tensor& other) const { return kw::ask("mm", *this, other); }
  Tensor bmm(const Tensor& other) const { return kw::ask("bmm", *this, other); }
  Tensor& copy_(const Tensor& from, bool = false) { kw::ask("copy_", *this, from); return *this; }
  const Tensor& copy_(const Tensor& from, bool = false) const { kw::ask("copy_", *this, from); return *this; }
  Tensor fill_(Scalar to) const { return kw::ask("fill_", *this, to); }
  Tensor add(const Tensor& other) const { return kw::ask("add", *this, other); }
  Tensor mul(const Tensor& other) const { return kw::ask("mul", *this, other); }
  Tensor mul_(const Tensor& other) const { return kw::ask("mul_", *this, other); }
  Tensor add_(const Tensor& other) const { return kw::ask("add_", *this, other); }
  Tensor to(ScalarType type, bool = false, bool = false) const { return kw::ask("to", *this, type); }
  Tensor to(Device device, ScalarType type) const { return kw::ask("to", *this, device, type); }
  Tensor to(Device device) const { return kw::ask("to", *this, device); }
  Tensor to(DeviceType device) const { return to(Device(device)); }
  Tensor to(const TensorOptions& wanted) const {
    auto arguments = kw::options(wanted);
    arguments.insert(arguments.begin(), kw::value(*this));
    return kw::made(kw::call("to", arguments));
  }
  Tensor toType(ScalarType type) const { return to(type); }
  Tensor new_empty(IntArrayRef sizes) const { return kw::ask("new_empty", *this, sizes); }
  Tensor new_zeros(IntArrayRef sizes) const { return kw::ask("new_zeros", *this, sizes); }
  std::tuple<Tensor, Tensor> topk(int64_t k, int64_t dim = -1, bool largest = true, bool sorted = true) const;
  std::tuple<Tensor, Tensor> sort(int64_t dim = -1, bool down = false) const;
};
#define KW_OPERATOR(symbol, name)                                                                        \
  inline Tensor operator symbol(const Tensor& a, const Tensor& b) { return kw::ask(name, a, b); }        \
  inline Tensor operator symbol(const Tensor& a, Scalar b) { return kw::ask(name, a, b); }
KW_OPERATOR(+, "add") KW_OPERATOR(-, "sub") KW_OPERATOR(*, "mul") KW_OPERATOR(/, "div") KW_OPERATOR(==, "eq")
KW_OPERATOR(<, "lt") KW_OPERATOR(>, "gt")
using TensorList = ArrayRef<Tensor>;
}  // namespace at

namespace kw {
inline KwValue value(const at::Tensor& tensor) { return tensor.defined() ? whole(KW_TENSOR, tensor.number()) : KwValue{}; }
inline at::Tensor made(const KwValue& value) {
  return value.kind == KW_TENSOR ? at::Tensor::of(value.whole) : at::Tensor();
}
template <class... A>
inline at::Tensor ask(const char* name, const A&... arguments) { return made(call(name, {value(arguments)...})); }
template <class... A>
inline at::Tensor create(const char* name, const c10::TensorOptions& wanted, const A&... arguments) {
  std::vector<KwValue> all{value(arguments)...};
  for (const auto& option : options(wanted)) all.push_back(option);
  return made(call(name, all));
}
inline std::tuple<at::Tensor, at::Tensor> two(const KwValue& pair) {
  return {made(items(pair)[0]), made(items(pair)[1])};
}
}  // namespace kw

namespace at {
inline std::tuple<Tensor, Tensor> Tensor::topk(int64_t k, int64_t dim, bool largest, bool sorted) const {
  return kw::two(kw::call("topk", {kw::value(*this), kw::value(k), kw::value(dim), kw::value(largest), kw::value(sorted)}));
}
inline std::tuple<Tensor, Tensor> Tensor::sort(int64_t dim, bool down) const {
  return kw::two(kw::call("sort", {kw::value(*this), kw::value(dim), kw::value(down)}));
}
inline Tensor empty(IntArrayRef sizes, const TensorOptions& options = {}) { return kw::create("empty", options, sizes); }
inline Tensor zeros(IntArrayRef sizes, const TensorOptions& options = {}) { return kw::create("zeros", options, sizes); }
inline Tensor ones(IntArrayRef sizes, const TensorOptions& options = {}) { return kw::create("ones", options, sizes); }
inline Tensor full(IntArrayRef sizes, Scalar to, const TensorOptions& options = {}) { return kw::create("full", options, sizes, to); }
inline Tensor empty_strided(IntArrayRef sizes, IntArrayRef strides, const TensorOptions& options = {}) {
  return kw::create("empty_strided", options, sizes, strides);
}
inline Tensor arange(Scalar end, const TensorOptions& options = {}) { return kw::create("arange", options, end); }
inline Tensor arange(Scalar from, Scalar end, const TensorOptions& options = {}) { return kw::create("arange", options, from, end); }
template <class T>
inline Tensor tensor(const std::vector<T>& values, const TensorOptions& options = {}) { return kw::create("tensor", options, values); }
inline Tensor tensor(Scalar value, const TensorOptions& options = {}) { return kw::create("tensor", options, value); }
inline Tensor from_blob(void* data, IntArrayRef sizes, const TensorOptions& options = {}) {
  return kw::create("kernelwright_from_blob", options, reinterpret_cast<int64_t>(data), sizes);
}
// Whoever made the memory keeps it: the emulation frees it at the end of the process.
template <class Deleter>
inline auto from_blob(void* data, IntArrayRef sizes, Deleter&&, const TensorOptions& options = {})
    -> std::enable_if_t<std::is_invocable_v<Deleter, void*>, Tensor> {
  return from_blob(data, sizes, options);
}
#define KW_LIKE(name) \
  inline Tensor name(const Tensor& like, const TensorOptions& options = {}) { return kw::create(#name, options, like); }
KW_LIKE(empty_like) KW_LIKE(zeros_like) KW_LIKE(ones_like) KW_LIKE(rand_like) KW_LIKE(randn_like)
inline Tensor cat(const std::vector<Tensor>& parts, int64_t dim = 0) { return kw::ask("cat", parts, dim); }
inline Tensor stack(const std::vector<Tensor>& parts, int64_t dim = 0) { return kw::ask("stack", parts, dim); }
#define KW_FUNCTION_2(name) \
  inline Tensor name(const Tensor& a, const Tensor& b) { return kw::ask(#name, a, b); }
KW_FUNCTION_2(matmul) KW_FUNCTION_2(mm) KW_FUNCTION_2(bmm) KW_FUNCTION_2(mul) KW_FUNCTION_2(add)
#define KW_FUNCTION_1(name) \
  inline Tensor name(const Tensor& a) { return kw::ask(#name, a); }
KW_FUNCTION_1(sigmoid) KW_FUNCTION_1(exp) KW_FUNCTION_1(silu) KW_FUNCTION_1(bincount) KW_FUNCTION_1(nonzero)
inline Tensor softmax(const Tensor& a, int64_t dim) { return a.softmax(dim); }
inline Tensor cumsum(const Tensor& a, int64_t dim) { return a.cumsum(dim); }
inline Tensor argsort(const Tensor& a, int64_t dim = -1, bool down = false) { return a.argsort(dim, down); }
inline std::tuple<Tensor, Tensor> topk(const Tensor& a, int64_t k, int64_t dim = -1, bool largest = true, bool sorted = true) {
  return a.topk(k, dim, largest, sorted);
}
inline std::ostream& operator<<(std::ostream& out, const Tensor& tensor) { return out << "tensor" << tensor.sizes(); }
}  // namespace at

namespace torch {
using namespace at;
using at::Tensor;
namespace indexing {}
namespace autograd {}
inline void manual_seed(uint64_t) {}
struct NoGradGuard {};
using InferenceMode = NoGradGuard;
}  // namespace torch
