// SPDX-License-Identifier: Apache-2.0
/**
 * Level of detail: the pieces of a strip as whole pixel columns.
 *
 * A column that one piece fills is part of a run. One that two pieces meet in belongs to the larger, but a stall that lies
 * inside it wins, so that no stall vanishes. A column with more pieces is a mixture: the share of each category.
 */

import { cyclesBefore, type Strip, type Sum } from "./lanes.ts";
import { CATEGORIES, FIRST_STALL } from "./names.ts";
import { above } from "./pieces.ts";
import type { Range } from "./scale.ts";

export interface Painter {
    /** Columns `from` to `to` (not included) show one category; `piece` is the index of the piece in the strip. */
    run(from: number, to: number, category: number, piece: number): void;
    /** Column `at` shows these shares of its cycles; what is missing to 1 is untracked. The array is reused. */
    mix(at: number, shares: Float32Array): void;
}

/** Above so many pieces a column, sums are looked up instead of pieces walked. */
const DENSE = 3;

/** First and last (not included) index of the pieces that the range shows. */
export function visible(strip: Strip, range: Range): [number, number] {
    return [above(strip.pieces.end, range.start), above(strip.pieces.start, range.end)];
}

export function isDense(strip: Strip, range: Range, width: number): boolean {
    const [first, last] = visible(strip, range);
    return last - first > DENSE * width;
}

/** Paint what of a strip lies in `range` (on the strip's own cycles) as `width` pixel columns. */
export function paint(strip: Strip, range: Range, width: number, painter: Painter): void {
    const [first, last] = visible(strip, range);
    if (last - first > DENSE * width) shares([strip.sums], 1, range, width, painter);
    else walk(strip, range, width, first, last, painter);
}

/** Every column as a mixture of the strips' categories, each strip weighing the same. `sums` belong to one axis. */
export function shares(sums: readonly (readonly Sum[])[], strips: number, range: Range, width: number, painter: Painter): void {
    const cells = sums.flat().map((sum) => ({ sum, hint: { at: 0 }, before: 0 }));
    const step = (range.end - range.start) / width;
    for (const cell of cells) cell.before = cyclesBefore(cell.sum, range.start, cell.hint);
    const mixture = new Float32Array(CATEGORIES);
    for (let column = 0; column < width; column += 1) {
        const until = range.start + (column + 1) * step;
        mixture.fill(0);
        let any = false;
        for (const cell of cells) {
            const now = cyclesBefore(cell.sum, until, cell.hint);
            if (now > cell.before) {
                mixture[cell.sum.category]! += (now - cell.before) / (step * strips);
                any = true;
            }
            cell.before = now;
        }
        if (any) painter.mix(column, mixture);
    }
}

function walk(strip: Strip, range: Range, width: number, first: number, last: number, painter: Painter): void {
    const { pieces, category } = strip;
    const pixels = width / (range.end - range.start);
    const column = new Column(painter);
    for (let i = first; i < last; i += 1) {
        const kind = category[i]!;
        const left = Math.max((pieces.start[i]! - range.start) * pixels, 0);
        const right = Math.min((pieces.end[i]! - range.start) * pixels, width);
        if (right <= left) continue;
        const from = Math.min(Math.floor(left), width - 1);
        if (right <= from + 1) {
            column.add(from, kind, i, right - left, true);
            continue;
        }
        const whole = left > from ? from + 1 : from;
        const until = Math.floor(right);
        const [before, after] = [whole - left, until < width ? right - until : 0];
        // A piece without a column of its own must still be seen in the one that holds more of it.
        const isShort = until <= whole;
        if (before > 0) column.add(from, kind, i, before, isShort && before >= after);
        if (!isShort) {
            column.flush();
            painter.run(whole, until, kind, i);
        }
        if (after > 0) column.add(until, kind, i, after, isShort && before < after);
    }
    column.flush();
}

/** The column that pieces are being collected for. */
class Column {
    private at = -1;
    private count = 0;
    private shortStall = -1;
    private shortStalls = 0;
    private short = -1;
    private readonly kinds: number[] = [];
    private readonly indices: number[] = [];
    private readonly parts: number[] = [];
    private readonly mixture = new Float32Array(CATEGORIES);

    constructor(private readonly painter: Painter) {}

    add(at: number, kind: number, piece: number, share: number, isInside: boolean): void {
        if (at !== this.at) this.flush();
        this.at = at;
        this.kinds[this.count] = kind;
        this.indices[this.count] = piece;
        this.parts[this.count] = share;
        if (isInside) {
            this.short = this.count;
            if (kind >= FIRST_STALL) {
                this.shortStall = this.count;
                this.shortStalls += 1;
            }
        }
        this.count += 1;
    }

    flush(): void {
        if (this.count > 3 || this.shortStalls > 1) {
            this.mixture.fill(0);
            for (let i = 0; i < this.count; i += 1) this.mixture[this.kinds[i]!]! += this.parts[i]!;
            this.painter.mix(this.at, this.mixture);
        } else if (this.count) {
            const winner = this.winner();
            if (winner >= 0) this.painter.run(this.at, this.at + 1, this.kinds[winner]!, this.indices[winner]!);
        }
        this.count = 0;
        this.short = -1;
        this.shortStall = -1;
        this.shortStalls = 0;
        this.at = -1;
    }

    /** Which of the few pieces stands for the column; -1: most of it is untracked, and no piece would vanish. */
    private winner(): number {
        if (this.shortStall >= 0) return this.shortStall;
        if (this.short >= 0) return this.short;
        let best = 0;
        let sum = 0;
        for (let i = 0; i < this.count; i += 1) {
            sum += this.parts[i]!;
            if (this.parts[i]! > this.parts[best]!) best = i;
        }
        return this.parts[best]! >= 1 - sum ? best : -1;
    }
}
