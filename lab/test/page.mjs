// The page in headless Chromium, opened as a file. Records every request: only that of the file is allowed.
import { mkdirSync } from "node:fs";
import { fileURLToPath, pathToFileURL } from "node:url";
import path from "node:path";
import { chromium } from "playwright-core";

export const ROOT = fileURLToPath(new URL("../..", import.meta.url));
export const OUT = process.env.OUT ?? path.join(ROOT, "out");
export const PAGE = pathToFileURL(path.join(OUT, "bentpipe-lab.html")).href;
export const BENTPIPE = process.env.BENTPIPE ?? path.join(ROOT, "target/debug/bentpipe");
const CHROMIUM = process.env.CHROMIUM ?? "/usr/bin/chromium";

/** Opens the page and calls `work` with it; afterwards nothing may have gone wrong or out. */
export async function withPage(work, { fragment = "", ...options } = {}) {
  // Chromium has no sandbox for root; the page is our own.
  const browser = await chromium.launch({ executablePath: CHROMIUM, args: process.getuid() === 0 ? ["--no-sandbox"] : [] });
  const bad = [];
  try {
    const context = await browser.newContext({ viewport: { width: 1360, height: 900 }, ...options });
    const page = await context.newPage();
    page.on("request", (request) => {
      if (!/^(file|blob|data):/.test(request.url())) bad.push(`a request to ${request.url()}`);
    });
    page.on("websocket", (socket) => bad.push(`a socket to ${socket.url()}`));
    page.on("pageerror", (error) => bad.push(`an error: ${error}`));
    page.on("console", (message) => ["error", "warning"].includes(message.type()) && bad.push(`on the console: ${message.text()}`));
    await page.goto(PAGE + fragment);
    await done(page);
    await work(page);
  } finally {
    await browser.close();
  }
  if (bad.length > 0) throw new Error(bad.join("\n"));
}

/** Waits until all results have arrived. */
export async function done(page) {
  // A change takes effect in the next frame.
  await page.evaluate(() => new Promise((next) => requestAnimationFrame(() => requestAnimationFrame(next))));
  await page.waitForFunction(() => ["done", "refused"].includes(document.body.dataset.state), null, { timeout: 60_000 });
}

/** The rows of results, as text. */
export async function rows(page) {
  return page.$$eval("#bars .bar", (all) =>
    all.map((row) => ({
      key: row.dataset.key,
      ratio: row.querySelector(".ratio").textContent,
      told: row.querySelector(".told").textContent,
      chosen: row.getAttribute("aria-checked") === "true",
    })),
  );
}

export async function preset(page, name) {
  await page.selectOption("#preset", name);
  await done(page);
}

/** The scenario as the page shows it. */
export const toml = (page) => page.inputValue("#toml");

export async function picture(page, name) {
  mkdirSync(path.join(OUT, "lab"), { recursive: true });
  await page.screenshot({ path: path.join(OUT, "lab", `${name}.png`), fullPage: true });
}
