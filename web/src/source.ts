// SPDX-License-Identifier: Apache-2.0
/** The source pane: the original lines with the stalls of each, linked to the spans that they made. */

import type { Report } from "./document.ts";
import { el } from "./elements.ts";
import type { Lane } from "./lanes.ts";
import { figure, unitOf } from "./scale.ts";

export interface LineTotal {
    cycles: number;
    stalls: number;
    spans: number;
    signals: number;
}

const NOTHING: Readonly<LineTotal> = { cycles: 0, stalls: 0, spans: 0, signals: 0 };

/** Stalled cycles, stalls, spans and signals of the lanes by `source:line`. */
export function lineTotals(report: Report, lanes: readonly Lane[]): Map<string, LineTotal> {
    const lines = new Map<number, string>();
    for (const instance of report.instances) {
        const site = report.sites[instance.site];
        if (site) lines.set(instance.number, `${site.source}:${site.line}`);
    }
    const own = new Map<number, LineTotal>();
    const of = (instance: number): LineTotal => {
        let total = own.get(instance);
        if (!total) own.set(instance, (total = { ...NOTHING }));
        return total;
    };
    for (const { row } of lanes) {
        const { start, end, state, instance } = row.spans;
        for (const signal of row.signals.instance) of(signal).signals += 1;
        for (let i = 0; i < start.length; i += 1) {
            const total = of(instance[i]!);
            total.spans += 1;
            if (state[i] !== 1) continue;
            total.cycles += end[i]! - start[i]!;
            total.stalls += 1;
        }
    }
    const found = new Map<string, LineTotal>();
    for (const line of lines.values()) if (!found.has(line)) found.set(line, { ...NOTHING });
    for (const [number, total] of own) {
        const line = found.get(lines.get(number) ?? "");
        if (!line) continue;
        line.cycles += total.cycles;
        line.stalls += total.stalls;
        line.spans += total.spans;
        line.signals += total.signals;
    }
    return found;
}

/** What a line's margin says: stalled cycles and in how many stalls, or else what happened there. */
function inShort({ cycles, stalls, spans, signals }: LineTotal): string {
    if (stalls) return `${figure(cycles)} in ${figure(stalls)}`;
    if (spans) return "no stall";
    return signals ? `${figure(signals)} signals` : "not reached";
}

export class SourcePane {
    private source = -1;
    private totals = new Map<string, LineTotal>();
    private marked: HTMLElement | null = null;
    private pressed = "";

    constructor(
        private readonly root: HTMLElement,
        private readonly files: HTMLSelectElement,
        private readonly report: Report,
        private readonly clicked: (source: number, line: number) => void,
    ) {
        report.sources.forEach((source, index) => files.append(el("option", { value: index }, source.path)));
        files.addEventListener("change", () => this.open(Number(files.value)));
    }

    /** Show the totals of these lanes, in the file where most is stalled. */
    update(lanes: readonly Lane[]): void {
        this.totals = lineTotals(this.report, lanes);
        const sums = this.report.sources.map(() => 0);
        for (const [key, total] of this.totals) sums[Number(key.split(":")[0])]! += total.cycles + 1e-6 * total.spans;
        const most = sums.indexOf(sums.reduce((a, b) => Math.max(a, b), 0));
        this.source = -1;
        this.pressed = "";
        if (this.report.sources.length) this.open(Math.max(most, 0));
        else this.root.replaceChildren(el("p", { class: "faint" }, "The document holds no source."));
    }

    /** Show a line, and mark it as the one that the selection comes from. */
    reveal(source: number, line: number): void {
        if (source !== this.source) this.open(source);
        this.marked?.classList.remove("marked");
        this.marked = this.root.querySelector(`[data-line="${line}"]`);
        this.marked?.classList.add("marked");
        if (!this.marked) return;
        this.centre(this.marked);
    }

    /** Which line's spans are highlighted, as `source:line`; empty: none. */
    press(key: string): void {
        this.pressed = key;
        for (const line of this.root.querySelectorAll<HTMLElement>("button.line")) {
            line.setAttribute("aria-pressed", String(`${this.source}:${line.dataset.line}` === key));
        }
    }

    private open(source: number): void {
        this.source = source;
        this.files.value = String(source);
        this.marked = null;
        const { text, path } = this.report.sources[source]!;
        const own = new Map([...this.totals].filter(([key]) => key.startsWith(`${source}:`)).map(([key, total]) => [Number(key.split(":")[1]), total]));
        const most = Math.max(...[...own.values()].map((total) => total.cycles), 1);
        const lines = text ? text.replace(/\n$/, "").split("\n") : [];
        const rows: HTMLElement[] = [];
        if (text) lines.forEach((content, i) => rows.push(this.row(source, i + 1, content, own.get(i + 1), most)));
        else {
            rows.push(el("p", { class: "faint" }, `The text of ${path} was not kept; these are the lines that stamps know.`));
            const sites = this.report.sites.filter((site) => site.source === source);
            for (const line of [...new Set(sites.map((site) => site.line))].sort((a, b) => a - b)) {
                const content = sites.find((site) => site.line === line)!.text.replace(/\s+/g, " ");
                rows.push(this.row(source, line, content, own.get(line) ?? NOTHING, most));
            }
        }
        this.root.replaceChildren(...rows);
        this.press(this.pressed);
        const hot = [...own].sort((a, b) => b[1].cycles - a[1].cycles)[0]?.[0];
        const element = hot === undefined ? null : this.root.querySelector<HTMLElement>(`[data-line="${hot}"]`);
        if (element) this.centre(element);
    }

    private centre(line: HTMLElement): void {
        this.root.scrollTop = line.offsetTop - (this.root.clientHeight - line.offsetHeight) / 2;
    }

    private row(source: number, number: number, text: string, total: LineTotal | undefined, most: number): HTMLElement {
        const cells = [el("span", { class: "number" }, String(number))];
        if (!total) return el("div", { class: "line", "data-line": number }, ...cells, el("span"), el("code", {}, text || " "));
        const heat = el("span", { class: "heat" }, inShort(total));
        heat.style.setProperty("--heat", `${(100 * total.cycles) / most}%`);
        const label = `Line ${number}: ${figure(total.cycles)} ${unitOf()} stalled in ${figure(total.stalls)} stalls. Highlight its spans. ${text.trim()}`;
        return el(
            "button",
            { class: "line", "data-line": number, "aria-pressed": "false", "aria-label": label, click: () => this.clicked(source, number) },
            ...cells,
            heat,
            el("code", {}, text),
        );
    }
}
