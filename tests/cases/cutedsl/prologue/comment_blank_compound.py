# cutlass helpers


@staticmethod
def step(cute):
    cute.arch.sync_warp()
