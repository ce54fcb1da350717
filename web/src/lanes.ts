// SPDX-License-Identifier: Apache-2.0
/** Warps made ready to be drawn: disjoint pieces, what each shows, and prefix sums of each state for far views. */

import { ACTIVE, isDrowned, PASS, type Row, type Timeline } from "./document.ts";
import { FIRST_DROWNED, FIRST_STALL, HELD, PASSED, type Names } from "./names.ts";
import { above, flatten, type Pieces } from "./pieces.ts";

/** All pieces of one category: `before[i]` cycles of it lie before piece i, so that any range's sum is two look-ups. */
export interface Sum {
    readonly category: number;
    readonly start: Int32Array;
    readonly end: Int32Array;
    readonly before: Float64Array;
}

/** What is drawn in one strip. */
export interface Strip {
    readonly pieces: Pieces;
    readonly category: Uint8Array;
    readonly sums: readonly Sum[];
}

/** One warp of one CTA, or one role of its prediction. Its cycles plus `offset` are the axis of the picture. */
export interface Lane {
    readonly timeline: number;
    readonly index: number;
    readonly row: Row;
    readonly offset: number;
    readonly strip: Strip;
    /** True when nothing was recorded between the warp's entry and its exit. */
    readonly isIdle: boolean;
    /** True when it was never recorded: `index` is then one of the prediction's rows. */
    readonly isPredicted: boolean;
}

export function laneOf(names: Names, timeline: Timeline, number: number, index: number, offset: number, isPredicted = false): Lane {
    const row = (isPredicted ? timeline.prediction!.timeline.rows : timeline.rows)[index]!;
    const { spans } = row;
    const looks = new Map<number, number>();
    const lookOf = (instance: number): number => {
        let look = looks.get(instance);
        if (look === undefined) looks.set(instance, (look = names.lookOf(instance)));
        return look;
    };
    const pieces = flatten(spans);
    const category = new Uint8Array(pieces.count);
    for (let i = 0; i < pieces.count; i += 1) {
        const span = pieces.span[i]!;
        const state = spans.state[span];
        const first = isDrowned(spans, span) ? FIRST_DROWNED : FIRST_STALL;
        category[i] = state === ACTIVE ? HELD : state === PASS ? PASSED : first + lookOf(spans.instance[span]!);
    }
    const isIdle = !spans.start.length && !row.signals.at.length;
    return { timeline: number, index, row, offset, strip: { pieces, category, sums: sumsOf(pieces, category) }, isIdle, isPredicted };
}

/** The pieces of a strip that `keep` chooses, by span index. */
export function chosen(strip: Strip, keep: (span: number) => boolean): Strip {
    const { pieces } = strip;
    const kept: number[] = [];
    for (let i = 0; i < pieces.count; i += 1) if (keep(pieces.span[i]!)) kept.push(i);
    const pick = (values: Int32Array): Int32Array => Int32Array.from(kept, (i) => values[i]!);
    const subset = { count: kept.length, start: pick(pieces.start), end: pick(pieces.end), span: pick(pieces.span) };
    const category = Uint8Array.from(kept, (i) => strip.category[i]!);
    return { pieces: subset, category, sums: sumsOf(subset, category) };
}

function sumsOf(pieces: Pieces, category: Uint8Array): Sum[] {
    const counts = new Map<number, number>();
    for (const one of category) counts.set(one, (counts.get(one) ?? 0) + 1);
    const found = new Map<number, Sum & { filled: number; total: number }>();
    for (const [one, count] of [...counts].sort((a, b) => a[0] - b[0])) {
        found.set(one, {
            category: one,
            start: new Int32Array(count),
            end: new Int32Array(count),
            before: new Float64Array(count),
            filled: 0,
            total: 0,
        });
    }
    for (let i = 0; i < pieces.count; i += 1) {
        const sum = found.get(category[i]!)!;
        sum.start[sum.filled] = pieces.start[i]!;
        sum.end[sum.filled] = pieces.end[i]!;
        sum.before[sum.filled] = sum.total;
        sum.total += pieces.end[i]! - pieces.start[i]!;
        sum.filled += 1;
    }
    return [...found.values()];
}

/** Cycles of a category before cycle `at`. `hint.at` is where the last look-up ended; later ones must not lie earlier. */
export function cyclesBefore(sum: Sum, at: number, hint: { at: number }): number {
    const { start, end, before } = sum;
    let low = hint.at;
    let step = 1;
    while (low + step < start.length && start[low + step]! <= at) {
        low += step;
        step *= 2;
    }
    const index = above(start, at, low, Math.min(low + step, start.length)) - 1;
    if (index < 0) return 0;
    hint.at = index;
    return before[index]! + Math.min(Math.max(at - start[index]!, 0), end[index]! - start[index]!);
}
