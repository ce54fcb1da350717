// SPDX-License-Identifier: Apache-2.0
/** Reads the document in the page and puts the parts together. */

import { Controls } from "./controls.ts";
import { arrowsOf, describePicked, facts, longestList } from "./details.ts";
import { spoken } from "./describe.ts";
import { inflate, parse, type Report } from "./document.ts";
import { Drawer, type Frame } from "./draw.ts";
import { byId, el } from "./elements.ts";
import { emptiness } from "./emptiness.ts";
import { gutter } from "./gutter.ts";
import { expose } from "./inspect.ts";
import * as keys from "./keys.ts";
import { legend } from "./legend.ts";
import { Names } from "./names.ts";
import * as pointer from "./pointer.ts";
import { RULER } from "./ruler.ts";
import { countIn, figure, unitOf } from "./scale.ts";
import { scenesOf, type Scene } from "./scenes.ts";
import { SourcePane } from "./source.ts";
import { Theme } from "./theme.ts";
import { notes, verdict } from "./verdict.ts";
import { View, type Picked } from "./view.ts";

const GUTTER = 236;

class Page {
    private readonly canvas = byId<HTMLCanvasElement>("canvas");
    private readonly stage = byId("stage");
    private readonly search = byId<HTMLInputElement>("search");
    private readonly names: Names;
    private readonly scenes: readonly Scene[];
    private readonly theme: Theme;
    private readonly view: View;
    private readonly controls: Controls;
    private readonly drawer: Drawer;
    private readonly source: SourcePane;
    private frame: Frame | null = null;
    private isAsked = false;
    private later = 0;

    constructor(private readonly report: Report) {
        countIn(report.unit ?? "cycles");
        this.names = new Names(report);
        this.scenes = scenesOf(report);
        const first = this.scenes[0] ?? { label: "", timelines: [], alignment: "" };
        this.theme = new Theme(() => this.recolour());
        this.view = new View(report, this.names, first);
        this.drawer = new Drawer(this.canvas, this.names);
        this.controls = new Controls(this.view, this.names, {
            redraw: () => this.redraw(),
            relay: () => this.relay(),
            selected: (picked) => this.selected(picked),
            highlighted: (line) => this.source.press(line),
            scene: () => this.open(),
            scrolled: (top) => (this.stage.scrollTop = top),
        });
        this.source = new SourcePane(byId("source"), byId<HTMLSelectElement>("file"), report, (source, line) => this.controls.line(source, line));
        expose(this.view, () => this.frame, () => this.theme.palette.name);
        this.head();
        this.tools();
        this.open();
        this.recolour();
    }

    private head(): void {
        const { title, tool, machine } = this.report;
        const head = byId("title");
        head.textContent = head.title = title;
        const known = ["gpu", "driver", "recorded_at"].map((key) => machine[key]).filter((value) => typeof value === "string" && value);
        byId("machine").textContent = known.join(" \u00b7 ");
        byId("footer").textContent = `Written by ${tool}. Nothing is loaded from the network.`;
        const select = byId<HTMLSelectElement>("scene");
        this.scenes.forEach((scene, index) => select.append(el("option", { value: index }, scene.label)));
        byId("scene-label").hidden = this.scenes.length < 2;
        select.addEventListener("change", () => this.controls.show(this.scenes[Number(select.value)]!));
        byId("theme").addEventListener("click", () => {
            this.theme.toggle();
            this.recolour();
        });
    }

    private tools(): void {
        const on = (id: string, action: () => void): void => byId(id).addEventListener("click", action);
        on("fit", () => this.controls.fit());
        on("unfold", () => this.controls.toggleRoles());
        on("arrows", () => this.controls.toggleArrows());
        on("path", () => this.controls.togglePath());
        const help = (): void => {
            const list = byId("keys");
            list.hidden = !list.hidden;
            byId("help").setAttribute("aria-expanded", String(!list.hidden));
        };
        on("help", help);
        byId("keys").append(...keys.HELP.map(([key, does]) => el("div", {}, el("dt", {}, key), el("dd", {}, does))));
        this.search.addEventListener("input", () => this.controls.search(this.search.value));
        this.search.addEventListener("keydown", (event) => {
            if (event.key === "Enter") this.controls.next(event.shiftKey ? -1 : 1);
            else if (event.key === "Escape") {
                this.search.value = "";
                this.controls.search("");
                this.canvas.focus({ preventScroll: true });
            }
        });
        keys.listen(this.canvas, this.controls, { search: () => this.search.select(), help });
        pointer.listen(this.canvas, this.controls, (picked, event) => this.hovered(picked, event));
        this.stage.addEventListener("scroll", () => {
            this.view.scroll = this.stage.scrollTop;
            this.redraw();
        });
        new ResizeObserver(() => this.resize()).observe(this.stage);
    }

    /** Show the view's scene from scratch. */
    private open(): void {
        const { view, report, names } = this;
        const index = this.scenes.indexOf(view.scene);
        byId<HTMLSelectElement>("scene").value = String(index);
        byId("notes").replaceChildren(...notes(report, view.scene));
        const links = {
            line: (instance: number) => this.line(instance),
            timeline: (number: number) => this.controls.show(this.scenes.find(({ timelines }) => timelines.length === 1 && timelines[0] === number)!),
        };
        byId("verdict").replaceChildren(...verdict(report, names, view.scene, links));
        const reason = emptiness(report, view);
        byId("empty").hidden = !reason;
        byId("empty").textContent = reason;
        this.stage.hidden = Boolean(reason);
        this.source.update(view.lanes);
        byId("path").hidden = !view.scene.timelines.some((number) => view.timeline(number).path);
        byId("arrows").hidden = !view.scene.timelines.some((number) => view.timeline(number).arrows.to.length);
        this.selected(null);
        this.stage.style.height = "";
        this.relay();
        this.recolour();
    }

    /** Show an instance's source line and highlight its spans. */
    private line(instance: number): void {
        const site = this.names.site(instance);
        if (!site) return;
        this.source.reveal(site.source, site.line);
        this.controls.line(site.source, site.line);
        byId("timeline").scrollIntoView({ block: "start" });
    }

    private relay(): void {
        const { view } = this;
        const rows = byId("gutter");
        const focused = document.activeElement?.getAttribute("data-key");
        rows.replaceChildren(...gutter(view, this.names, this.theme.palette, (key) => this.controls.toggleRole(key)));
        rows.style.height = `${RULER + view.layout.height}px`;
        if (focused) rows.querySelector<HTMLElement>(`[data-key="${CSS.escape(focused)}"]`)?.focus({ preventScroll: true });
        const most = Math.max(window.innerHeight * 0.62, 220);
        this.stage.style.height = `${Math.min(RULER + view.layout.height + 4, most)}px`;
        const folds = view.layout.rows.filter((row) => row.kind === "folded" && row.lanes.length > 1);
        byId("unfold").textContent = folds.length ? "Unfold all" : "Fold all";
        this.resize();
    }

    private resize(): void {
        this.view.width = Math.max(this.stage.clientWidth - GUTTER, 50);
        this.view.height = Math.max(this.stage.clientHeight, RULER + 20);
        this.canvas.style.width = `${this.view.width}px`;
        this.canvas.style.height = `${this.view.height}px`;
        this.redraw();
    }

    private recolour(): void {
        const { palette } = this.theme;
        byId("theme").textContent = palette.name === "dark" ? "Light" : "Dark";
        byId("legend").replaceChildren(...legend(this.names, this.view, palette));
        this.relay();
    }

    private redraw(): void {
        if (this.isAsked) return;
        this.isAsked = true;
        requestAnimationFrame(() => {
            this.isAsked = false;
            if (this.stage.hidden) return;
            this.frame = this.drawer.draw(this.view, this.theme.palette);
            this.status(this.frame);
        });
    }

    private status(frame: Frame): void {
        const { view } = this;
        byId("arrows").setAttribute("aria-pressed", String(view.hasAllArrows));
        byId("path").setAttribute("aria-pressed", String(view.hasPath));
        const seen = `${figure(view.range.end - view.range.start)} ${unitOf()} in view`;
        const merged = frame.isMerged ? "; spans below a pixel are merged: heights show shares" : "";
        const some = frame.arrows.isSampled ? `; ${figure(frame.arrows.drawn)} of ${figure(frame.arrows.all)} arrows` : "";
        byId("status").textContent = seen + some + merged;
        byId("found").textContent = view.highlight ? `${figure(view.highlight.count)} spans` : "";
        window.clearTimeout(this.later);
        this.later = window.setTimeout(() => {
            byId("longest").replaceChildren(...longestList(view, this.names, (picked) => this.controls.select(picked, true)));
        }, 200);
    }

    private selected(picked: Picked | null): void {
        const details = byId("details");
        byId("tip").hidden = true;
        if (!picked) {
            details.replaceChildren(el("p", { class: "faint" }, "None. Click a span, or move with the arrow keys when the timeline has the focus."));
            byId("spoken").textContent = "";
            return;
        }
        const description = describePicked(this.view, this.names, picked);
        details.replaceChildren(facts(description, arrowsOf(this.view, this.names, picked)));
        byId("spoken").textContent = spoken(description);
        const site = this.names.site(picked.lane.row.spans.instance[picked.span]!);
        if (site) this.source.reveal(site.source, site.line);
    }

    private hovered(picked: Picked | null, event: PointerEvent): void {
        const { view } = this;
        const isSame = picked?.lane === view.hovered?.lane && picked?.span === view.hovered?.span;
        view.hovered = picked;
        const tip = byId("tip");
        // What is selected is described in its pane already; a tooltip would only hide its arrows.
        const isShown = picked !== null && !(picked.lane === view.selected?.lane && picked.span === view.selected.span);
        tip.hidden = !isShown;
        if (picked && isShown) {
            if (!isSame || !tip.hasChildNodes()) tip.replaceChildren(facts(describePicked(view, this.names, picked)));
            const { clientX: x, clientY: y } = event;
            const box = tip.getBoundingClientRect();
            tip.style.left = `${Math.max(Math.min(x + 14, window.innerWidth - box.width - 8), 4)}px`;
            tip.style.top = `${y + 18 + box.height < window.innerHeight ? y + 18 : Math.max(y - box.height - 12, 4)}px`;
        }
        if (!isSame) this.redraw();
    }
}

async function start(): Promise<void> {
    const holder = document.getElementById("autostamp-document");
    if (!holder) throw new Error("the page holds no document");
    new Page(parse(await inflate(holder.textContent ?? "")));
    document.documentElement.dataset.ready = "true";
}

start().catch((error: unknown) => {
    byId("title").textContent = "This report cannot be shown";
    const text = error instanceof Error ? error.message : String(error);
    byId("notes").replaceChildren(el("p", { class: "note", role: "alert" }, el("strong", {}, "Error"), ` ${text}`));
    byId("timeline").hidden = true;
    document.documentElement.dataset.ready = "error";
});
