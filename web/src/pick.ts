// SPDX-License-Identifier: Apache-2.0
/** Which span lies under the pointer, and which comes next. */

import { STALL } from "./document.ts";
import type { Lane } from "./lanes.ts";
import { above, pieceAt } from "./pieces.ts";
import { laneAt } from "./rows.ts";
import { toCycles } from "./scale.ts";
import type { Picked, View } from "./view.ts";

/** A span of less than a pixel is found within this many pixels; a stall before others. */
const REACH = 3;

export function pick(view: View, x: number, y: number): Picked | null {
    const lane = laneAt(view.layout, y);
    if (!lane) return null;
    const at = toCycles(view.range, view.width, x) - lane.offset;
    return pickAt(lane, at, ((view.range.end - view.range.start) / view.width) * REACH);
}

/** The span of a lane at a cycle, or the nearest within `reach` cycles. */
export function pickAt(lane: Lane, at: number, reach: number): Picked | null {
    const { pieces } = lane.strip;
    const covering = pieceAt(pieces, Math.floor(at));
    if (covering >= 0 && pieces.end[covering]! - pieces.start[covering]! >= reach) return { lane, span: pieces.span[covering]! };
    let best = covering;
    let distance = covering >= 0 ? reach / 2 : reach;
    for (let i = above(pieces.end, at - reach); i < pieces.count && pieces.start[i]! <= at + reach; i += 1) {
        const away = Math.max(pieces.start[i]! - at, at - pieces.end[i]!, 0);
        const isStall = lane.row.spans.state[pieces.span[i]!] === STALL;
        const cost = isStall ? away * 0.5 : away;
        if (cost < distance) [best, distance] = [i, cost];
    }
    return best >= 0 ? { lane, span: pieces.span[best]! } : null;
}

/** The span that starts before or after `picked` in its lane; where there is none, itself. */
export function neighbour(picked: Picked, step: 1 | -1): Picked {
    const span = picked.span + step;
    return span >= 0 && span < picked.lane.row.spans.start.length ? { lane: picked.lane, span } : picked;
}

/** The span of the next lane up or down that has spans, at about the same cycle. */
export function across(view: View, picked: Picked, step: 1 | -1): Picked {
    const lanes = [...view.layout.places.keys()];
    const { lane, span } = picked;
    const at = (lane.row.spans.start[span]! + lane.row.spans.end[span]!) / 2 + lane.offset;
    for (let i = lanes.indexOf(lane) + step; i >= 0 && i < lanes.length; i += step) {
        const found = nearest(lanes[i]!, at - lanes[i]!.offset);
        if (found) return found;
    }
    return picked;
}

/** The span of a lane that is nearest to a cycle. */
export function nearest(lane: Lane, at: number): Picked | null {
    const { pieces } = lane.strip;
    if (!pieces.count) return null;
    const after = Math.min(above(pieces.end, at), pieces.count - 1);
    const before = Math.max(after - 1, 0);
    const away = (i: number): number => Math.max(pieces.start[i]! - at, at - pieces.end[i]!, 0);
    return { lane, span: pieces.span[away(before) < away(after) ? before : after]! };
}
