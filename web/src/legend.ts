// SPDX-License-Identifier: Apache-2.0
/** What the picture's looks mean, each with its share of all warp time. */

import type { Lane } from "./lanes.ts";
import { el } from "./elements.ts";
import type { Names } from "./names.ts";
import { percent } from "./scale.ts";
import { HATCHES, type Palette } from "./theme.ts";
import type { View } from "./view.ts";

/** The legend of the scene's lanes, with shares of what was measured; barriers with no stall are left out. */
export function legend(names: Names, view: View, palette: Palette): HTMLElement[] {
    const total = { span: 0, stall: 0, active: 0, passed: 0, untracked: 0 };
    const measured = view.lanes.filter((lane) => !lane.isPredicted);
    for (const { row } of measured) {
        total.span += row.end - row.start;
        total.stall += row.stall;
        total.active += row.active;
        total.passed += row.passed;
        total.untracked += row.untracked;
    }
    const share = (part: number): string => percent(total.span ? part / total.span : 0);
    const items = [item(solid(palette.roles.slice(0, 3)), "active", share(total.active), "solid, one colour a role")];
    const stalls = stallsOf(names, measured);
    const predicted = stallsOf(names, view.lanes.filter((lane) => lane.isPredicted));
    for (const { name, index } of names.ranked) {
        const part = stalls.get(name);
        if (part) items.push(item(hatched(palette, index), `stall on ${name}`, share(part), "hatched, one look a barrier"));
        else if (predicted.has(name)) items.push(item(hatched(palette, index), `stall on ${name}`, "", "predicted; measured nowhere"));
    }
    items.push(item(solid([palette.untracked]), "untracked", share(total.untracked), "nothing brackets this time; it is no stall"));
    if (total.passed) items.push(item(mark(palette, "pass"), "pass", share(total.passed), "a wait whose barrier was complete already"));
    items.push(item(mark(palette, "signal"), "signal", "", "a tick below the strip, in the colour of its barrier"));
    if (view.scene.timelines.some((number) => view.timeline(number).arrows.to.length)) {
        items.push(item(line(palette, []), "arrow", "", "from the arrival to the wait that it ended"));
        items.push(item(line(palette, [5, 3]), "inferred", "", "the pair rests on the declaration and on order"));
        items.push(item(line(palette, [1.5, 3]), "asynchronous", "", "dotted at the start: lands later than it was issued"));
    }
    if (view.report.replays) {
        items.push(item(line(palette, [], 0.35), "uncertain", "", "faint: by the errors of its ends another arrival may have been the last, or they are closer than they may be off by"));
        items.push(item(hatched(palette, 0, true), "faint, \u00b1: may be none", "", "a wait whose two stamps are of two replays: its length and what that may be off by; faint where it is no longer than that"));
    }
    return items;
}

function item(swatch: HTMLElement, name: string, share: string, hint: string): HTMLElement {
    return el("span", { class: "key", title: hint }, swatch, el("span", {}, name), share && el("b", {}, share));
}

function stallsOf(names: Names, lanes: readonly Lane[]): Map<string, number> {
    const found = new Map<string, number>();
    const timelines = new Set(lanes.map((lane) => lane.timeline));
    for (const lane of lanes) {
        const { pieces } = lane.strip;
        const { state, instance } = lane.row.spans;
        const own = new Map<number, number>();
        for (let i = 0; i < pieces.count; i += 1) {
            const span = pieces.span[i]!;
            if (state[span] === 1) own.set(instance[span]!, (own.get(instance[span]!) ?? 0) + pieces.end[i]! - pieces.start[i]!);
        }
        for (const [number, cycles] of own) {
            const name = names.barrierOf(number);
            found.set(name, (found.get(name) ?? 0) + cycles);
        }
    }
    return timelines.size ? found : new Map();
}

function swatch(draw: (pen: CanvasRenderingContext2D) => void): HTMLElement {
    const canvas = el("canvas", { width: 52, height: 28, class: "swatch", "aria-hidden": "true" });
    const pen = canvas.getContext("2d")!;
    pen.scale(2, 2);
    draw(pen);
    return canvas;
}

function solid(colors: readonly string[]): HTMLElement {
    return swatch((pen) => {
        colors.forEach((color, i) => {
            pen.fillStyle = color;
            pen.fillRect((26 * i) / colors.length, 0, 26 / colors.length, 14);
        });
    });
}

function hatched(palette: Palette, index: number, isFaint = false): HTMLElement {
    return swatch((pen) => {
        const { angles, gap } = HATCHES[index]!;
        pen.fillStyle = pen.strokeStyle = palette.stalls[index]!;
        pen.globalAlpha = 0.26;
        pen.fillRect(0, 0, 26, 14);
        pen.globalAlpha = 1;
        pen.lineWidth = gap * (angles.length > 1 ? 0.26 : 0.36);
        for (const angle of angles) {
            pen.save();
            pen.translate(13, 7);
            pen.rotate(((angle === 45 ? -45 : angle === 135 ? 45 : angle) * Math.PI) / 180);
            const apart = angle % 90 ? gap / Math.SQRT2 : gap;
            pen.lineWidth = (gap * (angles.length > 1 ? 0.26 : 0.36));
            pen.beginPath();
            for (let y = -5 * apart; y <= 5 * apart; y += apart) {
                pen.moveTo(-20, y);
                pen.lineTo(20, y);
            }
            pen.stroke();
            pen.restore();
        }
        pen.lineWidth = 1;
        pen.strokeRect(0.5, 0.5, 25, 13);
        if (!isFaint) return;
        pen.globalAlpha = 0.6;
        pen.fillStyle = palette.sheet;
        pen.fillRect(0, 0, 26, 14);
    });
}

function mark(palette: Palette, kind: "pass" | "signal"): HTMLElement {
    return swatch((pen) => {
        pen.fillStyle = palette.untracked;
        pen.fillRect(0, 0, 26, kind === "pass" ? 14 : 8);
        pen.fillStyle = palette.stalls[0]!;
        if (kind === "signal") {
            for (const x of [6, 13, 20]) pen.fillRect(x, 9, 1.5, 5);
            return;
        }
        pen.fillRect(12.5, 1, 1, 12);
        pen.beginPath();
        pen.arc(13, 7, 2.2, 0, 2 * Math.PI);
        pen.fill();
    });
}

function line(palette: Palette, dash: readonly number[], alpha = 1): HTMLElement {
    return swatch((pen) => {
        pen.globalAlpha = alpha;
        pen.strokeStyle = pen.fillStyle = palette.ink;
        pen.lineWidth = 1.5;
        pen.setLineDash([...dash]);
        pen.beginPath();
        pen.moveTo(1, 7);
        pen.lineTo(19, 7);
        pen.stroke();
        pen.beginPath();
        pen.moveTo(25, 7);
        pen.lineTo(18, 3.5);
        pen.lineTo(18, 10.5);
        pen.fill();
    });
}
