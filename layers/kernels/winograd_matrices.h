// The matrices of Winograd's minimal filtering F(m, 3), applied to vectors (Lavin & Gray 2016;
// Winograd 1980). With n = m + 2 interpolation points (0, +-1, infinity; for m = 4 also +-2):
//
//   y = A^T [(G g) . (B^T d)]         m outputs of a 3-tap filter g over m + 2 inputs d,
//                                     n multiplications instead of 3 m
//   d_d = B  [(G g) . (A dy)]         not used: backward-data is a forward convolution of dy with
//                                     the filter turned round
//   dg  = G^T [(B^T d) . (A dy)]      the gradient of the filter
//
// In two dimensions each is applied to the columns, then to the rows. Only for layers/kernels/*.cc.
#ifndef RINGTAIL_LAYERS_KERNELS_WINOGRAD_MATRICES_H_
#define RINGTAIL_LAYERS_KERNELS_WINOGRAD_MATRICES_H_

#include "layers/kernels/vec.h"

namespace ringtail::RT_KERNEL_ISA {

template <int kTile>
struct Winograd;

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

template <>
struct Winograd<4> {
  static constexpr int kPoints = 6;

  struct Input {
    static constexpr int kIn = 6, kOut = 6;
    [[gnu::always_inline]] static void Apply(const Vec* d, Vec* v) {
      const Vec even1 = d[4] - 4 * d[2], odd1 = d[3] - 4 * d[1];        // points +-1
      const Vec even2 = d[4] - d[2], odd2 = 2 * (d[3] - d[1]);          // points +-2
      v[0] = 4 * d[0] - 5 * d[2] + d[4];
      v[1] = even1 + odd1;
      v[2] = even1 - odd1;
      v[3] = even2 + odd2;
      v[4] = even2 - odd2;
      v[5] = 4 * d[1] - 5 * d[3] + d[5];
    }
  };
  struct Output {
    static constexpr int kIn = 6, kOut = 4;
    [[gnu::always_inline]] static void Apply(const Vec* m, Vec* y) {
      const Vec sum1 = m[1] + m[2], difference1 = m[1] - m[2];
      const Vec sum2 = m[3] + m[4], difference2 = m[3] - m[4];
      y[0] = m[0] + sum1 + sum2;
      y[1] = difference1 + 2 * difference2;
      y[2] = sum1 + 4 * sum2;
      y[3] = difference1 + 8 * difference2 + m[5];
    }
  };
  struct Gradient {
    static constexpr int kIn = 4, kOut = 6;
    [[gnu::always_inline]] static void Apply(const Vec* y, Vec* z) {
      const Vec even1 = y[0] + y[2], odd1 = y[1] + y[3];
      const Vec even2 = y[0] + 4 * y[2], odd2 = 2 * (y[1] + 4 * y[3]);
      z[0] = y[0];
      z[1] = even1 + odd1;
      z[2] = even1 - odd1;
      z[3] = even2 + odd2;
      z[4] = even2 - odd2;
      z[5] = y[3];
    }
  };
  struct Filter {
    static constexpr int kIn = 3, kOut = 6;
    [[gnu::always_inline]] static void Apply(const Vec* g, Vec* u) {
      const Vec even1 = (-1.0F / 6) * (g[0] + g[2]), odd1 = (-1.0F / 6) * g[1];
      const Vec even2 = (1.0F / 24) * g[0] + (1.0F / 6) * g[2], odd2 = (1.0F / 12) * g[1];
      u[0] = 0.25F * g[0];
      u[1] = even1 + odd1;
      u[2] = even1 - odd1;
      u[3] = even2 + odd2;
      u[4] = even2 - odd2;
      u[5] = g[2];
    }
  };
  struct FilterGradient {
    static constexpr int kIn = 6, kOut = 3;
    [[gnu::always_inline]] static void Apply(const Vec* u, Vec* g) {
      const Vec sum1 = (1.0F / 6) * (u[1] + u[2]), difference1 = (1.0F / 6) * (u[1] - u[2]);
      const Vec sum2 = u[3] + u[4], difference2 = u[3] - u[4];
      g[0] = 0.25F * u[0] - sum1 + (1.0F / 24) * sum2;
      g[1] = (1.0F / 12) * difference2 - difference1;
      g[2] = (1.0F / 6) * sum2 - sum1 + u[5];
    }
  };
};

}  // namespace ringtail::RT_KERNEL_ISA

#endif  // RINGTAIL_LAYERS_KERNELS_WINOGRAD_MATRICES_H_
