// SPDX-License-Identifier: Apache-2.0
import assert from "node:assert/strict";
import { test } from "node:test";
import { arrowsOf, describePicked, longestStalls } from "../src/details.ts";
import { ACTIVE, STALL, type Prediction } from "../src/document.ts";
import { Names } from "../src/names.ts";
import { blocksOf, describePredicted, marksOf } from "../src/predicted.ts";
import { keyOf, laneAt } from "../src/rows.ts";
import { scenesOf } from "../src/scenes.ts";
import { View } from "../src/view.ts";
import { report, row, timeline } from "./build.ts";

const mma = row(1, "mma", 60, [[0, 20, ACTIVE, 0], [20, 35, STALL, 1], [35, 60, ACTIVE, 1]]);
/** load works 10 to 30; mma works 0 to 20, waits until 35 and works until 60: two iterations. */
const prediction: Prediction = {
    headline: "mma is predicted",
    lines: [],
    period: { predicted: 25, measured: 40 },
    timeline: {
        iterations: 2,
        start: 0,
        end: 60,
        rows: [
            row(0, "load", 30, [[10, 20, ACTIVE, 0], [20, 30, ACTIVE, 0]]),
            { ...mma, spans: { ...mma.spans, visit: Int32Array.from([0, 1, 1]) } },
        ],
    },
};
const measured = timeline(
    [row(5, "mma", 100, [[0, 40, STALL, 1], [40, 90, ACTIVE, 1]]), row(0, "load", 100, [[10, 30, ACTIVE, 2]])],
    [[1, 30, 0, 40]],
    { prediction },
);
const all = report([measured]);
const names = new Names(all);
const view = new View(all, names, scenesOf(all)[0]!);

test("predicted rows stand above the measured ones, each group under its heading", () => {
    assert.deepEqual(view.layout.rows.map(({ kind, role, isPredicted }) => [kind, role, isPredicted]), [
        ["group", "", true],
        ["folded", "load", true],
        ["folded", "mma", true],
        ["group", "", false],
        ["folded", "load", false],
        ["folded", "mma", false],
    ]);
    assert.equal(new Set(view.layout.rows.filter((one) => one.role).map((one) => one.key)).size, 4);
    assert.equal(keyOf(0, "mma", true) === keyOf(0, "mma"), false);
    const rows = view.layout.rows;
    for (let i = 1; i < rows.length; i += 1) assert.ok(rows[i]!.top >= rows[i - 1]!.top + rows[i - 1]!.height);
    assert.equal(laneAt(view.layout, rows[0]!.top + 5), undefined, "a heading holds no span");
    assert.equal(laneAt(view.layout, rows[2]!.top + 5)?.isPredicted, true);
});

test("without a prediction nothing is added", () => {
    const plain = report([timeline(measured.rows)]);
    const rows = new View(plain, new Names(plain), scenesOf(plain)[0]!).layout.rows;
    assert.deepEqual(rows.map(({ kind, isPredicted }) => [kind, isPredicted]), [["folded", false], ["folded", false]]);
});

test("arrows still lead to measured rows, and a role has one colour in both groups", () => {
    assert.equal(view.laneOf(0, 0)!.row, measured.rows[0]);
    assert.equal(view.laneOf(0, 1)!.isPredicted, false);
    const lane = view.lanes.find((one) => one.isPredicted && one.row.role === "mma")!;
    assert.deepEqual(arrowsOf(view, names, { lane, span: 1 }), []);
    assert.deepEqual([...new Set(view.lanes.map((one) => `${one.row.role} ${names.role(one.row.role)}`))], ["mma 0", "load 1"]);
});

test("the longest stalls are measured ones", () => {
    assert.deepEqual(longestStalls(view, 9).map(({ lane }) => lane.isPredicted), [false]);
});

test("a predicted span says that it is one", () => {
    const stall = describePredicted(names, measured, 1, 1);
    assert.match(stall.title, /^predicted \u00b7 stall \u00b7 K full \u00b7 15 cycles/);
    assert.equal(stall.lines.find((line) => line.name === "iteration")!.text, "1, counted from 0, of 2 predicted");
    const lane = view.lanes.find((one) => one.isPredicted && one.row.role === "load")!;
    const work = describePicked(view, names, { lane, span: 0 });
    assert.match(work.title, /^predicted \u00b7 active \u00b7 work of load \u00b7 10 cycles/);
    assert.equal(work.lines.find((line) => line.name === "waited for")!.text, "nothing");
    assert.match(work.source, /no record/);
});

test("iterations begin where the last role begins one, its wait included", () => {
    assert.deepEqual(marksOf(prediction), [0, 20, 60]);
    assert.deepEqual(marksOf({ ...prediction, timeline: { ...prediction.timeline, rows: [] } }), []);
});

test("lines that are set in columns stay together", () => {
    assert.deepEqual(blocksOf(["period: 3", "role  busy", "mma   12", "note: x"]), [
        { text: "period: 3", isTable: false },
        { text: "role  busy\nmma   12", isTable: true },
        { text: "note: x", isTable: false },
    ]);
});
