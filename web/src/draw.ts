// SPDX-License-Identifier: Apache-2.0
/** One frame: strips as pixels, then everything that lies over them. Only what is seen is touched. */

import { PASS } from "./document.ts";
import type { Lane, Strip } from "./lanes.ts";
import { isDense } from "./detail.ts";
import { drawAllArrows, drawArrowsOf, type Drawn } from "./flows.ts";
import { PASSED, type Names } from "./names.ts";
import * as overlay from "./overlay.ts";
import { drawPath } from "./path.ts";
import { marksOf } from "./predicted.ts";
import { Raster, inksOf, type Inks } from "./raster.ts";
import { isHeading, type Place, type RowBox } from "./rows.ts";
import { RULER, drawRuler } from "./ruler.ts";
import { toPixel, type Range } from "./scale.ts";
import type { Palette } from "./theme.ts";
import type { View } from "./view.ts";

/** What the last frame held, for the status line and for tests. */
export interface Frame {
    readonly ms: number;
    readonly strips: number;
    readonly runs: number;
    readonly signals: number;
    readonly arrows: Drawn;
    readonly path: number;
    /** True when some columns show shares instead of single spans. */
    readonly isMerged: boolean;
}

const LABEL = 34;

export class Drawer {
    private raster = new Raster(1, 1);
    private inks: { palette: Palette; density: number; bright: Inks; dim: Inks } | null = null;
    private readonly pen: overlay.Pen;

    constructor(
        private readonly canvas: HTMLCanvasElement,
        private readonly names: Names,
    ) {
        this.pen = canvas.getContext("2d", { alpha: false })!;
    }

    /** Draw the view; its width and height are those of the canvas in CSS pixels. */
    draw(view: View, palette: Palette): Frame {
        const began = performance.now();
        const density = window.devicePixelRatio || 1;
        this.fit(view, density);
        const { bright, dim } = this.inksFor(palette, density);
        const rows = view.layout.rows.filter((row) => row.top + row.height > view.scroll && row.top < view.scroll + view.height - RULER);
        const runs: overlay.Run[] = [];
        let [drawn, merged] = [0, 0];
        this.raster.clear(bright);
        for (const row of rows) {
            if (isHeading(row)) continue;
            const [count, mixed] = this.row(view, row, density, view.highlight ? dim : bright, bright, runs);
            drawn += count;
            merged += mixed;
        }
        this.pen.setTransform(1, 0, 0, 1, 0, 0);
        this.pen.putImageData(this.raster.image, 0, Math.round(RULER * density));
        this.pen.setTransform(density, 0, 0, density, 0, 0);
        const rest = this.over(view, rows, runs, palette);
        return { ms: performance.now() - began, strips: rows.length, runs: drawn, isMerged: merged > 0, ...rest };
    }

    private over(view: View, rows: readonly RowBox[], runs: readonly overlay.Run[], palette: Palette): Pick<Frame, "signals" | "arrows" | "path"> {
        const { pen, names } = this;
        pen.save();
        pen.translate(0, RULER);
        pen.beginPath();
        pen.rect(0, 0, view.width, view.height - RULER);
        pen.clip();
        let signals = 0;
        for (const row of rows) {
            if (isHeading(row)) this.heading(view, row, palette);
            else signals += overlay.drawSignals(pen, names, view, row, palette, view.highlight !== null);
            if (row.kind === "warp" || (row.kind === "folded" && row.lanes.length === 1)) {
                const place = this.seen(view, row.lanes[0]!);
                if (place && !view.highlight) overlay.drawGaps(pen, view, row.lanes[0]!, place, palette);
            }
        }
        for (const number of view.scene.timelines) {
            for (const isPredicted of [true, false]) {
                const own = rows.filter((row) => row.timeline === number && row.isPredicted === isPredicted && row.kind !== "cta" && row.kind !== "group");
                const [first, last] = [own[0], own[own.length - 1]];
                if (!first || !last) continue;
                const place = { top: first.top - view.scroll, height: last.top + last.height - first.top };
                if (isPredicted) overlay.drawMarks(pen, view, number, marksOf(view.timeline(number).prediction!), place, palette);
                else overlay.drawGrid(pen, view, number, place, palette);
            }
        }
        overlay.drawPasses(pen, names, runs, palette);
        overlay.drawLabels(pen, names, runs, palette);
        const path = view.hasPath ? drawPath(pen, view, palette) : 0;
        let arrows: Drawn = { drawn: 0, all: 0, isSampled: false };
        if (view.hasAllArrows) arrows = drawAllArrows(pen, names, view, palette);
        for (const picked of [view.hovered, view.selected]) {
            if (!picked) continue;
            overlay.drawFrame(pen, view, picked, palette, picked === view.selected);
            const count = drawArrowsOf(pen, names, view, picked, palette);
            if (!view.hasAllArrows) arrows = { drawn: arrows.drawn + count, all: arrows.all + count, isSampled: false };
        }
        overlay.drawMeasure(pen, view, view.height - RULER, palette);
        pen.restore();
        drawRuler(pen, view, palette);
        return { signals, arrows, path };
    }

    /** Paint one row's strips. Returns how much was drawn, and how much of it as shares. */
    private row(view: View, row: RowBox, density: number, inks: Inks, bright: Inks, runs: overlay.Run[]): [number, number] {
        const at = (lane: Lane): Range => ({ start: view.range.start - lane.offset, end: view.range.end - lane.offset });
        const box = (place: Place, role: string) => {
            const top = Math.round((place.top - view.scroll) * density);
            const bottom = Math.round((place.top + place.height - view.scroll) * density);
            return { top, height: bottom - top, role: this.names.role(role) % inks.roles.length };
        };
        for (const lane of row.lanes) {
            const place = view.layout.places.get(lane)!;
            const edge = (cycles: number): number => toPixel(at(lane), this.raster.width, cycles);
            this.raster.ground(box(place, lane.row.role), edge(lane.row.start), edge(lane.row.end), inks);
        }
        const layers: [(lane: Lane) => Strip | undefined, Inks][] = [[(lane) => lane.strip, inks]];
        if (view.highlight) layers.push([(lane) => view.highlight!.strips.get(lane), bright]);
        let [drawn, merged] = [0, 0];
        for (const [stripOf, colors] of layers) {
            const strips = row.lanes.map(stripOf).filter((strip) => strip !== undefined);
            const first = row.lanes[0];
            const isFar = first && strips.some((strip) => isDense(strip, at(first), this.raster.width / 4));
            if (first && row.lanes.length > 1 && isFar) {
                const sums = strips.map((strip) => strip.sums);
                const count = this.raster.merged(sums, row.lanes.length, at(first), box(row.strips, row.role), colors);
                drawn += count;
                merged += count;
                continue;
            }
            const wide: overlay.Run[][] = [];
            for (const lane of row.lanes) {
                const strip = stripOf(lane);
                if (!strip) continue;
                if (isDense(strip, at(lane), this.raster.width)) merged += 1;
                const seen = this.seen(view, lane)!;
                const own: overlay.Run[] = [];
                wide.push(own);
                drawn += this.raster.strip(strip, at(lane), box(view.layout.places.get(lane)!, lane.row.role), colors, (from, to, category, piece) => {
                    const isWide = to - from >= LABEL * density || category === PASSED;
                    if (!isWide || (view.highlight && colors !== bright)) return;
                    const span = strip.pieces.span[piece]!;
                    const { start, end } = lane.row.spans;
                    const isWhole = strip.pieces.start[piece] === start[span] && strip.pieces.end[piece] === end[span];
                    own.push({ lane, place: seen, from: from / density, to: to / density, span, isWhole });
                });
            }
            for (const own of wide) runs.push(...own);
            if (wide.length > 1) runs.push(...shared(this.names, wide, { top: row.strips.top - view.scroll, height: row.strips.height }));
        }
        return [drawn, merged];
    }

    /** Where a lane stands in the canvas below the ruler. */
    private seen(view: View, lane: Lane): Place | undefined {
        const place = view.layout.places.get(lane);
        return place && { top: place.top - view.scroll, height: place.height };
    }

    private heading(view: View, row: RowBox, palette: Palette): void {
        this.pen.fillStyle = palette.line;
        this.pen.fillRect(0, row.top + row.height / 2 - view.scroll, view.width, 1);
    }

    private fit(view: View, density: number): void {
        const [width, height] = [Math.round(view.width * density), Math.round(view.height * density)];
        if (this.canvas.width !== width || this.canvas.height !== height) {
            this.canvas.width = width;
            this.canvas.height = height;
        }
        const below = Math.max(height - Math.round(RULER * density), 1);
        if (this.raster.width !== width || this.raster.height !== below) this.raster = new Raster(Math.max(width, 1), below);
    }

    private inksFor(palette: Palette, density: number): { bright: Inks; dim: Inks } {
        if (this.inks?.palette !== palette || this.inks.density !== density) {
            this.inks = { palette, density, bright: inksOf(palette, density, false), dim: inksOf(palette, density, true) };
        }
        return this.inks;
    }
}

/** Labels for a folded row: runs that all its warps have in common, over the time that they share. */
function shared(names: Names, wide: readonly (readonly overlay.Run[])[], place: Place): overlay.Run[] {
    const what = ({ lane: { row }, span }: overlay.Run): string =>
        `${row.spans.state[span]!} ${names.staged(row.spans.instance[span]!, row.spans.stage[span]!)}`;
    const [first = [], ...others] = wide;
    const found: overlay.Run[] = [];
    for (const run of first) {
        if (run.lane.row.spans.state[run.span] === PASS) continue;
        let [from, to] = [run.from, run.to];
        const isCommon = others.every((own) => {
            const same = own.find((other) => other.from < to && other.to > from && what(other) === what(run));
            if (same) [from, to] = [Math.max(from, same.from), Math.min(to, same.to)];
            return same !== undefined;
        });
        if (isCommon && to > from) found.push({ ...run, place, from, to, isShared: true });
    }
    return found;
}
