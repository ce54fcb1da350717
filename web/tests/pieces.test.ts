// SPDX-License-Identifier: Apache-2.0
import assert from "node:assert/strict";
import { test } from "node:test";
import { ACTIVE, PASS, STALL } from "../src/document.ts";
import { above, flatten, pieceAt } from "../src/pieces.ts";
import { spans } from "./build.ts";

/** Pieces as [start, end, span]. */
function cut(...rows: Parameters<typeof spans>[0]): number[][] {
    const pieces = flatten(spans(rows));
    return Array.from({ length: pieces.count }, (_, i) => [pieces.start[i]!, pieces.end[i]!, pieces.span[i]!]);
}

test("spans apart stay as they are", () => {
    assert.deepEqual(cut([0, 5, ACTIVE, 1], [7, 9, STALL, 1]), [[0, 5, 0], [7, 9, 1]]);
});

test("a stall inside a hold is a stall, and the hold goes on after it", () => {
    assert.deepEqual(cut([0, 10, ACTIVE, 1], [3, 5, STALL, 2]), [[0, 3, 0], [3, 5, 1], [5, 10, 0]]);
});

test("a hold that begins inside a stall shows when the stall is over", () => {
    assert.deepEqual(cut([0, 10, STALL, 1], [3, 15, ACTIVE, 2]), [[0, 10, 0], [10, 15, 1]]);
});

test("of two holds at once the later one shows", () => {
    assert.deepEqual(cut([0, 10, ACTIVE, 1], [4, 12, ACTIVE, 2]), [[0, 4, 0], [4, 12, 1]]);
    assert.deepEqual(cut([0, 20, ACTIVE, 1], [4, 12, ACTIVE, 2]), [[0, 4, 0], [4, 12, 1], [12, 20, 0]]);
});

test("a pass hides a hold and no stall", () => {
    assert.deepEqual(cut([0, 10, ACTIVE, 1], [2, 8, PASS, 2], [4, 6, STALL, 3]), [[0, 2, 0], [2, 4, 1], [4, 6, 2], [6, 8, 1], [8, 10, 0]]);
});

test("a span without length leaves nothing", () => {
    assert.deepEqual(cut([3, 3, STALL, 1]), []);
});

test("pieces cover each cycle once, as painting cycle by cycle says", () => {
    let seed = 1;
    const random = (most: number): number => {
        seed = (seed * 48271) % 2147483647;
        return seed % most;
    };
    for (let round = 0; round < 200; round += 1) {
        const rows = Array.from({ length: 1 + random(12) }, () => {
            const start = random(60);
            return [start, start + random(20), random(3), 1] as [number, number, number, number];
        }).sort((a, b) => a[0] - b[0] || b[1] - a[1]);
        const table = spans(rows);
        const pieces = flatten(table);
        const rank = [0, 2, 1];
        for (let cycle = 0; cycle < 90; cycle += 1) {
            const covering = rows.filter(([start, end]) => start <= cycle && cycle < end);
            const best = covering.reduce((most, [, , state]) => Math.max(most, rank[state]!), -1);
            const found = pieceAt(pieces, cycle);
            assert.equal(found < 0 ? -1 : rank[table.state[pieces.span[found]!]!]!, best);
        }
        for (let i = 1; i < pieces.count; i += 1) assert.ok(pieces.start[i]! >= pieces.end[i - 1]!);
    }
});

test("above finds the first value beyond a limit", () => {
    assert.equal(above([1, 3, 3, 7], 3), 3);
    assert.equal(above([1, 3, 3, 7], 0), 0);
    assert.equal(above([1, 3, 3, 7], 7), 4);
});
