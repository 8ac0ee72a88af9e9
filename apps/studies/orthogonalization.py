#!/usr/bin/python3
"""What rounding to bf16 does to Muon's orthogonalization (optim/orthogonalize.h): relative errors of the result against
double precision, on matrices that are drawn with given singular values.

  gram f32     all rounds combined into one matrix of the short side, as Ringtail does
  gram bf16    the same, operands of all products rounded to bf16, sums in f32
  gram split   the same, each operand the sum of two numbers of bf16, the smallest of the four products left out
  direct bf16  x itself is iterated, as in Jordan et al. 2024, with their five equal rounds, operands rounded to bf16

  apps/studies/orthogonalization.py    # needs python3-numpy
"""
import numpy as np

ROUNDS = ((8.3853, -24.5675, 18.0384), (4.0936, -3.0159, 0.5612), (3.7086, -2.7477, 0.5314), (2.7981, -2.0729, 0.4573))
JORDAN = ((3.4445, -4.7750, 2.0315),) * 5


def bf16(x):
    bits = x.astype(np.float32).view(np.uint32)
    return ((bits + 0x7fff + ((bits >> 16) & 1)) & np.uint32(0xffff0000)).view(np.float32)


def in_f64(a, b):
    return a.astype(np.float64) @ b.astype(np.float64)


def in_f32(a, b):
    return (a.astype(np.float32) @ b.astype(np.float32)).astype(np.float32)


def in_bf16(a, b):
    return in_f32(bf16(a), bf16(b))


def in_two_bf16(a, b):
    high_a, high_b = bf16(a), bf16(b)
    low_a, low_b = bf16(a - high_a), bf16(b - high_b)
    return high_a @ high_b + (high_a @ low_b + low_a @ high_b)


def mirrored(square):
    return np.tril(square) + np.tril(square, -1).T


def polynomial_of(gram, multiply, coefficients):
    a, b, c = coefficients
    return a * np.eye(len(gram), dtype=gram.dtype) + b * gram + c * mirrored(multiply(gram, gram))


def combined(x, multiply):
    x = x / np.linalg.norm(x)
    gram = mirrored(multiply(x, x.T))
    polynomial = product = polynomial_of(gram, multiply, ROUNDS[0])
    for coefficients in ROUNDS[1:]:
        gram = mirrored(multiply(mirrored(multiply(polynomial, gram)), polynomial))
        polynomial = polynomial_of(gram, multiply, coefficients)
        product = mirrored(multiply(polynomial, product))
    return multiply(product, x)


def direct(x, multiply):
    x = x / np.linalg.norm(x)
    for a, b, c in JORDAN:
        gram = multiply(x, x.T)
        x = a * x + multiply(b * gram + c * multiply(gram, gram), x)
    return x


def matrices(rows, columns):
    rng = np.random.default_rng(0)
    for decades in (1, 2, 4, 6):
        u, _ = np.linalg.qr(rng.normal(size=(rows, rows)))
        v, _ = np.linalg.qr(rng.normal(size=(columns, rows)))
        yield f'{decades} decades', (u * 10 ** (-decades * np.linspace(0, 1, rows))) @ v.T
    strong = np.r_[1, np.full(rows - 1, 1e-4)]
    yield 'one strong direction', (u * strong) @ v.T
    yield 'rank 3', rng.normal(size=(rows, 3)) @ rng.normal(size=(3, columns))


def main():
    ways = {'gram f32': (combined, in_f32), 'gram bf16': (combined, in_bf16), 'gram split': (combined, in_two_bf16),
            'direct bf16': (direct, in_bf16)}
    print('| matrix | singular values | ' + ' | '.join(ways) + ' |')
    print('|---|---|' + '---|' * len(ways))
    for rows, columns in ((64, 576), (128, 1152), (256, 2304)):
        for name, x in matrices(rows, columns):
            errors = []
            for iterate, multiply in ways.values():
                exact = iterate(x, in_f64)
                errors.append(np.linalg.norm(iterate(x.astype(np.float32), multiply) - exact) / np.linalg.norm(exact))
            print(f'| {rows} x {columns} | {name} | ' + ' | '.join(f'{error:.1e}' for error in errors) + ' |')


if __name__ == '__main__':
    main()
