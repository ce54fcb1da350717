# SPDX-License-Identifier: Apache-2.0
"""A kernel that no session of the tests stamps. Its helper comes from a module that some of them do."""

import cutlass
import cutlass.cute as cute
from cutlass import pipeline
from cutlass.cute.runtime import make_fake_compact_tensor, make_fake_stream

STAGES = 2
WARP = 32


@cute.kernel
def kernel(out: cute.Tensor, count: cutlass.Int32):
    from two_pipelines import drain, fill

    warp_idx = cute.arch.make_warp_uniform(cute.arch.warp_idx())
    smem = cutlass.utils.SmemAllocator()
    buffer = smem.allocate_tensor(cutlass.Float32, cute.make_layout(STAGES * WARP))
    group = pipeline.CooperativeGroup(pipeline.Agent.Thread, WARP)
    ring = pipeline.PipelineAsync.create(
        barrier_storage=smem.allocate_array(cutlass.Int64, 2 * STAGES),
        num_stages=STAGES,
        producer_group=group,
        consumer_group=group,
    )
    if warp_idx == 0:
        fill(ring, buffer, out, count)
    if warp_idx == 1:
        drain(ring, buffer, out, count)


@cute.jit
def host(out: cute.Tensor, count: cutlass.Int32, stream):
    kernel(out, count).launch(grid=(1, 1, 1), block=(2 * WARP, 1, 1), stream=stream)


def build(options: str):
    out = make_fake_compact_tensor(cutlass.Float32, (4096,))
    return cute.compile(host, out, cutlass.Int32(8), make_fake_stream(), options=options)
