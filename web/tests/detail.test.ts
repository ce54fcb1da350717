// SPDX-License-Identifier: Apache-2.0
import assert from "node:assert/strict";
import { test } from "node:test";
import { isDense, paint, shares } from "../src/detail.ts";
import { ACTIVE, STALL } from "../src/document.ts";
import { cyclesBefore, laneOf, type Strip } from "../src/lanes.ts";
import { FIRST_DROWNED, FIRST_STALL, HELD, Names } from "../src/names.ts";
import { report, row, timeline } from "./build.ts";

type Tuples = Parameters<typeof row>[3];

function stripOf(end: number, tuples: Tuples): Strip {
    const one = timeline([row(0, "mma", end, tuples)]);
    return laneOf(new Names(report([one])), one, 0, 0, 0).strip;
}

/** What each of `width` columns shows: a category, `.` for untracked, or the shares of a mixture. */
function columns(strip: Strip, start: number, end: number, width: number): (string | number | number[])[] {
    const found: (string | number | number[])[] = new Array(width).fill(".");
    paint(strip, { start, end }, width, {
        run: (from, to, category) => found.fill(category, from, to),
        mix: (at, parts) => (found[at] = Array.from(parts)),
    });
    return found;
}

const S = FIRST_STALL;

test("spans that fill columns are runs", () => {
    assert.deepEqual(columns(stripOf(10, [[2, 5, STALL, 1], [5, 8, ACTIVE, 1]]), 0, 10, 10), [".", ".", S, S, S, HELD, HELD, HELD, ".", "."]);
});

test("a column that two spans meet in belongs to the larger part", () => {
    // 10 cycles a column: column 0 is 6 cycles of stall and 4 of work, column 1 all work.
    assert.deepEqual(columns(stripOf(20, [[0, 6, STALL, 1], [6, 20, ACTIVE, 1]]), 0, 20, 2), [S, HELD]);
    assert.deepEqual(columns(stripOf(20, [[0, 4, STALL, 1], [4, 20, ACTIVE, 1]]), 0, 20, 2), [S, HELD], "or it would vanish");
});

test("a stall of a hundredth of a column wins it", () => {
    assert.deepEqual(columns(stripOf(300, [[0, 150, ACTIVE, 1], [150, 151, STALL, 1], [151, 300, ACTIVE, 1]]), 0, 300, 3), [HELD, S, HELD]);
});

test("a stall less than a column long that lies across an edge is seen in one of the two", () => {
    // 10 cycles a column: cycles 6 to 14 are 4 of column 0 and 4 of column 1.
    const found = columns(stripOf(30, [[0, 6, ACTIVE, 1], [6, 14, STALL, 1], [14, 30, ACTIVE, 1]]), 0, 30, 3);
    assert.deepEqual(found.filter((one) => one === S).length, 1);
});

test("many spans in a column are a mixture that adds up", () => {
    const [mixture] = columns(stripOf(100, [[0, 10, STALL, 1], [10, 40, ACTIVE, 1], [40, 60, STALL, 1], [60, 90, ACTIVE, 1]]), 0, 100, 1) as number[][];
    assert.ok(Math.abs(mixture![S]! - 0.3) < 1e-6);
    assert.ok(Math.abs(mixture![HELD]! - 0.6) < 1e-6);
});

test("the far view by sums agrees with adding up span by span, and no stall vanishes in it", () => {
    let seed = 7;
    const random = (most: number): number => {
        seed = (seed * 48271) % 2147483647;
        return seed % most;
    };
    const tuples: [number, number, number, number][] = [];
    let at = 0;
    for (let i = 0; i < 4000; i += 1) {
        at += random(9);
        const length = 1 + random(30);
        tuples.push([at, at + length, i % 50 ? ACTIVE : STALL, random(2) ? 1 : 2]);
        at += length;
    }
    const strip = stripOf(at, tuples);
    const width = 97;
    const range = { start: 13.5, end: at * 0.9 };
    assert.ok(isDense(strip, range, width));
    const found = columns(strip, range.start, range.end, width) as number[][];
    const step = (range.end - range.start) / width;
    for (let column = 0; column < width; column += 1) {
        const [from, to] = [range.start + column * step, range.start + (column + 1) * step];
        const within = (state: number): number =>
            tuples.filter((tuple) => tuple[2] === state).reduce((sum, [start, end]) => sum + Math.max(Math.min(end, to) - Math.max(start, from), 0), 0) / step;
        const stalled = found[column]!.slice(FIRST_STALL).reduce((a, b) => a + b, 0);
        assert.ok(Math.abs(found[column]![HELD]! - within(ACTIVE)) < 1e-4);
        assert.ok(Math.abs(stalled - within(STALL)) < 1e-4);
        assert.equal(stalled > 0, within(STALL) > 0);
    }
});

test("no stall vanishes in a near view, whatever lies around it", () => {
    let seed = 3;
    const random = (most: number): number => {
        seed = (seed * 48271) % 2147483647;
        return seed % most;
    };
    for (let round = 0; round < 300; round += 1) {
        const tuples: [number, number, number, number][] = [];
        let at = random(5);
        while (at < 900) {
            const length = 1 + random(random(3) ? 4 : 60);
            tuples.push([at, at + length, random(3) ? ACTIVE : STALL, 1]);
            at += length + (random(2) ? 0 : random(12));
        }
        const width = 60 + random(200);
        const range = { start: 0, end: at + 1 };
        const found = columns(stripOf(at, tuples), range.start, range.end, width);
        const pixel = width / (range.end - range.start);
        for (const [start, end, state] of tuples) {
            if (state !== STALL) continue;
            const touched = found.slice(Math.floor(start * pixel), Math.ceil(end * pixel));
            assert.ok(touched.some((one) => one === S || (Array.isArray(one) && one[S]! > 0)), `stall from ${start} to ${end} in round ${round}`);
        }
    }
});

test("strips of several warps weigh the same", () => {
    const [first, second] = [stripOf(10, [[0, 10, STALL, 1]]), stripOf(10, [[0, 5, ACTIVE, 1]])];
    const found: number[][] = [];
    shares([first.sums, second.sums], 2, { start: 0, end: 10 }, 1, { run: () => undefined, mix: (_, parts) => found.push(Array.from(parts)) });
    assert.equal(found[0]![S], 0.5);
    assert.equal(found[0]![HELD], 0.25);
});

test("cycles before a moment, looked up in any ascending order", () => {
    const [sum] = stripOf(100, [[10, 20, STALL, 1], [30, 40, STALL, 1], [50, 60, STALL, 1]]).sums;
    const hint = { at: 0 };
    const moments: [number, number][] = [[5, 0], [10, 0], [14, 4], [20, 10], [29, 10], [35, 15], [55, 25], [99, 30]];
    for (const [at, cycles] of moments) assert.equal(cyclesBefore(sum!, at, hint), cycles);
    for (const [at, cycles] of moments) assert.equal(cyclesBefore(sum!, at, { at: 0 }), cycles);
});

test("a stall that may be none is a kind of its own at every distance", () => {
    // 10 cycles each, the first and the third off by 10, the second by 9; a piece takes ten columns, one, and a third of one.
    const one = row(0, "mma", 90, [[0, 10, STALL, 1], [10, 20, STALL, 1], [20, 30, STALL, 1], [30, 90, ACTIVE, 1]]);
    const doubtful = { ...one, spans: { ...one.spans, length_error: Int32Array.from([10, 9, 10, 0]) } };
    const shown = timeline([doubtful]);
    const strip = laneOf(new Names(report([shown])), shown, 0, 0, 0).strip;
    const D = FIRST_DROWNED;
    assert.deepEqual(columns(strip, 0, 30, 30), [...Array(10).fill(D), ...Array(10).fill(S), ...Array(10).fill(D)]);
    assert.deepEqual(columns(strip, 0, 90, 9), [D, S, D, ...Array(6).fill(HELD)]);
    const [near] = columns(strip, 0, 90, 3) as number[][];
    assert.deepEqual([near![S], near![D]].map((share) => Math.round(300 * share!)), [100, 200]);
    // Two warps as one row, as a folded role is from far away.
    const folded: number[] = [];
    shares([strip.sums, strip.sums], 2, { start: 0, end: 90 }, 1, { run: () => undefined, mix: (_, parts) => folded.push(parts[S]!, parts[D]!) });
    assert.deepEqual(folded.map((share) => Math.round(90 * share)), [10, 20]);
});
