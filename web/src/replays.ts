// SPDX-License-Identifier: Apache-2.0
/** The face of a joined run: its sets with their cost and fit, and the sites that no set has. */

import type { Bound, Fit, Neighbour, ReplayedSet, Replays, Report, Uncovered } from "./document.ts";
import { el, table } from "./elements.ts";
import { kernelName } from "./names.ts";
import { figure } from "./scale.ts";

/** The section "Joined from replays". */
export function replaysSection(report: Report, replays: Replays): HTMLElement {
    const parts: HTMLElement[] = [setsTable(replays)];
    if (replays.uncovered.length) parts.push(uncoveredTable(report, replays.uncovered));
    if (replays.bounds.length) parts.push(boundsTable(report, replays.bounds));
    if (replays.dropped.length) parts.push(droppedTable(replays));
    for (const { meaning, sites } of replays.forms) parts.push(el("p", { class: "faint" }, `${meaning}: ${sites.join(", ")}`));
    const notes = replays.notes.map((text) => el("li", {}, text));
    return el(
        "section",
        { class: "replays", "aria-label": "Joined from replays" },
        el("h3", {}, headline(replays)),
        el("div", {}, ...parts),
        notes.length > 0 && el("details", {}, el("summary", {}, `How the sets came about: ${notes.length} notes`), el("ul", {}, ...notes)),
    );
}

/** How many replays, what the dearest of them cost, and what is missing. */
export function headline({ sets, bar, uncovered }: Replays): string {
    const ratios = sets.map((each) => each.times?.ratio ?? null);
    const known = ratios.filter((each): each is number => each !== null);
    const cost = sets.length && known.length === sets.length ? `each at most ${figure(Math.max(...known), 3)} of the clean time` : "the cost of some was not measured";
    const sites = `${uncovered.length} site${uncovered.length === 1 ? " is" : "s are"} not covered`;
    const missing = uncovered.length ? sites : "every site of the placement is covered";
    return `Joined from ${sets.length} replay${sets.length === 1 ? "" : "s"}, ${cost} (bar ${figure(bar, 3)}); ${missing}`;
}

/** One line for each set and kernel: a set that covers several kernels has its own figures in the first of them only. */
export function setRows({ sets, fits, reference }: Replays): string[][] {
    return sets.flatMap((made) => {
        const own = fits.filter((fit) => fit.number === made.number);
        const set = [figure(made.number), ...costOf(made)];
        if (!own.length) return [[...set, "", "", "", "", made.number === reference ? "the reference: its records are where they were" : ""]];
        return own.map((fit, i) => [...(i ? set.map(() => "") : set), ...fitOf(fit, own.length > 1)]);
    });
}

/** Forms that leave a wait one of its two stamps. */
const MARKS = new Set(["enter", "exit", "carried-exit"]);

function costOf({ times, sites, anchors, launches, results_equal: equal }: ReplayedSet): string[] {
    const spread = times ? `${figure(times.p10, 3)}\u2013${figure(times.p90, 3)}` : "";
    const single = sites.filter((site) => MARKS.has(site.form)).length;
    const results = equal === null ? "unknown" : equal ? "bit-equal" : "DIFFER";
    const count = single ? `${sites.length} (${single} half)` : figure(sites.length);
    return [times ? figure(times.ratio, 3) : "not measured", spread, count, figure(anchors.length), figure(launches), results];
}

function fitOf(fit: Fit, isOneOfSeveral: boolean): string[] {
    const remarks = [
        isOneOfSeveral ? kernelName(fit.kernel) : "",
        fit.guided ? `${figure(fit.guided)} warps without an anchor, placed by another warp\u2019s` : "",
        fit.moved ? `${figure(fit.moved)} records moved beside a wait of another set` : "",
        fit.shortened ? `${figure(fit.shortened)} waits drawn shorter than they were` : "",
    ];
    const off = `${figure(fit.typical)} (95\u00a0%: ${figure(fit.typical_p95)})`;
    const stated = `${figure(fit.error_median)} (90\u00a0%: ${figure(fit.error_p90)})`;
    return [figure(fit.events), figure(fit.anchors), off, stated, remarks.filter(Boolean).join("; ")];
}

function setsTable(replays: Replays): HTMLElement {
    const headings = [
        { name: "set" },
        { name: "stamped \u00f7 clean", isFigure: true, hint: replays.sets[0]?.times?.method ?? "how long a launch took" },
        { name: "p10\u2013p90", isFigure: true },
        { name: "sites", isFigure: true, hint: "half: with one of a wait\u2019s two stamps, a mark in time" },
        { name: "anchors", isFigure: true, hint: "sites that other sets have too, by which this one is placed" },
        { name: "launches", isFigure: true },
        { name: "results", hint: "against the clean run\u2019s, byte by byte" },
        { name: "records", isFigure: true, hint: "put onto the reference\u2019s axis" },
        { name: "by", isFigure: true, hint: "anchor records" },
        { name: "cycles off, typically", isFigure: true, hint: "where launches of the set were joined to each other and the truth was known" },
        { name: "stated", isFigure: true, hint: "the error that the records carry, median: an upper bound" },
        { name: "", isLong: true },
    ];
    return table("Replays", headings, setRows(replays));
}

/** The source line that a placement's key names (`file:line:column@content`); empty where the document has no text of it. */
export function lineAt(report: Report, key: string): string {
    const [, name, line] = /^(.*):(\d+):\d+@/.exec(key) ?? [];
    const source = report.sources.find((each) => each.text && each.path.split("/").pop() === name);
    return source?.text.split(/\r?\n/)[Number(line) - 1]?.trim() ?? "";
}

function uncoveredTable(report: Report, uncovered: readonly Uncovered[]): HTMLElement {
    const rows = uncovered.map(({ key, cost, code }) => [key.replace(/@.*$/, ""), lineAt(report, key), cost, code]);
    const headings = [{ name: "site" }, { name: "line", isLong: true }, { name: "cost", hint: "stamped ÷ clean where it was measured" }, { name: "why", hint: "autostamp explain CODE" }];
    return table("Not covered", headings, rows);
}

/** One line for each stamp without a record: which, the records around it, and how far these are apart. */
export function boundRows(report: Report, bounds: readonly Bound[]): string[][] {
    return bounds.map((each) => {
        const stamp = each.stamp === "enter" || each.stamp === "exit" ? each.stamp : "";
        const warps = `${figure(each.warps.length)} warp${each.warps.length === 1 ? "" : "s"}`;
        const stated = each.error ? figure(each.error) : "exact";
        const site = [each.key.replace(/@.*$/, ""), lineAt(report, each.key), stamp, each.role ? `${each.role}, ${warps}` : warps];
        const own = each.key.replace(/:.*$/, "");
        return [...site, named(each.before, own), named(each.after, own), figure(each.median), `${figure(each.p10)} to ${figure(each.p90)}`, stated];
    });
}

/** The record with its line; the file only where it is another than the site's `own`. */
function named({ label, file, line, kind, which, trip }: Neighbour, own: string): string {
    const what = `${which === "each" ? "" : `${which} `}${kind === "signal" ? "" : `${kind} of `}${label}`;
    const lap = trip > 0 ? ", next trip" : trip < 0 ? ", trip before" : "";
    return `${what} (${file === own ? "line " : `${file}:`}${line}${lap})`;
}

function boundsTable(report: Report, bounds: readonly Bound[]): HTMLElement {
    const headings = [
        { name: "site" },
        { name: "line", isLong: true },
        { name: "stamp", hint: "empty: none of the site\u2019s stamps has a record" },
        { name: "in" },
        { name: "comes after", isLong: true, hint: "the nearest record before it, by the order of the source" },
        { name: "and before", isLong: true, hint: "the nearest record after it, by the order of the source" },
        { name: "cycles between, median", isFigure: true },
        { name: "p10\u2013p90", isFigure: true },
        { name: "stated", isFigure: true, hint: "by how much the two records\u2019 places may be off together, median: an upper bound" },
    ];
    return table("Where what has no record lies", headings, boundRows(report, bounds));
}

function droppedTable({ dropped }: Replays): HTMLElement {
    const rows = dropped.map(({ number, code, detail }) => [figure(number), code, detail]);
    return table("Sets that are no part of it", [{ name: "set" }, { name: "why", hint: "autostamp explain CODE" }, { name: "", isLong: true }], rows);
}
