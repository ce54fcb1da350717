// SPDX-License-Identifier: Apache-2.0
//
// Random operands, and what their product should be, in double.

#pragma once

#include <algorithm>
#include <cmath>
#include <cstdint>
#include <cstdio>
#include <cstring>
#include <random>
#include <vector>

enum class Dtype { TF32, BF16 };

inline uint64_t fresh_seed() { return std::random_device{}() % 1000000; }

// A 64-bit hash, the finalizer of splitmix64: the same numbers on every machine.
inline uint64_t mix(uint64_t x) {
    x = (x ^ (x >> 30)) * 0xbf58476d1ce4e5b9;
    x = (x ^ (x >> 27)) * 0x94d049bb133111eb;
    return x ^ (x >> 31);
}

// The nearest number whose significand has `kept` bits after the point, ties to even: so do __float2bfloat16 and, as
// seen on an H200, TMA when it makes TF32.
inline float rounded(float value, int kept) {
    const int dropped = 23 - kept;
    uint32_t bits;
    std::memcpy(&bits, &value, sizeof bits);
    bits += (uint32_t{1} << (dropped - 1)) - 1 + ((bits >> dropped) & 1);
    bits &= ~((uint32_t{1} << dropped) - 1);
    std::memcpy(&value, &bits, sizeof bits);
    return value;
}

// What the tensor cores multiply in the place of `values`: TF32 keeps 10 bits after the point.
inline std::vector<float> as_multiplied(std::vector<float> values, Dtype dtype) {
    for (float& value : values) {
        value = dtype == Dtype::TF32 ? rounded(value, 10) : value;
    }
    return values;
}

// Numbers from -1 to 1: floats of 24 bits, or bf16.
inline std::vector<float> make_matrix(size_t size, uint64_t seed, Dtype dtype) {
    std::vector<float> values(size);
    const uint64_t first = mix(seed + 1);
    for (size_t i = 0; i < size; ++i) {
        const float value = static_cast<float>(mix(first + i) >> 40) / (1 << 23) - 1.0f;
        values[i] = dtype == Dtype::BF16 ? rounded(value, 7) : value;
    }
    return values;
}

// Compare up to 65536 elements of C = A * B^T, one from each of as many equal intervals, with sums in double. The
// products are exact there. For f32 sums the PTX ISA promises "at least single precision" in no stated order; we allow
// each step of a wgmma (32 bytes of K) an error of 2^-22 of the sum of the magnitudes, which is four roundings to
// nearest.
inline bool check_result(const std::vector<float>& a, const std::vector<float>& b, const std::vector<float>& c, int n,
                         int k, Dtype dtype) {
    const size_t samples = std::min<size_t>(c.size(), 65536);
    const double relative = static_cast<double>(k) / (dtype == Dtype::TF32 ? 8 : 16) / (1 << 22);
    double max_error = 0, max_allowed = 0;
    size_t wrong = 0;
    for (size_t sample = 0; sample < samples; ++sample) {
        const size_t begin = c.size() * sample / samples, end = c.size() * (sample + 1) / samples;
        const size_t index = begin + mix(sample) % (end - begin);
        const float* a_row = &a[index / n * k];
        const float* b_row = &b[index % n * k];
        double expected = 0, magnitude = 0;
        for (int i = 0; i < k; ++i) {
            const double product = static_cast<double>(a_row[i]) * b_row[i];
            expected += product;
            magnitude += std::fabs(product);
        }
        const double error = std::isnan(c[index]) ? INFINITY : std::fabs(c[index] - expected);
        const double allowed = relative * magnitude;
        max_error = std::max(max_error, error);
        max_allowed = std::max(max_allowed, allowed);
        if (error > allowed && wrong++ == 0) {
            std::printf("first wrong: C[%zu][%zu] = %.9g, expected %.9g within %.2g\n", index / n, index % n, c[index],
                        expected, allowed);
        }
    }
    std::printf("max error %.3g (up to %.3g allowed), %zu of %zu checked outputs are wrong: %s\n", max_error,
                max_allowed, wrong, samples, wrong == 0 ? "ok" : "FAILED");
    return wrong == 0;
}
