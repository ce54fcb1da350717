// SPDX-License-Identifier: Apache-2.0
import assert from "node:assert/strict";
import { test } from "node:test";
import { describe, describeArrow } from "../src/describe.ts";
import { ACTIVE, BETWEEN, isDrowned, isFaint, STALL, UNCERTAIN, type Replays } from "../src/document.ts";
import { Names } from "../src/names.ts";
import { boundRows, headline, lineAt, setRows } from "../src/replays.ts";
import { report, row, timeline } from "./build.ts";

const plain = row(5, "mma", 100, [[0, 40, STALL, 1], [40, 90, ACTIVE, 1]]);
const joined = {
    ...plain,
    spans: {
        ...plain.spans,
        replay: Int32Array.from([2, 1]),
        error: Int32Array.from([34, 0]),
        length_error: Int32Array.from([0, 12]),
    },
};

test("a span of a joined run says which replay recorded it, and how far off it may be", () => {
    const measured = timeline([joined]);
    const names = new Names(report([measured]));
    const line = (span: number) => describe(names, measured, 0, span).lines.find((each) => each.name === "replay")?.text;
    assert.equal(line(0), "set 2; its place is right to 34 cycles");
    assert.equal(line(1), "set 1; the reference: its place is as recorded, its length to 12");
});

test("a span of another run says nothing of replays", () => {
    const measured = timeline([plain]);
    const names = new Names(report([measured]));
    assert.ok(describe(names, measured, 0, 0).lines.every((line) => line.name !== "replay"));
});

test("an arrow between replays carries its error", () => {
    const base = timeline([plain, row(0, "load", 100, [])], [[1, 30, 0, 40]]);
    const arrows = { ...base.arrows, flags: Int32Array.from([BETWEEN + UNCERTAIN]), error: Int32Array.from([50]) };
    const measured = { ...base, arrows };
    const names = new Names(report([measured]));
    assert.match(
        describeArrow(names, measured, 0),
        /, between two replays, right to 50 cycles, another arrival may have been the last$/,
    );
});

const times = { ratio: 1.0132, p10: 1.011, p90: 1.013, method: "what the program printed" };
const fit = {
    number: 2, kernel: "k", anchors: 320, events: 1512, typical: 7, typical_p95: 36,
    error_median: 90, error_p90: 1043, shortened: 0, moved: 0, guided: 8,
};
const said: Replays = {
    reference: 1,
    bar: 1.02,
    sets: [
        { number: 1, sites: [{ key: "a.cu:1:1@x", form: "both" }], anchors: [], launches: 3, times: { ...times, ratio: 1.001 }, results_equal: true },
        { number: 2, sites: [{ key: "a.cu:1:1@x", form: "both" }, { key: "a.cu:9:5@x", form: "enter" }, { key: "a.cu:9:5@x", form: "before" }], anchors: ["a.cu:1:1@x"], launches: 3, times, results_equal: null },
    ],
    fits: [fit],
    dropped: [],
    uncovered: [],
    bounds: [],
    forms: [],
    notes: [],
};

test("the headline of a joined run has the dearest set and what is missing", () => {
    assert.equal(headline(said), "Joined from 2 replays, each at most 1.013 of the clean time (bar 1.020); every site of the placement is covered");
    const missing = { ...said, uncovered: [{ key: "a.cu:7:3@x", cost: "1.08 of the clean time", code: "AS8126" }] };
    assert.match(headline(missing), /; 1 site is not covered$/);
    const untimed = { ...said, sets: [said.sets[0]!, { ...said.sets[1]!, times: null }] };
    assert.match(headline(untimed), /the cost of some was not measured/);
});

test("a row for each set: what it cost, how many stamps it has, and how it was placed", () => {
    const [first, second] = setRows(said);
    assert.deepEqual(first, ["1", "1.001", "1.011\u20131.013", "1", "0", "3", "bit-equal", "", "", "", "", "the reference: its records are where they were"]);
    assert.deepEqual(second!.slice(0, 7), ["2", "1.013", "1.011\u20131.013", "3 (1 half)", "1", "3", "unknown"]);
    assert.deepEqual(second!.slice(7), ["1,512", "320", "7 (95\u00a0%: 36)", "90 (90\u00a0%: 1,043)", "8 warps without an anchor, placed by another warp\u2019s"]);
});

test("a set of two kernels has a row for each, and its cost once", () => {
    const rows = setRows({ ...said, fits: [fit, { ...fit, kernel: "other", guided: 0 }] });
    assert.equal(rows.length, 3);
    assert.deepEqual(rows[2]!.slice(0, 7), ["", "", "", "", "", "", ""]);
    assert.equal(rows[2]!.at(-1), "other");
});

test("a placement's key leads to its line of the source", () => {
    const base = report([timeline([plain])]);
    const told = { ...base, sources: [{ path: "a/b.py", language: "cutedsl", text: "import x\r\n    pipe.consumer_wait(s)\r\n" }] };
    assert.equal(lineAt(told, "b.py:2:5@0123"), "pipe.consumer_wait(s)");
    assert.equal(lineAt(told, "b.py:9:5@0123"), "");
    assert.equal(lineAt(told, "other.py:2:5@0123"), "");
    assert.equal(lineAt(base, "b.py:2:5@0123"), "");
});

test("a stamp without a record stands between the records around it", () => {
    const before = { label: "wgmma wait_group", file: "b.py", line: 1449, kind: "exit", which: "each", trip: 0 } as const;
    const after = { label: "K consumer_wait", file: "c.py", line: 1438, kind: "enter", which: "first", trip: 1 } as const;
    const bound = {
        key: "b.py:2:5@0123", stamp: "exit", role: "mma", warps: [4, 5], before, after,
        count: 30, median: 1356, p10: 1193, p90: 1510, error: 1118,
    } as const;
    const base = report([timeline([plain])]);
    const [row, whole] = boundRows(base, [bound, { ...bound, stamp: "signal", role: "", warps: [4], error: 0 }]);
    assert.deepEqual(row, [
        "b.py:2:5", "", "exit", "mma, 2 warps", "exit of wgmma wait_group (line 1449)",
        "first enter of K consumer_wait (c.py:1438, next trip)", "1,356", "1,193 to 1,510", "1,118",
    ]);
    assert.deepEqual([whole![2], whole![3], whole![8]], ["", "1 warp", "exact"]);
});

test("what is no longer than its error is faint", () => {
    const base = timeline([plain, row(0, "load", 100, [])], [[1, 30, 0, 40]]);
    const faint = (flags: number, error: number) => isFaint({ ...base.arrows, flags: Int32Array.from([flags]), error: Int32Array.from([error]) }, 0);
    assert.deepEqual([faint(0, 0), faint(BETWEEN, 9), faint(BETWEEN, 10), faint(UNCERTAIN, 0)], [false, false, true, true]);
    assert.equal(isFaint(base.arrows, 0), false);
    // Spans of 40 and 50 cycles; only waits can be none.
    const drowned = (error: number) => [0, 1].map((span) => isDrowned({ ...plain.spans, length_error: Int32Array.from([error, error]) }, span));
    assert.deepEqual([drowned(39), drowned(60)], [[false, false], [true, false]]);
});
