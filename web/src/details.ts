// SPDX-License-Identifier: Apache-2.0
/** The pane of the selected span, the tooltip, and the longest stalls in view: the picture's content as text. */

import { arrowsOfSpan } from "./arrows.ts";
import { describe, describeArrow, type Description } from "./describe.ts";
import { el } from "./elements.ts";
import { warpOf, type Names } from "./names.ts";
import { above } from "./pieces.ts";
import { describePredicted } from "./predicted.ts";
import { figure, time } from "./scale.ts";
import type { Picked, View } from "./view.ts";

export function describePicked(view: View, names: Names, { lane, span }: Picked): Description {
    if (lane.isPredicted) return describePredicted(names, view.timeline(lane.timeline), lane.index, span);
    return describe(names, view.timeline(lane.timeline), lane.index, span);
}

/** Everything known of a span as a list of facts. */
export function facts(description: Description, arrows: readonly string[] = []): HTMLElement {
    const { title, lines, where, source } = description;
    return el(
        "dl",
        { class: "facts" },
        el("dt", { class: "title" }, title),
        ...lines.flatMap(({ name, text }) => [el("dt", {}, name), el("dd", {}, text)]),
        ...arrows.flatMap((text) => [el("dt", {}, "arrow"), el("dd", {}, text)]),
        el("dt", {}, "source"),
        el("dd", {}, el("code", {}, where ? `${where}  ${source}` : source || "not in the document")),
    );
}

export function arrowsOf(view: View, names: Names, { lane, span }: Picked): string[] {
    if (lane.isPredicted) return [];
    const timeline = view.timeline(lane.timeline);
    const found = arrowsOfSpan(timeline, view.arrows(lane.timeline), lane.index, span);
    const texts = found.slice(0, 8).map((arrow) => describeArrow(names, timeline, arrow));
    if (found.length > 8) texts.push(`and ${found.length - 8} more`);
    return texts;
}

/** The longest measured stalls of the view, at most `most` of them, longest first. */
export function longestStalls(view: View, most: number): Picked[] {
    const best: { cycles: number; picked: Picked }[] = [];
    for (const lane of view.lanes.filter((one) => !one.isPredicted)) {
        const { pieces } = lane.strip;
        const { start, end, state } = lane.row.spans;
        const last = above(pieces.start, view.range.end - lane.offset);
        let seen = -1;
        for (let i = above(pieces.end, view.range.start - lane.offset); i < last; i += 1) {
            const span = pieces.span[i]!;
            const cycles = end[span]! - start[span]!;
            if (state[span] !== 1 || span === seen || (best.length === most && cycles <= best[most - 1]!.cycles)) continue;
            seen = span;
            best.push({ cycles, picked: { lane, span } });
            best.sort((a, b) => b.cycles - a.cycles);
            if (best.length > most) best.pop();
        }
    }
    return best.map(({ picked }) => picked);
}

export function longestList(view: View, names: Names, chosen: (picked: Picked) => void): HTMLElement[] {
    const found = longestStalls(view, 30);
    if (!found.length) return [el("p", { class: "faint" }, "No stall lies in view.")];
    return found.map((picked) => {
        const { row, timeline } = picked.lane;
        const { start, end, instance, stage, visit } = row.spans;
        const cycles = end[picked.span]! - start[picked.span]!;
        const wall = time(cycles, view.timeline(timeline).sm_mhz);
        return el(
            "button",
            { type: "button", click: () => chosen(picked) },
            el("span", { class: "cycles" }, figure(cycles)),
            el("span", { class: "faint" }, wall),
            el("span", {}, `${warpOf(row.role, row.warp)}, ${names.called(instance[picked.span]!, stage[picked.span]!)}, visit ${visit[picked.span]!}`),
        );
    });
}
