// SPDX-License-Identifier: Apache-2.0
/** The face of the report: notes, headline, what measuring cost, and where the time of roles and sites went. */

import type { Cost, Figure, Report, Timeline } from "./document.ts";
import { bar, el, table } from "./elements.ts";
import { kernelName, Names } from "./names.ts";
import { section } from "./predicted.ts";
import { replaysSection } from "./replays.ts";
import { duration, figure, percent, time, unitOf } from "./scale.ts";
import type { Scene } from "./scenes.ts";

export interface Links {
    /** Highlight all spans of an instance's source line and show it. */
    line(instance: number): void;
    /** Show one timeline alone. */
    timeline(index: number): void;
}

/** Everything that must not be overlooked, before anything else. */
export function notes(report: Report, scene: Scene): HTMLElement[] {
    const lost = scene.timelines.map((index) => report.timelines[index]!.lost).reduce((a, b) => a + b, 0);
    const texts = [...report.notes];
    if (lost && !texts.some((text) => /\blost\b/i.test(text))) texts.unshift(`${figure(lost)} records were lost: lanes were full. What follows the last record of such a warp is unknown.`);
    return texts.map((text) => el("p", { class: "note", role: "note" }, el("strong", {}, "Note"), ` ${text}`));
}

export function verdict(report: Report, names: Names, scene: Scene, links: Links): HTMLElement[] {
    const first = scene.timelines[0];
    if (first === undefined) return [];
    const timeline = report.timelines[first]!;
    const parts: HTMLElement[] = report.replays ? [replaysSection(report, report.replays)] : [];
    if (scene.timelines.length > 1) {
        parts.push(el("p", { class: "aligned" }, scene.alignment), ctas(report, scene, links));
        parts.push(el("p", { class: "faint" }, `What follows is about CTA ${Names.place(timeline)}; the table leads to the others.`));
    }
    parts.push(el("h2", { class: "headline" }, timeline.verdict.headline || "No verdict: nothing was found to bind."));
    const where = `${kernelName(timeline.kernel)}, CTA ${Names.place(timeline)}, ${duration(timeline.end - timeline.start, timeline.sm_mhz)}`;
    const clock = timeline.sm_mhz ? ` at ${figure(timeline.sm_mhz)} MHz` : unitOf() === "cycles" ? "; the SM clock is unknown, so times are in cycles only" : "";
    parts.push(el("p", { class: "faint", title: timeline.kernel }, where + clock));
    if (timeline.verdict.lines.length) parts.push(el("ul", { class: "lines" }, ...timeline.verdict.lines.map((line) => el("li", {}, line))));
    parts.push(costOf(timeline.cost));
    if (timeline.prediction) parts.push(section(timeline.prediction));
    const left = el("div", {}, roles(timeline), blame(names, timeline));
    parts.push(el("div", { class: "tables" }, left, el("div", { class: "wide" }, sites(names, timeline, links))));
    parts.push(more(names, timeline));
    return parts;
}

function ctas(report: Report, scene: Scene, links: Links): HTMLElement {
    const rows = scene.timelines.map((index) => {
        const timeline = report.timelines[index]!;
        const open = el("button", { class: "link", click: () => links.timeline(index) }, Names.place(timeline));
        const wave = timeline.wave === null || timeline.wave < 0 ? "?" : figure(timeline.wave);
        return [open, wave, figure(timeline.end - timeline.start), figure(timeline.offset), timeline.verdict.headline];
    });
    const headings = [
        { name: "CTA" },
        { name: "wave", isFigure: true, hint: "CTAs that this SM had run before" },
        { name: unitOf(), isFigure: true },
        { name: "begins at", isFigure: true, hint: `${unitOf()} on the shared axis` },
        { name: "verdict" },
    ];
    return table("CTAs of this launch", headings, rows);
}

function pair(value: Figure): string {
    if (value === null) return "not measured";
    if (typeof value === "number") return figure(value, Number.isInteger(value) ? 0 : 3);
    const [clean, stamped] = value;
    const shown = (part: number | null): string => (part === null ? "?" : figure(part, Number.isInteger(part) ? 0 : 2));
    return `${shown(clean)} \u2192 ${shown(stamped)}`;
}

function costOf(cost: Cost | null): HTMLElement {
    const ratio = cost?.time_ratio ?? null;
    const times =
        Array.isArray(ratio) && ratio[0] && ratio[1] ? `${figure(ratio[1] / ratio[0], 3)} (${pair(ratio)})` : pair(ratio as Figure);
    const items: [string, string, string][] = [
        ["stamped \u00f7 clean time", times, "how much slower the stamped kernel ran"],
        ["registers", pair(cost?.registers ?? null), "a thread, clean \u2192 stamped"],
        ["spills", pair(cost?.spills ?? null), "bytes, clean \u2192 stamped"],
        ["schedule distance", pair(cost?.schedule_distance ?? null), "how far the order of instructions moved; 0: not at all"],
        ["records lost", cost ? figure(cost.lost) : "unknown", "dropped because a lane was full"],
    ];
    return el(
        "dl",
        { class: "cost", "aria-label": "What measuring cost" },
        el("dt", { class: "title" }, "cost of measuring"),
        ...items.map(([name, text, hint]) => {
            const kind = /^not|unknown/.test(text) ? "faint" : name === "records lost" && cost?.lost ? "bad" : "";
            return el("div", { title: hint }, el("dt", {}, name), el("dd", { class: kind }, text));
        }),
    );
}

function roles(timeline: Timeline): HTMLElement {
    const rows = timeline.roles.map((role) => {
        const share = (part: number): number => (role.span ? part / role.span : 0);
        const label = `stall ${percent(share(role.stall))}, active ${percent(share(role.active))}, untracked ${percent(share(role.untracked))}`;
        const parts = bar([["stall", share(role.stall)], ["active", share(role.active)], ["pass", share(role.passed)]], label);
        const shares = [role.stall, role.active, role.passed, role.untracked].map((part) => percent(share(part)));
        return [role.role || "(none)", figure(role.warps.length), parts, ...shares];
    });
    const figures = ["stall", "active", "passed", "untracked"].map((name) => ({ name, isFigure: true }));
    return table("Where each role\u2019s time went", [{ name: "role" }, { name: "warps", isFigure: true }, { name: "" }, ...figures], rows);
}

function blame(names: Names, timeline: Timeline): HTMLElement {
    if (!timeline.blame.length) {
        const isStalled = timeline.roles.some((role) => role.stall > 0);
        return el("p", { class: "faint" }, isStalled ? "The document names no cause of any stall." : "No warp stalled.");
    }
    const why: Readonly<Record<string, string>> = {
        group: "its own async group",
        granted: "nobody: the first round of a ring is free",
        unseen: "unexplained",
        lost: "unknown: records were lost",
    };
    const sorted = [...timeline.blame].sort((a, b) => b.cycles - a.cycles);
    const rows = sorted.map((item) => {
        const by = why[item.ending] ?? (item.by ? `${item.by}${item.ending === "transfer" ? ", by a transfer" : ""}` : "itself, the last");
        const share = bar([["stall", item.share]], percent(item.share));
        return [item.role, names.sided(item.barrier, item.side), by, figure(item.cycles), share, percent(item.share), figure(item.count)];
    });
    const headings = [
        { name: "role" },
        { name: "waited for" },
        { name: "ended by", isLong: true },
        { name: unitOf(), isFigure: true },
        { name: "" },
        { name: "share", isFigure: true, hint: "of all the role\u2019s stall" },
        { name: "stalls", isFigure: true },
    ];
    return table(`Who kept whom waiting, in warp-${unitOf()}`, headings, rows);
}

function sites(names: Names, timeline: Timeline, links: Links): HTMLElement {
    if (!timeline.sites.length) return el("p", { class: "faint" }, "No wait was long enough to be a stall.");
    const spans = new Map(timeline.roles.map((role) => [role.role, role.span]));
    const sorted = [...timeline.sites].sort((a, b) => b.total - a.total);
    const rows = sorted.map((site) => {
        const where = names.where(site.instance);
        const open = el("button", { class: "link", title: names.text(site.instance), click: () => links.line(site.instance) }, where.replace(/^.*\//, "") || "?");
        const share = site.total / (spans.get(site.role) || site.total || 1);
        return [
            open,
            names.called(site.instance, -1),
            site.role,
            figure(site.total),
            percent(share),
            figure(site.count),
            figure(site.median) + (site.error ? ` \u00b1 ${figure(site.error)}` : ""),
            `${figure(site.p10)}\u2013${figure(site.p90)}`,
            figure(site.longest),
        ];
    });
    const headings = [
        { name: "line" },
        { name: "wait", isLong: true },
        { name: "role" },
        { name: "total", isFigure: true },
        { name: "of role", isFigure: true, hint: "of the role\u2019s whole time" },
        ...["stalls", "median", "p10\u2013p90", "longest"].map((name) => ({ name, isFigure: true })),
    ];
    return table(`Stalls by source line, in ${unitOf()}`, headings, rows);
}

function more(names: Names, timeline: Timeline): HTMLElement {
    const parts: HTMLElement[] = [];
    const { steady, path } = timeline;
    const figures = (...texts: string[]) => texts.map((name) => ({ name, isFigure: true }));
    if (steady) {
        const { period } = steady;
        const wall = time(period.median, timeline.sm_mhz);
        const text = `Steady state: ${figure(steady.iterations)} iterations of ${steady.role} (warp ${steady.warp}), period ${figure(period.median)} ${unitOf()}${wall ? ` (${wall})` : ""}, p10\u2013p90 ${figure(period.p10)}\u2013${figure(period.p90)}; fill ${figure(steady.fill)}, drain ${figure(steady.drain)} ${unitOf()}.`;
        parts.push(el("p", {}, text));
    } else parts.push(el("p", { class: "faint" }, "No steady state: no iteration repeats."));
    if (path) {
        const shares = [
            ...path.by_role.map(([role, share]) => [`work of ${role}`, share] as const),
            ...path.by_barrier.map(([barrier, side, share]) => [names.sided(barrier, side), share] as const),
        ].sort((a, b) => b[1] - a[1]);
        parts.push(table("Critical path of the steady state", [{ name: "what" }, { name: "" }, ...figures("share")], shares.map(([name, share]) => [name, bar([["active", share]], percent(share)), percent(share)])));
        parts.push(table(`Slack: how early arrivals were, in ${unitOf()}`, [{ name: "role" }, ...figures("least", "median", "arrows")], path.slack.map((item) => [item.role, figure(item.least), figure(item.median), figure(item.arrows)])));
    }
    if (timeline.overlaps.length) parts.push(table("Busy at once", [{ name: "first" }, { name: "second" }, ...figures(`both, ${unitOf()}`, `either, ${unitOf()}`, "share")], timeline.overlaps.map((item) => [item.first, item.second, figure(item.common), figure(item.busy), percent(item.share)])));
    if (timeline.depths.length) parts.push(table("Stages in use", [{ name: "ring" }, ...figures("stages", "median", "most")], timeline.depths.map((item) => [names.barrier(item.barrier), item.stages ? figure(item.stages) : "?", figure(item.median, 1), figure(item.most)])));
    if (timeline.early.length) parts.push(table("Signals before the work ended", [{ name: "signal" }, { name: "role" }, ...figures("early", "of")], timeline.early.map((item) => [names.called(item.instance, -1), item.role, figure(item.early), figure(item.arrows)])));
    return el("details", { class: "more" }, el("summary", {}, "Steady state, critical path, overlap, depth"), el("div", { class: "grid" }, ...parts));
}
