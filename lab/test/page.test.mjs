// Tests the built page: each control, the command's numbers, and no requests to a network.
import assert from "node:assert/strict";
import { execFileSync } from "node:child_process";
import { mkdtempSync, readFileSync, readdirSync, statSync, writeFileSync } from "node:fs";
import { tmpdir } from "node:os";
import path from "node:path";
import test from "node:test";
import { deflateRawSync } from "node:zlib";
import { BENTPIPE, OUT, ROOT, done, picture, preset, rows, toml, withPage } from "./page.mjs";

const folder = mkdtempSync(path.join(tmpdir(), "bentpipe-lab-"));

/** What the command says of a scenario's text. */
function run(text, variant) {
  const file = path.join(folder, "scenario.toml");
  writeFileSync(file, text);
  // It exits with 1 if a transfer did not finish, which is a result, too.
  const out = execFileSync(BENTPIPE, ["run", file, "--json", ...(variant ? ["--variant", variant] : [])], { maxBuffer: 1e9 });
  return JSON.parse(out);
}

/** The first flow's row of the table, as the page writes numbers. */
const table = (page) => page.$$eval("#flows tbody tr:first-child td", (cells) => cells.map((cell) => cell.textContent.replaceAll("\u202f", "")));
const three = (value) => String(Number(value.toPrecision(3)));

test("the page is one file of at most 1.5 MB", () => {
  const page = path.join(OUT, "bentpipe-lab.html");
  assert.ok(statSync(page).size <= 1.5e6);
  // Nothing in it names another file or server, besides names of namespaces.
  const text = readFileSync(page, "utf8");
  assert.doesNotMatch(text, /<(script|link)[^>]+(src|href)=["'](?!data:)/);
});

for (const name of ["geo", "geo-bursts", "leo"]) {
  test(`${name}: the same numbers as \`bentpipe run\``, async () => {
    await withPage(async (page) => {
      await preset(page, name);
      const shown = await rows(page);
      for (const { key, ratio } of shown) {
        const [variant] = key.split("/");
        const [flow] = run(await toml(page), variant).flows;
        await page.click(`[data-key="${key}"]`);
        await page.waitForFunction((key) => document.querySelector(`[data-key="${key}"]`).ariaChecked === "true", key);
        const [transport, , time, , again, timeouts, x] = await table(page);
        assert.deepEqual(
          [transport, time, again, timeouts, x, ratio],
          [variant, `${three(flow.time_s)} s`, String(flow.retransmissions), String(flow.timeouts), flow.x_limit.toFixed(2), `${flow.x_limit.toFixed(2)} × limit`],
        );
      }
      // The text equals the shipped scenario: the command gives the same results for both.
      const { flows, links } = run(await toml(page));
      const shipped = run(readFileSync(path.join(ROOT, "scenarios", `${name}.toml`), "utf8"));
      assert.deepEqual({ flows, links }, { flows: shipped.flows, links: shipped.links });
    });
  });
}

test("each slider changes its value in the scenario, and the result", async () => {
  await withPage(async (page) => {
    for (const [key, typed, expected] of [
      ["rate_bit_s", "5 Mbit/s", /rate = "5 Mbit\/s"/],
      ["delay_s", "120 ms", /delay = "120 ms"/],
      ["queue_s", "200 ms", /limit = "125 kB"/],
      ["loss", "1 %", /loss = "0.01"/],
      ["bytes", "2 MB", /bytes = "2 MB"/],
    ]) {
      const before = (await rows(page))[0].told;
      await page.fill(`#field-${key}`, typed);
      await page.press(`#field-${key}`, "Enter");
      await page.press(`#field-${key}`, "Tab");
      await done(page);
      assert.match(await toml(page), expected);
      assert.notEqual((await rows(page))[0].told, before, key);
      // The range input, by keyboard: each key is a step, after the result of the one before and while it arrives.
      await page.focus(`#range-${key}`);
      const start = Number(await page.inputValue(`#range-${key}`));
      for (let n = 0; n < 12; n++) {
        await page.keyboard.press("ArrowRight", { delay: 8 });
        if (n < 3) await done(page);
      }
      await done(page);
      assert.equal(Number(await page.inputValue(`#range-${key}`)), start + 12, key);
      const value = await page.inputValue(`#field-${key}`);
      await page.$eval(
        `#range-${key}`,
        (range, step) => {
          range.value = step;
          range.dispatchEvent(new Event("input"));
        },
        String(start + 12),
      );
      assert.equal(value, await page.inputValue(`#field-${key}`), key);
      await done(page);
      await page.fill(`#field-${key}`, typed);
      await page.press(`#field-${key}`, "Enter");
    }
    await done(page);
    const { flows } = run(await toml(page), "sack");
    assert.equal((await rows(page))[0].ratio, `${flows[0].x_limit.toFixed(2)} × limit`);
    // With less delay than another link, the slider still belongs to the same link.
    await page.fill("#field-delay_s", "5 ms");
    await page.press("#field-delay_s", "Enter");
    await done(page);
    assert.equal(await page.inputValue("#field-delay_s"), "5 ms");
    assert.match(await toml(page), /name = "sat\/forward"[^[]*delay = "5 ms"/);
    await page.selectOption("#link", "lan/forward");
    await done(page);
    assert.equal(await page.inputValue("#field-delay_s"), "1 ms");
    assert.match(await toml(page), /name = "sat\/forward"[^[]*delay = "5 ms"/, "the other link's value stays");
    await page.fill("#field-rate_bit_s", "fast");
    await page.press("#field-rate_bit_s", "Enter");
    assert.equal(await page.getAttribute("#field-rate_bit_s", "aria-invalid"), "true");
    const before = await toml(page);
    for (const [key, typed, limit] of [
      ["rate_bit_s", "2000 Tbit/s", /to 1\u202f000 Tbit\/s/],
      ["delay_s", "40000000 s", /to 31\u202f536\u202f000 s/],
      ["loss", "101 %", /0 to 100 %/],
      ["queue_s", "1e300 s", /to 31\u202f536\u202f000 s/],
      ["bytes", "1001 TB", /to 1\u202f000 TB/],
    ]) {
      await page.fill(`#field-${key}`, typed);
      await page.press(`#field-${key}`, "Enter");
      assert.equal(await page.getAttribute(`#field-${key}`, "aria-invalid"), "true", key);
      assert.match(await page.textContent(`#hint-${key}`), limit, key);
    }
    await done(page);
    assert.equal(await toml(page), before, "none of them is used");
  });
});

test("transports and gateways: rows come and go, six at once, the last stays", async () => {
  await withPage(async (page) => {
    assert.deepEqual((await rows(page)).map(({ key }) => key), ["sack/plain", "cubic/plain", "newreno/plain"]);
    for (const name of ["tahoe", "reno", "rack"]) await page.click(`#variants [data-key="${name}"]`), await done(page);
    assert.equal((await rows(page)).length, 6);
    assert.ok(await page.isDisabled('#variants [data-key="burst"]'));
    for (const name of ["tahoe", "reno", "rack", "cubic", "newreno", "sack"]) await page.click(`#variants [data-key="${name}"]`), await done(page);
    assert.deepEqual((await rows(page)).map(({ key }) => key), ["sack/plain"]);
    for (const name of ["uplink", "link", "split"]) await page.click(`#systems [data-key="${name}"]`), await done(page);
    const all = await rows(page);
    assert.deepEqual(all.map(({ key }) => key), ["sack/plain", "sack/uplink", "sack/link", "sack/split"]);
    // The limits with and without gateways differ, so the page names the case whose limit it shows.
    assert.match(await page.textContent("#limit"), /^limit with sack: /);
    const split = all.find(({ key }) => key === "sack/split");
    assert.ok(Number.parseFloat(split.ratio) < Number.parseFloat(all[0].ratio), "a gateway helps here");
    await page.click('[data-key="sack/uplink"]');
    assert.match(await page.textContent("#f-sequence .legend"), /leg gateway → client/);
    await picture(page, "gateways");
  });
});

test("fades: drawn by hand, moved, removed, and entered as numbers", async () => {
  await withPage(async (page) => {
    const box = await page.locator("#ribbon").boundingBox();
    const at = (part) => [box.x + 62 + part * (box.width - 76), box.y + box.height / 2];
    await page.mouse.move(...at(0.2));
    await page.mouse.down();
    await page.mouse.move(...at(0.25), { steps: 8 });
    await page.mouse.up();
    await done(page);
    const schedule = async () => /schedule = (\[\[.*\]\])/.exec(await toml(page))?.[1];
    const first = await schedule();
    assert.ok(first, "the scenario has the fade");
    assert.ok((await page.textContent("#fade-note")).startsWith("1 fade"));
    await picture(page, "fade");
    await page.locator("#ribbon").focus();
    await page.keyboard.press("ArrowDown");
    await page.keyboard.press("ArrowRight");
    await done(page);
    assert.notEqual(await schedule(), first, "moved");
    await page.keyboard.press("Enter");
    await done(page);
    assert.ok((await page.textContent("#fade-note")).startsWith("2 fades"));
    await page.keyboard.press("Delete");
    await done(page);
    assert.ok((await page.textContent("#fade-note")).startsWith("1 fade"));
    await page.click(".ribbon summary");
    await page.fill("#fades [data-what=start]", "2");
    await page.press("#fades [data-what=start]", "Tab");
    await page.fill("#fades [data-what=length]", "0.5");
    await page.press("#fades [data-what=length]", "Tab");
    await done(page);
    assert.equal(await schedule(), '[["2 s", "500 ms"]]');
    const { flows } = run(await toml(page), "sack");
    assert.equal((await rows(page))[0].ratio, `${flows[0].x_limit.toFixed(2)} × limit`);
    await page.click("#add-fade");
    await done(page);
    await page.click("#clear-fades");
    await done(page);
    assert.equal(await schedule(), undefined);
  });
});

test("seed and flow", async () => {
  await withPage(async (page) => {
    await preset(page, "geo-bursts");
    const before = await rows(page);
    await page.click("#next-seed");
    await done(page);
    assert.match(await toml(page), /^seed = 2$/m);
    assert.notDeepEqual(await rows(page), before);
    await page.fill("#seed", "1");
    await page.press("#seed", "Enter");
    await done(page);
    assert.deepEqual((await rows(page)).map(({ ratio }) => ratio), before.map(({ ratio }) => ratio));
    // The largest seeds keep their digits, and 0 follows the largest.
    await page.fill("#seed", "18446744073709551614");
    await page.press("#seed", "Enter");
    for (const seed of ["18446744073709551614", "18446744073709551615", "0"]) {
      await done(page);
      assert.match(await toml(page), new RegExp(`^seed = "?${seed}"?$`, "m"));
      await page.click("#next-seed");
      await done(page);
    }
    await preset(page, "transat-four-flows");
    await page.selectOption("#flow", "2");
    await done(page);
    const { flows } = run(await toml(page), "sack");
    assert.equal((await rows(page)).find(({ key }) => key === "sack/plain").ratio, `${flows[2].x_limit.toFixed(2)} × limit`);
  });
});

test("text: typed mistakes are shown as the command prints them, a correct text runs", async () => {
  await withPage(async (page) => {
    await page.click("#text summary");
    const text = await toml(page);
    await page.fill("#toml", text.replaceAll("delay", "dealy"));
    await page.waitForFunction(() => document.body.dataset.state === "refused");
    assert.match(await page.textContent("#error"), /did you mean `delay`\?/);
    await page.fill("#toml", text.replaceAll('"279 ms"', '"79 ms"'));
    await page.waitForFunction(() => document.body.dataset.state === "done");
    assert.ok(await page.isHidden("#error"));
    assert.equal(await page.inputValue("#field-delay_s"), "79 ms");
    const file = path.join(folder, "mine.toml");
    writeFileSync(file, text.replaceAll('"279 ms"', '"55 ms"'));
    await page.setInputFiles("#file", file);
    await page.waitForFunction(() => document.querySelector("#field-delay_s").value === "55 ms");
    await done(page);
  });
});

test("zoom: buttons, dragging, the whole again", async () => {
  await withPage(async (page) => {
    const view = () => page.textContent("#view");
    const whole = await view();
    await page.click("#zoom-in");
    await done(page);
    assert.notEqual(await view(), whole);
    await page.click("#earlier");
    await done(page);
    await page.click("#later");
    await done(page);
    await page.click("#zoom-out");
    await done(page);
    await page.mouse.move(0, 0);
    assert.equal(await view(), whole);
    const box = await page.locator("#f-sequence .u-over").boundingBox();
    await page.mouse.move(box.x + box.width * 0.3, box.y + 80);
    await page.mouse.down();
    await page.mouse.move(box.x + box.width * 0.4, box.y + 90, { steps: 6 });
    await page.mouse.up();
    await done(page);
    assert.equal(await page.isDisabled("#zoom-all"), false);
    await picture(page, "zoom");
    await page.click("#zoom-all");
    await done(page);
    await page.mouse.move(0, 0);
    assert.equal(await view(), whole);
  });
});

test("a link is a whole experiment, and `bentpipe lab` makes one", async () => {
  let shared;
  let expected;
  await withPage(async (page) => {
    await preset(page, "leo");
    await page.fill("#field-delay_s", "33 ms");
    await page.press("#field-delay_s", "Enter");
    await done(page);
    await page.waitForFunction(() => location.hash.startsWith("#lab="));
    await page.waitForTimeout(400);
    [shared, expected] = [new URL(page.url()).hash, await rows(page)];
    const context = page.context();
    await context.grantPermissions(["clipboard-read", "clipboard-write"]);
    await page.click("#copy-toml");
    assert.equal(await page.evaluate(() => navigator.clipboard.readText()), await toml(page));
    await page.click("#copy-link");
    await page.waitForTimeout(200);
    assert.ok((await page.evaluate(() => navigator.clipboard.readText())).includes("#lab="));
  });
  await withPage(async (page) => assert.deepEqual(await rows(page), expected), { fragment: shared });
  const page = path.join(OUT, "bentpipe-lab.html");
  const address = execFileSync(BENTPIPE, ["lab", "geo-bursts", "--set", "links.sat.delay=40 ms", "--page", page, "--print"], { encoding: "utf8" });
  const { hash } = new URL(address.trim());
  await withPage(
    async (page) => {
      assert.equal(await page.inputValue("#field-delay_s"), "40 ms");
      assert.match(await toml(page), /^name = "geo-bursts"$/m);
      assert.deepEqual((await rows(page)).map(({ key }) => key), ["sack/plain"]);
    },
    { fragment: hash },
  );
});

test("a link that cannot be used says why, and another scenario can be chosen", async () => {
  const wrong = { toml: readFileSync(path.join(ROOT, "scenarios", "geo.toml"), "utf8"), variants: "sack" };
  for (const [fragment, why] of [
    ["#lab=1ZXBbts", /the link was cut off or changed/],
    ["#lab=%", /the link was cut off or changed/],
    [`#lab=${deflateRawSync(JSON.stringify(wrong)).toString("base64url")}`, /its `variants` are not a list of texts/],
  ]) {
    await withPage(
      async (page) => {
        assert.match(await page.textContent("#error"), why, fragment);
        assert.ok(await page.isVisible("#error"));
        await preset(page, "leo");
        assert.ok(!(await page.isVisible("#error")) && (await rows(page)).length > 0, fragment);
      },
      { fragment },
    );
  }
});

test("a seed that is no whole number is marked and not used", async () => {
  await withPage(async (page) => {
    for (const seed of ["-5", "1.5", "1e30", "18446744073709551616", ""]) {
      await page.fill("#seed", seed);
      await page.press("#seed", "Enter");
      await done(page);
      assert.equal(await page.getAttribute("#seed", "aria-invalid"), "true", seed);
      assert.match(await toml(page), /^seed = 1$/m);
      assert.ok(!(await page.isVisible("#error")), seed);
      await page.focus("#next-seed");
      assert.equal(await page.inputValue("#seed"), "1", seed);
    }
  });
});

test("every shipped scenario runs, and is drawn", async () => {
  await withPage(async (page) => {
    const names = await page.$$eval("#preset option", (all) => all.map((option) => option.value).filter(Boolean));
    // The page has no QUIC.
    const isQuic = (file) => /^type = "quic"$/m.test(readFileSync(path.join(ROOT, "scenarios", file), "utf8"));
    const shipped = readdirSync(path.join(ROOT, "scenarios")).filter((file) => file.endsWith(".toml") && !isQuic(file));
    assert.deepEqual([...names].sort(), shipped.map((file) => file.replace(/\.toml$/, "")).sort());
    for (const name of names.filter((name) => !name.startsWith("acts"))) {
      await preset(page, name);
      assert.equal(await page.getAttribute("body", "data-state"), "done", name);
      assert.match((await rows(page))[0].ratio, /× limit|–/, name);
    }
  });
});

test("for a screen reader: names, a live summary, words for plots; by the keyboard", async () => {
  await withPage(async (page) => {
    const nameless = await page.$$eval("button, input, select, textarea", (all) =>
      all.filter((one) => !one.ariaLabel && !one.textContent.trim() && !one.labels?.length && !one.getAttribute("aria-labelledby")).map((one) => one.outerHTML),
    );
    assert.deepEqual(nameless, []);
    await page.waitForFunction(() => /sack: .* times the limit/.test(document.querySelector("#live").textContent));
    for (const figure of ["sequence", "cwnd", "queue", "rate"]) {
      assert.match(await page.getAttribute(`#f-${figure} .plot`, "aria-label"), /sack/);
    }
    await page.focus("#bars [aria-checked=true]");
    await page.keyboard.press("ArrowDown");
    assert.equal((await rows(page)).findIndex(({ chosen }) => chosen), 1);
    assert.match(await page.getAttribute("#f-sequence .plot", "aria-label"), /cubic/);
  });
});

test("light, dark, and on a telephone", async () => {
  await withPage(async (page) => picture(page, "light"));
  const dark = (page) => page.evaluate(() => getComputedStyle(document.body).backgroundColor);
  await withPage(
    async (page) => {
      await picture(page, "dark");
      const before = await dark(page);
      await page.click("#theme");
      assert.notEqual(await dark(page), before, "light against the system");
    },
    { colorScheme: "dark" },
  );
  await withPage(
    async (page) => {
      await picture(page, "telephone");
      assert.ok(await page.evaluate(() => document.documentElement.scrollWidth <= innerWidth), "nothing is wider than the screen");
    },
    { viewport: { width: 375, height: 800 }, deviceScaleFactor: 2, isMobile: true, hasTouch: true },
  );
});
