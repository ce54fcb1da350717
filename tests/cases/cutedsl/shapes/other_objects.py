import os
import subprocess
import cutlass.cute as cute
import torch
import torch.distributed as dist


def run(process, stream, event, pool, lock, kernel):
    dist.barrier()
    torch.cuda.synchronize()
    stream.wait_event(event)
    event.wait()
    process.wait()
    lock.release()
    os.wait()
    kernel.compute()
