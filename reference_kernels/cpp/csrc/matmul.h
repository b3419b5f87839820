// a*b^T in fp32, tile by tile, with a function of the caller's on every finished tile.
//
// Products are exact inputs times exact inputs in fp32, sums are fp32 in blocks of DEPTH; nothing
// is rounded to the format of the inputs. The order of the sums of an element depends on k alone:
// not on the other rows, on the threads or on the instruction set.
#pragma once

#include <ATen/Parallel.h>

#include <algorithm>
#include <cstdint>

#include "activation.h"

namespace gelu_verify_kernels {

// A tile of 64x64 sums, and of its inputs 64x128 each (32 KiB): they stay in the L2 cache.
constexpr std::int64_t TILE = 64;
constexpr std::int64_t DEPTH = 128;

// A matrix in memory, of any strides (in elements).
template <typename T>
struct Matrix {
  const T* data;
  std::int64_t rows, columns, row_stride, column_stride;

  float at(std::int64_t row, std::int64_t column) const {
    return static_cast<float>(data[row * row_stride + column * column_stride]);
  }
};

// sums[i][j] += sum over p of a[i][p]*b[p][j], four p at a time.
EVERY_INSTRUCTION_SET
void add_product(const float* a, const float* b, std::int64_t rows, std::int64_t depth,
                 float* sums) {
  for (std::int64_t i = 0; i < rows; ++i) {
    float* __restrict row = sums + i * TILE;
    const float* factors = a + i * DEPTH;
    std::int64_t p = 0;
    for (; p + 4 <= depth; p += 4) {
      const float* b0 = b + p * TILE;
      const float f0 = factors[p], f1 = factors[p + 1], f2 = factors[p + 2], f3 = factors[p + 3];
      for (std::int64_t j = 0; j < TILE; ++j) {
        row[j] += (f0 * b0[j] + f1 * b0[j + TILE]) + (f2 * b0[j + 2 * TILE] + f3 * b0[j + 3 * TILE]);
      }
    }
    for (; p < depth; ++p) {
      for (std::int64_t j = 0; j < TILE; ++j) row[j] += factors[p] * b[p * TILE + j];
    }
  }
}

// The sums of rows [row, row + rows) of a with rows [column, column + columns) of b.
template <typename T>
void tile_of_product(const Matrix<T>& a, const Matrix<T>& b, std::int64_t row, std::int64_t rows,
                     std::int64_t column, std::int64_t columns, float* sums) {
  thread_local float left[TILE * DEPTH], right[DEPTH * TILE];
  std::fill_n(sums, TILE * TILE, 0.0f);
  for (std::int64_t start = 0; start < a.columns; start += DEPTH) {
    const std::int64_t depth = std::min(DEPTH, a.columns - start);
    for (std::int64_t i = 0; i < rows; ++i) {
      for (std::int64_t p = 0; p < depth; ++p) left[i * DEPTH + p] = a.at(row + i, start + p);
    }
    // Columns past the last keep what an earlier tile left there: their sums are not looked at.
    for (std::int64_t j = 0; j < columns; ++j) {
      for (std::int64_t p = 0; p < depth; ++p) right[p * TILE + j] = b.at(column + j, start + p);
    }
    add_product(left, right, rows, depth, sums);
  }
}

// Calls finish(sums, row, rows, column, columns) once for every tile of a*b^T, in any order and
// from several threads; sums has TILE floats a row.
template <typename T, typename Finish>
void for_each_tile(const Matrix<T>& a, const Matrix<T>& b, const Finish& finish) {
  const std::int64_t across = (b.rows + TILE - 1) / TILE;
  const std::int64_t tiles = (a.rows + TILE - 1) / TILE * across;
  at::parallel_for(0, tiles, 1, [&](std::int64_t first, std::int64_t last) {
    thread_local float sums[TILE * TILE];
    for (std::int64_t tile = first; tile < last; ++tile) {
      const std::int64_t row = tile / across * TILE, column = tile % across * TILE;
      const std::int64_t rows = std::min(TILE, a.rows - row);
      const std::int64_t columns = std::min(TILE, b.rows - column);
      tile_of_product(a, b, row, rows, column, columns, sums);
      finish(sums, row, rows, column, columns);
    }
  });
}

}  // namespace gelu_verify_kernels
