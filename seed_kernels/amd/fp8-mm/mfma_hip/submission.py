#!POPCORN leaderboard amd-fp8-mm
#!POPCORN gpus MI300
# Block-scaled fp8 product on gfx942's matrix cores, in HIP. Chip: MI300X alone, whose fp8 is e4m3fnuz; MI355X's is not.
# A workgroup of four waves makes 128 x 128 of c, each wave 64 x 64 by v_mfma_f32_32x32x16_fp8_fp8. Operands lie along m
# and n, the instruction wants eight neighbours in k: bytes are turned on their way from registers to LDS. Never
# measured on a chip: see WORKLOG.md.
import functools

import torch
from task import input_t, output_t
from torch.utils.cpp_extension import load_inline

COMPUTE_UNITS = 304  # knob

HIP = r"""
#include <hip/hip_runtime.h>
#include <hip/hip_bf16.h>

constexpr int BLOCK = 128;        // elements of k, and columns of n, that share a scale
constexpr int TILE = 128;         // rows and columns of c that a workgroup makes
constexpr int STEP = 64;          // elements of k in LDS at a time: two workgroups fit a compute unit
constexpr int STRIDE = STEP + 8;  // bytes between two rows in LDS: eight more, so that rows start two banks apart
constexpr int THREADS = 256;

using floatx16 = __attribute__((ext_vector_type(16))) float;

// Four bytes of one k at `rows` neighbours, zeros beyond the edge.
__device__ unsigned load4(const unsigned char* at, int rows) {
  unsigned word = 0;
  if (rows >= 4) {
    __builtin_memcpy(&word, at, 4);
  } else {
    for (int byte = 0; byte < rows; ++byte) word |= unsigned(at[byte]) << (8 * byte);
  }
  return word;
}

// Byte `row` of each of four words, the first word's lowest.
__device__ unsigned gather(const unsigned* words, int row) {
  unsigned pick = 0x0c0c0000u | (unsigned(4 + row) << 8) | unsigned(row);  // words[1], words[0] by v_perm_b32
  unsigned low = __builtin_amdgcn_perm(words[1], words[0], pick);
  unsigned high = __builtin_amdgcn_perm(words[3], words[2], pick);
  return low | (high << 16);
}

// STEP elements of k at TILE rows from `first` on, of an operand that lies along its rows, into LDS along k.
__device__ void stage(unsigned char* shared, const unsigned char* operand, int first, int rows, long k0) {
  for (int unit = threadIdx.x; unit < TILE / 4 * (STEP / 8); unit += THREADS) {
    int row = unit % (TILE / 4) * 4, k = unit / (TILE / 4) * 8;
    const unsigned char* at = operand + (k0 + k) * rows + first + row;
    unsigned words[8];
    for (int step = 0; step < 8; ++step) words[step] = load4(at + long(step) * rows, rows - first - row);
    for (int turned = 0; turned < 4; ++turned) {
      unsigned* to = reinterpret_cast<unsigned*>(shared + (row + turned) * STRIDE + k);
      to[0] = gather(words, turned);
      to[1] = gather(words + 4, turned);
    }
  }
}

// One tile of one part of k: blocks [part * each, ...). With `parts` > 1 it leaves fp32 sums in `sums` [parts, m, n].
__global__ __launch_bounds__(THREADS) void fp8_mm(
    const unsigned char* a, const unsigned char* b, const float* a_scale, const float* b_scale, __hip_bfloat16* c,
    float* sums, int m, int n, int blocks, int each) {
  __shared__ unsigned char a_tile[TILE * STRIDE], b_tile[TILE * STRIDE];
  __shared__ float row_scale[TILE];
  const int first_row = blockIdx.y * TILE, first_column = blockIdx.x * TILE, part = blockIdx.z;
  const int wave = threadIdx.x / 64, lane = threadIdx.x % 64;
  const int row0 = wave / 2 * 64, column0 = wave % 2 * 64;
  const int scale_columns = (n + BLOCK - 1) / BLOCK;
  floatx16 total[2][2] = {};
  for (int block = part * each; block < min(blocks, (part + 1) * each); ++block) {
    floatx16 sum[2][2] = {};
    for (int step = 0; step < BLOCK; step += STEP) {
      stage(a_tile, a, first_row, m, long(block) * BLOCK + step);
      stage(b_tile, b, first_column, n, long(block) * BLOCK + step);
      if (step == 0 && threadIdx.x < TILE) {
        int row = first_row + threadIdx.x;
        float column = b_scale[long(block) * scale_columns + first_column / BLOCK];
        row_scale[threadIdx.x] = row < m ? a_scale[long(block) * m + row] * column : 0.0f;
      }
      __syncthreads();
      for (int k = 0; k < STEP; k += 16) {
        long left[2], right[2];
        for (int half = 0; half < 2; ++half) {
          int at = (half * 32 + lane % 32) * STRIDE + k + lane / 32 * 8;
          left[half] = *reinterpret_cast<const long*>(a_tile + row0 * STRIDE + at);
          right[half] = *reinterpret_cast<const long*>(b_tile + column0 * STRIDE + at);
        }
        for (int i = 0; i < 2; ++i)
          for (int j = 0; j < 2; ++j)
            sum[i][j] = __builtin_amdgcn_mfma_f32_32x32x16_fp8_fp8(left[i], right[j], sum[i][j], 0, 0, 0);
      }
      if (step + STEP < BLOCK) __syncthreads();
    }
    // Element r of a lane is row 8 (r / 4) + r % 4 + 4 (lane / 32) of 32, column lane % 32.
    for (int i = 0; i < 2; ++i)
      for (int r = 0; r < 16; ++r) {
        float scale = row_scale[row0 + i * 32 + r / 4 * 8 + r % 4 + lane / 32 * 4];
        for (int j = 0; j < 2; ++j) total[i][j][r] += sum[i][j][r] * scale;
      }
    __syncthreads();
  }
  for (int i = 0; i < 2; ++i)
    for (int j = 0; j < 2; ++j)
      for (int r = 0; r < 16; ++r) {
        int row = first_row + row0 + i * 32 + r / 4 * 8 + r % 4 + lane / 32 * 4;
        int column = first_column + column0 + j * 32 + lane % 32;
        if (row >= m || column >= n) continue;
        if (gridDim.z == 1)
          c[long(row) * n + column] = __float2bfloat16(total[i][j][r]);
        else
          sums[(long(part) * m + row) * n + column] = total[i][j][r];
      }
}

// c = the parts' sums, added in order: the same bits whatever ran first.
__global__ __launch_bounds__(THREADS) void add_parts(const float* sums, __hip_bfloat16* c, long elements, int parts) {
  long at = long(blockIdx.x) * THREADS + threadIdx.x;
  if (at >= elements) return;
  float sum = sums[at];
  for (int part = 1; part < parts; ++part) sum += sums[part * elements + at];
  c[at] = __float2bfloat16(sum);
}

void run(torch::Tensor a, torch::Tensor b, torch::Tensor a_scale, torch::Tensor b_scale, torch::Tensor c,
         torch::Tensor sums, int64_t parts) {
  int m = a.size(0), n = b.size(0), blocks = a.size(1) / BLOCK;
  int each = (blocks + parts - 1) / parts;
  dim3 grid((n + TILE - 1) / TILE, (m + TILE - 1) / TILE, parts);
  fp8_mm<<<grid, THREADS>>>(
      (const unsigned char*)a.data_ptr(), (const unsigned char*)b.data_ptr(), a_scale.data_ptr<float>(),
      b_scale.data_ptr<float>(), (__hip_bfloat16*)c.data_ptr(), sums.data_ptr<float>(), m, n, blocks, each);
  if (parts > 1) {
    long elements = long(m) * n;
    add_parts<<<(elements + THREADS - 1) / THREADS, THREADS>>>(
        sums.data_ptr<float>(), (__hip_bfloat16*)c.data_ptr(), elements, parts);
  }
}
"""
CPP = """
void run(torch::Tensor a, torch::Tensor b, torch::Tensor a_scale, torch::Tensor b_scale, torch::Tensor c,
         torch::Tensor sums, int64_t parts);
"""
module = load_inline(
    name="fp8_mm_mfma",
    cpp_sources=CPP,
    cuda_sources=HIP,
    functions=["run"],
    extra_cuda_cflags=["-O3", "--offload-arch=gfx942"],
)


@functools.cache
def parts_of(m: int, n: int, blocks: int) -> int:
    """How often to cut k so that each compute unit has a tile; whole scale blocks, none without work."""
    tiles = -(-m // 128) * -(-n // 128)
    parts = min(blocks, max(1, COMPUTE_UNITS // tiles))
    return -(-blocks // -(-blocks // parts))


def custom_kernel(data: input_t) -> output_t:
    a, b, a_scale, b_scale, c = data
    (m, k), n = a.shape, b.shape[0]
    parts = parts_of(m, n, k // 128)
    shape = (parts, m, n) if parts > 1 else (1,)
    sums = torch.empty(shape, dtype=torch.float32, device=a.device)
    module.run(a, b, a_scale, b_scale, c, sums, parts)
    return c
