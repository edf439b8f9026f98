// Measures the time from a slider's event to the frame with all plots: `make bench-lab`.
import { done, preset, withPage } from "./page.mjs";

const CHANGES = 60;

/** Milliseconds for each change of the delay's slider. */
async function measure(page) {
  return page.evaluate(async (changes) => {
    const range = document.getElementById("range-delay_s");
    const [min, max] = [Number(range.min), Number(range.max)];
    const frame = () => new Promise((next) => requestAnimationFrame(next));
    const answered = async () => {
      do await frame();
      while (document.body.dataset.state === "running");
      // The drawn frame is visible when the next one begins.
      await frame();
    };
    const times = [];
    for (let n = 0; n < changes; n++) {
      // Back and forth over the upper half, where the whole transfer is simulated.
      const part = 0.5 + 0.5 * (((n * 7) % changes) / changes);
      const began = performance.now();
      range.value = String(min + (max - min) * part);
      range.dispatchEvent(new Event("input", { bubbles: true }));
      await answered();
      times.push(performance.now() - began);
    }
    return times;
  }, CHANGES);
}

const quantile = (sorted, part) => sorted[Math.min(Math.floor(part * sorted.length), sorted.length - 1)];

await withPage(async (page) => {
  await preset(page, "geo");
  const transports = await page.$$eval("#bars .bar", (all) => all.length);
  // Warm-up: the browser compiles the engine's hot parts.
  await measure(page);
  await done(page);
  const times = (await measure(page)).sort((a, b) => a - b);
  const [median, late, last] = [0.5, 0.9, 1].map((part) => quantile(times, part).toFixed(0));
  console.log(`geo, 10 MB by ${transports} transports, ${CHANGES} changes of the delay: median ${median} ms, 90 % ${late} ms, longest ${last} ms`);
});
