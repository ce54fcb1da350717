// SPDX-License-Identifier: Apache-2.0
/** What the reader sees now: the scene, its range of cycles, what is unfolded, selected, highlighted, switched on. */

import { ArrowIndex } from "./arrows.ts";
import type { Report, Row, Timeline } from "./document.ts";
import { chosen, laneOf, type Lane, type Strip } from "./lanes.ts";
import type { Names } from "./names.ts";
import { layOut, type Layout } from "./rows.ts";
import { clamped, type Range } from "./scale.ts";
import type { Scene } from "./scenes.ts";

export interface Picked {
    readonly lane: Lane;
    readonly span: number;
}

/** Spans that stand out while all others are dimmed: of which lanes, which instances. */
export interface Highlight {
    readonly label: string;
    readonly strips: ReadonlyMap<Lane, Strip>;
    readonly count: number;
}

export class View {
    scene: Scene;
    lanes: readonly Lane[] = [];
    layout: Layout = { rows: [], places: new Map(), height: 0 };
    whole: Range = { start: 0, end: 1 };
    range: Range = { start: 0, end: 1 };
    /** Pixels of the drawing area, and how far the rows are scrolled. */
    width = 800;
    height = 300;
    scroll = 0;
    selected: Picked | null = null;
    hovered: Picked | null = null;
    highlight: Highlight | null = null;
    measure: Range | null = null;
    hasAllArrows = false;
    hasPath = false;
    private shown = new Map<number, Lane[]>();
    private readonly unfolded = new Set<string>();
    private readonly known = new Map<string, Lane[]>();
    private readonly indices = new Map<number, ArrowIndex>();

    constructor(
        readonly report: Report,
        readonly names: Names,
        scene: Scene,
    ) {
        this.scene = scene;
        this.show(scene);
    }

    show(scene: Scene): void {
        this.scene = scene;
        this.shown = new Map(scene.timelines.map((number) => [number, this.lanesOf(number, scene.timelines.length > 1)]));
        this.lanes = [...this.shown.values()].flat();
        this.selected = this.hovered = this.highlight = this.measure = null;
        const starts = this.lanes.map((lane) => lane.row.start + lane.offset);
        const ends = this.lanes.map((lane) => lane.row.end + lane.offset);
        const start = starts.length ? starts.reduce((a, b) => Math.min(a, b)) : 0;
        const end = ends.length ? ends.reduce((a, b) => Math.max(a, b)) : 1;
        const margin = Math.max((end - start) * 0.01, 1);
        this.whole = { start: start - margin, end: end + margin };
        this.range = this.whole;
        this.scroll = 0;
        this.lay();
    }

    /** What is added to a timeline's own cycles to place it on the axis of the scene. */
    offset(number: number): number {
        return this.scene.timelines.length > 1 ? this.timeline(number).offset : 0;
    }

    timeline(number: number): Timeline {
        return this.report.timelines[number]!;
    }

    arrows(number: number): ArrowIndex {
        let index = this.indices.get(number);
        if (!index) this.indices.set(number, (index = new ArrowIndex(this.timeline(number))));
        return index;
    }

    laneOf(timeline: number, row: number): Lane | undefined {
        return this.shown.get(timeline)?.[row];
    }

    look(range: Range): void {
        this.range = clamped(range, this.whole);
    }

    isUnfolded(key: string): boolean {
        return this.unfolded.has(key);
    }

    toggle(key: string): void {
        if (!this.unfolded.delete(key)) this.unfolded.add(key);
        this.lay();
    }

    /** Highlight the spans of which `keep` holds; null: none. */
    emphasise(label: string, keep: ((lane: Lane, span: number) => boolean) | null): void {
        if (!keep) {
            this.highlight = null;
            return;
        }
        const strips = new Map<Lane, Strip>();
        let count = 0;
        for (const lane of this.lanes) {
            const strip = chosen(lane.strip, (span) => keep(lane, span));
            const spans = new Set(strip.pieces.span);
            count += spans.size;
            strips.set(lane, strip);
        }
        this.highlight = { label, strips, count };
    }

    private lay(): void {
        const scene = this.scene.timelines.map((number) => [number, this.timeline(number)] as const);
        this.layout = layOut(scene, this.lanes, this.unfolded);
    }

    private lanesOf(number: number, isShared: boolean): Lane[] {
        const key = `${number}/${isShared}`;
        let lanes = this.known.get(key);
        if (!lanes) {
            const timeline = this.timeline(number);
            const offset = isShared ? timeline.offset : 0;
            const made = (rows: readonly Row[], isPredicted: boolean): Lane[] =>
                rows.map((_, index) => laneOf(this.names, timeline, number, index, offset, isPredicted));
            // Measured ones first: arrows and the path name them by their index.
            lanes = [...made(timeline.rows, false), ...made(timeline.prediction?.timeline.rows ?? [], true)];
            this.known.set(key, lanes);
        }
        return lanes;
    }
}
