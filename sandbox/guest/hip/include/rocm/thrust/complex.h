// `thrust::complex` as torch's headers need it on a GPU build; kernels that compute with it need ROCm's own.
#pragma once
#include <complex>
namespace thrust {
template <class T>
struct complex : std::complex<T> {
  using std::complex<T>::complex;
  __host__ __device__ complex(const std::complex<T>& from) : std::complex<T>(from) {}
};
using std::abs; using std::acos; using std::acosh; using std::arg; using std::asin; using std::asinh; using std::atan;
using std::atanh; using std::conj; using std::cos; using std::cosh; using std::exp; using std::log; using std::log10;
using std::norm; using std::polar; using std::pow; using std::sin; using std::sinh; using std::sqrt; using std::tan;
using std::tanh;
}  // namespace thrust
