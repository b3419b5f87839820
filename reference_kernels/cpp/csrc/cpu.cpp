// The operators of torch.ops.gelu_verify_kernels, and how a CPU computes them.
#include <ATen/Dispatch.h>
#include <ATen/Parallel.h>
#include <ATen/core/Tensor.h>
#include <ATen/ops/empty.h>
#include <ATen/ops/empty_like.h>
#include <torch/library.h>

#include <algorithm>
#include <type_traits>

#include "activation.h"
#include "matmul.h"
#include "shapes.h"

namespace gelu_verify_kernels {
namespace {

using at::Tensor;

// Elements that are widened to double at a time: 8 KiB a buffer, in the L1 cache.
constexpr std::int64_t BLOCK = 1024;

// A result is rounded to fp32 and from there to 16 bits: at most 0.5 + 2^-13 ULP (fp16).
template <typename T>
T narrow(double value) {
  if constexpr (std::is_same_v<T, double>) return value;
  return static_cast<T>(static_cast<float>(value));
}

template <typename T>
double widen(T value) {
  if constexpr (std::is_same_v<T, double>) return value;
  return static_cast<float>(value);
}

// x in the memory order of out: itself where it already is, a copy where it has gaps or overlaps.
Tensor ordered_like(const Tensor& x, const Tensor& out) {
  return x.strides() == out.strides() ? x : at::empty_like(out).copy_(x);
}

template <typename T>
void apply_gelu(const T* x, T* out, std::int64_t count) {
  at::parallel_for(0, count, 16 * BLOCK, [&](std::int64_t begin, std::int64_t end) {
    double block[BLOCK];
    for (; begin < end; begin += BLOCK) {
      const std::int64_t length = std::min(BLOCK, end - begin);
      for (std::int64_t i = 0; i < length; ++i) block[i] = widen(x[begin + i]);
      gelu_block(block, length);
      for (std::int64_t i = 0; i < length; ++i) out[begin + i] = narrow<T>(block[i]);
    }
  });
}

template <typename T>
void apply_gradient(const T* dy, const T* x, T* out, std::int64_t count) {
  at::parallel_for(0, count, 16 * BLOCK, [&](std::int64_t begin, std::int64_t end) {
    double block[BLOCK], upstream[BLOCK];
    for (; begin < end; begin += BLOCK) {
      const std::int64_t length = std::min(BLOCK, end - begin);
      for (std::int64_t i = 0; i < length; ++i) {
        upstream[i] = widen(dy[begin + i]);
        block[i] = widen(x[begin + i]);
      }
      gelu_gradient_block(upstream, block, length);
      for (std::int64_t i = 0; i < length; ++i) out[begin + i] = narrow<T>(block[i]);
    }
  });
}

Tensor gelu_erf(const Tensor& x) {
  const Tensor out = at::empty_like(x);
  const Tensor input = ordered_like(x, out);
  AT_DISPATCH_FLOATING_TYPES_AND2(at::kBFloat16, at::kHalf, x.scalar_type(), "gelu_erf", [&] {
    apply_gelu(input.const_data_ptr<scalar_t>(), out.data_ptr<scalar_t>(), x.numel());
  });
  return out;
}

Tensor gelu_erf_backward(const Tensor& dy, const Tensor& x) {
  require_same_type("dy", dy, "x", x);
  TORCH_CHECK_VALUE(dy.sizes() == x.sizes(), "gelu_erf_backward: got dy of shape ",
                    text(dy.sizes()), ", expected that of x, ", text(x.sizes()));
  const Tensor out = at::empty_like(x);
  const Tensor input = ordered_like(x, out), upstream = ordered_like(dy, out);
  AT_DISPATCH_FLOATING_TYPES_AND2(
      at::kBFloat16, at::kHalf, x.scalar_type(), "gelu_erf_backward", [&] {
        apply_gradient(upstream.const_data_ptr<scalar_t>(), input.const_data_ptr<scalar_t>(),
                       out.data_ptr<scalar_t>(), x.numel());
      });
  return out;
}

template <typename T>
Matrix<T> matrix(const Tensor& t) {
  return {t.const_data_ptr<T>(), t.size(0), t.size(1), t.stride(0), t.stride(1)};
}

// Calls finish(z, row, column, count) for every stretch of count elements of z = x*weight^T + bias,
// which it may overwrite; z is in double, its product in fp32.
template <typename T, typename Finish>
void for_each_stretch(const Tensor& x, const Tensor& weight, const Tensor& bias,
                      const Finish& finish) {
  const Tensor b = bias.contiguous();
  const T* biases = b.const_data_ptr<T>();
  for_each_tile(matrix<T>(x), matrix<T>(weight),
                [&](const float* sums, std::int64_t row, std::int64_t rows, std::int64_t column,
                    std::int64_t columns) {
                  double z[TILE];
                  for (std::int64_t i = 0; i < rows; ++i) {
                    for (std::int64_t j = 0; j < columns; ++j) {
                      z[j] = static_cast<double>(sums[i * TILE + j]) + widen(biases[column + j]);
                    }
                    finish(z, row + i, column, columns);
                  }
                });
}

// Calls a lambda with scalar_t, or raises NotImplementedError; sums of fp64 would need their own.
#define DISPATCH_LINEAR(TYPE, NAME, ...)                                           \
  AT_DISPATCH_SWITCH(TYPE, NAME,                                                   \
                     AT_DISPATCH_CASE(at::kFloat, __VA_ARGS__)                     \
                         AT_DISPATCH_CASE_REDUCED_FLOATING_TYPES(__VA_ARGS__))

Tensor linear_gelu(const Tensor& x, const Tensor& weight, const Tensor& bias) {
  require_linear(x, weight, bias);
  const Tensor out = at::empty(shape_of_result(x, weight), x.options());
  const std::int64_t n = weight.size(0);
  DISPATCH_LINEAR(x.scalar_type(), "linear_gelu", [&] {
    scalar_t* to = out.data_ptr<scalar_t>();
    for_each_stretch<scalar_t>(
        rows_of(x), weight, bias,
        [&](double* z, std::int64_t row, std::int64_t column, std::int64_t count) {
          gelu_block(z, count);
          for (std::int64_t j = 0; j < count; ++j) to[row * n + column + j] = narrow<scalar_t>(z[j]);
        });
  });
  return out;
}

// dy*GELU'(z) in fp32: what the backward needs of z, which is computed again.
Tensor linear_gelu_slope(const Tensor& dy, const Tensor& x, const Tensor& weight,
                         const Tensor& bias) {
  require_linear(x, weight, bias);
  require_same_type("dy", dy, "x", x);
  const Tensor out = at::empty(shape_of_result(x, weight), x.options().dtype(at::kFloat));
  TORCH_CHECK_VALUE(dy.sizes() == out.sizes(), "dy: got shape ", text(dy.sizes()),
                    ", expected ", text(out.sizes()));
  const Tensor upstream = dy.contiguous();
  const std::int64_t n = weight.size(0);
  DISPATCH_LINEAR(x.scalar_type(), "linear_gelu_slope", [&] {
    const scalar_t* from = upstream.const_data_ptr<scalar_t>();
    float* to = out.data_ptr<float>();
    for_each_stretch<scalar_t>(
        rows_of(x), weight, bias,
        [&](double* z, std::int64_t row, std::int64_t column, std::int64_t count) {
          const std::int64_t start = row * n + column;
          double gradients[TILE];
          for (std::int64_t j = 0; j < count; ++j) gradients[j] = widen(from[start + j]);
          gelu_gradient_block(gradients, z, count);
          for (std::int64_t j = 0; j < count; ++j) to[start + j] = static_cast<float>(z[j]);
        });
  });
  return out;
}

}  // namespace

TORCH_LIBRARY(gelu_verify_kernels, library) {
  library.def("gelu_erf(Tensor x) -> Tensor");
  library.def("gelu_erf_backward(Tensor dy, Tensor x) -> Tensor");
  library.def("linear_gelu(Tensor x, Tensor weight, Tensor bias) -> Tensor");
  library.def("linear_gelu_slope(Tensor dy, Tensor x, Tensor weight, Tensor bias) -> Tensor");
}

TORCH_LIBRARY_IMPL(gelu_verify_kernels, CPU, library) {
  library.impl("gelu_erf", gelu_erf);
  library.impl("gelu_erf_backward", gelu_erf_backward);
  library.impl("linear_gelu", linear_gelu);
  library.impl("linear_gelu_slope", linear_gelu_slope);
}

}  // namespace gelu_verify_kernels
