// SPDX-License-Identifier: Apache-2.0
/** `window.autostamp`: what the page shows, to read and never to change. For tests and for the curious. */

import type { Frame } from "./draw.ts";
import { RULER } from "./ruler.ts";
import { toPixel } from "./scale.ts";
import type { View } from "./view.ts";

export interface Inspection {
    readonly range: { start: number; end: number };
    readonly whole: { start: number; end: number };
    readonly selection: { timeline: number; warp: number; span: number; start: number; end: number } | null;
    readonly hovered: { warp: number; span: number } | null;
    readonly highlight: { label: string; count: number } | null;
    readonly measure: { start: number; end: number } | null;
    readonly rows: readonly { kind: string; role: string; warps: number[]; top: number; height: number; isPredicted: boolean }[];
    readonly theme: string;
    readonly arrows: boolean;
    readonly path: boolean;
    readonly frame: Frame | null;
    /** Where a cycle of a warp (with `isPredicted`: of a predicted row) is drawn, in CSS pixels of the canvas; null where it is not. */
    place(warp: number, cycles: number, timeline?: number, isPredicted?: boolean): { x: number; y: number } | null;
}

export function expose(view: View | null, frame: () => Frame | null, theme: () => string): void {
    const read: Record<keyof Inspection, () => unknown> = {
        range: () => view && { ...view.range },
        whole: () => view && { ...view.whole },
        selection: () => {
            if (!view?.selected) return null;
            const { lane, span } = view.selected;
            const { start, end } = lane.row.spans;
            return { timeline: lane.timeline, warp: lane.row.warp, span, start: start[span], end: end[span] };
        },
        hovered: () => view?.hovered && { warp: view.hovered.lane.row.warp, span: view.hovered.span },
        highlight: () => view?.highlight && { label: view.highlight.label, count: view.highlight.count },
        measure: () => view?.measure && { ...view.measure },
        rows: () => view?.layout.rows.map(({ kind, role, lanes, top, height, isPredicted }) => ({ kind, role, warps: lanes.map((lane) => lane.row.warp), top, height, isPredicted })) ?? [],
        theme,
        arrows: () => view?.hasAllArrows ?? false,
        path: () => view?.hasPath ?? false,
        frame,
        place: () => (warp: number, cycles: number, timeline?: number, isPredicted = false) => {
            for (const [lane, place] of view?.layout.places ?? []) {
                if (lane.row.warp !== warp || lane.isPredicted !== isPredicted || (timeline !== undefined && lane.timeline !== timeline)) continue;
                const y = RULER + place.top + place.height / 2 - view!.scroll;
                return { x: toPixel(view!.range, view!.width, cycles + lane.offset), y };
            }
            return null;
        },
    };
    const inspection = {};
    for (const [name, get] of Object.entries(read)) Object.defineProperty(inspection, name, { get, enumerable: true });
    Object.defineProperty(window, "autostamp", { value: Object.freeze(inspection) });
}
