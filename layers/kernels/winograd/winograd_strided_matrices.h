// The matrices of Winograd's minimal filtering for 3 taps of stride 2, applied to vectors: F(4, 2)
// of the two phases that rows of even and of odd number make.
//
//   y_k = g0 d_2k + g1 d_2k+1 + g2 d_2k+2  =  (two taps g0, g2 on the d of even number)
//                                           + (one tap g1 on the d of odd number)
//
// Both sums are polynomial products known from their values at 5 points, +-1/2, +-3/2 and infinity;
// the values of the second at infinity are zero, because its second tap is. So 4 outputs cost 5 + 4
// multiplications instead of 12; in two dimensions 16 cost 81 instead of 144. As all phases are
// evaluated at the same points their values can be summed before the way back:
//
//   y  = A^T [(G g)_two . (B^T d)_two + (G g)_one . (B^T d)_one]
//   dd = A^T [(G g') . (B^T dy)]  for each phase: its gradient is a convolution of dy of stride 1,
//                                 with two taps (flipped) or one
//   dg = G^T [(B^T d) . (A dy)]   for each phase
//
// The points are chosen for precision: with 0, +-1, 2 the error is twice as large. All constants
// but those of Filter are exact in binary. Only for layers/kernels/*.cc.
#ifndef RINGTAIL_LAYERS_KERNELS_WINOGRAD_WINOGRAD_STRIDED_MATRICES_H_
#define RINGTAIL_LAYERS_KERNELS_WINOGRAD_WINOGRAD_STRIDED_MATRICES_H_

#include "core/kernels/vec.h"

namespace ringtail::RT_KERNEL_ISA {

// Vectors of 9 values are the 5 of the phase of two taps, then the 4 of the phase of one tap.
struct WinogradStrided {
  static constexpr int kPoints = 5;
  static constexpr float a = 1.0F / 2, b = 3.0F / 2;
  static constexpr float a2 = a * a, a3 = a * a2, b2 = b * b, b3 = b * b2;
  static constexpr float kSum = a2 + b2, kProduct = a2 * b2;
  // 1 / the product of a point's distances to the other points.
  static constexpr float kInverseA = 1 / (2 * a * (a2 - b2));
  static constexpr float kInverseB = 1 / (2 * b * (b2 - a2));

  // B^T d at the finite points; d has 4 values.
  [[gnu::always_inline]] static void InputFinite(const Vec* d, Vec* v) {
    const Vec even_a = d[2] - b2 * d[0], odd_a = d[3] - b2 * d[1];
    const Vec even_b = d[2] - a2 * d[0], odd_b = d[3] - a2 * d[1];
    v[0] = a * even_a + odd_a;
    v[1] = a * even_a - odd_a;
    v[2] = b * even_b + odd_b;
    v[3] = b * even_b - odd_b;
  }
  // A^T m without infinity: 4 values of m.
  [[gnu::always_inline]] static void OutputFinite(const Vec* m, Vec* y) {
    const Vec sum_a = m[0] + m[1], difference_a = m[0] - m[1];
    const Vec sum_b = m[2] + m[3], difference_b = m[2] - m[3];
    y[0] = sum_a + sum_b;
    y[1] = a * difference_a + b * difference_b;
    y[2] = a2 * sum_a + b2 * sum_b;
    y[3] = a3 * difference_a + b3 * difference_b;
  }

  // B^T dy of the gradient of dst, read by both phases.
  struct DiffDst {
    static constexpr int kIn = 5, kOut = 5;
    [[gnu::always_inline]] static void Apply(const Vec* d, Vec* v) {
      InputFinite(d, v);
      v[4] = kProduct * d[0] - kSum * d[2] + d[4];
    }
  };
  // B^T d of 9 pixels in a row, by phase.
  struct Input {
    static constexpr int kIn = 9, kOut = 9;
    [[gnu::always_inline]] static void Apply(const Vec* d, Vec* v) {
      const Vec two[5] = {d[0], d[2], d[4], d[6], d[8]}, one[4] = {d[1], d[3], d[5], d[7]};
      DiffDst::Apply(two, v);
      InputFinite(one, v + 5);
    }
  };
  // A^T m: 4 outputs
  struct Output {
    static constexpr int kIn = 5, kOut = 4;
    [[gnu::always_inline]] static void Apply(const Vec* m, Vec* y) {
      OutputFinite(m, y);
      y[3] += m[4];
    }
  };
  // A^T m of both phases of src's gradient: 4 pairs of pixels, that of one tap first.
  struct DiffSrc {
    static constexpr int kIn = 9, kOut = 8;
    [[gnu::always_inline]] static void Apply(const Vec* m, Vec* d) {
      Vec two[4], one[4];
      Output::Apply(m, two);
      OutputFinite(m + 5, one);
#pragma GCC unroll 4
      for (int i = 0; i < 4; ++i) {
        d[2 * i] = one[i];
        d[2 * i + 1] = two[i];
      }
    }
  };
  // A dy
  struct Gradient {
    static constexpr int kIn = 4, kOut = 5;
    [[gnu::always_inline]] static void Apply(const Vec* y, Vec* z) {
      const Vec even_a = y[0] + a2 * y[2], odd_a = y[1] + a2 * y[3];
      const Vec even_b = y[0] + b2 * y[2], odd_b = y[1] + b2 * y[3];
      z[0] = even_a + a * odd_a;
      z[1] = even_a - a * odd_a;
      z[2] = even_b + b * odd_b;
      z[3] = even_b - b * odd_b;
      z[4] = y[3];
    }
  };
  // G g, by phase. (B^T has the rows of -a and -b negated, and so has G.)
  struct Filter {
    static constexpr int kIn = 3, kOut = 9;
    [[gnu::always_inline]] static void Apply(const Vec* g, Vec* u) {
      const Vec even_a = kInverseA * g[0], odd_a = (kInverseA * a) * g[2];
      const Vec even_b = kInverseB * g[0], odd_b = (kInverseB * b) * g[2];
      u[0] = even_a + odd_a;
      u[1] = even_a - odd_a;
      u[2] = even_b + odd_b;
      u[3] = even_b - odd_b;
      u[4] = g[2];
      u[5] = u[6] = kInverseA * g[1];
      u[7] = u[8] = kInverseB * g[1];
    }
  };
  // G^T u
  struct FilterGradient {
    static constexpr int kIn = 9, kOut = 3;
    [[gnu::always_inline]] static void Apply(const Vec* u, Vec* g) {
      g[0] = kInverseA * (u[0] + u[1]) + kInverseB * (u[2] + u[3]);
      g[1] = kInverseA * (u[5] + u[6]) + kInverseB * (u[7] + u[8]);
      g[2] = (kInverseA * a) * (u[0] - u[1]) + (kInverseB * b) * (u[2] - u[3]) + u[4];
    }
  };
};

}  // namespace ringtail::RT_KERNEL_ISA

#endif  // RINGTAIL_LAYERS_KERNELS_WINOGRAD_WINOGRAD_STRIDED_MATRICES_H_
