// SPDX-License-Identifier: Apache-2.0
//
// TMA: PTX ISA, "Data Movement and Conversion Instructions: Tensor copy". One thread asks for a box of a tensor map;
// the copy engine does the rest.

#pragma once

#include <cuda.h>

#include <cstdint>

#include "mbarrier.cuh"

// The bytes of a load count on `barrier` as they land.
__device__ __forceinline__ void tma_load(void* target, const CUtensorMap& map, int column, int row, uint64_t* barrier) {
    asm volatile(
        "cp.async.bulk.tensor.2d.shared::cluster.global.tile.mbarrier::complete_tx::bytes "
        "[%0], [%1, {%2, %3}], [%4];" ::"r"(shared_address(target)),
        "l"(&map), "r"(column), "r"(row), "r"(shared_address(barrier))
        : "memory");
}

// The same into each CTA of the cluster whose bit is set in `ranks`: at the same offset of its shared memory, and
// counted on the barrier at the same offset.
__device__ __forceinline__ void tma_load_multicast(void* target, const CUtensorMap& map, int column, int row,
                                                   uint64_t* barrier, uint16_t ranks) {
    asm volatile(
        "cp.async.bulk.tensor.2d.shared::cluster.global.tile.mbarrier::complete_tx::bytes.multicast::cluster "
        "[%0], [%1, {%2, %3}], [%4], %5;" ::"r"(shared_address(target)),
        "l"(&map), "r"(column), "r"(row), "r"(shared_address(barrier)), "h"(ranks)
        : "memory");
}

__device__ __forceinline__ void tma_store(const CUtensorMap& map, int column, int row, const void* source) {
    asm volatile("cp.async.bulk.tensor.2d.global.shared::cta.tile.bulk_group [%0, {%1, %2}], [%3];" ::"l"(&map),
                 "r"(column), "r"(row), "r"(shared_address(source))
                 : "memory");
}

// Close the group of stores that this thread has issued so far.
__device__ __forceinline__ void tma_store_commit_group() { asm volatile("cp.async.bulk.commit_group;" ::: "memory"); }

// Block until at most PENDING of this thread's groups have still to read their shared memory.
template <int PENDING>
__device__ __forceinline__ void tma_store_wait_group_read() {
    asm volatile("cp.async.bulk.wait_group.read %0;" ::"n"(PENDING) : "memory");
}

// Fetch the descriptors before their first use.
__device__ __forceinline__ void prefetch_maps(const CUtensorMap& a, const CUtensorMap& b, const CUtensorMap& c) {
    for (const CUtensorMap* map : {&a, &b, &c}) {
        asm volatile("prefetch.tensormap [%0];" ::"l"(map) : "memory");
    }
}
