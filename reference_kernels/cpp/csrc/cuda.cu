// linear_gelu on CUDA as articles write it: a matrix product into a workspace, then one kernel for
// bias and GELU. The workspace is fp32 for every format, so that the sums are rounded once.
//
// 0.5*z*erfcf(-z/sqrt(2)) in fp32 is exact in form, but rounds erfc's argument, and erfc multiplies
// that error by z^2: the result loses up to 199 ULP in the tail. It is the common form, not the
// best one; the Triton kernels have that.
#include <ATen/Dispatch.h>
#include <ATen/core/Tensor.h>
#include <ATen/ops/empty.h>
#include <ATen/ops/mm.h>
#include <c10/cuda/CUDAException.h>
#include <c10/cuda/CUDAGuard.h>
#include <c10/cuda/CUDAStream.h>
#include <torch/library.h>

#include <algorithm>

#include "shapes.h"

namespace gelu_verify_kernels {
namespace {

using at::Tensor;

constexpr int THREADS = 256;
constexpr std::int64_t MOST_BLOCKS = 65536;

constexpr float HALF_ROOT = 0.70710678118654752440f;   // 1/sqrt(2)
constexpr float GAUSS_AT_0 = 0.39894228040143267794f;  // 1/sqrt(2*pi)

__device__ float gelu(float z) {
  // -inf*0 is NaN; the limit is -0.
  return z == -INFINITY ? -0.0f : 0.5f * z * erfcf(-z * HALF_ROOT);
}

__device__ float gelu_slope(float z) {
  // exp(-z^2/2) is 0 from 14 on in fp32, and inf*0 is NaN.
  const float bounded = fminf(fmaxf(z, -20.0f), 20.0f);
  const float slope =
      0.5f * erfcf(-bounded * HALF_ROOT) + bounded * GAUSS_AT_0 * expf(-0.5f * bounded * bounded);
  return isnan(z) ? z : slope;
}

template <typename T>
__global__ void bias_gelu(const float* sums, const T* bias, T* out, std::int64_t count,
                          std::int64_t n) {
  const std::int64_t stride = std::int64_t(gridDim.x) * blockDim.x;
  for (std::int64_t i = std::int64_t(blockIdx.x) * blockDim.x + threadIdx.x; i < count;
       i += stride) {
    out[i] = static_cast<T>(gelu(sums[i] + static_cast<float>(bias[i % n])));
  }
}

// Overwrites the sums by dy*GELU'(sums + bias).
template <typename T>
__global__ void bias_gelu_slope(const T* dy, const T* bias, float* sums, std::int64_t count,
                                std::int64_t n) {
  const std::int64_t stride = std::int64_t(gridDim.x) * blockDim.x;
  for (std::int64_t i = std::int64_t(blockIdx.x) * blockDim.x + threadIdx.x; i < count;
       i += stride) {
    sums[i] = static_cast<float>(dy[i]) * gelu_slope(sums[i] + static_cast<float>(bias[i % n]));
  }
}

int blocks_for(std::int64_t count) {
  return static_cast<int>(std::min((count + THREADS - 1) / THREADS, MOST_BLOCKS));
}

// x*weight^T in fp32, (M, N).
Tensor workspace(const Tensor& x, const Tensor& weight) {
  const Tensor rows = rows_of(x);
  if (x.scalar_type() == at::kFloat) return at::mm(rows, weight.t());
  if (rows.numel() == 0 || weight.numel() == 0) {
    return at::mm(rows.to(at::kFloat), weight.t().to(at::kFloat));
  }
  return at::mm(rows, weight.t(), at::kFloat);
}

#define DISPATCH_LINEAR(TYPE, NAME, ...)                                           \
  AT_DISPATCH_SWITCH(TYPE, NAME,                                                   \
                     AT_DISPATCH_CASE(at::kFloat, __VA_ARGS__)                     \
                         AT_DISPATCH_CASE_REDUCED_FLOATING_TYPES(__VA_ARGS__))

Tensor linear_gelu(const Tensor& x, const Tensor& weight, const Tensor& bias) {
  require_linear(x, weight, bias);
  const c10::cuda::CUDAGuard guard(x.device());
  const Tensor out = at::empty(shape_of_result(x, weight), x.options());
  const Tensor b = bias.contiguous();
  DISPATCH_LINEAR(x.scalar_type(), "linear_gelu", [&] {
    const Tensor sums = workspace(x, weight);
    if (out.numel() == 0) return;
    bias_gelu<<<blocks_for(out.numel()), THREADS, 0, c10::cuda::getCurrentCUDAStream()>>>(
        sums.const_data_ptr<float>(), b.const_data_ptr<scalar_t>(), out.data_ptr<scalar_t>(),
        out.numel(), weight.size(0));
    C10_CUDA_KERNEL_LAUNCH_CHECK();
  });
  return out;
}

Tensor linear_gelu_slope(const Tensor& dy, const Tensor& x, const Tensor& weight,
                         const Tensor& bias) {
  require_linear(x, weight, bias);
  require_same_type("dy", dy, "x", x);
  const auto shape = shape_of_result(x, weight);
  TORCH_CHECK_VALUE(dy.sizes() == at::IntArrayRef(shape), "dy: got shape ", text(dy.sizes()),
                    ", expected ", text(shape));
  const c10::cuda::CUDAGuard guard(x.device());
  const Tensor upstream = dy.contiguous(), b = bias.contiguous();
  Tensor sums;
  DISPATCH_LINEAR(x.scalar_type(), "linear_gelu_slope", [&] {
    sums = workspace(x, weight);
    if (sums.numel() == 0) return;
    bias_gelu_slope<<<blocks_for(sums.numel()), THREADS, 0, c10::cuda::getCurrentCUDAStream()>>>(
        upstream.const_data_ptr<scalar_t>(), b.const_data_ptr<scalar_t>(), sums.data_ptr<float>(),
        sums.numel(), weight.size(0));
    C10_CUDA_KERNEL_LAUNCH_CHECK();
  });
  return sums.view(shape);
}

}  // namespace

TORCH_LIBRARY_IMPL(gelu_verify_kernels, CUDA, library) {
  library.impl("linear_gelu", linear_gelu);
  library.impl("linear_gelu_slope", linear_gelu_slope);
}

}  // namespace gelu_verify_kernels
