// SPDX-License-Identifier: Apache-2.0
/** The prediction: its section under the verdict, where its iterations begin, and its spans in words. */

import { ACTIVE, type Prediction, type Timeline } from "./document.ts";
import type { Description, Line } from "./describe.ts";
import { el } from "./elements.ts";
import type { Names } from "./names.ts";
import { duration, figure } from "./scale.ts";

/** Cycles where iterations begin, and the end of the last: those of the role that is done last. */
export function marksOf(prediction: Prediction): number[] {
    const rows = [...prediction.timeline.rows].sort((a, b) => b.end - a.end);
    const last = rows[0];
    if (!last) return [];
    const { start, visit } = last.spans;
    const marks: number[] = [];
    start.forEach((at, i) => {
        if (i === 0 || visit[i] !== visit[i - 1]) marks.push(at);
    });
    return [...marks, last.end];
}

/** Lines as blocks: those that are set in columns stay together, each other one is a paragraph. */
export function blocksOf(lines: readonly string[]): { text: string; isTable: boolean }[] {
    const blocks: { text: string; isTable: boolean }[] = [];
    for (const text of lines) {
        const isTable = /\s{2}/.test(text);
        const last = blocks[blocks.length - 1];
        if (isTable && last?.isTable) last.text += `\n${text}`;
        else blocks.push({ text, isTable });
    }
    return blocks;
}

/** The section "Prediction against measurement". */
export function section(prediction: Prediction): HTMLElement {
    const blocks = blocksOf(prediction.lines).map(({ text, isTable }) => (isTable ? el("pre", {}, ...text.split("\n").map((line) => el("div", {}, line))) : el("p", {}, text)));
    return el(
        "section",
        { class: "prediction", "aria-label": "Prediction against measurement" },
        el("h3", {}, "Prediction against measurement"),
        el("p", { class: "said" }, prediction.headline),
        el("div", { class: "blocks" }, ...blocks),
    );
}

/** A predicted span: nobody recorded it. */
export function describePredicted(names: Names, timeline: Timeline, row: number, span: number): Description {
    const { timeline: played } = timeline.prediction!;
    const { spans, role } = played.rows[row]!;
    const [start, end] = [spans.start[span]!, spans.end[span]!];
    const isWork = spans.state[span] === ACTIVE;
    const instance = names.instance(spans.instance[span]!);
    const awaited = instance ? names.sided(instance.barrier, instance.side) : "nothing";
    const stage = spans.stage[span]!;
    const lines: Line[] = [
        { name: "cycles", text: `${figure(start)} to ${figure(end)}, laid on the measured steady state` },
        { name: "role", text: role || "(none)" },
        { name: isWork ? "waited for" : "waits for", text: stage < 0 ? awaited : `${awaited}, stage ${stage}` },
        { name: "iteration", text: `${figure(spans.visit[span]!)}, counted from 0, of ${figure(played.iterations)} predicted` },
    ];
    return {
        title: `predicted \u00b7 ${isWork ? "active" : "stall"} \u00b7 ${isWork ? `work of ${role}` : awaited} \u00b7 ${duration(end - start, timeline.sm_mhz)}`,
        state: isWork ? "active" : "stall",
        lines,
        where: "",
        source: "no record: the prediction\u2019s budget, played out",
    };
}
