// SPDX-License-Identifier: Apache-2.0
/** The names at the left: CTA, predicted or measured, role, warp. A role of several warps is a button that folds and unfolds it. */

import { el } from "./elements.ts";
import { Names } from "./names.ts";
import { isHeading, type RowBox } from "./rows.ts";
import { RULER } from "./ruler.ts";
import { figure, percent, unitOf } from "./scale.ts";
import type { Palette } from "./theme.ts";
import type { View } from "./view.ts";

export function gutter(view: View, names: Names, palette: Palette, toggled: (key: string) => void): HTMLElement[] {
    const hasGrid = view.scene.timelines.some((number) => view.timeline(number).steady);
    const corner = el("div", { class: "corner" }, unitOf(), el("br"), hasGrid ? "iterations" : "");
    const rows = view.layout.rows.map((row) => {
        const element = rowOf(view, names, palette, row, toggled);
        element.style.top = `${RULER + row.top}px`;
        element.style.height = `${isHeading(row) ? row.height : row.strips.height}px`;
        return element;
    });
    return [corner, ...rows];
}

function rowOf(view: View, names: Names, palette: Palette, row: RowBox, toggled: (key: string) => void): HTMLElement {
    if (row.kind === "cta") {
        const timeline = view.timeline(row.timeline);
        const wave = timeline.wave === null || timeline.wave < 0 ? "" : `, wave ${timeline.wave}`;
        return el("div", { class: "row cta" }, `CTA ${Names.place(timeline)}${wave}`);
    }
    if (row.kind === "group") return group(view, row);
    const span = row.lanes.reduce((sum, lane) => sum + lane.row.end - lane.row.start, 0);
    const stall = row.lanes.reduce((sum, lane) => sum + lane.row.stall, 0);
    const lost = row.lanes.reduce((sum, lane) => sum + lane.row.lost, 0);
    // Where the budget knows no ring nobody waits: a nought would be read as a claim.
    const share = (!row.isPredicted || stall > 0) && el("span", { class: "share", title: "stalled share of the time" }, `${percent(span ? stall / span : 0)} stall`);
    const trouble = lost > 0 && el("span", { class: "bad", title: `${figure(lost)} records lost: the lane was full` }, `lost ${figure(lost)}`);
    if (row.kind === "warp") {
        const small = row.strips.height < 14 ? " small" : "";
        return el("div", { class: `row warp${small}` }, el("span", { class: "name" }, `warp ${row.lanes[0]!.row.warp}`), trouble, !small && share);
    }
    const chip = el("span", { class: "chip" });
    chip.style.background = palette.roles[names.role(row.role) % palette.roles.length]!;
    const name = el("span", { class: "name" }, row.role || "(no role)");
    if (row.lanes.length === 1) {
        const warp = `warp ${row.lanes[0]!.row.warp}`;
        return el("div", { class: "row" }, el("span", { class: "turn" }), chip, name, !row.isPredicted && warp !== row.role && el("span", { class: "faint" }, warp), trouble, share);
    }
    const isOpen = row.kind === "role";
    return el(
        "button",
        { class: "row", "data-key": row.key, "aria-expanded": String(isOpen), title: isOpen ? "Fold the warps into one row" : "Show every warp", click: () => toggled(row.key) },
        el("span", { class: "turn", "aria-hidden": "true" }, isOpen ? "\u25be" : "\u25b8"),
        chip,
        name,
        el("span", { class: "faint" }, `\u00d7 ${row.lanes.length}`),
        trouble,
        share,
    );
}

/** The heading of what was predicted, or of what was measured, with its period. */
function group(view: View, row: RowBox): HTMLElement {
    const { period } = view.timeline(row.timeline).prediction!;
    const [word, cycles] = row.isPredicted ? ["predicted", period.predicted] : ["measured", period.measured];
    const share = el("span", { class: "share", title: row.isPredicted ? `${unitOf()} of one iteration` : `${unitOf()} of one iteration in the steady state, the mean` }, `${figure(Math.round(cycles))} an iteration`);
    return el("div", { class: `row group ${word}` }, word, share);
}
