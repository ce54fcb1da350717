// SPDX-License-Identifier: Apache-2.0
/** Search by barrier, role, source text, place or instance number: which spans match, and which match comes next. */

import type { Report } from "./document.ts";
import type { Lane } from "./lanes.ts";
import type { Names } from "./names.ts";
import { above } from "./pieces.ts";
import type { Highlight, Picked } from "./view.ts";

/** Decides for a role and an instance; both stay the same over many spans, so answers are kept. */
export type Matcher = (role: string, instance: number) => boolean;

/** Every word must be found; `#12` is instance 12. Null for a query without a word. */
export function matcher(report: Report, names: Names, query: string): Matcher | null {
    const words = query.toLowerCase().split(/\s+/).filter(Boolean);
    if (!words.length) return null;
    const texts = new Map<number, string>();
    for (const { number, label, side } of report.instances) {
        const parts = [names.called(number, -1), label, side, names.where(number), names.text(number), `#${number}`];
        texts.set(number, `${parts.join("\n")}\n`.toLowerCase());
    }
    const known = new Map<string, boolean>();
    return (role, instance) => {
        const key = `${instance} ${role}`;
        let answer = known.get(key);
        if (answer === undefined) {
            const text = `${texts.get(instance) ?? ""}${role.toLowerCase()}\n`;
            answer = words.every((word) => text.includes(/^#\d+$/.test(word) ? `${word}\n` : word));
            known.set(key, answer);
        }
        return answer;
    };
}

interface Moment {
    readonly at: number;
    readonly lane: number;
}

interface Candidate extends Moment {
    readonly picked: Picked;
}

/** The highlighted span after (or before) `current` in the order of time, then of lanes; begins again at the other end. */
export function following(highlight: Highlight, lanes: readonly Lane[], current: Picked | null, step: 1 | -1): Picked | null {
    const order = (lane: Lane): number => lanes.indexOf(lane);
    const now = current && { at: current.lane.row.spans.start[current.span]! + current.lane.offset, lane: order(current.lane) };
    let best: Candidate | null = null;
    let wrap: Candidate | null = null;
    const isBefore = (a: Moment, b: Moment): boolean =>
        step > 0 ? a.at < b.at || (a.at === b.at && a.lane < b.lane) : a.at > b.at || (a.at === b.at && a.lane > b.lane);
    lanes.forEach((lane, number) => {
        const strip = highlight.strips.get(lane);
        if (!strip?.pieces.count) return;
        const { pieces } = strip;
        const take = (i: number): Candidate => {
            const span = pieces.span[i]!;
            return { at: lane.row.spans.start[span]! + lane.offset, lane: number, picked: { lane, span } };
        };
        const edge = take(step > 0 ? 0 : pieces.count - 1);
        if (!wrap || isBefore(edge, wrap)) wrap = edge;
        if (!now) return;
        let i = above(pieces.start, now.at - lane.offset - 1);
        if (step < 0) i = Math.min(i, pieces.count - 1);
        for (; i >= 0 && i < pieces.count; i += step) {
            const found = take(i);
            if (!isBefore(now, found)) continue;
            if (!best || isBefore(found, best)) best = found;
            break;
        }
    });
    return ((best ?? wrap) as Candidate | null)?.picked ?? null;
}
