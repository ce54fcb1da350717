// SPDX-License-Identifier: Apache-2.0
//
// What reading a clock costs, and in which steps the clocks go. One warp.

#include "probe.cuh"

constexpr int READS = 32;

// Reads per trip: READS of the low 32 bits of the SM clock (CS2R.32), the form that a stamp of autostamp has.
PROBE(clock32_read) {
    const Span span(records);
    uint32_t sum = 0;
#pragma unroll 1
    for (int trip = 0; trip < trips; ++trip) {
#pragma unroll
        for (int read = 0; read < READS; ++read) {
            uint32_t now;
            asm volatile("mov.u32 %0, %%clock;" : "=r"(now));
            sum ^= now;
        }
    }
    span.close(MEASURED, sum);
}

// The same of all 64 bits (CS2R).
PROBE(clock64_read) {
    const Span span(records);
    long long sum = 0;
#pragma unroll 1
    for (int trip = 0; trip < trips; ++trip) {
#pragma unroll
        for (int read = 0; read < READS; ++read) {
            sum ^= clock_now();
        }
    }
    span.close(MEASURED, sum);
}

// The same of %globaltimer.
PROBE(globaltimer_read) {
    const Span span(records);
    long long sum = 0;
#pragma unroll 1
    for (int trip = 0; trip < trips; ++trip) {
#pragma unroll
        for (int read = 0; read < READS; ++read) {
            sum ^= nanoseconds_now();
        }
    }
    span.close(MEASURED, sum);
}

// Samples: reads of the SM clock, one behind the other. The smallest difference is what no two stamps can go below.
PROBE(clock_step) {
    const Span span(records);
    long long reads[READS];
#pragma unroll 1
    for (int trip = 0; trip < trips; ++trip) {  // the last trip is kept: its instructions are in the cache
#pragma unroll
        for (int read = 0; read < READS; ++read) {
            reads[read] = clock_now();
        }
    }
    span.close(MEASURED, 0);
#pragma unroll
    for (int read = 0; read < READS; ++read) {
        span.record[SAMPLES + read] = reads[read];
    }
}

// Samples: values of %globaltimer as it changes. Their smallest difference is its tick.
PROBE(globaltimer_step) {
    const Span span(records);
    long long last = nanoseconds_now();
#pragma unroll 1
    for (int sample = 0; sample < WORDS - SAMPLES; ++sample) {
        long long now = last;
#pragma unroll 1
        for (int tries = 0; now == last && tries < trips; ++tries) {
            now = nanoseconds_now();
        }
        span.record[SAMPLES + sample] = now;
        last = now;
    }
    span.close(MEASURED, last);
}
