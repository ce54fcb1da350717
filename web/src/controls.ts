// SPDX-License-Identifier: Apache-2.0
/** What a reader can do to the view, however it was asked for: pointer, keyboard, button or link. */

import type { Names } from "./names.ts";
import { across, nearest, neighbour } from "./pick.ts";
import { RULER } from "./ruler.ts";
import { panned, toPixel, zoomed, type Range } from "./scale.ts";
import type { Scene } from "./scenes.ts";
import { following, matcher } from "./search.ts";
import type { Picked, View } from "./view.ts";

/** What else on the page follows the view. */
export interface Followers {
    redraw(): void;
    relay(): void;
    selected(picked: Picked | null): void;
    highlighted(line: string): void;
    scene(scene: Scene): void;
    scrolled(top: number): void;
}

export class Controls {
    constructor(
        readonly view: View,
        private readonly names: Names,
        private readonly followers: Followers,
    ) {}

    look(range: Range): void {
        this.view.look(range);
        this.followers.redraw();
    }

    /** Zoom with `around` (cycles; default: the selection, else the middle) staying in its place. */
    zoom(factor: number, around?: number): void {
        const { range, selected } = this.view;
        let centre = (range.start + range.end) / 2;
        if (selected) {
            const at = selected.lane.row.spans.start[selected.span]! + selected.lane.offset;
            if (at >= range.start && at <= range.end) centre = at;
        }
        this.look(zoomed(range, factor, around ?? centre, this.view.whole));
    }

    /** Move by a part of what is seen. */
    pan(part: number): void {
        const { range, whole } = this.view;
        this.look(panned(range, part * (range.end - range.start), whole));
    }

    fit(): void {
        this.look(this.view.whole);
    }

    select(picked: Picked | null, isRevealed = false): void {
        this.view.selected = picked;
        if (picked && isRevealed) this.reveal(picked);
        this.followers.selected(picked);
        this.followers.redraw();
    }

    /** The previous or next span of the selected one's warp, or the first that is in view. */
    along(step: 1 | -1): void {
        const { selected } = this.view;
        this.select(selected ? neighbour(selected, step) : this.first(), true);
    }

    /** The span of the warp above or below, at about the same time. */
    across(step: 1 | -1): void {
        const { selected } = this.view;
        this.select(selected ? across(this.view, selected, step) : this.first(), true);
    }

    /** Show the selected span across a third of the width. */
    close(): void {
        const { selected } = this.view;
        if (!selected) return;
        const { start, end } = selected.lane.row.spans;
        const [from, to] = [start[selected.span]! + selected.lane.offset, end[selected.span]! + selected.lane.offset];
        const margin = Math.max(to - from, 8);
        this.look({ start: from - margin, end: to + margin });
    }

    toggleRole(key: string): void {
        this.view.toggle(key);
        this.followers.relay();
    }

    /** Unfold every role, or fold all where every one is unfolded. */
    toggleRoles(): void {
        const keys = new Set(this.view.layout.rows.filter((row) => row.kind !== "cta" && row.lanes.length > 1 && row.kind !== "warp").map((row) => row.key));
        const isAny = [...keys].some((key) => !this.view.isUnfolded(key));
        for (const key of keys) if (this.view.isUnfolded(key) !== isAny) this.view.toggle(key);
        this.followers.relay();
    }

    toggleArrows(): void {
        this.view.hasAllArrows = !this.view.hasAllArrows;
        this.followers.redraw();
    }

    togglePath(): void {
        this.view.hasPath = !this.view.hasPath;
        this.followers.redraw();
    }

    measure(range: Range | null): void {
        this.view.measure = range;
        this.followers.redraw();
    }

    /** Highlight what a query matches. */
    search(query: string): void {
        const matches = matcher(this.view.report, this.names, query);
        this.view.emphasise(query, matches && ((lane, span) => matches(lane.row.role, lane.row.spans.instance[span]!)));
        this.followers.highlighted("");
        this.followers.redraw();
    }

    /** Select the next highlighted span, or the previous. */
    next(step: 1 | -1): void {
        const { highlight, lanes, selected } = this.view;
        if (highlight) this.select(following(highlight, lanes, selected, step) ?? selected, true);
    }

    /** Highlight the spans of a source line; again: no more. */
    line(source: number, line: number): void {
        const key = `${source}:${line}`;
        const { report } = this.view;
        const chosen = new Set(report.instances.filter((instance) => {
            const site = report.sites[instance.site];
            return site !== undefined && site.source === source && site.line === line;
        }).map((instance) => instance.number));
        const isOn = this.view.highlight?.label === key;
        this.view.emphasise(key, isOn ? null : (lane, span) => chosen.has(lane.row.spans.instance[span]!));
        this.followers.highlighted(isOn ? "" : key);
        this.followers.redraw();
    }

    /** Undo one thing: the measured range, else the highlight, else the selection. */
    escape(): void {
        const { view } = this;
        if (view.measure) this.measure(null);
        else if (view.highlight) {
            view.highlight = null;
            this.followers.highlighted("");
            this.followers.redraw();
        } else this.select(null);
    }

    show(scene: Scene): void {
        this.view.show(scene);
        this.followers.scene(scene);
    }

    private first(): Picked | null {
        for (const lane of this.view.layout.places.keys()) {
            const found = nearest(lane, this.view.range.start - lane.offset);
            if (found) return found;
        }
        return null;
    }

    /** Bring a span into sight with the least movement. */
    private reveal({ lane, span }: Picked): void {
        const { view } = this;
        const { start, end } = lane.row.spans;
        const [from, to] = [start[span]! + lane.offset, end[span]! + lane.offset];
        const size = view.range.end - view.range.start;
        const isShort = to - from < size * 0.9;
        if (isShort && (from < view.range.start || to > view.range.end)) {
            view.look({ start: (from + to - size) / 2, end: (from + to + size) / 2 });
        } else if (!isShort && (to < view.range.start || from > view.range.end)) {
            view.look({ start: from - size * 0.1, end: from + size * 0.9 });
        }
        const pixels = toPixel(view.range, view.width, to) - toPixel(view.range, view.width, from);
        if (pixels < 3) view.look({ start: (from + to) / 2 - (to - from) * view.width / 12, end: (from + to) / 2 + (to - from) * view.width / 12 });
        const place = view.layout.places.get(lane);
        if (!place) return;
        const height = view.height - RULER;
        if (place.top < view.scroll) this.followers.scrolled(Math.max(place.top - 20, 0));
        else if (place.top + place.height > view.scroll + height) this.followers.scrolled(place.top + place.height + 20 - height);
    }
}
