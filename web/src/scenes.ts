// SPDX-License-Identifier: Apache-2.0
/** Which timelines are looked at together: the aligned CTAs of one launch share an axis, all others stand alone. */

import type { Report, Timeline } from "./document.ts";
import { kernelName, Names } from "./names.ts";
import { figure, unitOf } from "./scale.ts";

export interface Scene {
    readonly label: string;
    /** Indices of the report's timelines. */
    readonly timelines: readonly number[];
    /** Says how well the axes of several CTAs agree; empty for one. */
    readonly alignment: string;
}

export function scenesOf(report: Report): Scene[] {
    const groups = new Map<string, number[]>();
    report.timelines.forEach((timeline, index) => {
        if (timeline.alignment_error === null) return;
        const key = JSON.stringify([timeline.kernel, timeline.trace, timeline.launch]);
        groups.set(key, [...(groups.get(key) ?? []), index]);
    });
    const isOneKernel = new Set(report.timelines.map((timeline) => timeline.kernel)).size === 1;
    const isOneLaunch = new Set(report.timelines.map((timeline) => timeline.launch)).size === 1;
    const named = (timeline: Timeline): string =>
        [isOneKernel ? "" : kernelName(timeline.kernel), isOneLaunch ? "" : `launch ${timeline.launch}`].filter(Boolean).join(", ");
    const join = (...parts: string[]): string => parts.filter(Boolean).join(" \u00b7 ");
    const together = [...groups.values()].filter((group) => group.length > 1);
    return [
        ...together.map((group) => {
            const error = Math.max(...group.map((index) => report.timelines[index]!.alignment_error ?? 0));
            return {
                label: join(named(report.timelines[group[0]!]!), `${group.length} CTAs on one axis`),
                timelines: group,
                alignment: `The clocks of these ${group.length} CTAs are aligned to within ${figure(error)} ${unitOf()}.`,
            };
        }),
        ...report.timelines.map((timeline, index) => ({
            label: join(named(timeline), `CTA ${Names.place(timeline)}`),
            timelines: [index],
            alignment: "",
        })),
    ];
}
