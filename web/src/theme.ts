// SPDX-License-Identifier: Apache-2.0
/**
 * Colours, light and dark. Work is a solid cool colour, a stall a hatched warm one; hatchings differ in direction too, so
 * that no state and no barrier rests on hue alone. Hues follow Okabe and Ito, "Color Universal Design" (2008).
 */

export type RGB = readonly [number, number, number];

export interface Palette {
    readonly name: "light" | "dark";
    readonly sheet: string;
    readonly untracked: string;
    readonly ink: string;
    readonly faint: string;
    readonly line: string;
    readonly pass: string;
    readonly select: string;
    readonly path: string;
    readonly onRole: string;
    readonly roles: readonly string[];
    readonly stalls: readonly string[];
}

/** How each stall look is hatched: direction of the lines in degrees (two: crossed) and their spacing in pixels. */
export const HATCHES: readonly { angles: readonly number[]; gap: number }[] = [
    { angles: [45], gap: 8 },
    { angles: [135], gap: 8 },
    { angles: [90], gap: 6 },
    { angles: [45, 135], gap: 8 },
    { angles: [0], gap: 5 },
    { angles: [45], gap: 4 },
    { angles: [135], gap: 4 },
    { angles: [0, 90], gap: 6 },
];

const LIGHT: Palette = {
    name: "light",
    sheet: "#ffffff",
    untracked: "#edf0f3",
    ink: "#18212b",
    faint: "#586573",
    line: "#d3dae1",
    pass: "#b9c3cd",
    select: "#000000",
    path: "#000000",
    onRole: "#ffffff",
    roles: ["#0068a8", "#00806a", "#5a4a9c", "#52677a", "#2f93cc", "#66761c"],
    stalls: ["#d55e00", "#dd9a00", "#c2458e", "#8a5a2b", "#a89400", "#a3123a", "#e070a8", "#6e6e6e"],
};

const DARK: Palette = {
    name: "dark",
    sheet: "#11161c",
    untracked: "#1e262f",
    ink: "#e8edf2",
    faint: "#98a6b4",
    line: "#303b46",
    pass: "#55626f",
    select: "#ffffff",
    path: "#ffffff",
    onRole: "#ffffff",
    roles: ["#2f78b5", "#1c8a70", "#7463c8", "#647a8e", "#3f93c9", "#72842a"],
    stalls: ["#ff7b30", "#f6bb34", "#f07fbd", "#c99866", "#e6d94e", "#f4587e", "#f7accf", "#a8a8a8"],
};

export const PALETTES = { light: LIGHT, dark: DARK } as const;

export function rgb(color: string): RGB {
    const value = Number.parseInt(color.slice(1), 16);
    return [value >> 16, (value >> 8) & 255, value & 255];
}

/** `part` of `color` over the rest of `ground`. */
export function mixed(color: RGB, ground: RGB, part: number): RGB {
    return [0, 1, 2].map((i) => Math.round(color[i]! * part + ground[i]! * (1 - part))) as unknown as RGB;
}

/** A colour as one pixel of a little-endian image. */
export function pixel(color: RGB): number {
    return ((255 << 24) | (color[2] << 16) | (color[1] << 8) | color[0]) >>> 0;
}

/** Keeps the page's theme: the reader's choice, else what the system prefers. */
export class Theme {
    private readonly system = matchMedia("(prefers-color-scheme: dark)");
    private choice: Palette["name"] | null = null;

    constructor(changed: () => void) {
        this.system.addEventListener("change", () => {
            this.apply();
            changed();
        });
        this.apply();
    }

    get palette(): Palette {
        return PALETTES[this.choice ?? (this.system.matches ? "dark" : "light")];
    }

    toggle(): void {
        this.choice = this.palette.name === "dark" ? "light" : "dark";
        this.apply();
    }

    private apply(): void {
        document.documentElement.dataset.theme = this.palette.name;
    }
}
