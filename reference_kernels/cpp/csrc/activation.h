// GELU of the erf formula and its derivative on blocks of doubles, without cancellation.
//
//   GELU(-a)  = -a*Phi(-a),          GELU(a)  = a - a*Phi(-a)
//   GELU'(-a) = Phi(-a) - a*phi(a),  GELU'(a) = 1 - GELU'(-a)
//
// for a = |x|, both left sides as exp(-a^2/2) times a rational function of a (coefficients.h).
// The error is a few units of 2^-53, in the tail too: fp32 and 16-bit results are rounded from it.
//
// Loops are free of branches and calls, so that the compiler vectorises them; EVERY_INSTRUCTION_SET
// has it do so once for each set, and the one that the CPU has is chosen when the library loads.
// Built with -ffp-contract=off: all sets give the same bits.
#pragma once

#include <cmath>
#include <cstdint>
#include <cstring>

#include "coefficients.h"

#if defined(__x86_64__) && defined(__gnu_linux__)
#define EVERY_INSTRUCTION_SET __attribute__((target_clones("default", "avx2", "avx512f")))
#else
#define EVERY_INSTRUCTION_SET
#endif

namespace gelu_verify_kernels {

// exp(-LIMIT^2/2) times the largest double rounds to 0: nothing changes beyond.
constexpr double LIMIT = 56.0;

// Adding this rounds to an integer, and leaves that integer in the low bits of the sum.
constexpr double ROUND = 0x1.8p52;

// 2^n for an integer n in [-1022, 1023], given n + ROUND.
inline double power_of_two(double shifted) {
  std::uint64_t bits;
  std::memcpy(&bits, &shifted, sizeof bits);
  bits = (bits + 1023) << 52;
  double power;
  std::memcpy(&power, &bits, sizeof power);
  return power;
}

// exp(r + low) - 1 for |r| <= ln(2)/2 and a small low: Taylor's series, cut below 2^-57.
inline double exp_less_one(double r, double low) {
  double sum = 1.0 / 6227020800.0;
  sum = sum * r + 1.0 / 479001600.0;
  sum = sum * r + 1.0 / 39916800.0;
  sum = sum * r + 1.0 / 3628800.0;
  sum = sum * r + 1.0 / 362880.0;
  sum = sum * r + 1.0 / 40320.0;
  sum = sum * r + 1.0 / 5040.0;
  sum = sum * r + 1.0 / 720.0;
  sum = sum * r + 1.0 / 120.0;
  sum = sum * r + 1.0 / 24.0;
  sum = sum * r + 1.0 / 6.0;
  sum = sum * r + 0.5;
  return r + (r * r * sum + low);
}

// A number as the sum of a double and of what rounding to it has lost.
struct Split {
  double value, rest;
};

// (x.value + x.rest)*factor*exp(-a^2/2), 0 <= a <= LIMIT, |x.value| < 2^6.
//
// The square is cut in two (the upper half exact), as exp multiplies the relative error of its
// argument by a^2/2. 2^n is applied in three parts, the factor between them: no part overflows or
// underflows before the product does, and a subnormal product is rounded at the end.
inline double times_gauss(Split x, double factor, double a) {
  std::uint64_t bits;
  std::memcpy(&bits, &a, sizeof bits);
  bits &= ~((std::uint64_t(1) << 27) - 1);
  double upper;
  std::memcpy(&upper, &bits, sizeof upper);
  const double high = 0.5 * upper * upper;
  const double low = 0.5 * (a - upper) * (a + upper);

  const double n = (high * -0x1.71547652b82fep0 + ROUND) - ROUND;  // -high/ln 2
  // ln 2 as Cody and Waite split it (fdlibm): n times the upper part is exact.
  const double coarse = -high - n * 6.93147180369123816490e-01;
  const double fine = n * 1.90821492927058770002e-10 + low;
  const double r = coarse - fine;
  // x + x*(e - 1) rounds half as much as x*e, and takes up what is left of x.
  const double change = exp_less_one(r, (coarse - r) - fine);
  const double scaled = x.value + (x.value * change + (x.rest + x.rest * change));

  const double third = n * (1.0 / 3.0) + ROUND;
  const double rest = (n - 2.0 * (third - ROUND)) + ROUND;
  const double part = power_of_two(third);
  return scaled * part * factor * part * power_of_two(rest);
}

// The terms of a polynomial from `first` on, by Horner's rule: a recursion, as GCC does not unroll
// loops of this length before it vectorises.
template <int first, int terms>
inline double polynomial(const double (&table)[terms], double t) {
  if constexpr (first + 1 == terms) {
    return table[first];
  } else {
    return polynomial<first + 1>(table, t) * t + table[first];
  }
}

// 1/2 + s*P(t), P the polynomial of the table (coefficients.h).
template <int terms>
inline Split beyond_half(const double (&table)[terms], double a) {
  const double s = 2.0 * (a / (a + CENTRE));
  const double beyond = s * polynomial<0>(table, s - 1.0);
  const double value = 0.5 + beyond;
  return {value, (0.5 - value) + beyond};
}

// |x|, not above LIMIT; NaN stays NaN.
inline double magnitude(double x) {
  const double a = std::fabs(x);
  return a > LIMIT ? LIMIT : a;
}

inline double gelu(double x) {
  const double a = magnitude(x);
  const Split scaled = beyond_half(TAIL, a);
  const double divisor = 1.0 + GROWTH * a;
  const double tail = times_gauss({scaled.value / divisor, scaled.rest / divisor}, a, a);
  return x < 0.0 ? -tail : x - tail;
}

// dy*GELU'(x)
inline double gelu_gradient(double dy, double x) {
  const double a = magnitude(x);
  // ZERO - a in full, by Knuth's sum: next to the zero its lower part counts.
  const double distance = ZERO_HIGH - a;
  const double back = distance - ZERO_HIGH;
  const double lost = (ZERO_HIGH - (distance - back)) - (a + back) + ZERO_LOW;
  const Split scaled = beyond_half(SLOPE, a);
  const Split product = {scaled.value * distance, scaled.rest * distance + scaled.value * lost};
  const double slope = times_gauss({product.value / ZERO_HIGH, product.rest / ZERO_HIGH},
                                   x < 0.0 ? dy : 1.0, a);
  return x < 0.0 ? slope : dy * (1.0 - slope);
}

EVERY_INSTRUCTION_SET
void gelu_block(double* x, std::int64_t count) {
  for (std::int64_t i = 0; i < count; ++i) x[i] = gelu(x[i]);
}

EVERY_INSTRUCTION_SET
void gelu_gradient_block(const double* dy, double* x, std::int64_t count) {
  for (std::int64_t i = 0; i < count; ++i) x[i] = gelu_gradient(dy[i], x[i]);
}

}  // namespace gelu_verify_kernels
