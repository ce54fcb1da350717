// SPDX-License-Identifier: Apache-2.0
// Builds the report's page: one HTML file with script and style inside, byte for byte the same wherever it is built.

import { readFileSync, writeFileSync } from "node:fs";
import { dirname, join, resolve } from "node:path";
import { fileURLToPath } from "node:url";
import * as esbuild from "esbuild";

const HERE = dirname(fileURLToPath(import.meta.url));

/** The page as text. The document goes where `<!--AUTOSTAMP-DOCUMENT-->` stands, the title where AUTOSTAMP-TITLE does. */
export async function page() {
    const options = { absWorkingDir: HERE, bundle: true, write: false, minify: true, charset: "ascii", legalComments: "none" };
    const script = await esbuild.build({
        ...options, entryPoints: ["src/main.ts"], format: "iife", target: "es2022", tsconfig: "tsconfig.json",
    });
    const style = await esbuild.build({ ...options, entryPoints: ["page.css"], target: "chrome110" });
    const parts = { SCRIPT: script.outputFiles[0].text.trim(), STYLE: style.outputFiles[0].text.trim() };
    if (/<\/script|<!--/i.test(parts.SCRIPT) || /<\/style/i.test(parts.STYLE)) {
        throw new Error("the bundle holds text that would end its own element");
    }
    const shell = readFileSync(join(HERE, "page.html"), "utf8");
    return shell.replace(/<!--AUTOSTAMP-(SCRIPT|STYLE)-->/g, (_, name) =>
        name === "SCRIPT" ? `<script>${parts.SCRIPT}</script>` : `<style>${parts.STYLE}</style>`,
    );
}

if (process.argv[1] && resolve(process.argv[1]) === fileURLToPath(import.meta.url)) {
    const target = process.argv[2];
    if (!target) throw new Error("usage: node build.mjs OUTPUT");
    writeFileSync(target, await page());
    console.log(`wrote ${target}`);
}
