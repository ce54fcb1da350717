// SPDX-License-Identifier: Apache-2.0
// Bundles tests/*.test.ts into a temporary folder and runs them with node's own test runner.

import { spawnSync } from "node:child_process";
import { mkdtempSync, readdirSync, rmSync } from "node:fs";
import { tmpdir } from "node:os";
import { dirname, join } from "node:path";
import { fileURLToPath } from "node:url";
import * as esbuild from "esbuild";

const here = dirname(fileURLToPath(import.meta.url));
const folder = mkdtempSync(join(tmpdir(), "autostamp-web-"));
try {
    const tests = readdirSync(join(here, "tests")).filter((name) => name.endsWith(".test.ts"));
    await esbuild.build({
        absWorkingDir: here, bundle: true, entryPoints: tests.map((name) => `tests/${name}`), format: "esm",
        outdir: folder, outExtension: { ".js": ".mjs" }, platform: "node", target: "node20",
    });
    const built = readdirSync(folder).map((name) => join(folder, name));
    const { status } = spawnSync(process.execPath, ["--test", ...built], { stdio: "inherit" });
    process.exitCode = status ?? 1;
} finally {
    rmSync(folder, { recursive: true });
}
