// SPDX-License-Identifier: Apache-2.0
//
// The product on the host, in double, and what a result may differ from it.

#pragma once

#include <algorithm>
#include <cmath>
#include <cstddef>
#include <cstdint>
#include <cstdio>
#include <vector>

struct Shape {
    int m = 7168, k = 16384, l = 1;

    size_t rows() const { return static_cast<size_t>(m) * l; }
};

// As in Problem, on the host.
struct Data {
    std::vector<uint8_t> a, a_scales, b, b_scales;
};

// The product, and the sums of the magnitudes of its blocks.
struct Reference {
    std::vector<double> c, magnitude;
};

inline double value_of_e2m1(int bits) {
    const double magnitudes[] = {0, 0.5, 1, 1.5, 2, 3, 4, 6};
    return bits & 8 ? -magnitudes[bits & 7] : magnitudes[bits & 7];
}

inline double value_of_e4m3(int bits) {
    const int exponent = bits >> 3 & 15, mantissa = bits & 7;
    const double magnitude = exponent ? std::ldexp(8 + mantissa, exponent - 10) : std::ldexp(mantissa, -9);
    return bits & 128 ? -magnitude : magnitude;
}

inline Reference make_reference(const Data& data, const Shape& shape) {
    constexpr int block_numbers = 16, block_bytes = 8;
    std::vector<double> scale(256);
    std::vector<float> product(65536);  // of two bytes, two numbers in each: a multiple of 1/4 up to 72, and so exact
    for (int i = 0; i < 256; ++i) {
        scale[i] = value_of_e4m3(i);
        for (int j = 0; j < 256; ++j) {
            product[256 * i + j] = static_cast<float>(value_of_e2m1(i & 15) * value_of_e2m1(j & 15) +
                                                      value_of_e2m1(i >> 4) * value_of_e2m1(j >> 4));
        }
    }
    const size_t blocks = shape.k / block_numbers;
    Reference reference;
    for (size_t row = 0; row < shape.rows(); ++row) {
        const size_t a_block = row * blocks, b_block = row / shape.m * blocks;
        double sum = 0, magnitude = 0;
        for (size_t block = 0; block < blocks; ++block) {
            double dot = 0;
            for (int i = 0; i < block_bytes; ++i) {
                dot += product[256 * data.a[(a_block + block) * block_bytes + i] +
                               data.b[(b_block + block) * block_bytes + i]];
            }
            dot *= scale[data.a_scales[a_block + block]] * scale[data.b_scales[b_block + block]];
            sum += dot;
            magnitude += std::fabs(dot);
        }
        reference.c.push_back(sum);
        reference.magnitude.push_back(magnitude);
    }
    return reference;
}

// Prints how far off the worst result is, as a share of what is allowed. All rungs add exact products of blocks, and each addition
// rounds to f32: there is at most one for each block, and a few dozen where threads meet.
inline bool check(const char* name, const std::vector<float>& c, const Reference& reference, const Shape& shape) {
    const double relative = std::ldexp(shape.k / 16 + 64, -24);
    size_t wrong = 0;
    double worst = 0;
    for (size_t i = 0; i < c.size(); ++i) {
        const double error = std::isnan(c[i]) ? INFINITY : std::fabs(c[i] - reference.c[i]);
        const double allowed = relative * reference.magnitude[i];
        worst = std::max(worst, allowed > 0 ? error / allowed : error);
        if (error > allowed && wrong++ == 0) {
            std::fprintf(stderr, "%s: c[%zu] = %.9g, expected %.9g within %.2g\n", name, i, c[i], reference.c[i], allowed);
        }
    }
    std::printf(" max_error_of_allowed %.4f wrong %zu\n", worst, wrong);
    return wrong == 0;
}
