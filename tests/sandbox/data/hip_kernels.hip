// Small kernels whose assembly the inspection is tested on. Their faults are meant. See README.md for how it was recorded.
#include <hip/hip_runtime.h>

typedef float f4 __attribute__((ext_vector_type(4)));
typedef _Float16 h4 __attribute__((ext_vector_type(4)));
typedef int i4 __attribute__((ext_vector_type(4)));
struct __hip_fp8_e4m3 { unsigned char bits; };

// Nothing to say about it.
__global__ __launch_bounds__(256) void copy(f4* out, const f4* in) {
  const int i = blockIdx.x * 256 + threadIdx.x;
  out[i] = in[i];
}

// A matrix product on the vector units, tiles in static LDS.
__global__ __launch_bounds__(256) void vector_gemm(float* c, const float* a, const float* b, int n) {
  __shared__ float as[16][16], bs[16][16];
  const int x = threadIdx.x % 16, y = threadIdx.x / 16, row = blockIdx.y * 16 + y, column = blockIdx.x * 16 + x;
  float sum = 0;
  for (int k = 0; k < n; k += 16) {
    as[y][x] = a[row * n + k + x];
    bs[y][x] = b[(k + y) * n + column];
    __syncthreads();
    for (int i = 0; i < 16; ++i) sum += as[y][i] * bs[i][x];
    __syncthreads();
  }
  c[row * n + column] = sum;
}

// fp8 matrix instructions; rows of dynamic LDS lie `STRIDE` bytes apart. One wave makes a 16 x 16 tile.
template <int STRIDE>
__global__ __launch_bounds__(64) void matrix_gemm(float* c, const char* a, const char* b, int n, int k) {
  extern __shared__ __align__(16) char tile[];
  const int lane = threadIdx.x, row = lane % 16, part = lane / 16;
  f4 sum = {0, 0, 0, 0};
  for (int at = 0; at < k; at += 64) {
    *(i4*)(tile + row * STRIDE + part * 16) = *(const i4*)(a + (blockIdx.y * 16 + row) * k + at + part * 16);
    *(i4*)(tile + (16 + row) * STRIDE + part * 16) = *(const i4*)(b + (blockIdx.x * 16 + row) * k + at + part * 16);
    __syncthreads();
    for (int step = 0; step < 64; step += 32)
      sum = __builtin_amdgcn_mfma_f32_16x16x32_fp8_fp8(*(long*)(tile + row * STRIDE + step + part * 8),
                                                       *(long*)(tile + (16 + row) * STRIDE + step + part * 8), sum, 0, 0, 0);
    __syncthreads();
  }
  for (int i = 0; i < 4; ++i) c[(blockIdx.y * 16 + part * 4 + i) * n + blockIdx.x * 16 + row] = sum[i];
}
template __global__ void matrix_gemm<64>(float*, const char*, const char*, int, int);
template __global__ void matrix_gemm<80>(float*, const char*, const char*, int, int);

// fp8 of the flavour gfx942 lacks, widened for a 16-bit matrix instruction.
__global__ __launch_bounds__(64) void widened(float* c, const __hip_fp8_e4m3* a, int k) {
  f4 sum = {0, 0, 0, 0};
  for (int at = 0; at < k; at += 16) {
    h4 x;
    for (int i = 0; i < 4; ++i) x[i] = (_Float16)(float)a[threadIdx.x * k + at + i].bits;
    sum = __builtin_amdgcn_mfma_f32_16x16x16f16(x, x, sum, 0, 0, 0);
  }
  c[threadIdx.x] = sum[0] + sum[1] + sum[2] + sum[3];
}

// As if a wave had 32 lanes, and each lane had a row of bytes to itself.
__global__ void half_waves(float* out, const unsigned char* in, int n) {
  float sum = 0;
  for (int i = 0; i < n; ++i) sum += in[threadIdx.x * 1024 + i];
  if ((threadIdx.x & 31) == 0) out[threadIdx.x] = sum;
}

// An array indexed at run time lives in scratch memory.
__global__ void indexed(int* out, const int* where, int n) {
  int held[512] = {0};
  for (int i = 0; i < n; ++i) held[where[i] & 511] += i;
  out[threadIdx.x] = held[where[n] & 511];
}
