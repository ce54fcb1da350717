// SPDX-License-Identifier: Apache-2.0
/** HTML elements from code; text is always text, never markup. */

type Child = Node | string | null | undefined | false;

export function el<K extends keyof HTMLElementTagNameMap>(
    tag: K,
    attributes: Readonly<Record<string, string | number | boolean | EventListener>> = {},
    ...children: Child[]
): HTMLElementTagNameMap[K] {
    const element = document.createElement(tag);
    for (const [name, value] of Object.entries(attributes)) {
        if (typeof value === "function") element.addEventListener(name, value);
        else if (typeof value === "boolean") element.toggleAttribute(name, value);
        else element.setAttribute(name, String(value));
    }
    element.append(...children.filter((child): child is Node | string => child !== null && child !== undefined && child !== false));
    return element;
}

/** The element of the page with this id. The shell holds all ids that the script asks for. */
export function byId<T extends HTMLElement>(id: string): T {
    const found = document.getElementById(id);
    if (!found) throw new Error(`the page has no element #${id}`);
    return found as T;
}

export interface Heading {
    readonly name: string;
    /** Figures stand at the right. */
    readonly isFigure?: boolean;
    /** Takes the room that the other columns leave; what does not fit shows where the pointer rests. */
    readonly isLong?: boolean;
    /** What the column means, shown where the pointer rests. */
    readonly hint?: string;
}

/** A table with a caption, in a box that scrolls sideways where it must. */
export function table(caption: string, headings: readonly Heading[], rows: readonly (readonly Child[])[]): HTMLElement {
    const side = (index: number): Record<string, string> => (headings[index]?.isFigure ? { class: "figure" } : {});
    const head = headings.map(({ name, hint }, i) => el("th", { scope: "col", ...side(i), ...(hint ? { title: hint } : {}) }, name));
    const long = (index: number, cell: Child): Record<string, string> =>
        headings[index]?.isLong && typeof cell === "string" ? { class: "long", title: cell } : side(index);
    const body = rows.map((cells) => el("tr", {}, ...cells.map((cell, i) => el("td", long(i, cell), cell))));
    return el(
        "div",
        { class: "table" },
        el("table", {}, el("caption", {}, caption), el("thead", {}, el("tr", {}, ...head)), el("tbody", {}, ...body)),
    );
}

/** Several parts of one whole as a bar; `parts` are shares of 0 to 1 with a class each. */
export function bar(parts: readonly (readonly [string, number])[], label: string): HTMLElement {
    const pieces = parts
        .filter(([, share]) => share > 0)
        .map(([name, share]) => {
            const piece = el("span", { class: name });
            piece.style.width = `${Math.min(100 * share, 100)}%`;
            return piece;
        });
    return el("span", { class: "bar", role: "img", "aria-label": label, title: label }, ...pieces);
}
