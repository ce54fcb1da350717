// SPDX-License-Identifier: Apache-2.0
/** A span in words: for the tooltip, the pane below the timeline, and the live region that screen readers hear. */

import { ACTIVE, ASYNC, BETWEEN, ENDINGS, INFERRED, PASS, STALL, UNCERTAIN, type Timeline } from "./document.ts";
import { warpOf, type Names } from "./names.ts";
import { above } from "./pieces.ts";
import { duration, figure, unitOf } from "./scale.ts";

export interface Line {
    readonly name: string;
    readonly text: string;
}

export interface Description {
    readonly title: string;
    readonly state: "active" | "stall" | "pass";
    readonly lines: readonly Line[];
    /** `path:line` and the text there; empty when the document does not hold the site. */
    readonly where: string;
    readonly source: string;
}

const STATES = { [ACTIVE]: "active", [STALL]: "stall", [PASS]: "pass" } as const;

export function describe(names: Names, timeline: Timeline, row: number, span: number): Description {
    const { spans, role, warp } = timeline.rows[row]!;
    const state = STATES[spans.state[span] as keyof typeof STATES] ?? "active";
    const instance = spans.instance[span]!;
    const stage = spans.stage[span]!;
    const cycles = spans.end[span]! - spans.start[span]!;
    const stages = names.stages(instance);
    const side = names.instance(instance)?.side ?? "";
    const lines: Line[] = [
        { name: unitOf(), text: `${figure(spans.start[span]!)} to ${figure(spans.end[span]!)}` },
        { name: "warp", text: `${warp} of role ${role || "(none)"}` },
        { name: "barrier", text: names.barrierOf(instance) + (side ? `, ${side}` : "") },
        { name: "stage", text: stage < 0 ? "unknown" : `${stage}${stages ? ` of ${stages}` : ""}` },
        { name: "iteration", text: iteration(timeline, spans.start[span]!, spans.visit[span]!) },
    ];
    lines.push(...origin(timeline, row, span));
    if (state === "pass") lines.push({ name: "cause", text: "the barrier was complete already: no longer than a ready wait takes" });
    if (state === "stall") lines.push(...cause(names, timeline, spans.cause[span]!));
    const what = state === "active" ? `holds ${names.staged(instance, stage)}` : names.called(instance, stage);
    return {
        title: `${state} \u00b7 ${what} \u00b7 ${duration(cycles, timeline.sm_mhz)}`,
        state,
        lines,
        where: names.where(instance),
        source: names.text(instance),
    };
}

/** Which replay of a joined run recorded the span, and by how much it may be off. */
function origin(timeline: Timeline, row: number, span: number): Line[] {
    const { replay, error, length_error: length } = timeline.rows[row]!.spans;
    if (!replay?.[span]) return [];
    const place = error?.[span] ? `its place is right to ${figure(error[span])} ${unitOf()}` : "the reference: its place is as recorded";
    const long = length?.[span] ? `, its length to ${figure(length[span])}` : "";
    return [{ name: "replay", text: `set ${replay[span]}; ${place}${long}` }];
}

/** The warp's own count of this wait, and the iteration of the steady state that the span begins in. */
function iteration(timeline: Timeline, start: number, visit: number): string {
    const own = `visit ${figure(visit)} of this wait by this warp`;
    const marks = timeline.steady?.marks;
    const number = marks ? above(marks, start) - 1 : -1;
    return marks && number >= 0 && number < marks.length - 1 ? `${own}, in iteration ${figure(number)} of the steady state` : own;
}

/** Who ended the stall, and how its cycles divide. */
function cause(names: Names, timeline: Timeline, index: number): Line[] {
    if (index < 0) return [{ name: "cause", text: "unknown: the analysis names no cause" }];
    const { causes } = timeline;
    const ending = ENDINGS[causes.ending[index]!] ?? "unseen";
    const arrow = causes.arrow[index]!;
    const bound = causes.binding[index] ? ": it was binding" : "";
    const parts = (
        [
            ["awaited", causes.awaited],
            ["in flight", causes.in_flight],
            ["handed over", causes.handed_over],
            ["unexplained", causes.unexplained],
        ] as const
    )
        .filter(([, column]) => column[index]! > 0)
        .map(([name, column]) => `${figure(column[index]!)} ${name}`);
    return [
        { name: "cause", text: ended(names, timeline, ending, arrow) + bound },
        ...(parts.length ? [{ name: "made of", text: parts.join(", ") }] : []),
    ];
}

function ended(names: Names, timeline: Timeline, ending: string, arrow: number): string {
    if (ending === "group") return "ended by the warp's own asynchronous group";
    if (ending === "granted") return "nothing to wait for: the first round of a ring is free";
    if (ending === "lost") return "unknown: records that may have named it were lost";
    if (arrow < 0 && ending === "signal") return "the warp's own arrival was the last: it waited for nobody";
    if (arrow < 0) return "no record of this CTA explains it";
    const { arrows, rows } = timeline;
    const from = rows[arrows.from_row[arrow]!];
    const signal = names.called(arrows.from_instance[arrow]!, arrows.stage[arrow]!);
    const who = from ? `${from.role} (warp ${from.warp})` : "a warp";
    const at = figure(arrows.from[arrow]!);
    const how = ending === "transfer" ? `a transfer that ${who} issued at ${at}` : `${who} at ${at}`;
    return `ended by ${how}: ${signal}`;
}

/** An arrow in words. */
export function describeArrow(names: Names, timeline: Timeline, arrow: number): string {
    const { arrows, rows } = timeline;
    const end = (row: number, at: number): string => {
        const found = rows[row];
        return `${found ? warpOf(found.role, found.warp) : "?"} at ${figure(at)}`;
    };
    const flags = arrows.flags[arrow]!;
    const name = names.staged(arrows.to_instance[arrow]!, arrows.stage[arrow]!);
    const error = arrows.error?.[arrow] ?? 0;
    const notes = [
        flags & ASYNC ? "lands later than it was issued" : "",
        flags & INFERRED ? "inferred from the declaration" : "",
        flags & BETWEEN ? "between two replays" : "",
        error ? `right to ${figure(error)} ${unitOf()}` : "",
        flags & UNCERTAIN ? "another arrival may have been the last" : "",
    ];
    return [
        `${name}: ${end(arrows.from_row[arrow]!, arrows.from[arrow]!)} \u2192 ${end(arrows.to_row[arrow]!, arrows.to[arrow]!)}`,
        ...notes.filter(Boolean),
    ].join(", ");
}

/** All of a description as one sentence or two. */
export function spoken(description: Description): string {
    const lines = description.lines.map((line) => `${line.name} ${line.text}`).join("; ");
    return `${description.title}. ${lines}. ${description.where} ${description.source}`.trim();
}
