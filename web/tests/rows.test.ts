// SPDX-License-Identifier: Apache-2.0
import assert from "node:assert/strict";
import { test } from "node:test";
import { ArrowIndex, arrowsOfSpan } from "../src/arrows.ts";
import { ACTIVE, STALL, type Timeline } from "../src/document.ts";
import { chosen, laneOf, type Lane } from "../src/lanes.ts";
import { Names, warpOf } from "../src/names.ts";
import { across, nearest, neighbour, pickAt } from "../src/pick.ts";
import { keyOf, laneAt, layOut } from "../src/rows.ts";
import { scenesOf } from "../src/scenes.ts";
import { following, matcher } from "../src/search.ts";
import { View, type Highlight } from "../src/view.ts";
import { report, row, timeline } from "./build.ts";

function lanesOf(one: Timeline): Lane[] {
    const names = new Names(report([one]));
    return one.rows.map((_, index) => laneOf(names, one, 0, index, 0));
}

const ring = timeline(
    [
        row(5, "mma", 100, [[0, 40, STALL, 1], [40, 90, ACTIVE, 1]]),
        row(0, "load", 100, [[10, 30, ACTIVE, 2], [30, 32, STALL, 2]]),
        row(4, "mma", 100, [[0, 38, STALL, 1], [38, 80, ACTIVE, 1]]),
    ],
    [[1, 30, 0, 40], [1, 30, 2, 38], [0, 90, 1, 32]],
);

test("rows stand in the hardware's order, a role folded into one", () => {
    const layout = layOut([[0, ring]], lanesOf(ring), new Set());
    assert.deepEqual(layout.rows.map(({ kind, role, lanes }) => [kind, role, lanes.map((lane) => lane.row.warp)]), [
        ["folded", "load", [0]],
        ["folded", "mma", [4, 5]],
    ]);
});

test("an unfolded role has a heading and a row a warp; no two strips overlap", () => {
    const layout = layOut([[0, ring]], lanesOf(ring), new Set([keyOf(0, "mma")]));
    assert.deepEqual(layout.rows.map((one) => one.kind), ["folded", "role", "warp", "warp"]);
    const places = [...layout.places.values()].sort((a, b) => a.top - b.top);
    for (let i = 1; i < places.length; i += 1) assert.ok(places[i]!.top >= places[i - 1]!.top + places[i - 1]!.height);
    for (const [lane, place] of layout.places) assert.equal(laneAt(layout, place.top + place.height / 2), lane);
});

test("many warps still have a pixel or two each", () => {
    const wide = timeline(Array.from({ length: 31 }, (_, warp) => row(warp, "mma", 9, [[0, 5, ACTIVE, 1]])));
    const layout = layOut([[0, wide]], lanesOf(wide), new Set());
    assert.equal(layout.places.size, 31);
    for (const place of layout.places.values()) assert.ok(place.height >= 1);
});

test("the arrows of a wait end in it, those of a hold are made by it", () => {
    const index = new ArrowIndex(ring);
    assert.deepEqual(arrowsOfSpan(ring, index, 0, 0), [0]);
    assert.deepEqual(arrowsOfSpan(ring, index, 2, 0), [1]);
    assert.deepEqual(arrowsOfSpan(ring, index, 1, 0), [0, 1], "both leave the hold's last cycle");
    assert.deepEqual(arrowsOfSpan(ring, index, 0, 1), [2]);
});

test("of too many arrows an even choice is drawn", () => {
    const busy = timeline([row(0, "a", 9999, []), row(1, "b", 9999, [])], Array.from({ length: 1000 }, (_, i) => [0, i, 1, i + 1] as const));
    const { numbers, all } = new ArrowIndex(busy).ending(0, 5000, 100);
    assert.equal(all, 1000);
    assert.equal(numbers.length, 100);
    assert.deepEqual(numbers.slice(0, 3), [0, 10, 20]);
});

test("a short stall near the pointer is found before the span below it", () => {
    const [lane] = lanesOf(timeline([row(0, "a", 1000, [[0, 500, ACTIVE, 1], [500, 502, STALL, 1], [502, 1000, ACTIVE, 1]])]));
    assert.equal(pickAt(lane!, 501, 30)?.span, 1);
    assert.equal(pickAt(lane!, 250, 30)?.span, 0);
    assert.equal(pickAt(lane!, 2000, 30), null);
});

test("neighbours along a warp and across warps", () => {
    const all = report([ring]);
    const view = new View(all, new Names(all), scenesOf(all)[0]!);
    const [five, load, four] = [view.laneOf(0, 0)!, view.laneOf(0, 1)!, view.laneOf(0, 2)!];
    assert.equal(neighbour({ lane: five, span: 0 }, 1).span, 1);
    assert.equal(neighbour({ lane: five, span: 1 }, 1).span, 1);
    assert.deepEqual(across(view, { lane: load, span: 0 }, 1), { lane: four, span: 0 });
    assert.deepEqual(across(view, { lane: four, span: 1 }, 1), { lane: five, span: 1 });
    assert.deepEqual(nearest(load, 99), { lane: load, span: 1 });
});

test("matches follow each other in the order of time and begin again", () => {
    const lanes = lanesOf(ring);
    const strips = new Map(lanes.map((lane) => [lane, chosen(lane.strip, (span) => lane.row.spans.state[span] === STALL)]));
    const highlight: Highlight = { label: "", strips, count: 3 };
    const seen: [number, number][] = [];
    let picked = null;
    for (let i = 0; i < 4; i += 1) {
        picked = following(highlight, lanes, picked, 1);
        seen.push([picked!.lane.row.warp, picked!.lane.row.spans.start[picked!.span]!]);
    }
    assert.deepEqual(seen, [[5, 0], [4, 0], [0, 30], [5, 0]]);
    assert.equal(following(highlight, lanes, picked, -1)!.lane.row.warp, 0);
});

test("a query is words that must all be found", () => {
    const all = report([ring]);
    const match = (query: string): ((role: string, instance: number) => boolean) => matcher(all, new Names(all), query)!;
    assert.ok(match("k consumer")("mma", 1));
    assert.ok(!match("k consumer")("mma", 2));
    assert.ok(match("b.py:9")("mma", 2));
    assert.ok(match("LOAD")("load", 2));
    assert.ok(match("#1")("mma", 1));
    assert.ok(!match("#1")("mma", 12), "a number is not the beginning of another");
    assert.equal(matcher(all, new Names(all), "  "), null);
});

test("aligned CTAs of one launch share a scene, and each has its own", () => {
    const cta = (x: number, launch: number, error: number | null): Timeline => timeline([], [], { block: [x, 0, 0], launch, alignment_error: error });
    const scenes = scenesOf(report([cta(0, 0, 5), cta(1, 0, 9), cta(0, 1, 4), cta(2, 0, null)]));
    assert.deepEqual(scenes.map((scene) => scene.timelines), [[0, 1], [0], [1], [2], [3]]);
    assert.match(scenes[0]!.alignment, /2 CTAs .* within 9 cycles/);
});

test("a side or a warp that a name says already is not said again", () => {
    const base = report([]);
    const label = { type: "", stages: 0, is_inferred: false };
    const names = new Names({ ...base, barriers: [{ ...label, number: 1, label: "smem.full" }, { ...label, number: 2, label: "K" }] });
    assert.deepEqual([names.sided(0, "full"), names.sided(1, "full"), names.sided(1, "empty"), names.sided(2, "full")], ["full", "smem.full", "smem.full empty", "K full"]);
    assert.deepEqual([warpOf("warp 4", 4), warpOf("load", 4)], ["warp 4", "load warp 4"]);
});
