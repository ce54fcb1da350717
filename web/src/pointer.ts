// SPDX-License-Identifier: Apache-2.0
/** Mouse and pen on the canvas: the wheel zooms, a drag measures, shift and drag or the middle button moves, a click selects. */

import type { Controls } from "./controls.ts";
import { pick } from "./pick.ts";
import { RULER } from "./ruler.ts";
import { toCycles, type Range } from "./scale.ts";
import type { Picked } from "./view.ts";

/** Pixels that a pressed pointer may move and still click. */
const STILL = 3;

interface Drag {
    readonly x: number;
    readonly y: number;
    readonly range: Range;
    readonly isPan: boolean;
    hasMoved: boolean;
}

export function listen(canvas: HTMLCanvasElement, controls: Controls, hovered: (picked: Picked | null, event: PointerEvent) => void): void {
    const { view } = controls;
    let drag: Drag | null = null;
    const at = (event: MouseEvent): { x: number; y: number } => {
        const box = canvas.getBoundingClientRect();
        return { x: event.clientX - box.left, y: event.clientY - box.top };
    };
    const spanAt = (event: MouseEvent): Picked | null => {
        const { x, y } = at(event);
        return y < RULER ? null : pick(view, x, y - RULER + view.scroll);
    };
    canvas.addEventListener("wheel", (event) => wheel(event, controls, at(event).x), { passive: false });
    canvas.addEventListener("pointerdown", (event) => {
        if (event.button > 1) return;
        if (event.button === 1) event.preventDefault();
        canvas.focus({ preventScroll: true });
        canvas.setPointerCapture(event.pointerId);
        drag = { ...at(event), range: view.range, isPan: event.shiftKey || event.button === 1, hasMoved: false };
    });
    canvas.addEventListener("pointermove", (event) => {
        if (!drag) {
            hovered(spanAt(event), event);
            return;
        }
        const { x, y } = at(event);
        if (Math.abs(x - drag.x) > STILL || Math.abs(y - drag.y) > STILL) drag.hasMoved = true;
        if (!drag.hasMoved) return;
        hovered(null, event);
        const perPixel = (drag.range.end - drag.range.start) / view.width;
        if (drag.isPan) {
            const move = (drag.x - x) * perPixel;
            controls.look({ start: drag.range.start + move, end: drag.range.end + move });
            return;
        }
        const ends = [drag.x, Math.min(Math.max(x, 0), view.width)].map((pixel) => toCycles(drag!.range, view.width, pixel));
        controls.measure({ start: Math.min(...ends), end: Math.max(...ends) });
    });
    canvas.addEventListener("pointerup", (event) => {
        const ended = drag;
        drag = null;
        if (!ended || ended.hasMoved || ended.isPan) return;
        if (view.measure) controls.measure(null);
        controls.select(spanAt(event));
    });
    canvas.addEventListener("pointercancel", () => (drag = null));
    canvas.addEventListener("pointerleave", (event) => hovered(null, event));
    canvas.addEventListener("dblclick", () => controls.close());
}

/** Zoom where the pointer is; sideways or with shift: move; with alt: scroll the rows. At full view, out scrolls the page. */
function wheel(event: WheelEvent, controls: Controls, x: number): void {
    const { view } = controls;
    if (event.altKey) return;
    const lines = event.deltaMode === 1 ? 16 : 1;
    const [across, down] = [event.deltaX * lines, event.deltaY * lines];
    if (event.shiftKey || Math.abs(across) > Math.abs(down)) {
        event.preventDefault();
        controls.pan((across || down) / view.width);
        return;
    }
    const isWhole = view.range.start <= view.whole.start && view.range.end >= view.whole.end;
    if (down > 0 && isWhole && !event.ctrlKey) return;
    event.preventDefault();
    controls.zoom(Math.exp(Math.min(Math.max(down, -240), 240) * 0.0025), toCycles(view.range, view.width, x));
}
