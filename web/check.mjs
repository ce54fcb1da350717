// SPDX-License-Identifier: Apache-2.0
// Fails unless the checked-in page is what the sources build, byte for byte, and the lock file names no host.

import { existsSync, readFileSync } from "node:fs";
import { page } from "./build.mjs";

const target = process.argv[2];
const found = existsSync(target) ? readFileSync(target, "utf8") : "";
const built = await page();
const problems = [];
if (found !== built) {
    let at = 0;
    while (at < found.length && found[at] === built[at]) at += 1;
    problems.push(
        `${target} is not what web/ builds: ${found.length} characters, built ${built.length}, first different at ${at}.\n` +
            "Run `make web` and commit the result.",
    );
}
const hosts = readFileSync(new URL("package-lock.json", import.meta.url), "utf8").match(/\bhttps?:\/\/[^"\s]+/g);
if (hosts) problems.push(`web/package-lock.json names a host (${hosts[0]}); npm must run with web/.npmrc.`);
if (problems.length) {
    console.error(problems.join("\n"));
    process.exit(1);
}
console.log(`${target} matches web/ (${Buffer.byteLength(built)} bytes)`);
