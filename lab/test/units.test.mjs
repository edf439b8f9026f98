// Tests the formats of numbers, without a browser.
import assert from "node:assert/strict";
import { readFileSync } from "node:fs";
import test from "node:test";
import { fileURLToPath } from "node:url";
import { transformWithEsbuild } from "vite";

const source = fileURLToPath(new URL("../src/units.ts", import.meta.url));
const { code } = await transformWithEsbuild(readFileSync(source, "utf8"), source);
const { bytes, nextSeed, rate, readBytes, readRate, readSeed } = await import(`data:text/javascript,${encodeURIComponent(code)}`);

test("a seed keeps all digits, up to 2^64 - 1", () => {
  for (const seed of ["0", "1", "9007199254740993", "18446744073709551615"]) assert.equal(readSeed(seed), seed);
  assert.equal(readSeed(" 007 "), "7");
  for (const wrong of ["", "-1", "1.5", "1e3", "0x10", "1n", "18446744073709551616", "100000000000000000000"]) {
    assert.equal(readSeed(wrong), undefined, wrong);
  }
});

test("the next seed is the next number, and 0 after the largest", () => {
  assert.equal(nextSeed("9007199254740993"), "9007199254740994");
  assert.equal(nextSeed("18446744073709551615"), "0");
});

test("what is shown can be typed", () => {
  for (const value of [64e3, 2.5e6, 1e9, 2e12, 1e15]) assert.equal(readRate(rate(value)), value, rate(value));
  for (const value of [1, 10e3, 1e9, 2e12, 1e15]) assert.equal(readBytes(bytes(value)), value, bytes(value));
  assert.equal(rate(2e12), "2 Tbit/s");
  assert.equal(readRate("2 Tbit"), 2e12);
});
