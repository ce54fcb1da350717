// SPDX-License-Identifier: Apache-2.0
/** The critical path along the lower edge of the strips, where it hides no label: a thick line through work, dotted where data is in flight. */

import { PATH_KINDS } from "./document.ts";
import type { Pen } from "./overlay.ts";
import { above } from "./pieces.ts";
import { toPixel } from "./scale.ts";
import type { Palette } from "./theme.ts";
import type { View } from "./view.ts";

const DASHES: Readonly<Record<string, number[]>> = { transfer: [2, 4], "hand-off": [], stall: [6, 3], untracked: [], active: [] };

/** Draw the path of every timeline of the scene. Returns how many parts of it are seen. */
export function drawPath(pen: Pen, view: View, palette: Palette): number {
    let drawn = 0;
    for (const number of view.scene.timelines) {
        const parts = view.timeline(number).path?.parts;
        if (!parts) continue;
        const offset = view.offset(number);
        const first = above(parts.end, view.range.start - offset);
        const last = above(parts.start, view.range.end - offset);
        const stride = Math.max(Math.ceil((last - first) / (4 * view.width)), 1);
        for (const [color, wide] of [[palette.sheet, 3], [palette.path, 0]] as const) {
            let before: { x: number; y: number } | null = null;
            for (let i = first; i < last; i += stride) {
                const lane = view.laneOf(number, parts.row[i]!);
                const place = lane && view.layout.places.get(lane);
                if (!place) continue;
                const y = place.top + place.height - view.scroll;
                const from = toPixel(view.range, view.width, parts.start[i]! + offset);
                const to = toPixel(view.range, view.width, parts.end[i]! + offset);
                const kind = PATH_KINDS[parts.kind[i]!] ?? "active";
                pen.strokeStyle = color;
                pen.lineWidth = (kind === "active" || kind === "untracked" ? 3 : 2) + wide;
                pen.setLineDash(wide ? [] : (DASHES[kind] ?? []));
                pen.beginPath();
                if (before && before.y !== y) {
                    pen.moveTo(before.x, before.y);
                    pen.lineTo(from, y);
                } else pen.moveTo(from, y);
                pen.lineTo(to, y);
                pen.stroke();
                before = { x: to, y };
                if (!wide) drawn += 1;
            }
        }
    }
    pen.setLineDash([]);
    return drawn;
}
