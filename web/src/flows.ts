// SPDX-License-Identifier: Apache-2.0
/** Arrows as lines: solid, faint where it may be another or its length means nothing, dashed where inferred, dotted at the start where the arrival lands later than its issue. */

import { arrowsOfSpan } from "./arrows.ts";
import { ASYNC, INFERRED, isFaint } from "./document.ts";
import type { Names } from "./names.ts";
import type { Pen } from "./overlay.ts";
import { toPixel } from "./scale.ts";
import type { Palette } from "./theme.ts";
import type { Picked, View } from "./view.ts";

/** So many arrows at once can still be told apart; of more, every n-th is drawn and the page says so. */
export const MOST_ARROWS = 3000;

export interface Drawn {
    readonly drawn: number;
    readonly all: number;
    /** True when there are too many to draw each. */
    readonly isSampled: boolean;
}

export function drawAllArrows(pen: Pen, names: Names, view: View, palette: Palette): Drawn {
    let [drawn, all, isSampled] = [0, 0, false];
    for (const number of view.scene.timelines) {
        const offset = view.offset(number);
        const span = view.range.end - view.range.start;
        const most = Math.ceil(MOST_ARROWS / view.scene.timelines.length);
        const found = view.arrows(number).ending(view.range.start - offset, view.range.end - offset + span, most);
        all += found.all;
        isSampled ||= found.numbers.length < found.all;
        pen.globalAlpha = found.numbers.length > 400 ? 0.45 : 0.75;
        for (const arrow of found.numbers) drawn += drawArrow(pen, names, view, number, arrow, palette, false) ? 1 : 0;
    }
    pen.globalAlpha = 1;
    return { drawn, all, isSampled };
}

export function drawArrowsOf(pen: Pen, names: Names, view: View, picked: Picked, palette: Palette): number {
    const { timeline, index, isPredicted } = picked.lane;
    if (isPredicted) return 0;
    const arrows = arrowsOfSpan(view.timeline(timeline), view.arrows(timeline), index, picked.span);
    for (const arrow of arrows.slice(0, 64)) drawArrow(pen, names, view, timeline, arrow, palette, true);
    return arrows.length;
}

function drawArrow(pen: Pen, names: Names, view: View, number: number, arrow: number, palette: Palette, isStrong: boolean): boolean {
    const { arrows } = view.timeline(number);
    const from = view.laneOf(number, arrows.from_row[arrow]!);
    const to = view.laneOf(number, arrows.to_row[arrow]!);
    const start = from && view.layout.places.get(from);
    const end = to && view.layout.places.get(to);
    if (!from || !to || !start || !end) return false;
    const x0 = toPixel(view.range, view.width, arrows.from[arrow]! + from.offset);
    const x1 = toPixel(view.range, view.width, arrows.to[arrow]! + to.offset);
    if (Math.max(x0, x1) < 0 || Math.min(x0, x1) > view.width) return false;
    const isDown = end.top >= start.top;
    const y0 = start.top + (isDown ? start.height : 0) - view.scroll;
    const y1 = end.top + (isDown ? 0 : end.height) - view.scroll;
    const flags = arrows.flags[arrow]!;
    const color = palette.stalls[names.lookOf(arrows.to_instance[arrow]!)]!;
    const line = { x0, y0, x1, y1, flags };
    const alpha = pen.globalAlpha;
    if (isFaint(arrows, arrow)) pen.globalAlpha = alpha * 0.45;
    if (isStrong) trace(pen, line, palette.sheet, 5);
    trace(pen, line, isStrong ? palette.ink : color, isStrong ? 1.8 : 1);
    head(pen, line, isStrong ? palette.ink : color, isStrong ? 8 : 5);
    if (isStrong) {
        pen.fillStyle = color;
        pen.strokeStyle = palette.ink;
        pen.lineWidth = 1;
        pen.beginPath();
        pen.arc(x0, y0, 3.5, 0, 2 * Math.PI);
        pen.fill();
        pen.stroke();
    }
    pen.globalAlpha = alpha;
    return true;
}

interface Line {
    readonly x0: number;
    readonly y0: number;
    readonly x1: number;
    readonly y1: number;
    readonly flags: number;
}

function trace(pen: Pen, line: Line, color: string, width: number): void {
    const { x0, y0, x1, y1, flags } = line;
    const middle = flags & ASYNC ? 0.5 : 0;
    const [x, y] = [x0 + (x1 - x0) * middle, y0 + (y1 - y0) * middle];
    pen.strokeStyle = color;
    pen.lineWidth = width;
    if (middle) {
        pen.setLineDash([width, 2.5 * width + 1]);
        pen.beginPath();
        pen.moveTo(x0, y0);
        pen.lineTo(x, y);
        pen.stroke();
    }
    pen.setLineDash(flags & INFERRED ? [6, 4] : []);
    pen.beginPath();
    pen.moveTo(x, y);
    pen.lineTo(x1, y1);
    pen.stroke();
    pen.setLineDash([]);
}

function head(pen: Pen, { x0, y0, x1, y1 }: Line, color: string, size: number): void {
    const angle = Math.atan2(y1 - y0, x1 - x0);
    pen.fillStyle = color;
    pen.beginPath();
    pen.moveTo(x1, y1);
    for (const side of [-0.42, 0.42]) pen.lineTo(x1 - size * Math.cos(angle + side), y1 - size * Math.sin(angle + side));
    pen.fill();
}
