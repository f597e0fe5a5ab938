// `thrust::complex` as torch's headers need it on a GPU build; kernels that compute with it need ROCm's own.
#pragma once
#include <complex>
namespace thrust {
template <class T>
struct complex {
  T real_, imag_;
  __host__ __device__ complex(T real = T(), T imag = T()) : real_(real), imag_(imag) {}
  __host__ __device__ T real() const { return real_; }
  __host__ __device__ T imag() const { return imag_; }
};
}  // namespace thrust
