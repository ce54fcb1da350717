// SPDX-License-Identifier: Apache-2.0
/** What lies over the strips: labels, passes, signals, the iteration grid, the selection and the measured range. */

import { ACTIVE, PASS } from "./document.ts";
import type { Lane } from "./lanes.ts";
import type { Names } from "./names.ts";
import { above } from "./pieces.ts";
import { SIGNALS, type Place, type RowBox } from "./rows.ts";
import { duration, figure, toPixel } from "./scale.ts";
import type { Palette } from "./theme.ts";
import type { Picked, View } from "./view.ts";

export type Pen = CanvasRenderingContext2D;

export const SMALL = "11px ui-sans-serif, system-ui, 'Segoe UI', Roboto, 'DejaVu Sans', sans-serif";

/** A run of columns wide enough for a label, or a pass, as the raster saw it; in CSS pixels. */
export interface Run {
    readonly lane: Lane;
    readonly place: Place;
    readonly from: number;
    readonly to: number;
    readonly span: number;
    /** True when the run is the whole span, not a piece of one that others cut. */
    readonly isWhole: boolean;
    /** True when it stands for all warps of a folded row, whose lengths may differ. */
    readonly isShared?: boolean;
}

/** Write into spans what they hold or wait for, as far as it fits. */
export function drawLabels(pen: Pen, names: Names, runs: readonly Run[], palette: Palette): void {
    pen.font = SMALL;
    pen.textBaseline = "middle";
    pen.lineWidth = 4;
    pen.lineJoin = "round";
    for (const { lane, place, from, to, span, isWhole, isShared } of runs) {
        const { spans } = lane.row;
        const state = spans.state[span];
        if (state === PASS || place.height < 12) continue;
        const isWork = lane.isPredicted && state === ACTIVE;
        const name = isWork ? `iteration ${spans.visit[span]!}` : names.staged(spans.instance[span]!, spans.stage[span]!);
        const error = spans.length_error?.[span] ?? 0;
        const cycles = figure(spans.end[span]! - spans.start[span]!) + (error ? ` \u00b1 ${figure(error)}` : "");
        const room = to - from - 10;
        const choices = isShared || !isWhole ? [name] : [`${name} \u00b7 ${cycles}`, name, cycles];
        const words = choices.find((text) => pen.measureText(text).width <= room);
        if (!words) continue;
        const width = pen.measureText(words).width;
        const y = place.top + place.height / 2;
        if (state === 1) {
            pen.strokeStyle = palette.sheet;
            if (width * 1.4 < room) {
                pen.fillStyle = palette.sheet;
                pen.fillRect(from + 3, y - 7, width + 6, 14);
            } else pen.strokeText(words, from + 6, y + 0.5);
            pen.fillStyle = palette.ink;
        } else pen.fillStyle = palette.onRole;
        pen.fillText(words, from + 6, y + 0.5);
    }
}

/** A pass is a thin line across the middle of the strip with a dot on it, open where it is long enough to see. */
export function drawPasses(pen: Pen, names: Names, runs: readonly Run[], palette: Palette): void {
    pen.lineWidth = 1;
    for (const { lane, place, from, to, span } of runs) {
        if (lane.row.spans.state[span] !== PASS) continue;
        pen.strokeStyle = pen.fillStyle = palette.stalls[names.lookOf(lane.row.spans.instance[span]!)]!;
        const middle = Math.floor((from + to) / 2) + 0.5;
        const y = place.top + place.height / 2;
        if (to - from >= 5) pen.strokeRect(from + 0.5, place.top + 4.5, to - from - 1, place.height - 9);
        pen.fillRect(middle - 0.5, place.top + 2, 1, place.height - 4);
        pen.beginPath();
        pen.arc(middle, y, Math.min(2.2, place.height / 4), 0, 2 * Math.PI);
        pen.fill();
    }
}

/**
 * Signals as ticks below the strips, at most one a pixel; returns how many were drawn. Where nearly every pixel has one they
 * are faint, or their row would look like a long stall.
 */
export function drawSignals(pen: Pen, names: Names, view: View, row: RowBox, palette: Palette, isDimmed: boolean): number {
    const top = row.strips.top + row.strips.height + 1 - view.scroll;
    const perPixel = (view.range.end - view.range.start) / view.width;
    const taken = new Uint8Array(Math.ceil(view.width) + 2);
    let drawn = 0;
    for (const lane of row.lanes) {
        const { at, instance } = lane.row.signals;
        let i = above(at, view.range.start - lane.offset - 1);
        while (i < at.length) {
            const x = toPixel(view.range, view.width, at[i]! + lane.offset);
            if (x > view.width) break;
            const column = Math.max(Math.round(x), 0);
            if (!taken[column] && instance[i]) {
                taken[column] = names.lookOf(instance[i]!) + 1;
                drawn += 1;
            }
            i = perPixel > 1 ? above(at, at[i]! + perPixel - 1, i + 1) : i + 1;
        }
    }
    const crowd = drawn / view.width;
    pen.globalAlpha = (isDimmed ? 0.25 : 1) * (crowd > 0.3 ? Math.max(1.3 - crowd, 0.25) : 1);
    taken.forEach((look, column) => {
        if (!look) return;
        pen.fillStyle = palette.stalls[look - 1]!;
        pen.fillRect(column - 0.5, top, 1.5, SIGNALS - 1);
    });
    pen.globalAlpha = 1;
    return drawn;
}

/** The word `untracked` in gaps that are wide enough to ask what they are. */
export function drawGaps(pen: Pen, view: View, lane: Lane, place: Place, palette: Palette): void {
    const { pieces } = lane.strip;
    if (place.height < 12) return;
    const at = (cycles: number): number => toPixel(view.range, view.width, cycles + lane.offset);
    const least = (90 * (view.range.end - view.range.start)) / view.width;
    const first = Math.max(above(pieces.end, view.range.start - lane.offset) - 1, -1);
    const last = above(pieces.start, view.range.end - lane.offset);
    if (last - first > 4 * view.width) return;
    pen.font = `italic ${SMALL}`;
    pen.fillStyle = palette.faint;
    pen.textBaseline = "middle";
    for (let i = first; i < last; i += 1) {
        const from = i < 0 ? lane.row.start : pieces.end[i]!;
        const to = i + 1 < pieces.count ? pieces.start[i + 1]! : lane.row.end;
        if (to - from < least) continue;
        const left = Math.max(at(from), 0);
        const right = Math.min(at(to), view.width);
        if (right - left > 70) pen.fillText("untracked", left + 8, place.top + place.height / 2 + 0.5);
    }
}

/** Where measured iterations begin, over the rows of one timeline, and a wash over what is not the steady state. */
export function drawGrid(pen: Pen, view: View, number: number, { top, height }: Place, palette: Palette): void {
    const timeline = view.timeline(number);
    const { steady } = timeline;
    if (!steady) return;
    const offset = view.offset(number);
    const x = (cycles: number): number => toPixel(view.range, view.width, cycles + offset);
    pen.fillStyle = palette.ink;
    pen.globalAlpha = 0.03;
    for (const [from, to] of [[timeline.start, steady.start], [steady.end, timeline.end]] as const) {
        const [left, right] = [Math.max(x(from), 0), Math.min(x(to), view.width)];
        if (right > left) pen.fillRect(left, top, right - left, height);
    }
    pen.globalAlpha = 1;
    drawMarks(pen, view, number, steady.marks, { top, height }, palette);
}

/** A line wherever an iteration begins; of lines too close to tell apart every second, fourth and so on. */
export function drawMarks(pen: Pen, view: View, number: number, marks: ArrayLike<number>, { top, height }: Place, palette: Palette): void {
    const offset = view.offset(number);
    const first = above(marks, view.range.start - offset - 1);
    const last = above(marks, view.range.end - offset);
    const x = (cycles: number): number => toPixel(view.range, view.width, cycles + offset);
    pen.fillStyle = palette.ink;
    pen.globalAlpha = 0.3;
    const stride = 2 ** Math.max(Math.ceil(Math.log2((7 * (last - first)) / view.width)), 0);
    for (let i = first - (first % stride); i < last; i += stride) pen.fillRect(Math.round(x(marks[i]!)), top, 1, height);
    pen.globalAlpha = 1;
}

/** A frame around one span. */
export function drawFrame(pen: Pen, view: View, picked: Picked, palette: Palette, isStrong: boolean): void {
    const place = view.layout.places.get(picked.lane);
    if (!place) return;
    const { spans } = picked.lane.row;
    const from = toPixel(view.range, view.width, spans.start[picked.span]! + picked.lane.offset);
    const to = toPixel(view.range, view.width, spans.end[picked.span]! + picked.lane.offset);
    const left = Math.max(from, -4);
    const box = [left - 1, place.top - view.scroll - 1, Math.max(Math.min(to, view.width + 4) - left, 2) + 2, place.height + 2] as const;
    pen.lineWidth = isStrong ? 4 : 3;
    pen.strokeStyle = palette.sheet;
    pen.strokeRect(...box);
    pen.lineWidth = isStrong ? 2 : 1;
    pen.strokeStyle = palette.select;
    pen.strokeRect(...box);
}

/** The measured range: a wash, its two ends, and its length in cycles and time. */
export function drawMeasure(pen: Pen, view: View, height: number, palette: Palette): void {
    if (!view.measure) return;
    const from = toPixel(view.range, view.width, view.measure.start);
    const to = toPixel(view.range, view.width, view.measure.end);
    pen.fillStyle = palette.select;
    pen.globalAlpha = 0.08;
    pen.fillRect(from, 0, to - from, height);
    pen.globalAlpha = 1;
    pen.fillRect(Math.round(from), 0, 1, height);
    pen.fillRect(Math.round(to), 0, 1, height);
    const mhz = view.timeline(view.scene.timelines[0]!).sm_mhz;
    const words = duration(Math.round(view.measure.end - view.measure.start), mhz);
    pen.font = `600 ${SMALL}`;
    pen.textBaseline = "middle";
    const width = pen.measureText(words).width + 14;
    const left = Math.min(Math.max((from + to - width) / 2, 2), view.width - width - 2);
    pen.fillStyle = palette.ink;
    pen.fillRect(left, height - 24, width, 20);
    pen.fillStyle = palette.sheet;
    pen.fillText(words, left + 7, height - 13.5);
}
