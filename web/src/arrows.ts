// SPDX-License-Identifier: Apache-2.0
/** Arrows by the rows and cycles where they begin and end, so that those of one span or one view are found at once. */

import { ACTIVE, type Column, type Timeline } from "./document.ts";
import { above } from "./pieces.ts";

/** Arrow numbers in the order of one of their ends, row by row. */
interface Order {
    readonly numbers: readonly Int32Array[];
    readonly times: readonly Int32Array[];
}

const INDEX = 2 ** 22;

export class ArrowIndex {
    readonly count: number;
    private readonly arriving: Order;
    private readonly leaving: Order;

    constructor(timeline: Timeline) {
        const { arrows, rows } = timeline;
        this.count = arrows.to.length;
        this.arriving = ordered(arrows.to_row, arrows.to, rows.length);
        this.leaving = ordered(arrows.from_row, arrows.from, rows.length);
    }

    /** Arrows that end at the exit of a wait: those of `row` between two cycles, both included. */
    into(row: number, from: number, to: number): number[] {
        return between(this.arriving, row, from, to);
    }

    /** Arrows of signals that `row` made between two cycles, both included. */
    outOf(row: number, from: number, to: number): number[] {
        return between(this.leaving, row, from, to);
    }

    /** Arrows that end in any row between two cycles: at most `most`, evenly chosen. */
    ending(from: number, to: number, most: number): { numbers: number[]; all: number } {
        const found = this.arriving.times.map((times) => [above(times, from - 1), above(times, to)] as const);
        const all = found.reduce((sum, [low, high]) => sum + high - low, 0);
        const stride = Math.max(Math.ceil(all / most), 1);
        const numbers: number[] = [];
        found.forEach(([low, high], row) => {
            for (let i = low; i < high; i += stride) numbers.push(this.arriving.numbers[row]![i]!);
        });
        return { numbers, all };
    }
}

function ordered(rows: Column, times: Column, count: number): Order {
    const sizes = new Int32Array(count);
    for (const row of rows) if (row >= 0 && row < count) sizes[row]! += 1;
    const keys = Array.from(sizes, (size) => new Float64Array(size));
    const filled = new Int32Array(count);
    rows.forEach((row, number) => {
        if (row < 0 || row >= count) return;
        keys[row]![filled[row]!] = times[number]! * INDEX + number;
        filled[row]! += 1;
    });
    for (const list of keys) list.sort();
    return {
        numbers: keys.map((list) => Int32Array.from(list, (key) => key - Math.floor(key / INDEX) * INDEX)),
        times: keys.map((list) => Int32Array.from(list, (key) => Math.floor(key / INDEX))),
    };
}

function between(order: Order, row: number, from: number, to: number): number[] {
    const times = order.times[row];
    if (!times) return [];
    return Array.from(order.numbers[row]!.subarray(above(times, from - 1), above(times, to)));
}

/** The arrows to draw for one span: that which ended the wait, and those of the signals that it made or that end it. */
export function arrowsOfSpan(timeline: Timeline, index: ArrowIndex, row: number, span: number): number[] {
    const { spans } = timeline.rows[row]!;
    const { arrows, causes } = timeline;
    const [start, end] = [spans.start[span]!, spans.end[span]!];
    const instance = spans.instance[span]!;
    if (spans.state[span] === ACTIVE) return index.outOf(row, start + 1, end);
    const found = new Set(index.into(row, end, end).filter((arrow) => arrows.to_instance[arrow] === instance));
    const cause = spans.cause[span]!;
    const named = cause >= 0 ? (causes.arrow[cause] ?? -1) : -1;
    if (named >= 0) found.add(named);
    for (const arrow of index.outOf(row, start, end)) if (arrows.from_instance[arrow] === instance) found.add(arrow);
    return [...found];
}
