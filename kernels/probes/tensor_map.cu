// SPDX-License-Identifier: Apache-2.0
//
// The copy engine with a tensor map: what issuing a box costs, how long one takes, and how many bytes a cycle come from L2 and from
// device memory. The source is a matrix of bf16 with rows of ROW_BYTES; a box is 64 columns (128 bytes, 128-byte swizzle) of `rows`
// rows, so that it gathers pieces of 128 bytes, as the tiles of a GEMM do. One warp a CTA, one thread of it issues and waits. From
// sm_90 on.

#include "probe.cuh"

#if __CUDA_ARCH__ >= 900

#include "bulk.cuh"

#endif

// What cuTensorMapEncodeTiled makes.
struct alignas(64) TensorMap {
    unsigned char words[128];
};

// As PROBE, with a tensor map of the source and the rows of its box.
#define BOX_PROBE(name)                                                                                         \
    extern "C" __global__ void name(long long* records, const unsigned char* source, Walk walk, int trips, int extra, \
                                    const __grid_constant__ TensorMap map, int rows)

#if __CUDA_ARCH__ >= 900

constexpr int BOX_COLUMNS = 64;
constexpr int BOX_ROW_BYTES = 128;
constexpr int ROW_BYTES = 8192;
constexpr int BOXES_A_ROW = ROW_BYTES / BOX_ROW_BYTES;
constexpr int ISSUED = 8;

// The box that takes the place of the bytes at `offset` of a walk: boxes are counted along the rows of the matrix.
struct Box {
    int column;
    int row;

    __device__ __forceinline__ Box(unsigned long long offset, int rows) {
        const unsigned long long number = offset / (static_cast<unsigned>(rows) * BOX_ROW_BYTES);
        column = static_cast<int>(number % BOXES_A_ROW) * BOX_COLUMNS;
        row = static_cast<int>(number / BOXES_A_ROW) * rows;
    }
};

__device__ __forceinline__ unsigned long long offset_of(const Walk& walk, int trip) {
    return walk.at(nullptr, trip) - static_cast<const unsigned char*>(nullptr);
}

__device__ __forceinline__ void box_copy(void* to, const TensorMap& map, int column, int row, uint64_t* barrier) {
    asm volatile(
        "cp.async.bulk.tensor.2d.shared::cluster.global.tile.mbarrier::complete_tx::bytes [%0], [%1, {%2, %3}], [%4];" ::"r"(
            shared_address(to)),
        "l"(&map), "r"(column), "r"(row), "r"(shared_address(barrier))
        : "memory");
}

// `count`: cycles between the clock before and the clock behind ISSUED boxes, summed over trips.
BOX_PROBE(box_issue) {
    extern __shared__ __align__(1024) unsigned char stages[];
    __shared__ uint64_t full;
    if (threadIdx.x == 0) {
        mbarrier_init(&full, 1);
        mbarrier_init_done();
    }
    const Span span(records);
    if (!is_elected()) {
        return;
    }
    const int bytes = rows * BOX_ROW_BYTES;
    long long issuing = 0;
#pragma unroll 1
    for (int trip = 0; trip < trips; ++trip) {
        const Box box(offset_of(walk, trip), rows);
        mbarrier_expect(&full, ISSUED * bytes);
        const long long before = clock_now();
#pragma unroll
        for (int each = 0; each < ISSUED; ++each) {
            box_copy(stages + each * bytes, map, (box.column + each * BOX_COLUMNS) % (BOXES_A_ROW * BOX_COLUMNS), box.row, &full);
        }
        issuing += clock_now() - before;
        mbarrier_wait(&full, trip & 1);
    }
    span.close(MEASURED, issuing, issuing);
}

// One box at a time: issued, waited for, then the next.
BOX_PROBE(box_latency) {
    __shared__ alignas(1024) unsigned char stage[STAGE_BYTES];
    __shared__ uint64_t full;
    if (threadIdx.x == 0) {
        mbarrier_init(&full, 1);
        mbarrier_init_done();
    }
    const Span span(records);
    if (!is_elected()) {
        return;
    }
    Box box(offset_of(walk, 0), rows);
#pragma unroll 1
    for (int trip = 0; trip < trips; ++trip) {
        mbarrier_expect(&full, rows * BOX_ROW_BYTES);
        box_copy(stage, map, box.column, box.row, &full);
        // The next place is worked out while this one is under way.
        box = Box(offset_of(walk, trip + 1), rows);
        mbarrier_wait(&full, trip & 1);
    }
    span.close(MEASURED, 0);
}

// Boxes of 128 rows (16 KiB), `extra` of them in flight.
BOX_PROBE(box_stream) {
    extern __shared__ __align__(1024) unsigned char stages[];
    __shared__ uint64_t full[32];
    Ring filled{stages, full, extra};
    if (threadIdx.x == 0) {
        filled.init();
    }
    const Span span(records);
    if (!is_elected()) {
        return;
    }
    const auto issue = [&](const Ring& ring, int trip) {
        const Box box(offset_of(walk, trip), STAGE_BYTES / BOX_ROW_BYTES);
        mbarrier_expect(&ring.full[ring.at], STAGE_BYTES);
        box_copy(ring.stage + ring.at * STAGE_BYTES, map, box.column, box.row, &ring.full[ring.at]);
    };
    Ring issued = filled;
#pragma unroll 1
    for (int ahead = 0; ahead < extra; ++ahead) {
        issue(issued, ahead);
        issued.advance();
    }
#pragma unroll 1
    for (int trip = 0; trip < trips; ++trip) {
        filled.wait();
        issue(filled, trip + extra);
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
