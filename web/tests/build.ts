// SPDX-License-Identifier: Apache-2.0
/** Small reports for tests, as the decoder would return them. */

import type { Report, Row, Spans, Timeline } from "../src/document.ts";

const column = (values: readonly number[]): Int32Array => Int32Array.from(values);

/** Spans from tuples of start, end, state, instance. */
export function spans(rows: readonly (readonly [number, number, number, number])[]): Spans {
    return {
        start: column(rows.map((row) => row[0])),
        end: column(rows.map((row) => row[1])),
        state: column(rows.map((row) => row[2])),
        instance: column(rows.map((row) => row[3])),
        visit: column(rows.map((_, i) => i)),
        stage: column(rows.map(() => -1)),
        cause: column(rows.map(() => -1)),
    };
}

export function row(warp: number, role: string, end: number, tuples: Parameters<typeof spans>[0]): Row {
    const signals = { at: column([]), instance: column([]), visit: column([]), stage: column([]) };
    return { warp, role, start: 0, end, lost: 0, stall: 0, passed: 0, active: 0, untracked: 0, spans: spans(tuples), signals };
}

/** Arrows from tuples of from row, from cycle, to row, to cycle. */
export function timeline(rows: readonly Row[], arrows: readonly (readonly [number, number, number, number])[] = [], changes: Partial<Timeline> = {}): Timeline {
    const none = column([]);
    const zeros = column(arrows.map(() => 0));
    return {
        kernel: "k", trace: 1, launch: 0, block: [0, 0, 0], smid: 0, wave: null, offset: 0, alignment_error: null,
        start: 0, end: 100, sm_mhz: 1000, lost: 0, verdict: { headline: "", lines: [] }, cost: null, roles: [], rows,
        arrows: {
            from_row: column(arrows.map((arrow) => arrow[0])), from: column(arrows.map((arrow) => arrow[1])),
            to_row: column(arrows.map((arrow) => arrow[2])), to: column(arrows.map((arrow) => arrow[3])),
            from_instance: column(arrows.map(() => 2)), to_instance: column(arrows.map(() => 1)),
            to_visit: zeros, barrier: zeros, stage: zeros, use: zeros, flags: zeros,
        },
        causes: { ending: none, arrow: none, awaited: none, in_flight: none, handed_over: none, unexplained: none, binding: none },
        blame: [], steady: null, path: null, overlaps: [], depths: [], early: [], sites: [],
        ...changes,
    };
}

export function report(timelines: readonly Timeline[]): Report {
    const site = { source: 0, column: 1, kind: "wait", side: "full" };
    return {
        schema_version: 1, tool: "t", title: "t", machine: {}, notes: [],
        sources: [{ path: "a/b.py", language: "cutedsl", text: "" }],
        sites: [
            { ...site, line: 3, text: "pipe.consumer_wait(s)", method: "consumer_wait" },
            { ...site, line: 9, text: "other.sync()", method: "sync" },
        ],
        instances: [
            { number: 1, site: 0, barrier: 1, label: "", side: "full", role: "mma", is_async: false },
            { number: 2, site: 1, barrier: 0, label: "", side: "named", role: "mma", is_async: false },
            { number: 12, site: 1, barrier: 0, label: "", side: "named", role: "mma", is_async: false },
        ],
        barriers: [{ number: 1, label: "K", type: "", stages: 2, is_inferred: false }],
        timelines,
    };
}
