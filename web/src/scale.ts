// SPDX-License-Identifier: Apache-2.0
/** Cycles to pixels and to words. */

/** What part of the cycle axis is seen: `start` at pixel 0, `end` at pixel `width`. */
export interface Range {
    readonly start: number;
    readonly end: number;
}

/** The closest look: this many cycles across the whole width. */
export const CLOSEST = 16;

export function toPixel(range: Range, width: number, cycles: number): number {
    return ((cycles - range.start) / (range.end - range.start)) * width;
}

export function toCycles(range: Range, width: number, pixel: number): number {
    return range.start + (pixel / width) * (range.end - range.start);
}

/** `range` moved into `whole`; what is longer than it becomes it. */
export function clamped(range: Range, whole: Range): Range {
    const span = Math.min(Math.max(range.end - range.start, CLOSEST), Math.max(whole.end - whole.start, CLOSEST));
    const start = Math.min(Math.max(range.start, whole.start), Math.max(whole.end - span, whole.start));
    return { start, end: start + span };
}

/** `range` scaled by `factor` (below 1: closer) with the cycle `around` staying where it is on the screen. */
export function zoomed(range: Range, factor: number, around: number, whole: Range): Range {
    const span = Math.min(Math.max((range.end - range.start) * factor, CLOSEST), Math.max(whole.end - whole.start, CLOSEST));
    const part = (around - range.start) / (range.end - range.start);
    return clamped({ start: around - part * span, end: around + (1 - part) * span }, whole);
}

export function panned(range: Range, cycles: number, whole: Range): Range {
    return clamped({ start: range.start + cycles, end: range.end + cycles }, whole);
}

/** Round numbers 1, 2 or 5 times a power of ten apart, at most `most` of them in the range. */
export function ticks(range: Range, most: number): number[] {
    const raw = (range.end - range.start) / Math.max(most, 1);
    const power = 10 ** Math.floor(Math.log10(Math.max(raw, 1e-9)));
    const step = Math.max([1, 2, 5, 10].map((factor) => factor * power).find((value) => value >= raw * 0.999) ?? power * 10, 1);
    const found = [];
    for (let tick = Math.ceil(range.start / step) * step; tick <= range.end; tick += step) found.push(tick);
    return found;
}

/** An integer with thousands separators, the same in every locale. */
export function figure(value: number, decimals = 0): string {
    const [whole = "0", part] = Math.abs(value).toFixed(decimals).split(".");
    const grouped = whole.replace(/\B(?=(\d{3})+$)/g, ",");
    const sign = value < 0 && Number(value.toFixed(decimals)) !== 0 ? "\u2212" : "";
    return sign + grouped + (part ? `.${part}` : "");
}

/** Wall time of so many cycles, in ns, µs or ms; empty when the clock is unknown. */
export function time(cycles: number, mhz: number | null): string {
    if (!mhz) return "";
    const ns = (cycles * 1000) / mhz;
    const size = Math.abs(ns);
    if (size < 1e3) return `${figure(ns, size < 100 ? 1 : 0)} ns`;
    return size < 1e6 ? `${figure(ns / 1e3, 2)} \u00b5s` : `${figure(ns / 1e6, 3)} ms`;
}

let unit = "cycles";

/** Name what the document counts in: nanoseconds where its input was stamped with such a timer. */
export function countIn(name: string): void {
    unit = name;
}

/** `cycles`, or what the document counts in instead; the singular for one. */
export function unitOf(count = 2): string {
    return unit === "cycles" && count === 1 ? "cycle" : unit;
}

/** `1,234 cycles (703 ns)`. */
export function duration(cycles: number, mhz: number | null): string {
    const wall = time(cycles, mhz);
    return `${figure(cycles)} ${unitOf(cycles)}${wall ? ` (${wall})` : ""}`;
}

/** A share of 0 to 1 in percent; what is not zero never reads 0. */
export function percent(share: number): string {
    if (share > 0 && share < 0.0005) return "<0.1%";
    return `${(100 * share).toFixed(1)}%`;
}
