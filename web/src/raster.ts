// SPDX-License-Identifier: Apache-2.0
/** Strips as pixels. A far view is thousands of columns: writing pixels costs the same however many spans they hold. */

import { paint, shares, type Painter } from "./detail.ts";
import type { Strip, Sum } from "./lanes.ts";
import { CATEGORIES, FIRST_STALL, HELD, PASSED } from "./names.ts";
import type { Range } from "./scale.ts";
import { HATCHES, mixed, pixel, rgb, type Palette, type RGB } from "./theme.ts";

/** A hatching as pixels: `size` squared, repeating without a seam. */
interface Tile {
    readonly size: number;
    readonly pixels: Uint32Array;
    readonly edge: number;
}

/** All colours of one palette as pixels. `dimmed` ones are for what a highlight leaves out. */
export interface Inks {
    readonly sheet: number;
    readonly untracked: number;
    readonly pass: number;
    readonly roles: readonly number[];
    readonly joints: readonly number[];
    /** By category from FIRST_STALL on. */
    readonly tiles: readonly Tile[];
}

const DIMMED = 0.16;
/** What is left of the colour of a stall that may be none. */
const DROWNED = 0.4;

export function inksOf(palette: Palette, density: number, isDimmed: boolean): Inks {
    const sheet = rgb(palette.sheet);
    const part = isDimmed ? DIMMED : 1;
    const ground = rgb(palette.untracked);
    const ink = (color: string, share = 1): RGB => mixed(mixed(rgb(color), sheet, share), ground, part);
    return {
        sheet: pixel(sheet),
        untracked: pixel(ground),
        pass: pixel(ink(palette.pass)),
        roles: palette.roles.map((color) => pixel(ink(color))),
        joints: palette.roles.map((color) => pixel(ink(color, 0.62))),
        tiles: [1, DROWNED].flatMap((share) =>
            palette.stalls.map((color, index) => tileOf(HATCHES[index]!, ink(color, share), ink(color, 0.26 * share), density)),
        ),
    };
}

function tileOf(hatch: (typeof HATCHES)[number], line: RGB, ground: RGB, density: number): Tile {
    const size = Math.round(hatch.gap * density);
    const canvas = new OffscreenCanvas(size, size);
    const pen = canvas.getContext("2d", { willReadFrequently: true })!;
    pen.fillStyle = `rgb(${ground.join(",")})`;
    pen.fillRect(0, 0, size, size);
    pen.strokeStyle = `rgb(${line.join(",")})`;
    pen.lineWidth = size * (hatch.angles.length > 1 ? 0.26 : 0.36);
    pen.beginPath();
    for (const angle of hatch.angles) {
        for (const shift of [-size, 0, size]) {
            if (angle === 45) stroke(pen, shift - size, 2 * size, shift + 2 * size, -size);
            else if (angle === 135) stroke(pen, shift - size, -size, shift + 2 * size, 2 * size);
            else if (angle === 90) stroke(pen, shift + size / 2, 0, shift + size / 2, size);
            else stroke(pen, 0, shift + size / 2, size, shift + size / 2);
        }
    }
    pen.stroke();
    return { size, pixels: new Uint32Array(pen.getImageData(0, 0, size, size).data.buffer), edge: pixel(line) };
}

function stroke(pen: OffscreenCanvasRenderingContext2D, x0: number, y0: number, x1: number, y1: number): void {
    pen.moveTo(x0, y0);
    pen.lineTo(x1, y1);
}

/** Where a strip is painted: pixel rows `top` to `top + height` of the raster, with work in colour `role`. */
export interface Box {
    readonly top: number;
    readonly height: number;
    readonly role: number;
}

export class Raster {
    readonly image: ImageData;
    private readonly pixels: Uint32Array;

    constructor(
        readonly width: number,
        readonly height: number,
    ) {
        this.image = new ImageData(width, height);
        this.pixels = new Uint32Array(this.image.data.buffer);
    }

    clear(inks: Inks): void {
        this.pixels.fill(inks.sheet);
    }

    /** The faint ground of a warp's life, between two pixel columns. */
    ground(box: Box, from: number, to: number, inks: Inks): void {
        this.rect(Math.max(Math.floor(from), 0), Math.min(Math.ceil(to), this.width), box.top, box.top + box.height, inks.untracked);
    }

    /** Paint a strip; `seen` hears of every run, for labels. Returns the number of runs and mixtures. */
    strip(strip: Strip, range: Range, box: Box, inks: Inks, seen?: Painter["run"]): number {
        let drawn = 0;
        paint(strip, range, this.width, {
            run: (from, to, category, piece) => {
                drawn += 1;
                this.run(box, from, to, category, inks);
                seen?.(from, to, category, piece);
            },
            mix: (at, parts) => {
                drawn += 1;
                this.mix(box, at, parts, inks);
            },
        });
        return drawn;
    }

    /** Paint several strips of one role as one: columns show the share of each state over all of them. */
    merged(sums: readonly (readonly Sum[])[], count: number, range: Range, box: Box, inks: Inks): number {
        let drawn = 0;
        shares(sums, count, range, this.width, {
            run: () => undefined,
            mix: (at, parts) => {
                drawn += 1;
                this.mix(box, at, parts, inks);
            },
        });
        return drawn;
    }

    private run(box: Box, from: number, to: number, category: number, inks: Inks): void {
        const bottom = box.top + box.height;
        if (category === HELD) {
            this.rect(from, to, box.top, bottom, inks.roles[box.role]!);
            if (to - from >= 4) this.rect(to - 1, to, box.top, bottom, inks.joints[box.role]!);
        } else if (category >= FIRST_STALL) {
            this.hatch(from, to, box.top, bottom, inks.tiles[category - FIRST_STALL]!, box.height >= 8);
        }
    }

    /** One column: stalls from the top, work from the bottom, the ground between. A stall takes at least one pixel. */
    private mix(box: Box, at: number, parts: Float32Array, inks: Inks): void {
        let top = box.top;
        let bottom = box.top + box.height;
        for (let category = FIRST_STALL; category < CATEGORIES; category += 1) {
            const part = parts[category]!;
            if (part <= 0) continue;
            const until = Math.min(top + Math.max(Math.round(part * box.height), 1), bottom);
            this.hatch(at, at + 1, top, until, inks.tiles[category - FIRST_STALL]!, false);
            top = until;
        }
        const held = Math.min(Math.round(parts[HELD]! * box.height), bottom - top);
        this.rect(at, at + 1, bottom - held, bottom, inks.roles[box.role]!);
        bottom -= held;
        const passed = Math.min(Math.round(parts[PASSED]! * box.height), bottom - top);
        this.rect(at, at + 1, bottom - passed, bottom, inks.pass);
    }

    private rect(left: number, right: number, top: number, bottom: number, color: number): void {
        for (let y = Math.max(top, 0); y < Math.min(bottom, this.height); y += 1) {
            const line = y * this.width;
            if (right - left === 1) this.pixels[line + left] = color;
            else this.pixels.fill(color, line + left, line + right);
        }
    }

    /** Hatching, or its plain line colour where it is too small for lines to show. A frame sets wide runs apart. */
    private hatch(left: number, right: number, top: number, bottom: number, tile: Tile, isFramed: boolean): void {
        const { pixels, size, edge } = tile;
        const isPlain = bottom - top < 3 && right - left < 5;
        for (let y = Math.max(top, 0); y < Math.min(bottom, this.height); y += 1) {
            const line = y * this.width;
            if (isPlain || (isFramed && (right - left <= 2 || y === top || y === bottom - 1))) {
                this.pixels.fill(edge, line + left, line + right);
                continue;
            }
            const ink = (y % size) * size;
            for (let x = left; x < right; x += 1) this.pixels[line + x] = pixels[ink + (x % size)]!;
            if (isFramed) this.pixels[line + left] = this.pixels[line + right - 1] = edge;
        }
    }
}
