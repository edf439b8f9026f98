// Tests what the page takes from an address, which may come from anybody.
import assert from "node:assert/strict";
import { readFileSync } from "node:fs";
import test from "node:test";
import { fileURLToPath } from "node:url";
import { deflateRawSync } from "node:zlib";
import { transformWithEsbuild } from "vite";

const source = fileURLToPath(new URL("../src/share.ts", import.meta.url));
const { code } = await transformWithEsbuild(readFileSync(source, "utf8"), source);
const { fromFragment, toFragment } = await import(`data:text/javascript,${encodeURIComponent(code)}`);

const packed = (text) => `#lab=${deflateRawSync(text).toString("base64url")}`;
const link = (value) => packed(JSON.stringify(value));

test("a link gives back what was shared", async () => {
  const shared = { toml: "name = \"ü\"\n", variants: ["sack", "cubic"], systems: ["plain", "split"], flow: 2, link: "sat/forward" };
  assert.deepEqual(await fromFragment(await toFragment(shared)), shared);
  assert.deepEqual(await fromFragment(await toFragment({ toml: "" })), { toml: "" });
  assert.equal(await fromFragment("#other"), undefined);
  // What the page does not know is left out; a name that is there twice would be two rows with one key.
  assert.deepEqual(await fromFragment(link({ toml: "", knobs: { seed: 1 }, variants: ["sack", "sack"] })), { toml: "", variants: ["sack"] });
});

test("a link with a value of another kind says which", async () => {
  for (const [value, expected] of [
    [{}, "its `toml` is not a text"],
    [{ toml: 1 }, "its `toml` is not a text"],
    [{ toml: "", variants: "sack" }, "its `variants` are not a list of texts"],
    [{ toml: "", variants: { length: 1, 0: "sack" } }, "its `variants` are not a list of texts"],
    [{ toml: "", variants: [["sack"]] }, "its `variants` are not a list of texts"],
    [{ toml: "", systems: "plain" }, "its `systems` are not a list of texts"],
    [{ toml: "", systems: [null] }, "its `systems` are not a list of texts"],
    [{ toml: "", flow: "1" }, "its `flow` is not a whole number from 0"],
    [{ toml: "", flow: -1 }, "its `flow` is not a whole number from 0"],
    [{ toml: "", flow: 1.5 }, "its `flow` is not a whole number from 0"],
    [{ toml: "", flow: 1e300 }, "its `flow` is not a whole number from 0"],
    [{ toml: "", link: 3 }, "its `link` is not a text"],
  ]) {
    assert.deepEqual(await fromFragment(link(value)), { refused: expected }, JSON.stringify(value));
  }
});

test("a link that is no experiment is damaged", async () => {
  for (const fragment of ["#lab=", "#lab=%", "#lab=1ZXBbts", link(null), link([]), link("text"), packed("{"), packed(Buffer.from('{"toml":"\xff"}', "latin1"))]) {
    assert.deepEqual(await fromFragment(fragment), { refused: "the link was cut off or changed" }, fragment);
  }
});

test("a link is as long as its maximum at most, packed and unpacked", async () => {
  const tooLong = { refused: "the experiment is longer than 4 MB, the maximum for a link" };
  // 1 GB from 1 MB: it is not unpacked to its end.
  const bomb = packed(Buffer.alloc(1 << 30, 0x20));
  assert.ok(bomb.length < 1 << 21);
  const before = process.memoryUsage().arrayBuffers;
  assert.deepEqual(await fromFragment(bomb), tooLong);
  assert.ok(process.memoryUsage().arrayBuffers - before < 64e6, "little of it was in memory");
  assert.deepEqual(await fromFragment(`#lab=${"a".repeat(1 << 21)}`), tooLong);
  // The page makes no link that it would not take.
  const whole = (length) => ({ toml: "a".repeat(length) });
  const around = JSON.stringify({ toml: "" }).length;
  assert.deepEqual(await fromFragment(await toFragment(whole(4e6 - around))), whole(4e6 - around));
  assert.equal(await toFragment(whole(4e6 - around + 1)), undefined);
  // Random letters pack to three quarters of their length, which base64 takes back.
  let state = 1;
  const random = Array.from({ length: 3e6 }, () => String.fromCharCode(48 + ((state = (state * 48271) % 2147483647) % 64))).join("");
  assert.equal(await toFragment({ toml: random }), undefined);
});
