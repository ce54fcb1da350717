// SPDX-License-Identifier: Apache-2.0
/** The head of the picture: where in the whole the view lies, cycles and wall time, and the band of iterations. */

import type { Steady } from "./document.ts";
import { SMALL, type Pen } from "./overlay.ts";
import { above } from "./pieces.ts";
import { figure, ticks, time, toPixel, unitOf } from "./scale.ts";
import type { Palette } from "./theme.ts";
import type { View } from "./view.ts";

/** Height of the head; its parts from top to bottom. */
export const RULER = 44;
const OVERVIEW = 5;
const BAND = 15;

export function drawRuler(pen: Pen, view: View, palette: Palette): void {
    pen.fillStyle = palette.sheet;
    pen.fillRect(0, 0, view.width, RULER);
    overview(pen, view, palette);
    const number = view.scene.timelines[0];
    if (number === undefined) return;
    const timeline = view.timeline(number);
    pen.font = SMALL;
    pen.textBaseline = "middle";
    for (const tick of ticks(view.range, Math.floor(view.width / 130))) {
        const x = Math.round(toPixel(view.range, view.width, tick));
        pen.fillStyle = palette.line;
        pen.fillRect(x, OVERVIEW + 3, 1, RULER - OVERVIEW);
        const wall = time(tick, timeline.sm_mhz);
        pen.fillStyle = palette.ink;
        pen.fillText(figure(tick), x + 4, OVERVIEW + 12);
        const shift = pen.measureText(figure(tick)).width + 10;
        pen.fillStyle = palette.faint;
        if (wall) pen.fillText(wall, x + shift, OVERVIEW + 12);
    }
    if (timeline.steady) band(pen, view, timeline.steady, view.offset(number), palette);
    pen.fillStyle = palette.line;
    pen.fillRect(0, RULER - 1, view.width, 1);
}

function overview(pen: Pen, view: View, palette: Palette): void {
    pen.fillStyle = palette.untracked;
    pen.fillRect(0, 0, view.width, OVERVIEW);
    const from = toPixel(view.whole, view.width, view.range.start);
    const to = toPixel(view.whole, view.width, view.range.end);
    pen.fillStyle = palette.faint;
    pen.fillRect(from, 0, Math.max(to - from, 3), OVERVIEW);
}

/** Fill, the iterations by number, drain. */
function band(pen: Pen, view: View, steady: Steady, offset: number, palette: Palette): void {
    const top = RULER - BAND - 2;
    const x = (cycles: number): number => toPixel(view.range, view.width, cycles + offset);
    const box = (from: number, to: number, words: readonly string[], isShaded: boolean): void => {
        const [left, right] = [Math.max(from, 0), Math.min(to, view.width)];
        if (right - left < 2) return;
        pen.fillStyle = palette.ink;
        pen.globalAlpha = isShaded ? 0.16 : 0.05;
        pen.fillRect(left + 0.5, top, right - left - 1, BAND);
        pen.globalAlpha = 1;
        const word = words.find((text) => pen.measureText(text).width < right - left - 8);
        if (word) pen.fillText(word, (left + right - pen.measureText(word).width) / 2, top + BAND / 2 + 0.5);
    };
    const { marks } = steady;
    box(x(steady.start - steady.fill), x(steady.start), [`fill ${figure(steady.fill)} ${unitOf()}`, "fill"], true);
    box(x(steady.end), x(steady.end + steady.drain), [`drain ${figure(steady.drain)} ${unitOf()}`, "drain"], true);
    const first = Math.max(above(marks, view.range.start - offset) - 1, 0);
    const last = Math.min(above(marks, view.range.end - offset), marks.length - 1);
    if (last - first > view.width / 14) {
        const median = `${figure(steady.iterations)} iterations, period ${figure(steady.period.median)} ${unitOf()}`;
        box(x(steady.start), x(steady.end), [median, `${figure(steady.iterations)} iterations`], false);
        return;
    }
    for (let i = first; i < last; i += 1) {
        const cycles = figure(marks[i + 1]! - marks[i]!);
        box(x(marks[i]!), x(marks[i + 1]!), [`iteration ${i}: ${cycles} ${unitOf()}`, `${i}: ${cycles}`, `${i}`], false);
    }
}
