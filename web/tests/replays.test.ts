// SPDX-License-Identifier: Apache-2.0
import assert from "node:assert/strict";
import { test } from "node:test";
import { describe, describeArrow } from "../src/describe.ts";
import { ACTIVE, BETWEEN, STALL, UNCERTAIN } from "../src/document.ts";
import { Names } from "../src/names.ts";
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
