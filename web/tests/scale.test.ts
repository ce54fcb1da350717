// SPDX-License-Identifier: Apache-2.0
import assert from "node:assert/strict";
import { test } from "node:test";
import { clamped, countIn, duration, figure, panned, percent, ticks, time, toCycles, toPixel, unitOf, zoomed } from "../src/scale.ts";

const whole = { start: 0, end: 1000 };

test("pixels and cycles are each other's inverse", () => {
    const range = { start: 100, end: 300 };
    assert.equal(toPixel(range, 400, 150), 100);
    assert.equal(toCycles(range, 400, 100), 150);
});

test("zooming keeps the cycle under the pointer in its place", () => {
    const before = { start: 200, end: 600 };
    const after = zoomed(before, 0.5, 300, whole);
    assert.deepEqual(after, { start: 250, end: 450 });
    assert.equal(toPixel(before, 800, 300), toPixel(after, 800, 300));
});

test("no view leaves the whole, and none is closer than 16 cycles", () => {
    assert.deepEqual(zoomed(whole, 3, 500, whole), whole);
    assert.deepEqual(panned({ start: 900, end: 950 }, 500, whole), { start: 950, end: 1000 });
    const near = zoomed(whole, 1e-9, 500, whole);
    assert.equal(near.end - near.start, 16);
    assert.deepEqual(clamped({ start: -50, end: 2000 }, whole), whole);
});

test("ticks are round and few", () => {
    assert.deepEqual(ticks({ start: 3, end: 101 }, 5), [20, 40, 60, 80, 100]);
    assert.deepEqual(ticks({ start: 0, end: 2 }, 10), [0, 1, 2], "cycles are whole");
});

test("figures, times and shares in words", () => {
    assert.equal(figure(1234567), "1,234,567");
    assert.equal(figure(-1234.5, 1), "\u22121,234.5");
    assert.equal(figure(0.25, 2), "0.25");
    assert.equal(time(1755, 1755), "1.00 \u00b5s");
    assert.equal(time(18, 2000), "9.0 ns");
    assert.equal(time(2_000_000, 2000), "1.000 ms");
    assert.equal(time(5, null), "");
    assert.equal(duration(1, null), "1 cycle");
    assert.equal(duration(3100, 2000), "3,100 cycles (1.55 \u00b5s)");
    assert.equal(percent(0.1234), "12.3%");
    assert.equal(percent(0.00001), "<0.1%");
    assert.equal(percent(0), "0.0%");
});

test("what was stamped in nanoseconds is told in nanoseconds", () => {
    assert.deepEqual([duration(1, null), duration(32, null), unitOf()], ["1 cycle", "32 cycles", "cycles"]);
    countIn("ns");
    assert.deepEqual([duration(1, null), duration(32, null), unitOf()], ["1 ns", "32 ns", "ns"]);
    countIn("cycles");
});
