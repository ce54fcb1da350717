// SPDX-License-Identifier: Apache-2.0
/** What instances, barriers and roles are called, and which of the picture's looks each has. */

import type { Barrier, Instance, Report, Site, Timeline } from "./document.ts";

/** What a piece shows: untracked time has none. A stall is FIRST_STALL plus its barrier's look, FIRST_DROWNED where it may be none. */
export const HELD = 1;
export const PASSED = 2;
export const FIRST_STALL = 3;
/** Looks of stalls; barriers beyond them share the last. */
export const STALL_LOOKS = 8;
export const FIRST_DROWNED = FIRST_STALL + STALL_LOOKS;
export const CATEGORIES = FIRST_DROWNED + STALL_LOOKS;

export interface Look {
    /** Index of the hatching, 0 to STALL_LOOKS - 1. */
    readonly index: number;
    readonly name: string;
    readonly stall: number;
}

const SIDES: Readonly<Record<string, string>> = {
    "async-group": "asynchronous group",
    cta: "CTA barrier",
    cluster: "cluster barrier",
    named: "named barrier",
    warp: "warp barrier",
};

/** `load warp 0`; the role alone where it is called by its one warp. */
export function warpOf(role: string, warp: number): string {
    return role === `warp ${warp}` ? role : `${role} warp ${warp}`;
}

const LONGEST_NAME = 96;

/** A kernel's name on a line: of a longer one the beginning. An instance of CUTLASS's templates may have 2,000 characters. */
export function kernelName(name: string): string {
    return name.length <= LONGEST_NAME ? name : `${name.slice(0, LONGEST_NAME - 1)}\u2026`;
}

export class Names {
    private readonly instances = new Map<number, Instance>();
    private readonly barriers = new Map<number, Barrier>();
    private readonly looks = new Map<string, number>();
    private readonly roles = new Map<string, number>();
    /** Barriers by stalled cycles of the whole document, most first. */
    readonly ranked: readonly Look[];

    constructor(private readonly report: Report) {
        for (const instance of report.instances) this.instances.set(instance.number, instance);
        for (const barrier of report.barriers) this.barriers.set(barrier.number, barrier);
        const total = new Map<string, number>();
        for (const instance of report.instances) total.set(this.barrierOf(instance.number), 0);
        for (const timeline of report.timelines) {
            for (const site of timeline.sites) {
                const name = this.barrierOf(site.instance);
                total.set(name, (total.get(name) ?? 0) + site.total);
            }
            for (const role of timeline.roles) if (!this.roles.has(role.role)) this.roles.set(role.role, this.roles.size);
            for (const row of timeline.rows) if (!this.roles.has(row.role)) this.roles.set(row.role, this.roles.size);
        }
        const predicted = report.timelines.flatMap((timeline) => timeline.prediction?.timeline.rows ?? []);
        for (const row of predicted) if (!this.roles.has(row.role)) this.roles.set(row.role, this.roles.size);
        const order = [...total].sort((a, b) => b[1] - a[1] || (a[0] < b[0] ? -1 : 1));
        order.forEach(([name], index) => this.looks.set(name, Math.min(index, STALL_LOOKS - 1)));
        this.ranked = order.map(([name, stall], index) => ({ index: Math.min(index, STALL_LOOKS - 1), name, stall }));
    }

    instance(number: number): Instance | undefined {
        return this.instances.get(number);
    }

    site(number: number): Site | undefined {
        const instance = this.instances.get(number);
        return instance && this.report.sites[instance.site];
    }

    /** The name of barrier `number`, or of `side` where it has none. */
    barrier(number: number, side = ""): string {
        return this.barriers.get(number)?.label || SIDES[side] || side || "unnamed barrier";
    }

    /** `K empty`: the barrier, and its side where it has two, unless its name says it. */
    sided(number: number, side: string): string {
        const name = this.barrier(number, side);
        const isSide = (word: string): boolean => word === "full" || word === "empty";
        const said = (name.toLowerCase().match(/[a-z]+/g) ?? []).filter(isSide);
        return isSide(side) && said.join() !== side ? `${name} ${side}` : name;
    }

    /** The declared depth of an instance's ring, 0: unknown or no ring. */
    stages(number: number): number {
        return this.barriers.get(this.instances.get(number)?.barrier ?? 0)?.stages ?? 0;
    }

    barrierOf(instance: number): string {
        const found = this.instances.get(instance);
        return found ? this.barrier(found.barrier, found.side) : `instance ${instance}`;
    }

    /** `K[1]`, without the stage where it is unknown. */
    staged(instance: number, stage: number): string {
        return stage >= 0 ? `${this.barrierOf(instance)}[${stage}]` : this.barrierOf(instance);
    }

    /** `pipeline_k[1] consumer_wait`. */
    called(instance: number, stage: number): string {
        const method = this.site(instance)?.method ?? "";
        const name = this.staged(instance, stage);
        return method && method !== name ? `${name} ${method}` : name;
    }

    look(barrier: string): number {
        return this.looks.get(barrier) ?? STALL_LOOKS - 1;
    }

    lookOf(instance: number): number {
        return this.look(this.barrierOf(instance));
    }

    /** Number of the role's colour. */
    role(role: string): number {
        return this.roles.get(role) ?? 0;
    }

    /** `path:line` of an instance, empty when the document does not hold its site. */
    where(instance: number): string {
        const site = this.site(instance);
        if (!site) return "";
        const path = this.report.sources[site.source]?.path ?? "?";
        return site.line ? `${path}:${site.line}` : path;
    }

    /** The source text of an instance on one line. */
    text(instance: number): string {
        return (this.site(instance)?.text ?? "").replace(/\s+/g, " ").trim();
    }

    /** `(1, 0, 0) on SM 7`. */
    static place(timeline: Timeline): string {
        const sm = timeline.smid === null || timeline.smid < 0 ? "" : ` on SM ${timeline.smid}`;
        return `(${timeline.block.join(", ")})${sm}`;
    }
}
