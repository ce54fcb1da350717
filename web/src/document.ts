// SPDX-License-Identifier: Apache-2.0
/** The report document: its types, and how it gets from the page's script element into them. Times are SM cycles. */

export type Column = Int32Array;

/** A list of integers as stored: little-endian 32-bit in base64, as differences where `delta` is set. */
export interface StoredColumn {
    readonly n: number;
    readonly i32: string;
    readonly delta?: boolean;
}

export interface Source {
    readonly path: string;
    readonly language: string;
    /** The whole file, empty when it was not kept. */
    readonly text: string;
}

export interface Site {
    readonly source: number;
    readonly line: number;
    readonly column: number;
    readonly text: string;
    readonly method: string;
    readonly kind: string;
    readonly side: string;
}

export interface Instance {
    readonly number: number;
    readonly site: number;
    readonly barrier: number;
    readonly label: string;
    readonly side: string;
    readonly role: string;
    readonly is_async: boolean;
}

export interface Barrier {
    readonly number: number;
    readonly label: string;
    readonly type: string;
    readonly stages: number;
    readonly is_inferred: boolean;
}

/** States of a span, as stored. */
export const ACTIVE = 0;
export const STALL = 1;
export const PASS = 2;

export interface Spans {
    readonly start: Column;
    readonly end: Column;
    readonly state: Column;
    readonly instance: Column;
    readonly visit: Column;
    readonly stage: Column;
    readonly cause: Column;
    /** Only of a run that was joined from replays: the set that recorded the end, and cycles by which place and length may be wrong. */
    readonly replay?: Column;
    readonly error?: Column;
    readonly length_error?: Column;
}

export interface Signals {
    readonly at: Column;
    readonly instance: Column;
    readonly visit: Column;
    readonly stage: Column;
}

export interface Sums {
    readonly span: number;
    readonly stall: number;
    readonly passed: number;
    readonly active: number;
    readonly untracked: number;
}

export interface Row extends Omit<Sums, "span"> {
    readonly warp: number;
    readonly role: string;
    readonly start: number;
    readonly end: number;
    readonly lost: number;
    readonly spans: Spans;
    readonly signals: Signals;
}

export interface RoleSums extends Sums {
    readonly role: string;
    readonly warps: readonly number[];
}

export interface Arrows {
    readonly from_row: Column;
    readonly from: Column;
    readonly from_instance: Column;
    readonly to_row: Column;
    readonly to: Column;
    readonly to_instance: Column;
    readonly to_visit: Column;
    readonly barrier: Column;
    readonly stage: Column;
    readonly use: Column;
    readonly flags: Column;
    /** Only of a joined run: cycles by which the arrow's length may be wrong. */
    readonly error?: Column;
}

export const ASYNC = 1;
export const INFERRED = 2;
export const BETWEEN = 4;
export const UNCERTAIN = 8;

/** True for an arrow of a joined run that may start at another arrival, or whose ends are closer than they may be off by. */
export function isFaint({ flags, error, from, to }: Arrows, arrow: number): boolean {
    const off = error?.[arrow] ?? 0;
    return (flags[arrow]! & UNCERTAIN) > 0 || (off > 0 && off >= Math.abs(to[arrow]! - from[arrow]!));
}

/** True for a wait of a joined run whose length is no more than it may be off by: it may be no stall at all. */
export function isDrowned({ state, start, end, length_error: errors }: Spans, span: number): boolean {
    const error = errors?.[span] ?? 0;
    return state[span] !== ACTIVE && error > 0 && error >= end[span]! - start[span]!;
}

export interface Causes {
    readonly ending: Column;
    readonly arrow: Column;
    readonly awaited: Column;
    readonly in_flight: Column;
    readonly handed_over: Column;
    readonly unexplained: Column;
    readonly binding: Column;
}

export const ENDINGS = ["signal", "transfer", "group", "granted", "unseen", "lost"] as const;

export interface Spread {
    readonly count: number;
    readonly total: number;
    readonly p10: number;
    readonly median: number;
    readonly p90: number;
    readonly longest: number;
}

export interface Blame {
    readonly role: string;
    readonly barrier: number;
    readonly side: string;
    readonly by: string;
    readonly ending: string;
    readonly count: number;
    readonly cycles: number;
    readonly share: number;
}

export interface Steady {
    readonly start: number;
    readonly end: number;
    readonly warp: number;
    readonly role: string;
    readonly instance: number;
    readonly iterations: number;
    readonly marks: Column;
    readonly fill: number;
    readonly drain: number;
    readonly period: Spread;
    readonly roles: readonly RoleSums[];
}

export interface PathParts {
    readonly row: Column;
    readonly kind: Column;
    readonly barrier: Column;
    readonly start: Column;
    readonly end: Column;
}

export const PATH_KINDS = ["active", "untracked", "transfer", "hand-off", "stall"] as const;

export interface CriticalPath {
    readonly parts: PathParts;
    readonly by_role: readonly (readonly [string, number])[];
    readonly by_barrier: readonly (readonly [number, string, number])[];
    readonly slack: readonly { role: string; least: number; median: number; arrows: number }[];
}

export interface SiteStall extends Spread {
    readonly instance: number;
    readonly role: string;
    /** Of a joined run: what the lengths are right to, in the median. */
    readonly error?: number;
}

/** Pairs are [clean, stamped]; a single number is what the document gave. */
export type Figure = number | readonly [number | null, number | null] | null;

export interface Cost {
    readonly time_ratio: Figure;
    readonly registers: Figure;
    readonly spills: Figure;
    readonly schedule_distance: Figure;
    readonly lost: number;
}

/** What the prediction says of the timeline that it stands in, and its simulation on the same axis. */
export interface Prediction {
    readonly headline: string;
    readonly lines: readonly string[];
    /** Cycles of an iteration. */
    readonly period: { readonly predicted: number; readonly measured: number };
    /** One row a role: its warp is no warp of the kernel. Visits are iterations, instance 0 is no wait. */
    readonly timeline: { readonly iterations: number; readonly start: number; readonly end: number; readonly rows: readonly Row[] };
}

export interface Timeline {
    readonly kernel: string;
    readonly trace: number;
    readonly launch: number;
    readonly block: readonly number[];
    readonly smid: number | null;
    readonly wave: number | null;
    readonly offset: number;
    readonly alignment_error: number | null;
    readonly start: number;
    readonly end: number;
    readonly sm_mhz: number | null;
    readonly lost: number;
    readonly verdict: { headline: string; lines: readonly string[] };
    readonly cost: Cost | null;
    readonly roles: readonly RoleSums[];
    readonly rows: readonly Row[];
    readonly arrows: Arrows;
    readonly causes: Causes;
    readonly blame: readonly Blame[];
    readonly steady: Steady | null;
    readonly path: CriticalPath | null;
    readonly overlaps: readonly { first: string; second: string; common: number; busy: number; share: number }[];
    readonly depths: readonly { barrier: number; stages: number; median: number; most: number }[];
    readonly early: readonly { instance: number; role: string; early: number; arrows: number }[];
    readonly sites: readonly SiteStall[];
    readonly prediction?: Prediction | null;
}

/** A set of a joined run. `times` is null where its cost was not measured, `results_equal` where results could not be compared. */
export interface ReplayedSet {
    readonly number: number;
    readonly sites: readonly { readonly key: string; readonly form: string }[];
    readonly anchors: readonly string[];
    readonly launches: number;
    readonly times: { readonly ratio: number; readonly p10: number; readonly p90: number; readonly method: string } | null;
    readonly results_equal: boolean | null;
}

/** How one set's records of one kernel were put onto the reference's axis. Cycles. */
export interface Fit {
    readonly number: number;
    readonly kernel: string;
    readonly anchors: number;
    readonly events: number;
    readonly typical: number;
    readonly typical_p95: number;
    readonly error_median: number;
    readonly error_p90: number;
    readonly shortened: number;
    readonly moved: number;
    readonly guided: number;
}

/** A site that no set has: what it costs alone, in words, and the code of the page that says why it is missing. */
export interface Uncovered {
    readonly key: string;
    readonly cost: string;
    readonly code: string;
}

/** A kind of record beside a stamp that has none: each visit, or only the first or last; `trip` 1 and -1: of the loop's next trip, or the one before. */
export interface Neighbour {
    readonly label: string;
    readonly file: string;
    readonly line: number;
    readonly kind: "enter" | "exit" | "signal";
    readonly which: "each" | "first" | "last";
    readonly trip: number;
}

/** Between which records a stamp lies that no replay recorded. `stamp` is `wait` or `signal`: the whole site. Cycles. */
export interface Bound {
    readonly key: string;
    readonly stamp: "wait" | "signal" | "enter" | "exit";
    readonly role: string;
    readonly warps: readonly number[];
    readonly before: Neighbour;
    readonly after: Neighbour;
    readonly count: number;
    readonly median: number;
    readonly p10: number;
    readonly p90: number;
    readonly error: number;
}

/** What a joined run says of itself. */
export interface Replays {
    readonly reference: number;
    readonly bar: number;
    readonly sets: readonly ReplayedSet[];
    readonly fits: readonly Fit[];
    readonly dropped: readonly { readonly number: number; readonly code: string; readonly detail: string }[];
    readonly uncovered: readonly Uncovered[];
    readonly bounds: readonly Bound[];
    /** Sites whose stamps are not in the usual places, by what was measured of them. */
    readonly forms: readonly { readonly meaning: string; readonly sites: readonly string[] }[];
    readonly notes: readonly string[];
}

export interface Report {
    readonly schema_version: number;
    readonly tool: string;
    readonly title: string;
    /** What all cycles of the document are, where they are something else. */
    readonly unit?: string;
    readonly machine: Readonly<Record<string, unknown>>;
    readonly notes: readonly string[];
    readonly sources: readonly Source[];
    readonly sites: readonly Site[];
    readonly instances: readonly Instance[];
    readonly barriers: readonly Barrier[];
    readonly timelines: readonly Timeline[];
    /** Only of a joined run. */
    readonly replays?: Replays;
}

export const SCHEMA_VERSION = 1;

/** Bytes of base64 text. */
export function bytesOf(base64: string): Uint8Array {
    const text = atob(base64);
    const bytes = new Uint8Array(text.length);
    for (let i = 0; i < text.length; i += 1) bytes[i] = text.charCodeAt(i);
    return bytes;
}

/** The integers of a stored column. Throws where the bytes do not hold as many as it says. */
export function columnOf(stored: StoredColumn): Column {
    const bytes = bytesOf(stored.i32);
    if (bytes.length !== 4 * stored.n) {
        throw new Error(`a column of ${stored.n} integers holds ${bytes.length} bytes`);
    }
    const column = new Int32Array(stored.n);
    const view = new DataView(bytes.buffer);
    let last = 0;
    for (let i = 0; i < stored.n; i += 1) {
        const value = view.getInt32(4 * i, true);
        last = stored.delta ? (last + value) | 0 : value;
        column[i] = last;
    }
    return column;
}

function isColumn(value: object): value is StoredColumn {
    return "i32" in value && "n" in value;
}

/** The same value with every stored column in it, at any depth, turned into integers. */
function decoded(value: unknown): unknown {
    if (Array.isArray(value)) return value.map(decoded);
    if (value === null || typeof value !== "object") return value;
    if (isColumn(value)) return columnOf(value);
    return Object.fromEntries(Object.entries(value).map(([key, part]) => [key, decoded(part)]));
}

/** The document from its JSON text. Throws an Error that says what is wrong with it. */
export function parse(text: string): Report {
    const raw = JSON.parse(text) as { schema_version?: unknown };
    if (raw.schema_version !== SCHEMA_VERSION) {
        throw new Error(`the document has version ${String(raw.schema_version)}, this page reads version ${SCHEMA_VERSION}`);
    }
    return decoded(raw) as Report;
}

/** The JSON text inside gzip'd base64 text. */
export async function inflate(base64: string): Promise<string> {
    const packed = new Blob([bytesOf(base64.trim()) as BlobPart]);
    return new Response(packed.stream().pipeThrough(new DecompressionStream("gzip"))).text();
}
