def step(cute):
    cute.arch.sync_warp()
