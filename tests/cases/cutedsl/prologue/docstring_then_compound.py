"""Helpers of cute
kernels."""
class Helpers:
    def step(self, cute):
        cute.arch.sync_warp()
