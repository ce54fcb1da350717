// SPDX-License-Identifier: Apache-2.0
/** A warp's spans overlap (a stall inside a hold, two holds at once); a picture shows one state at a time. */

import { ACTIVE, PASS, STALL, type Spans } from "./document.ts";

/** Disjoint pieces in the order of time; `span` is the index of the span that each shows. Time between them is untracked. */
export interface Pieces {
    readonly count: number;
    readonly start: Int32Array;
    readonly end: Int32Array;
    readonly span: Int32Array;
}

const RANK: Readonly<Record<number, number>> = { [ACTIVE]: 0, [PASS]: 1, [STALL]: 2 };

/** True when span `a` hides span `b` where both are: a stall hides a pass and a pass a hold, of equals the later one shows. */
function hides(spans: Spans, a: number, b: number): boolean {
    const rank = (RANK[spans.state[a]!] ?? 0) - (RANK[spans.state[b]!] ?? 0);
    if (rank) return rank > 0;
    if (spans.start[a] !== spans.start[b]) return spans.start[a]! > spans.start[b]!;
    return spans.end[a]! < spans.end[b]!;
}

/** Cut spans, sorted by start, into disjoint pieces. */
export function flatten(spans: Spans): Pieces {
    const count = spans.start.length;
    const room = 2 * count + 1;
    const start = new Int32Array(room);
    const end = new Int32Array(room);
    const span = new Int32Array(room);
    let made = 0;
    let open: number[] = [];
    let from = 0;
    const emit = (until: number): void => {
        if (!open.length || until <= from) return;
        let top = open[0]!;
        for (const other of open) if (other !== top && hides(spans, other, top)) top = other;
        if (made && span[made - 1] === top && end[made - 1] === from) {
            end[made - 1] = until;
        } else {
            start[made] = from;
            end[made] = until;
            span[made] = top;
            made += 1;
        }
    };
    const close = (until: number): void => {
        while (open.length) {
            let first = Infinity;
            for (const index of open) first = Math.min(first, spans.end[index]!);
            if (first > until) return;
            emit(first);
            from = Math.max(from, first);
            open = open.filter((index) => spans.end[index]! > first);
        }
    };
    for (let i = 0; i < count; i += 1) {
        const at = spans.start[i]!;
        close(at);
        emit(at);
        from = at;
        if (spans.end[i]! > at) open.push(i);
    }
    close(Infinity);
    return { count: made, start: start.slice(0, made), end: end.slice(0, made), span: span.slice(0, made) };
}

/** Index of the first value above `limit` in an ascending array, looking from `low`. */
export function above(values: ArrayLike<number>, limit: number, low = 0, high = values.length): number {
    while (low < high) {
        const middle = (low + high) >>> 1;
        if (values[middle]! > limit) high = middle;
        else low = middle + 1;
    }
    return low;
}

/** The piece that covers cycle `at`, or -1. */
export function pieceAt(pieces: Pieces, at: number): number {
    const index = above(pieces.start, at) - 1;
    return index >= 0 && at < pieces.end[index]! ? index : -1;
}
