// SPDX-License-Identifier: Apache-2.0
/** The keyboard: letters anywhere outside a field, arrows and Enter on the canvas. */

import type { Controls } from "./controls.ts";

export interface Others {
    search(): void;
    help(): void;
}

/** Key, what it does in words, for the help that the page shows. */
export const HELP: readonly (readonly [string, string])[] = [
    ["wheel, W, S", "zoom in and out"],
    ["A, D, shift + wheel", "move left and right"],
    ["shift + drag, middle button", "move"],
    ["alt + wheel", "scroll the rows"],
    ["drag", "measure cycles and time"],
    ["F", "fit everything"],
    ["click", "select a span; a source line: highlight its spans"],
    ["\u2190 \u2192 \u2191 \u2193", "previous, next span; warp above, below"],
    ["Enter, double click", "zoom to the selected span"],
    ["/", "search; Enter: next match, shift + Enter: previous"],
    ["N, P", "next, previous highlighted span"],
    ["R", "all arrows"],
    ["C", "critical path"],
    ["U", "unfold or fold all roles"],
    ["Esc", "clear measure, highlight, selection"],
];

export function listen(canvas: HTMLCanvasElement, controls: Controls, others: Others): void {
    const anywhere: Readonly<Record<string, () => void>> = {
        w: () => controls.zoom(0.7),
        s: () => controls.zoom(1 / 0.7),
        a: () => controls.pan(-0.2),
        d: () => controls.pan(0.2),
        f: () => controls.fit(),
        r: () => controls.toggleArrows(),
        c: () => controls.togglePath(),
        u: () => controls.toggleRoles(),
        n: () => controls.next(1),
        p: () => controls.next(-1),
        "/": () => others.search(),
        "?": () => others.help(),
        escape: () => controls.escape(),
    };
    const onCanvas: Readonly<Record<string, () => void>> = {
        arrowleft: () => controls.along(-1),
        arrowright: () => controls.along(1),
        arrowup: () => controls.across(-1),
        arrowdown: () => controls.across(1),
        enter: () => controls.close(),
        "+": () => controls.zoom(0.7),
        "-": () => controls.zoom(1 / 0.7),
    };
    document.addEventListener("keydown", (event) => {
        const target = event.target as HTMLElement;
        if (event.ctrlKey || event.metaKey || event.altKey || /^(INPUT|SELECT|TEXTAREA)$/.test(target.tagName)) return;
        const key = event.key.toLowerCase();
        const action = anywhere[key] ?? (target === canvas ? onCanvas[key] : undefined);
        if (!action) return;
        event.preventDefault();
        action();
    });
}
