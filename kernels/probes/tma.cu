// SPDX-License-Identifier: Apache-2.0
//
// The copy engine: what issuing a bulk copy costs, how long one takes, and how many bytes a cycle come from L2 and from device
// memory. cp.async.bulk without a tensor map; one warp a CTA, one thread of it issues and waits. From sm_90 on.

#include "probe.cuh"

// Fill the source with words that differ: memories and links may treat equal ones better. Grid and block are free.
PROBE(fill) {
    uint4* const words = reinterpret_cast<uint4*>(const_cast<unsigned char*>(source));
    const unsigned long long count = (walk.mask + 1) / sizeof(uint4);
    const unsigned long long threads = static_cast<unsigned long long>(gridDim.x) * blockDim.x;
    for (unsigned long long at = blockIdx.x * static_cast<unsigned long long>(blockDim.x) + threadIdx.x; at < count; at += threads) {
        const uint32_t mixed = static_cast<uint32_t>(at) * 0x9E3779B9u;
        words[at] = make_uint4(mixed, mixed ^ 0x85EBCA6Bu, mixed * 0xC2B2AE35u, ~mixed);
    }
}

#if __CUDA_ARCH__ >= 900

#include "bulk.cuh"

constexpr int BATCH = 16;
constexpr int BATCH_COPY_BYTES = 1024;

// `count`: cycles between the clock before and the clock behind BATCH copies of 1 KiB, summed over trips.
PROBE(tma_issue) {
    __shared__ alignas(128) unsigned char stage[BATCH * BATCH_COPY_BYTES];
    __shared__ uint64_t full;
    if (threadIdx.x == 0) {
        mbarrier_init(&full, 1);
        mbarrier_init_done();
    }
    const Span span(records);
    if (!is_elected()) {
        return;
    }
    long long issuing = 0;
#pragma unroll 1
    for (int trip = 0; trip < trips; ++trip) {
        const unsigned char* const from = walk.at(source, trip);
        mbarrier_expect(&full, sizeof stage);
        const long long before = clock_now();
#pragma unroll
        for (int each = 0; each < BATCH; ++each) {
            bulk_copy(stage + each * BATCH_COPY_BYTES, from + each * BATCH_COPY_BYTES, BATCH_COPY_BYTES, &full);
        }
        issuing += clock_now() - before;
        mbarrier_wait(&full, trip & 1);
    }
    span.close(MEASURED, issuing, issuing);
}

// One copy of `extra` bytes at a time: issued, waited for, then the next.
PROBE(tma_latency) {
    __shared__ alignas(128) unsigned char stage[STAGE_BYTES];
    __shared__ uint64_t full;
    if (threadIdx.x == 0) {
        mbarrier_init(&full, 1);
        mbarrier_init_done();
    }
    const Span span(records);
    if (!is_elected()) {
        return;
    }
#pragma unroll 1
    for (int trip = 0; trip < trips; ++trip) {
        mbarrier_expect(&full, extra);
        bulk_copy(stage, walk.at(source, trip), extra, &full);
        mbarrier_wait(&full, trip & 1);
    }
    span.close(MEASURED, 0);
}

// Copies of 16 KiB, `extra` of them in flight.
PROBE(tma_stream) {
    extern __shared__ __align__(128) unsigned char stages[];
    __shared__ uint64_t full[32];
    Ring filled{stages, full, extra};
    if (threadIdx.x == 0) {
        filled.init();
    }
    const Span span(records);
    if (!is_elected()) {
        return;
    }
    Ring issued = filled;
#pragma unroll 1
    for (int ahead = 0; ahead < extra; ++ahead) {
        issued.issue(walk.at(source, ahead));
        issued.advance();
    }
#pragma unroll 1
    for (int trip = 0; trip < trips; ++trip) {
        filled.wait();
        filled.issue(walk.at(source, trip + extra));
        filled.advance();
    }
#pragma unroll 1
    for (int left = 0; left < extra; ++left) {
        filled.wait();
        filled.advance();
    }
    span.close(MEASURED, 0);
}

#endif
