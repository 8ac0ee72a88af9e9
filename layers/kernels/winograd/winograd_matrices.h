// The matrices of Winograd's minimal filtering F(m, 3), applied to vectors (Lavin & Gray 2016;
// Winograd 1980). With n = m + 2 interpolation points:
//
//   y = A^T [(G g) . (B^T d)]         m outputs of a 3-tap filter g over m + 2 inputs d,
//                                     n multiplications instead of 3 m
//   d_d = B  [(G g) . (A dy)]         not used: backward-data is a forward convolution of dy with
//                                     the flipped filter
//   dg  = G^T [(B^T d) . (A dy)]      the gradient of the filter
//
// In two dimensions each is applied to the columns, then to the rows. Only for layers/kernels/*.cc.
#ifndef RINGTAIL_LAYERS_KERNELS_WINOGRAD_WINOGRAD_MATRICES_H_
#define RINGTAIL_LAYERS_KERNELS_WINOGRAD_WINOGRAD_MATRICES_H_

#include "core/kernels/vec.h"

namespace ringtail::RT_KERNEL_ISA {

template <int kTile>
struct Winograd;

// The points are 0, +-1 and infinity.
template <>
struct Winograd<2> {
  static constexpr int kPoints = 4;

  // B^T d: 4 inputs
  struct Input {
    static constexpr int kIn = 4, kOut = 4;
    [[gnu::always_inline]] static void Apply(const Vec* d, Vec* v) {
      v[0] = d[0] - d[2];
      v[1] = d[1] + d[2];
      v[2] = d[2] - d[1];
      v[3] = d[1] - d[3];
    }
  };
  // A^T m: 2 outputs
  struct Output {
    static constexpr int kIn = 4, kOut = 2;
    [[gnu::always_inline]] static void Apply(const Vec* m, Vec* y) {
      y[0] = m[0] + m[1] + m[2];
      y[1] = m[1] - m[2] - m[3];
    }
  };
  // A dy
  struct Gradient {
    static constexpr int kIn = 2, kOut = 4;
    [[gnu::always_inline]] static void Apply(const Vec* y, Vec* z) {
      z[0] = y[0];
      z[1] = y[0] + y[1];
      z[2] = y[0] - y[1];
      z[3] = -y[1];
    }
  };
  // G g
  struct Filter {
    static constexpr int kIn = 3, kOut = 4;
    [[gnu::always_inline]] static void Apply(const Vec* g, Vec* u) {
      const Vec even = 0.5F * (g[0] + g[2]), odd = 0.5F * g[1];
      u[0] = g[0];
      u[1] = even + odd;
      u[2] = even - odd;
      u[3] = g[2];
    }
  };
  // G^T u
  struct FilterGradient {
    static constexpr int kIn = 4, kOut = 3;
    [[gnu::always_inline]] static void Apply(const Vec* u, Vec* g) {
      const Vec sum = 0.5F * (u[1] + u[2]);
      g[0] = u[0] + sum;
      g[1] = 0.5F * (u[1] - u[2]);
      g[2] = sum + u[3];
    }
  };
};

// The points are 0, +-5/8, +-3/2 and infinity. With the usual 0, +-1, +-2 the transforms lose about
// twice as much precision: tests/layers/convolution/precision_test.cc. All constants but those of
// Filter are exact in binary.
template <>
struct Winograd<4> {
  static constexpr int kPoints = 6;
  static constexpr float a = 5.0F / 8, b = 3.0F / 2;
  static constexpr float a2 = a * a, a3 = a * a2, b2 = b * b, b3 = b * b2;
  static constexpr float kSum = a2 + b2, kProduct = a2 * b2;
  // 1 / the product of a point's distances to the other points.
  static constexpr float kZero = 1 / kProduct;
  static constexpr float kInverseA = 1 / (2 * a2 * (a2 - b2));
  static constexpr float kInverseB = 1 / (2 * b2 * (b2 - a2));

  struct Input {
    static constexpr int kIn = 6, kOut = 6;
    [[gnu::always_inline]] static void Apply(const Vec* d, Vec* v) {
      const Vec even_a = d[4] - b2 * d[2], odd_a = d[3] - b2 * d[1];
      const Vec even_b = d[4] - a2 * d[2], odd_b = d[3] - a2 * d[1];
      v[0] = kProduct * d[0] - kSum * d[2] + d[4];
      v[1] = even_a + a * odd_a;
      v[2] = even_a - a * odd_a;
      v[3] = even_b + b * odd_b;
      v[4] = even_b - b * odd_b;
      v[5] = kProduct * d[1] - kSum * d[3] + d[5];
    }
  };
  struct Output {
    static constexpr int kIn = 6, kOut = 4;
    [[gnu::always_inline]] static void Apply(const Vec* m, Vec* y) {
      const Vec sum_a = m[1] + m[2], difference_a = m[1] - m[2];
      const Vec sum_b = m[3] + m[4], difference_b = m[3] - m[4];
      y[0] = m[0] + sum_a + sum_b;
      y[1] = a * difference_a + b * difference_b;
      y[2] = a2 * sum_a + b2 * sum_b;
      y[3] = a3 * difference_a + b3 * difference_b + m[5];
    }
  };
  struct Gradient {
    static constexpr int kIn = 4, kOut = 6;
    [[gnu::always_inline]] static void Apply(const Vec* y, Vec* z) {
      const Vec even_a = y[0] + a2 * y[2], odd_a = y[1] + a2 * y[3];
      const Vec even_b = y[0] + b2 * y[2], odd_b = y[1] + b2 * y[3];
      z[0] = y[0];
      z[1] = even_a + a * odd_a;
      z[2] = even_a - a * odd_a;
      z[3] = even_b + b * odd_b;
      z[4] = even_b - b * odd_b;
      z[5] = y[3];
    }
  };
  struct Filter {
    static constexpr int kIn = 3, kOut = 6;
    [[gnu::always_inline]] static void Apply(const Vec* g, Vec* u) {
      const Vec even_a = kInverseA * (g[0] + a2 * g[2]), odd_a = (kInverseA * a) * g[1];
      const Vec even_b = kInverseB * (g[0] + b2 * g[2]), odd_b = (kInverseB * b) * g[1];
      u[0] = kZero * g[0];
      u[1] = even_a + odd_a;
      u[2] = even_a - odd_a;
      u[3] = even_b + odd_b;
      u[4] = even_b - odd_b;
      u[5] = g[2];
    }
  };
  struct FilterGradient {
    static constexpr int kIn = 6, kOut = 3;
    [[gnu::always_inline]] static void Apply(const Vec* u, Vec* g) {
      const Vec sum_a = kInverseA * (u[1] + u[2]), difference_a = kInverseA * (u[1] - u[2]);
      const Vec sum_b = kInverseB * (u[3] + u[4]), difference_b = kInverseB * (u[3] - u[4]);
      g[0] = kZero * u[0] + sum_a + sum_b;
      g[1] = a * difference_a + b * difference_b;
      g[2] = a2 * sum_a + b2 * sum_b + u[5];
    }
  };
};

}  // namespace ringtail::RT_KERNEL_ISA

#endif  // RINGTAIL_LAYERS_KERNELS_WINOGRAD_WINOGRAD_MATRICES_H_
