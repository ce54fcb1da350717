#!/usr/bin/env python3
# -*- coding: utf-8 -*-
"""Doc.""" "continued"; from cutlass import cute; from os import path
def step(pipe): cute.arch.sync_warp()
