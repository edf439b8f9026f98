// Tests the engine outside a browser: the same runs as native code, errors as answers, bounded memory.
import assert from "node:assert/strict";
import { readFileSync, readdirSync } from "node:fs";
import path from "node:path";
import test from "node:test";
import { start, world } from "./engine.mjs";
import { ROOT } from "./page.mjs";

const scenario = (name) => readFileSync(path.join(ROOT, "scenarios", `${name}.toml`), "utf8");
// The page has no QUIC.
const isQuic = (name) => /^type = "quic"$/m.test(scenario(name));
const GOLDENS = path.join(ROOT, "crates/bentpipe-sim/tests/it/golden/fingerprints.txt");

test("all shipped scenarios have the fingerprints of native code", () => {
  const { ask } = start();
  const lines = readFileSync(GOLDENS, "utf8").split("\n").filter((line) => line && !line.startsWith("#") && !line.startsWith("scenario"));
  const [names, native, ours] = [new Set(), [], []];
  for (const line of lines) {
    const [name, seed, fingerprint, passages] = line.trim().split(/\s+/);
    // The goldens' other runs are of scenarios that the tests make.
    if (name.includes("/") || !/^\d+$/.test(seed) || isQuic(name)) continue;
    const answer = ask({ op: "fingerprint", world: world(scenario(name), name, { knobs: { seed: Number(seed) } }), limit_s: 120 });
    assert.equal(answer.error, undefined);
    native.push([name, seed, fingerprint, passages]);
    ours.push([name, seed, answer.ok.fingerprint, String(answer.ok.passages)]);
    names.add(name);
  }
  assert.deepEqual(ours, native);
  const shipped = readdirSync(path.join(ROOT, "scenarios")).filter((file) => file.endsWith(".toml"));
  const playable = shipped.map((file) => file.replace(/\.toml$/, "")).filter((name) => !isQuic(name));
  assert.deepEqual([...names].sort(), playable.sort());
});

test("the module needs nothing from outside", () => {
  assert.deepEqual(start().imports, []);
});

test("mistakes are answers, as the command prints them", () => {
  const { ask } = start();
  for (const [request, expected] of [
    ["nonsense", /the request is not understood/],
    [{ op: "look", ...world("name = 3") }, /error: .*\n *--> test.toml:1:8/],
    [{ op: "look", ...world(scenario("geo").replace('delay = "279', 'dealy = "279')) }, /did you mean `delay`/],
    [{ op: "run", world: world(scenario("geo")), variant: "sock", size: [800, 400] }, /sock/],
    [{ op: "run", world: world(scenario("geo")), size: [1, 400] }, /a plot of 1 x 400/],
    [{ op: "run", world: world(scenario("geo")), size: [800, 400], window: [3, 2] }, /a window must end/],
    [{ op: "run", world: world(scenario("split-stp")), size: [800, 400], system: "split" }, /./],
    [{ op: "look", ...world(scenario("geo"), "geo.toml", { knobs: { rate_bit_s: 0 } }) }, /0 bit\/s/],
    [{ op: "look", ...world(scenario("geo"), "geo.toml", { knobs: { fades: [[5, 2], [6, 1]] } }) }, /not overlap/],
    [{ op: "look", ...world(scenario("geo"), "geo.toml", { flow: 7 }) }, /no flow 7/],
  ]) {
    const answer = ask(request);
    assert.equal(answer.ok, undefined, JSON.stringify(request).slice(0, 200));
    assert.match(answer.error, expected);
  }
});

test("traces are read from the request", () => {
  const { ask } = start();
  const text = scenario("geo").replace('[[flows]]', '[[links]]\nname = "x"\nbetween = ["p", "q"]\nrate_trace = "a.trace"\ndelay = "1 ms"\n[[flows]]');
  assert.match(ask({ op: "look", ...world(text) }).error, /`a.trace` cannot be read: a page has no files/);
  assert.equal(ask({ op: "look", ...world(text, "test.toml", { files: { "a.trace": "1\n2\n" } }) }).error, undefined);
});

test("a limit on events ends a run, and memory stays small", () => {
  const { ask, memory } = start();
  const endless = scenario("geo").replace('bytes = "10 MB"', "greedy = true").replace('"600 s"', '"1000000 s"');
  const answer = ask({ op: "run", world: world(endless), size: [1000, 500], max_events: 3e6 });
  assert.equal(answer.ok.stopped, true);
  // A run checks the limit every 2^17 events.
  assert.ok(answer.ok.summary.events <= 3e6 && answer.ok.summary.events > 2.8e6, String(answer.ok.summary.events));
  // 3 million events as points would be 100 MB.
  assert.ok(memory.buffer.byteLength < 24e6, `${memory.buffer.byteLength} B`);
});

test("reducing hides nothing: one loss in 100 MB is seen, and so are all of a flood", () => {
  const { ask } = start();
  const one = scenario("geo").replace('bytes = "10 MB"', 'bytes = "100 MB"').replace('forward.queue = "600 ms"', "forward.drop_list = [40000]");
  const { ok, numbers } = ask({ op: "run", world: world(one), size: [400, 200] });
  const values = ({ at, len }) => [...numbers.subarray(at, at + len)];
  assert.equal(ok.plot.lost_queue.count, 1);
  assert.equal(values(ok.plot.lost_queue.points).length, 2);
  assert.equal(values(ok.plot.dropped_queue).reduce((a, b) => a + b), 1);
  const flood = ask({ op: "run", world: world(scenario("geo"), "geo.toml", { knobs: { loss: 0.02 } }), size: [400, 200] });
  const dropped = flood.ok.summary.links.find(({ name }) => name === "sat/forward").dropped;
  const sum = ({ at, len }) => flood.numbers.subarray(at, at + len).reduce((a, b) => a + b, 0);
  assert.equal(sum(flood.ok.plot.dropped_channel), dropped.channel);
  assert.equal(sum(flood.ok.plot.dropped_queue), dropped.queue_full);
  // The transfer is 10 MB. Duplicates at the receiver add to it.
  assert.ok(sum(flood.ok.plot.arrived_bytes) >= 10e6);
});

test("a window shows the same run, closer", () => {
  const { ask } = start();
  const whole = ask({ op: "run", world: world(scenario("geo")), size: [800, 400] });
  const part = ask({ op: "run", world: world(scenario("geo")), size: [800, 400], window: [5, 6] });
  assert.deepEqual(part.ok.summary, whole.ok.summary);
  assert.equal(part.ok.plot.columns, 800);
  assert.ok(Math.abs(part.ok.plot.column_s - 1 / 800) < 1e-12);
  const { at, len } = part.ok.plot.lost_queue.points;
  const times = part.numbers.subarray(at, at + len).filter((_, n) => n % 2 === 0);
  assert.ok(times.length > 0 && times.every((time) => time >= 5 && time <= 6));
});
