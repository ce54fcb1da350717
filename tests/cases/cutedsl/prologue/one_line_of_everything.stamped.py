#!/usr/bin/env python3
# -*- coding: utf-8 -*-
"""Doc.""" "continued"; from cutlass import cute; from os import path; from autostamp.runtime.cutedsl import stamps as _as; _as = _as.stamper("KEY")
def step(pipe): _as.enter(1, text='warp'); cute.arch.sync_warp(); _as.exit(1)
