// The four plots over time: content, scale, legend, and text for a screen reader.
import { type Case, values } from "./cases";
import { type Brush, Chart, type Hooks, type Range, type Style, style } from "./chart";
import * as marks from "./marks";
import type { Drawing } from "./protocol";
import { count, number, seconds } from "./units";

/** The content of the plots. */
export interface Scene {
  cases: Case[];
  focus: Case | undefined;
  view: Range;
  fades: [number, number][];
  /** The flow that is drawn. */
  flow: number;
}

/** Max number of averages in the throughput plot. */
const AVERAGES = 120;

interface Key {
  mark: "bar" | "line" | "dash" | "area" | "diamond" | "cross" | "plus" | "shade";
  colour: string;
  text: string;
}

interface Panel {
  figure: HTMLElement;
  chart: Chart;
  top: (scene: Scene) => number;
  bottom?: (scene: Scene) => number;
  legend: (scene: Scene, style: Style) => Key[];
  words: (scene: Scene) => string;
}

function most(one: Case, drawing: Drawing, view: Range): number {
  const { from_s, column_s } = one.result!.plot;
  let most = 0;
  const hi = values(one, drawing.hi);
  for (let n = 0; n < hi.length; n++) {
    const at = from_s + n * column_s;
    if (hi[n]! > most && at + column_s >= view.min && at <= view.max) most = hi[n]!;
  }
  return most;
}

const others = (scene: Scene) => scene.cases.filter((one) => one !== scene.focus && one.result);
const shown = (scene: Scene) => scene.cases.filter((one) => one.result);
const plural = (count: number, one: string) => `${count.toLocaleString("en")} ${one}${count === 1 ? "" : "s"}`;

export class Plots {
  #panels: Panel[];
  #scene: Scene = { cases: [], focus: undefined, view: { min: 0, max: 1 }, fades: [], flow: 0 };

  constructor(hooks: Omit<Hooks, "draw">) {
    const make = (id: string, label: string, unit: (value: number) => string, height: number, draw: (brush: Brush, scene: Scene) => void, last = false) => {
      const figure = document.getElementById(id)!;
      const plot = figure.querySelector<HTMLElement>(".plot")!;
      return { figure, chart: new Chart(plot, label, unit, height, { ...hooks, draw: (brush) => draw(brush, this.#scene) }, last) };
    };
    this.#panels = [
      { ...make("f-sequence", "segments", short, 320, sequence), top: sequenceTop, bottom: sequenceBottom, legend: sequenceLegend, words: sequenceWords },
      { ...make("f-cwnd", "segments", short, 170, windows), top: windowTop, legend: windowLegend, words: windowWords },
      { ...make("f-queue", "packets", short, 140, queue), top: queueTop, legend: queueLegend, words: queueWords },
      { ...make("f-rate", "Mbit/s", short, 180, throughput, true), top: rateTop, legend: rateLegend, words: rateWords },
    ];
    const watch = new ResizeObserver(() => this.#panels.forEach(({ chart }) => chart.fit()));
    watch.observe(document.getElementById("plots")!);
  }

  show(scene: Scene): void {
    this.#scene = scene;
    const theme = style();
    for (const panel of this.#panels) {
      panel.chart.show(scene.view, panel.top(scene), panel.bottom?.(scene));
      panel.figure.querySelector(".legend")!.replaceChildren(...panel.legend(scene, theme).map(key));
      panel.figure.querySelector(".plot")!.setAttribute("aria-label", panel.words(scene));
    }
  }
}

function short(value: number): string {
  return value >= 10_000 ? `${number(value / 1000)}k` : number(value);
}

function key({ mark, colour, text }: Key): HTMLElement {
  const item = document.createElement("span");
  const shapes = {
    bar: `<rect x="2" y="1" width="3" height="10" fill="${colour}"/><rect x="8" y="1" width="3" height="7" fill="${colour}"/>`,
    line: `<path d="M0 6h14" stroke="${colour}" stroke-width="2"/>`,
    dash: `<path d="M0 6h14" stroke="${colour}" stroke-width="2" stroke-dasharray="4 2"/>`,
    area: `<rect y="3" width="14" height="8" fill="${colour}" opacity="0.6"/>`,
    diamond: `<path d="M7 2l4 4-4 4-4-4z" fill="none" stroke="${colour}" stroke-width="1.4"/>`,
    cross: `<path d="M3 2l8 8M11 2l-8 8" stroke="${colour}" stroke-width="1.6"/>`,
    plus: `<path d="M2 6h10M7 1v10" stroke="${colour}" stroke-width="1.6"/>`,
    shade: `<rect x="3" width="8" height="12" fill="${colour}" opacity="0.35"/>`,
  };
  item.innerHTML = `<svg width="14" height="12" aria-hidden="true">${shapes[mark]}</svg>`;
  item.append(text);
  return item;
}

// Time and sequence.

function sequence(brush: Brush, scene: Scene): void {
  const { colours, lost, text, faint } = brush.style;
  marks.shade(brush, scene.fades, lost);
  for (const one of others(scene)) {
    marks.bars(brush, one, one.result!.plot.sent, { colour: colours[one.colour]!, alpha: 0.5, width: 1.2 });
  }
  const one = scene.focus;
  if (!one?.result) return;
  const { plot } = one.result;
  marks.steps(brush, one, plot.acks, { colour: faint, width: 1.1 });
  // Marks are drawn below the bars of sent segments: where few of many segments are lost, the bars stay visible.
  marks.dots(brush, one, plot.resent, "diamond", { colour: text });
  marks.dots(brush, one, plot.lost_queue, "cross", { colour: lost });
  marks.dots(brush, one, plot.lost_channel, "plus", { colour: lost });
  marks.bars(brush, one, plot.sent, { colour: colours[one.colour]!, width: 2 });
}

function sequenceTop(scene: Scene): number {
  return Math.max(0, ...shown(scene).map((one) => most(one, one.result!.plot.sent, scene.view)));
}

/** When zoomed in, the lowest number that the chosen case sent or acknowledged. */
function sequenceBottom({ focus: one, view }: Scene): number {
  if (!one?.result || view.min === 0) return 0;
  const { plot } = one.result;
  const low = (drawing: Drawing) => values(one, drawing.lo).reduce((least, value) => Math.min(least, Number.isNaN(value) ? Infinity : value), Infinity);
  const least = Math.min(low(plot.sent), low(plot.acks));
  return Number.isFinite(least) ? least : 0;
}

function sequenceLegend({ focus: one, fades, flow }: Scene, { colours, faint, text, lost }: Style): Key[] {
  if (!one?.result) return [];
  const { resent, lost_queue, lost_channel } = one.result.plot;
  // For a split flow, the summary counts another leg.
  const all = one.result.summary.flows[flow]?.segments;
  const of = all === undefined || one.result.leg ? "" : ` of ${count(all)}`;
  const keys: Key[] = [
    { mark: "bar", colour: colours[one.colour]!, text: "sent" },
    { mark: "line", colour: faint, text: "acknowledged" },
  ];
  if (resent.count) keys.push({ mark: "diamond", colour: text, text: `retransmitted (${count(resent.count)})` });
  if (lost_queue.count) keys.push({ mark: "cross", colour: lost, text: `dropped by a queue (${count(lost_queue.count)}${of})` });
  if (lost_channel.count) keys.push({ mark: "plus", colour: lost, text: `lost on the link (${count(lost_channel.count)}${of})` });
  if (fades.length) keys.push({ mark: "shade", colour: lost, text: "fade" });
  if (one.result.leg) keys.push({ mark: "line", colour: "transparent", text: `leg ${one.result.leg[0]} → ${one.result.leg[1]}` });
  return keys;
}

function sequenceWords({ focus: one, view }: Scene): string {
  if (!one?.result) return "No run yet.";
  const { resent, lost_queue, lost_channel } = one.result.plot;
  return `Sequence numbers over time of ${one.label}, from ${seconds(view.min)} to ${seconds(view.max)}: ${plural(resent.count, "retransmission")}, ${plural(lost_queue.count, "segment")} dropped by queues, ${lost_channel.count} lost on links.`;
}

// Congestion window and flight.

function windows(brush: Brush, scene: Scene): void {
  const { colours, faint, lost, text } = brush.style;
  marks.shade(brush, scene.fades, lost);
  for (const one of others(scene)) {
    marks.steps(brush, one, one.result!.plot.cwnd, { colour: colours[one.colour]!, alpha: 0.6, width: 1.2, dash: one.dash });
  }
  const one = scene.focus;
  if (!one?.result) return;
  const { plot, bdp_segments } = one.result;
  marks.steps(brush, one, plot.flight, { colour: faint, alpha: 0.9, width: 1 }, true);
  marks.steps(brush, one, plot.cwnd, { colour: colours[one.colour]!, width: 2 }, true);
  if (bdp_segments !== null) marks.level(brush, bdp_segments, "bandwidth-delay product", { colour: text, alpha: 0.75 });
}

function windowTop(scene: Scene): number {
  const tops = shown(scene).flatMap((one) => [most(one, one.result!.plot.cwnd, scene.view), most(one, one.result!.plot.flight, scene.view)]);
  return Math.max(0, ...tops, scene.focus?.result?.bdp_segments ?? 0);
}

function windowLegend({ focus: one }: Scene, { colours, faint, text }: Style): Key[] {
  if (!one?.result) return [];
  const keys: Key[] = [
    { mark: "line", colour: colours[one.colour]!, text: "cwnd" },
    { mark: "line", colour: faint, text: "in flight" },
  ];
  if (one.result.bdp_segments !== null) keys.push({ mark: "dash", colour: text, text: `BDP: ${number(one.result.bdp_segments)} segments` });
  return keys;
}

function windowWords({ focus: one, view }: Scene): string {
  if (!one?.result) return "No run yet.";
  const bdp = one.result.bdp_segments;
  return `Congestion window of ${one.label}: at most ${number(most(one, one.result.plot.cwnd, view))} segments; at most ${number(most(one, one.result.plot.flight, view))} in flight${bdp === null ? "" : `; the bandwidth-delay product is ${number(bdp)}`}.`;
}

// Queue and losses.

function queue(brush: Brush, scene: Scene): void {
  const { colours, lost, text } = brush.style;
  marks.shade(brush, scene.fades, lost);
  const one = scene.focus;
  if (!one?.result) return;
  const { plot, queue_packets } = one.result;
  marks.area(brush, one, plot.queue, { colour: colours[one.colour]!, alpha: 0.6 });
  if (queue_packets !== null && queueShown(scene)) marks.level(brush, queue_packets, "queue limit", { colour: text, alpha: 0.75 });
  marks.losses(brush, one, plot.dropped_queue, 0, { colour: lost });
  marks.losses(brush, one, plot.dropped_channel, 1, { colour: lost, alpha: 0.65 });
}

/** True if the queue limit is close enough to the queue not to flatten its curve. */
function queueShown(scene: Scene): boolean {
  const one = scene.focus!;
  return (one.result!.queue_packets ?? Infinity) < 5 * Math.max(most(one, one.result!.plot.queue, scene.view), 10);
}

function queueTop(scene: Scene): number {
  const one = scene.focus;
  if (!one?.result) return 1;
  const room = queueShown(scene) ? (one.result.queue_packets ?? 0) : 0;
  // Losses are drawn above.
  return Math.max(most(one, one.result.plot.queue, scene.view), room, 5) * 1.25;
}

const total = (numbers: Float64Array) => numbers.reduce((sum, value) => sum + value, 0);

function queueLegend({ focus: one }: Scene, { colours, lost }: Style): Key[] {
  if (!one?.result) return [];
  const { plot, link } = one.result;
  const [full, channel] = [total(values(one, plot.dropped_queue)), total(values(one, plot.dropped_channel))];
  const keys: Key[] = [{ mark: "area", colour: colours[one.colour]!, text: `waiting at ${link}` }];
  if (full) keys.push({ mark: "bar", colour: lost, text: `dropped (${count(full)}), upper row` });
  if (channel) keys.push({ mark: "bar", colour: lost, text: `lost on the link (${count(channel)}), lower row` });
  return keys;
}

function queueWords({ focus: one, view }: Scene): string {
  if (!one?.result) return "No run yet.";
  const { plot, link } = one.result;
  return `Queue of ${link} with ${one.label}: at most ${number(most(one, plot.queue, view))} packets; ${total(values(one, plot.dropped_queue))} dropped, ${total(values(one, plot.dropped_channel))} lost on the link.`;
}

// Throughput.

const grouped = (one: Case) => Math.max(Math.ceil(one.result!.plot.columns / AVERAGES), 1);
/** Peaks above this multiple of the link rate leave the plot. */
const ABOVE = 2.5;
const MBIT_PER_BYTE = 8e-6;
const line = (one: Case) => one.result!.summary.links.find((link) => link.name === one.result!.link)?.rate_bit_s ?? null;

function throughput(brush: Brush, scene: Scene): void {
  const { colours, lost, text } = brush.style;
  marks.shade(brush, scene.fades, lost);
  const draw = (one: Case, look: { alpha: number; width: number }) =>
    marks.rates(brush, one, one.result!.plot.arrived_bytes, grouped(one), MBIT_PER_BYTE, { colour: colours[one.colour]!, dash: one.dash, ...look });
  others(scene).forEach((one) => draw(one, { alpha: 0.65, width: 1.3 }));
  const one = scene.focus;
  if (!one?.result) return;
  draw(one, { alpha: 1, width: 2 });
  const rate = line(one);
  if (rate !== null) marks.level(brush, rate / 1e6, "line rate", { colour: text, alpha: 0.75 });
}

function rateTop(scene: Scene): number {
  const rate = (scene.focus?.result ? line(scene.focus) : null) ?? Infinity;
  const peak = peakOf(scene);
  const mbit = rate / 1e6;
  // Data that waited for a repair arrives at once, far above the link rate. The legend has the peak.
  if (peak > ABOVE * mbit) return 2 * mbit;
  return mbit > 4 * peak ? peak : Math.max(peak, mbit);
}

/** The highest throughput of any case, Mbit/s. */
function peakOf(scene: Scene): number {
  const peaks = shown(scene).map((one) => {
    const { arrived_bytes, column_s } = one.result!.plot;
    return Math.max(0, ...marks.averages(values(one, arrived_bytes), grouped(one))) * (MBIT_PER_BYTE / column_s);
  });
  return Math.max(0, ...peaks);
}

function rateLegend(scene: Scene, { colours }: Style): Key[] {
  const keys = shown(scene).map((one): Key => ({ mark: one.dash.length ? "dash" : "line", colour: colours[one.colour]!, text: one.label }));
  const one = scene.focus;
  if (one?.result) keys.push({ mark: "line", colour: "transparent", text: `average over ${seconds(grouped(one) * one.result.plot.column_s)}` });
  const peak = peakOf(scene);
  const rate = one?.result ? line(one) : null;
  if (rate !== null && peak > (ABOVE * rate) / 1e6) keys.push({ mark: "line", colour: "transparent", text: `peaks to ${number(peak)} Mbit/s leave the plot` });
  return keys;
}

function rateWords(scene: Scene): string {
  const told = shown(scene).map((one) => {
    const flow = one.result!.summary.flows[scene.flow];
    return `${one.label} ${flow?.goodput_bit_s ? `${number(flow.goodput_bit_s / 1e6)} Mbit/s` : "nothing"}`;
  });
  return `Payload received over time. On average: ${told.join(", ")}.`;
}
