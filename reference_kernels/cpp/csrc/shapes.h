// What the operators demand of their arguments, in the words of the other kernels here.
#pragma once

#include <ATen/core/Tensor.h>

#include <string>
#include <vector>

namespace gelu_verify_kernels {

// "[2, 3]". Numbers are not streamed: where the compiler links libstdc++ statically, this library has
// a second copy of it, whose streams find no facet for numbers in torch's locale and crash.
inline std::string text(at::IntArrayRef shape) {
  std::string written = "[";
  for (std::size_t i = 0; i < shape.size(); ++i)
    written += (i ? ", " : "") + std::to_string(shape[i]);
  return written + "]";
}

inline void require_same_type(const char* name, const at::Tensor& t, const char* other_name,
                              const at::Tensor& other) {
  TORCH_CHECK_TYPE(t.scalar_type() == other.scalar_type(), name, ": got dtype ", t.scalar_type(),
                   ", expected that of ", other_name, ", ", other.scalar_type());
  TORCH_CHECK_VALUE(t.device() == other.device(), name, ": got a tensor on ", t.device(),
                    ", expected the device of ", other_name, ", ", other.device());
}

// x (..., K), weight (N, K), bias (N,)
inline void require_linear(const at::Tensor& x, const at::Tensor& weight, const at::Tensor& bias) {
  require_same_type("weight", weight, "x", x);
  require_same_type("bias", bias, "x", x);
  TORCH_CHECK_VALUE(x.dim() >= 1 && weight.dim() == 2 && weight.size(1) == x.size(-1),
                    "weight: got shape ", text(weight.sizes()), ", expected (N, K) with x (..., K), here ",
                    text(x.sizes()));
  TORCH_CHECK_VALUE(bias.dim() == 1 && bias.size(0) == weight.size(0), "bias: got shape ",
                    text(bias.sizes()), ", expected (N,) with weight (N, K), here ",
                    text(weight.sizes()));
}

// The shape (..., N) of the result.
inline std::vector<std::int64_t> shape_of_result(const at::Tensor& x, const at::Tensor& weight) {
  std::vector<std::int64_t> shape = x.sizes().vec();
  shape.back() = weight.size(0);
  return shape;
}

// t (..., K) as (M, K); the same memory where strides allow it. M is counted, not left to torch,
// which cannot tell it where K is 0.
inline at::Tensor rows_of(const at::Tensor& t) {
  std::int64_t rows = 1;
  for (std::int64_t i = 0; i + 1 < t.dim(); ++i) rows *= t.size(i);
  return t.reshape({rows, t.size(-1)});
}

}  // namespace gelu_verify_kernels
