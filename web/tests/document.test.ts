// SPDX-License-Identifier: Apache-2.0
import assert from "node:assert/strict";
import { test } from "node:test";
import { gzipSync } from "node:zlib";
import { columnOf, inflate, parse } from "../src/document.ts";
import { kernelName } from "../src/names.ts";

/** Little-endian 32-bit integers in base64, by hand. */
const stored = (...bytes: number[]): string => Buffer.from(bytes).toString("base64");

test("a column is little-endian, plain or as differences", () => {
    const i32 = stored(5, 0, 0, 0, 2, 0, 0, 0, 0xfd, 0xff, 0xff, 0xff);
    assert.deepEqual([...columnOf({ n: 3, i32 })], [5, 2, -3]);
    assert.deepEqual([...columnOf({ n: 3, i32, delta: true })], [5, 7, 4]);
});

test("a column of the wrong length is refused", () => {
    assert.throws(() => columnOf({ n: 2, i32: stored(1, 0, 0, 0) }), /a column of 2 integers holds 4 bytes/);
});

test("columns are decoded wherever they lie", () => {
    const text = JSON.stringify({ schema_version: 1, timelines: [{ arrows: { from: { n: 1, i32: stored(9, 0, 0, 0) } }, steady: null }] });
    const report = parse(text);
    assert.deepEqual([...report.timelines[0]!.arrows.from], [9]);
    assert.equal(report.timelines[0]!.steady, null);
});

test("another version is refused", () => {
    assert.throws(() => parse('{"schema_version": 2}'), /version 2, this page reads version 1/);
});

test("the document is gzip in base64, line breaks around it or not", async () => {
    const packed = gzipSync(Buffer.from('{"a": "\u00b5"}')).toString("base64");
    assert.equal(await inflate(`\n${packed}\n`), '{"a": "\u00b5"}');
});

test("a kernel's name is cut where it would fill the page", () => {
    assert.equal(kernelName("flash_fwd"), "flash_fwd");
    assert.equal(kernelName("k".repeat(96)), "k".repeat(96));
    assert.equal(kernelName("k".repeat(97)), `${"k".repeat(95)}\u2026`);
});
