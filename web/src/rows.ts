// SPDX-License-Identifier: Apache-2.0
/** Where everything stands from top to bottom: CTA, what was predicted before what was measured, role, warp, in the hardware's order. A folded role is one row. */

import type { Timeline } from "./document.ts";
import type { Lane } from "./lanes.ts";

export interface Place {
    readonly top: number;
    readonly height: number;
}

/** `cta`, `group` (predicted, measured) and `role` rows are headings; `folded` holds the strips of all warps of a role, `warp` one. */
export interface RowBox extends Place {
    readonly kind: "cta" | "group" | "role" | "folded" | "warp";
    readonly timeline: number;
    readonly role: string;
    /** Names a role that can be folded. */
    readonly key: string;
    readonly lanes: readonly Lane[];
    readonly isPredicted: boolean;
    /** The strips' part of the row; below it is room for signals. */
    readonly strips: Place;
}

export interface Layout {
    readonly rows: readonly RowBox[];
    readonly places: ReadonlyMap<Lane, Place>;
    readonly height: number;
}

const CTA = 24;
const GROUP = 24;
const ROLE = 20;
const STRIP = 19;
const THIN = 5;
const LEAST = 22;
const MOST = 48;
const IDLE = 8;
export const SIGNALS = 6;
const GAP = 5;
/** Room above the first row. */
const HEAD = 7;

export function keyOf(timeline: number, role: string, isPredicted = false): string {
    return `${timeline}/${isPredicted ? "predicted/" : ""}${role}`;
}

/** True for rows that hold no strips of their own. */
export function isHeading(row: RowBox): boolean {
    return row.kind === "cta" || row.kind === "group" || row.kind === "role";
}

/** Roles in the order of their first warps, each with its lanes in the order of warps. */
export function rolesOf(lanes: readonly Lane[]): [string, Lane[]][] {
    const found = new Map<string, Lane[]>();
    for (const lane of [...lanes].sort((a, b) => a.row.warp - b.row.warp)) {
        const members = found.get(lane.row.role);
        if (members) members.push(lane);
        else found.set(lane.row.role, [lane]);
    }
    return [...found];
}

/** Lay out the lanes of some timelines, given as pairs of number and timeline. */
export function layOut(
    scene: readonly (readonly [number, Timeline])[],
    lanes: readonly Lane[],
    unfolded: ReadonlySet<string>,
): Layout {
    const rows: RowBox[] = [];
    const places = new Map<Lane, Place>();
    let top = HEAD;
    let isPredicted = false;
    const add = (kind: RowBox["kind"], timeline: number, role: string, members: readonly Lane[], body: number, rest: number): void => {
        const strips = { top, height: body };
        rows.push({ kind, timeline, role, key: keyOf(timeline, role, isPredicted), lanes: members, isPredicted, top, height: body + rest, strips });
        members.forEach((lane, i) => {
            const from = Math.round((body * i) / members.length);
            const to = Math.round((body * (i + 1)) / members.length);
            if (kind !== "role") places.set(lane, { top: top + from, height: to - from });
        });
        top += body + rest;
    };
    const roles = (number: number, shown: readonly Lane[]): void => {
        for (const [role, members] of rolesOf(shown)) {
            const isIdle = members.every((lane) => lane.isIdle);
            const rest = isIdle ? GAP : SIGNALS + GAP;
            if (members.length > 1 && unfolded.has(keyOf(number, role, isPredicted))) {
                add("role", number, role, members, ROLE, 0);
                for (const lane of members) add("warp", number, role, [lane], lane.isIdle ? IDLE : STRIP, lane.isIdle ? GAP : rest);
            } else if (members.length > 1) {
                const body = Math.min(Math.max(THIN * members.length, LEAST), MOST);
                add("folded", number, role, members, isIdle ? LEAST : Math.max(body, 2 * members.length), rest);
            } else {
                add("folded", number, role, members, STRIP, rest);
            }
        }
    };
    for (const [number] of scene) {
        if (scene.length > 1) add("cta", number, "", [], CTA, 0);
        const own = lanes.filter((lane) => lane.timeline === number);
        const predicted = own.filter((lane) => lane.isPredicted);
        for (const group of predicted.length ? [true, false] : [false]) {
            isPredicted = group;
            if (predicted.length) add("group", number, "", [], GROUP, 0);
            roles(number, own.filter((lane) => lane.isPredicted === group));
        }
        if (scene.length > 1) top += GAP;
    }
    return { rows, places, height: top };
}

/** The row at a height, or undefined between rows. */
export function rowAt(layout: Layout, y: number): RowBox | undefined {
    return layout.rows.find((row) => y >= row.top && y < row.top + row.height);
}

/** The lane at a height within a row. */
export function laneAt(layout: Layout, y: number): Lane | undefined {
    const row = rowAt(layout, y);
    if (!row || row.kind === "role" || !row.lanes.length) return undefined;
    const part = (y - row.strips.top) / row.strips.height;
    return row.lanes[Math.min(Math.max(Math.floor(part * row.lanes.length), 0), row.lanes.length - 1)];
}
