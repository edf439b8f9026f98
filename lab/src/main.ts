// The page: its state, and the reactions to changes.
import "uplot/dist/uPlot.min.css";
import "./style.css";
import { Bars, limit, spoken, tables } from "./bars";
import { type Case, MAX_VARIANTS, SYSTEMS, accept, choose } from "./cases";
import type { Range } from "./chart";
import { Engine } from "./engine";
import { PRESETS, groups } from "./presets";
import { Plots } from "./plots";
import type { About, Knobs, Look, Ran, System, World } from "./protocol";
import { Ribbon } from "./ribbon";
import { fromFragment, toFragment } from "./share";
import { Sliders } from "./sliders";
import { setUpTheme } from "./theme";
import { nextSeed, number, readSeed, seconds } from "./units";

const FIRST = "geo";
const byId = <T extends HTMLElement = HTMLElement>(id: string) => document.getElementById(id) as T;

/** The experiment. */
const state = {
  text: "",
  name: "",
  flow: 0,
  /** The link that sliders change; initially the engine's choice. */
  link: undefined as string | undefined,
  knobs: {} as Knobs,
  variants: [] as string[],
  systems: ["plain"] as System[],
  focus: "",
  window: undefined as [number, number] | undefined,
};
/** The engine's description of it. */
let look: Look | undefined;
let cases: Case[] = [];
/** The time that plots show; kept while the user drags on the ribbon. */
let view: Range = { min: 0, max: 1 };
let engine: Engine;
let hovered: number | undefined;

const focus = () => cases.find((one) => one.key === state.focus) ?? cases[0];
const world = (): World => ({ text: state.text, name: state.name, flow: state.flow, knobs: state.knobs, ...(state.link !== undefined && { link: state.link }) });

const sliders = new Sliders(byId("sliders"), (change) => turn(change));
const ribbon = new Ribbon(document.getElementById("ribbon") as unknown as SVGSVGElement, byId("fades"), byId("fade-note"), (fades) =>
  turn({ fades: fades.map(([from, to]): [number, number] => [from, Math.max(to - from, 0.001)]) }),
);
const bars = new Bars(byId("bars"), (key) => {
  state.focus = key;
  draw();
});
const plots = new Plots({
  hover: (at) => {
    hovered = at;
    showView();
  },
  zoom: (from, to) => zoom([Math.max(from, 0), to]),
  reset: () => zoom(undefined),
});

/** Changes values of the scenario. */
function turn(change: Partial<Knobs>): void {
  state.knobs = { ...state.knobs, ...change };
  renew();
}

function zoom(window: [number, number] | undefined): void {
  const whole = runEnd();
  // A window that equals the whole run up to rounding is the whole run.
  const near = whole * 1e-6;
  const isPart = window && window[1] - window[0] > 1e-4 && (window[0] > near || window[1] < whole - near);
  state.window = isPart ? window : undefined;
  renew();
}

/** The end of the longest run. */
function runEnd(): number {
  return Math.max(0, ...cases.map((one) => one.result?.summary.end_s ?? 0));
}

// Runs.

/** True if something has changed since the last runs began. */
let changed = false;
/** When they began, and how long the runs before them took, milliseconds. */
let began = 0;
let lasted = 0;
let timer = 0;

/** Reruns everything. During a drag, current runs may finish first unless they are slow, so that intermediate results are shown. */
function renew(): void {
  changed = true;
  document.body.dataset.state = "running";
  pump();
}

function pump(): void {
  clearTimeout(timer);
  if (!changed) return;
  const patience = Math.min(Math.max(2 * lasted, 100), 800);
  const left = began + patience - performance.now();
  if (engine.busy && left > 0) {
    timer = window.setTimeout(pump, left);
    return;
  }
  changed = false;
  began = performance.now();
  engine.renew();
  for (const one of cases) one.stale = true;
  engine.ask<Look>({ op: "look", ...world() }, (answer) => {
    if (answer.error !== undefined) return refuse(answer.error);
    byId("error").hidden = true;
    byId("text").classList.remove("wrong");
    accepted(answer.ok!);
    run();
  });
}

function run(): void {
  const width = Math.round(Math.min(Math.max(byId("f-sequence").clientWidth, 320) * Math.min(devicePixelRatio || 1, 2), 2000));
  for (const one of cases) {
    engine.ask<Ran>(
      { op: "run", world: world(), variant: one.variant, system: one.system, size: [width, 640], ...(state.window && { window: state.window }) },
      (answer) => {
        accept(one, answer);
        soon();
        if (!engine.busy) {
          lasted = performance.now() - began;
          pump();
        }
      },
    );
  }
}

let frame = 0;

/** Draws once per frame. */
function soon(): void {
  cancelAnimationFrame(frame);
  frame = requestAnimationFrame(draw);
}

/** Shows the error of a scenario that cannot be read. The last drawing stays. */
function refuse(message: string): void {
  byId("error").hidden = false;
  byId("error").querySelector("pre")!.textContent = message;
  byId("text").classList.add("wrong");
  if (!changed) document.body.dataset.state = "refused";
  pump();
}

/** Sets the controls for a scenario that was read. */
function accepted(found: Look): void {
  look = found;
  byId("description").textContent = found.description;
  state.link = found.settings.link;
  const link = byId<HTMLSelectElement>("link");
  if (document.activeElement !== link) {
    const names = [...new Set([found.settings.link, ...found.path])].sort((a, b) => found.path.indexOf(a) - found.path.indexOf(b));
    link.replaceChildren(...names.map((name) => new Option(name, name, false, name === found.settings.link)));
  }
  sliders.show(found.settings, changed);
  const seed = byId<HTMLInputElement>("seed");
  if (document.activeElement !== seed) seed.value = found.settings.seed;
  const toml = byId<HTMLTextAreaElement>("toml");
  if (document.activeElement !== toml) toml.value = found.toml;
  const flow = byId<HTMLSelectElement>("flow");
  byId("flow-label").hidden = found.flows.length < 2;
  flow.replaceChildren(...found.flows.slice(0, 200).map(({ name, from, to }, n) => new Option(`${name} (${from} → ${to})`, String(n), false, n === state.flow)));
  byId("warning").hidden = found.warnings === "";
  byId("warning").querySelector("pre")!.textContent = found.warnings;
  const names = new Set(found.variants.map(({ name }) => name));
  state.variants = state.variants.filter((name) => names.has(name));
  const own = found.flows[state.flow]?.variant;
  if (state.variants.length === 0) state.variants = [own && names.has(own) ? own : "sack"];
  const unfit = new Map(found.unfit);
  const fitting = state.systems.filter((system) => !unfit.has(system));
  cases = choose(state.variants, fitting.length ? fitting : ["plain"], cases);
  choices(found, unfit);
  share();
}

function choices(found: Look, unfit: Map<System, string>): void {
  const full = state.variants.length >= MAX_VARIANTS;
  chips("variants", found.variants.map(({ name, description }) => ({
    key: name,
    label: name,
    title: description,
    on: state.variants.includes(name),
    off: full && !state.variants.includes(name) ? `${MAX_VARIANTS} at once: more colours cannot be told apart` : undefined,
    colour: cases.find((one) => one.variant === name)?.colour,
  })));
  byId("transport-count").textContent = `${state.variants.length} of ${found.variants.length}`;
  byId("variant-told").textContent = full ? `${MAX_VARIANTS} at once; more colours cannot be told apart.` : "";
  chips("systems", SYSTEMS.map(({ system, name, what }) => ({
    key: system,
    label: name,
    title: what,
    on: state.systems.includes(system) && !unfit.has(system),
    off: unfit.get(system),
    colour: undefined,
  })));
  const reasons = [...new Set(unfit.values())];
  byId("system-told").textContent = reasons.length ? `${reasons.join("; ")}.` : SYSTEMS.filter(({ system }) => state.systems.includes(system)).map(({ name, what }) => `${name}: ${what}`).join("; ") + ".";
}

interface Chip {
  key: string;
  label: string;
  title: string;
  on: boolean;
  off: string | undefined;
  colour: number | undefined;
}

function chips(id: string, all: Chip[]): void {
  const parent = byId(id);
  const had = parent.contains(document.activeElement) ? (document.activeElement as HTMLElement).dataset.key : undefined;
  parent.replaceChildren(
    ...all.map((chip) => {
      const button = document.createElement("button");
      button.type = "button";
      button.className = "chip";
      button.dataset.key = chip.key;
      button.textContent = chip.label;
      button.title = chip.off ?? chip.title;
      button.setAttribute("aria-pressed", String(chip.on));
      button.setAttribute("aria-description", chip.title);
      if (chip.off !== undefined) button.disabled = true;
      if (chip.on && chip.colour !== undefined) button.style.setProperty("--case", `var(--case-${chip.colour})`);
      return button;
    }),
  );
  if (had !== undefined) parent.querySelector<HTMLElement>(`[data-key="${CSS.escape(had)}"]`)?.focus();
}

/** Toggles a choice; the last remaining one stays. */
function toggle<T>(list: T[], key: T): T[] {
  if (!list.includes(key)) return [...list, key];
  return list.length > 1 ? list.filter((other) => other !== key) : list;
}

// Drawing.

function draw(): void {
  const one = focus();
  const busy = engine.busy;
  bars.show(cases, one, state.flow);
  byId("limit").textContent = limit(cases, one, state.flow);
  if (state.window) view = { min: state.window[0], max: state.window[1] };
  else if (!ribbon.dragging) view = { min: 0, max: runEnd() || 1 };
  const fades = state.knobs.fades?.map(([start, length]): [number, number] => [start, start + length]) ?? one?.result?.fades_s ?? [];
  plots.show({ cases, focus: one, view, fades, flow: state.flow });
  ribbon.show(fades, view);
  showView();
  if (!busy && !changed) {
    tables(one, byId("flows"), byId("links"));
    settled();
  }
}

function showView(): void {
  const at = hovered === undefined ? "" : ` · ${seconds(hovered)}`;
  byId("view").textContent = `${state.window ? "" : "whole run, "}${seconds(view.min)} to ${seconds(view.max)}${at}`;
  byId<HTMLButtonElement>("zoom-all").disabled = byId<HTMLButtonElement>("zoom-out").disabled = state.window === undefined;
  byId<HTMLButtonElement>("earlier").disabled = byId<HTMLButtonElement>("later").disabled = state.window === undefined;
}

let speech = 0;

/** Called when all results have arrived. */
function settled(): void {
  if (byId("error").hidden) document.body.dataset.state = "done";
  const slowest = Math.max(0, ...cases.map((one) => one.took));
  const events = cases.reduce((sum, one) => sum + (one.result?.summary.events ?? 0), 0);
  byId("speed").textContent = `${cases.length} ${cases.length === 1 ? "run" : "runs"}, ${number(events)} events, at most ${number(slowest)} ms each.`;
  clearTimeout(speech);
  speech = window.setTimeout(() => (byId("live").textContent = spoken(cases, state.flow)), 600);
}

// Sharing.

let writing = 0;

function share(): void {
  clearTimeout(writing);
  writing = window.setTimeout(async () => history.replaceState(null, "", (await fragment()) ?? "#"), 250);
}

/** The address's fragment; `undefined` if the experiment is too long for a link. */
async function fragment(): Promise<string | undefined> {
  return toFragment({ toml: look?.toml ?? state.text, variants: state.variants, systems: state.systems, flow: state.flow, ...(state.link !== undefined && { link: state.link }) });
}

async function copy(button: HTMLButtonElement, text: string): Promise<void> {
  try {
    await navigator.clipboard.writeText(text);
    flash(button, "Copied");
  } catch {
    // Without permission, the user can copy the selected text.
    byId<HTMLDetailsElement>("text").open = true;
    byId<HTMLTextAreaElement>("toml").select();
    flash(button, "Press Ctrl+C");
  }
}

/** Shows a word on a button for a moment. */
function flash(button: HTMLButtonElement, word: string): void {
  const label = (button.dataset.label ??= button.textContent ?? "");
  button.textContent = word;
  setTimeout(() => (button.textContent = label), 1500);
}

/** Loads another scenario. */
function load(text: string, name: string): void {
  Object.assign(state, { text, name, flow: 0, link: undefined, knobs: {}, window: undefined });
  const preset = byId<HTMLSelectElement>("preset");
  const shipped = name.replace(/\.toml$/, "");
  preset.value = PRESETS.get(shipped) === text ? shipped : "";
  renew();
}

async function fromAddress(): Promise<boolean> {
  const shared = await fromFragment(location.hash);
  if (!shared) return false;
  if ("refused" in shared) {
    refuse(`The experiment in the address cannot be read: ${shared.refused}. Copy it again, or choose a scenario above.`);
    return true;
  }
  if (shared.variants?.length) state.variants = shared.variants.slice(0, MAX_VARIANTS);
  if (shared.systems?.length) state.systems = SYSTEMS.map(({ system }) => system).filter((system) => shared.systems!.includes(system));
  if (state.systems.length === 0) state.systems = ["plain"];
  load(shared.toml, "shared.toml");
  state.flow = shared.flow ?? 0;
  state.link = shared.link;
  return true;
}

// Controls.

function listen(): void {
  const preset = byId<HTMLSelectElement>("preset");
  preset.append(Object.assign(new Option("your own", "", false, false), { hidden: true }));
  for (const [title, names] of groups()) {
    const group = document.createElement("optgroup");
    group.label = title;
    group.append(...names.map((name) => new Option(name, name)));
    preset.append(group);
  }
  preset.addEventListener("change", () => {
    state.variants = state.variants.length > 1 ? state.variants : [];
    load(PRESETS.get(preset.value)!, `${preset.value}.toml`);
  });
  byId("variants").addEventListener("click", (event) => {
    const key = (event.target as HTMLElement).closest<HTMLElement>("[data-key]")?.dataset.key;
    if (key === undefined) return;
    state.variants = toggle(state.variants, key);
    if (state.variants.includes(key)) state.focus = `${key}/${state.systems[0]}`;
    renew();
  });
  byId("systems").addEventListener("click", (event) => {
    const key = (event.target as HTMLElement).closest<HTMLElement>("[data-key]")?.dataset.key as System | undefined;
    if (key === undefined) return;
    state.systems = toggle(state.systems, key);
    renew();
  });
  const seed = byId<HTMLInputElement>("seed");
  seed.addEventListener("change", () => {
    const value = readSeed(seed.value);
    seed.setAttribute("aria-invalid", String(value === undefined));
    if (value !== undefined) turn({ seed: value });
  });
  seed.addEventListener("blur", () => {
    if (seed.getAttribute("aria-invalid") !== "true") return;
    seed.removeAttribute("aria-invalid");
    if (look) seed.value = look.settings.seed;
  });
  byId("next-seed").addEventListener("click", () => turn({ seed: nextSeed(look?.settings.seed ?? "0") }));
  byId<HTMLSelectElement>("flow").addEventListener("change", (event) => {
    Object.assign(state, { text: look?.toml ?? state.text, knobs: {}, link: undefined, flow: Number((event.target as HTMLSelectElement).value) });
    renew();
  });
  byId<HTMLSelectElement>("link").addEventListener("change", (event) => {
    // The sliders' values belong to the previous link. They stay in the text.
    Object.assign(state, { text: look?.toml ?? state.text, knobs: {}, link: (event.target as HTMLSelectElement).value });
    renew();
  });
  const toml = byId<HTMLTextAreaElement>("toml");
  let typing = 0;
  toml.addEventListener("input", () => {
    clearTimeout(typing);
    typing = window.setTimeout(() => load(toml.value, "pasted.toml"), 250);
  });
  const open = async (file: File | undefined) => file && load(await file.text(), file.name);
  byId<HTMLInputElement>("file").addEventListener("change", (event) => open((event.target as HTMLInputElement).files?.[0]));
  document.addEventListener("dragover", (event) => event.preventDefault());
  document.addEventListener("drop", (event) => {
    event.preventDefault();
    void open(event.dataTransfer?.files[0]);
  });
  byId("copy-toml").addEventListener("click", (event) => copy(event.currentTarget as HTMLButtonElement, look?.toml ?? state.text));
  byId("copy-link").addEventListener("click", async (event) => {
    const button = event.currentTarget as HTMLButtonElement;
    const made = await fragment();
    if (made === undefined) flash(button, "Too long");
    else await copy(button, location.href.replace(/#.*/s, "") + made);
  });
  byId("add-fade").addEventListener("click", () => ribbon.add());
  byId("clear-fades").addEventListener("click", () => ribbon.clear());
  const span = () => view.max - view.min;
  const move = (by: number) => state.window && zoom([Math.max(view.min + by, 0), Math.max(view.min + by, 0) + span()]);
  const scale = (factor: number) => {
    const middle = (view.min + view.max) / 2;
    const from = Math.max(middle - (span() * factor) / 2, 0);
    zoom([from, Math.min(from + span() * factor, runEnd())]);
  };
  byId("earlier").addEventListener("click", () => move(-span() / 2));
  byId("later").addEventListener("click", () => move(span() / 2));
  byId("zoom-in").addEventListener("click", () => scale(0.5));
  byId("zoom-out").addEventListener("click", () => scale(2));
  byId("zoom-all").addEventListener("click", () => zoom(undefined));
  window.addEventListener("hashchange", () => void fromAddress());
  setUpTheme(byId<HTMLButtonElement>("theme"), draw);
  new ResizeObserver(() => soon()).observe(byId("plots"));
}

async function main(): Promise<void> {
  try {
    engine = await Engine.load();
  } catch (error) {
    refuse(`This browser cannot run the engine: ${String(error)}. It needs WebAssembly and DecompressionStream (2023 and later).`);
    return;
  }
  listen();
  const about = await new Promise<About | undefined>((done) => engine.ask<About>({ op: "about" }, (answer) => done(answer.ok)));
  byId("version").textContent = `bentpipe ${about?.version ?? ""}.`;
  if (await fromAddress()) return;
  state.variants = ["sack", "cubic", "newreno"];
  byId<HTMLSelectElement>("preset").value = FIRST;
  load(PRESETS.get(FIRST)!, `${FIRST}.toml`);
}

void main();
