// Sliders with units: each a range for the pointer and a field for exact values.
import * as units from "./units";
import type { Knobs, Settings } from "./protocol";

type Key = "rate_bit_s" | "delay_s" | "loss" | "queue_s" | "bytes";

interface Spec {
  key: Key;
  label: string;
  hint: string;
  /** Ends of the slider. */
  min: number;
  max: number;
  /** The engine's maximum (crates/bentpipe-wasm/src/knobs.rs), for the field. */
  limit: number;
  /** The left end means 0. */
  zero?: boolean;
  show: (value: number) => string;
  read: (text: string) => number | undefined;
}

const STEPS = 400;

/** Seconds. */
const YEAR = 31_536_000;

const SPECS: Spec[] = [
  { key: "rate_bit_s", label: "Rate", hint: "of this link, in the data's direction", min: 64e3, max: 1e9, limit: 1e15, show: units.rate, read: units.readRate },
  { key: "delay_s", label: "Delay", hint: "one way, both directions", min: 1e-3, max: 1, limit: YEAR, show: units.seconds, read: units.readSeconds },
  { key: "loss", label: "Loss", hint: "of single packets, besides fades", min: 1e-5, max: 0.3, limit: 1, zero: true, show: units.percent, read: units.readPercent },
  { key: "queue_s", label: "Queue", hint: "before the link, as time at its rate", min: 1e-3, max: 10, limit: YEAR, show: units.seconds, read: units.readSeconds },
  { key: "bytes", label: "Size", hint: "of the transfer", min: 10e3, max: 1e9, limit: 1e15, show: units.bytes, read: units.readBytes },
];

interface Slider {
  spec: Spec;
  row: HTMLElement;
  range: HTMLInputElement;
  field: HTMLInputElement;
  /** True while the user types in the field. */
  typing: boolean;
}

export class Sliders {
  #all: Slider[];

  /** `changed` gets each new value. */
  constructor(parent: HTMLElement, changed: (change: Partial<Knobs>) => void) {
    this.#all = SPECS.map((spec) => {
      const row = document.createElement("div");
      row.className = "slider";
      row.innerHTML = `
        <label for="range-${spec.key}">${spec.label}</label>
        <input class="value" id="field-${spec.key}" aria-label="${spec.label}, exact value with unit" spellcheck="false" autocomplete="off">
        <input type="range" id="range-${spec.key}" min="0" max="${STEPS}" step="1" aria-describedby="hint-${spec.key}">
        <small id="hint-${spec.key}">${spec.hint}</small>`;
      parent.append(row);
      const [range, field] = [row.querySelector<HTMLInputElement>("[type=range]")!, row.querySelector<HTMLInputElement>(".value")!];
      const slider = { spec, row, range, field, typing: false };
      range.addEventListener("input", () => {
        const value = at(spec, Number(range.value));
        field.value = spec.show(value);
        range.setAttribute("aria-valuetext", field.value);
        fill(range);
        changed({ [spec.key]: value });
      });
      const entered = () => {
        slider.typing = false;
        const value = entry(spec, field.value);
        field.setAttribute("aria-invalid", String(value === undefined));
        const hint = row.querySelector("small")!;
        hint.textContent = value === undefined ? `expected ${expected(spec)}` : spec.hint;
        const forget = () => {
          field.removeAttribute("aria-invalid");
          hint.textContent = spec.hint;
        };
        if (value === undefined) field.addEventListener("blur", forget, { once: true });
        else changed({ [spec.key]: value });
      };
      field.addEventListener("input", () => (slider.typing = true));
      field.addEventListener("change", entered);
      return slider;
    });
  }

  /**
   * Shows the values of a scenario, except in a field in which the user types. `superseded`: the user has changed some since, so
   * that they stay as they are until the next scenario comes.
   */
  show(settings: Settings, superseded: boolean): void {
    for (const { spec, row, range, field, typing } of this.#all) {
      const value = settings[spec.key];
      const fixed = value === null;
      range.disabled = field.disabled = fixed && !(spec.key === "queue_s" && settings.rate_bit_s !== null);
      row.classList.toggle("off", range.disabled);
      if (superseded || typing || field.getAttribute("aria-invalid") === "true") continue;
      // If the link's rate varies, the queue's length in time is unknown.
      const unknown = spec.key === "queue_s" && settings.rate_bit_s === null;
      field.value = unknown ? "–" : fixed ? absent(spec.key) : spec.show(value);
      range.setAttribute("aria-valuetext", field.value);
      // Several steps can have the same rounded value. The slider stays on the one that the user chose: else the next key would
      // start again from the first.
      if (fixed) range.value = String(STEPS);
      else if (spec.show(at(spec, Number(range.value))) !== field.value) range.value = String(position(spec, value));
      fill(range);
    }
  }
}

const isWhole = (spec: Spec) => spec.key === "rate_bit_s" || spec.key === "bytes";

/** The value of a field's text; `undefined` if the setting cannot have it. */
function entry(spec: Spec, text: string): number | undefined {
  const read = spec.read(text);
  const value = read !== undefined && isWhole(spec) ? Math.round(read) : read;
  const fits = value !== undefined && (value > 0 || (value === 0 && spec.zero === true)) && value <= spec.limit;
  return fits ? value : undefined;
}

/** The values that a field takes, in words. */
function expected(spec: Spec): string {
  return `${spec.zero ? "0" : "more than 0"} to ${spec.show(spec.limit)}, such as ${spec.show(spec.max)}`;
}

/** Colours the part of a slider that is left of its handle. */
function fill(range: HTMLInputElement): void {
  range.style.setProperty("--part", `${(Number(range.value) / STEPS) * 100}%`);
}

function absent(key: Key): string {
  return { rate_bit_s: "varies", delay_s: "–", loss: "–", queue_s: "unlimited", bytes: "endless" }[key];
}

/** The value of a position, rounded to two significant digits. */
function at(spec: Spec, step: number): number {
  if (spec.zero && step === 0) return 0;
  const value = spec.min * (spec.max / spec.min) ** (step / STEPS);
  const rounded = Number(value.toPrecision(2));
  return isWhole(spec) ? Math.round(rounded) : rounded;
}

function position(spec: Spec, value: number): number {
  if (value <= 0) return 0;
  const part = Math.log(value / spec.min) / Math.log(spec.max / spec.min);
  return Math.round(Math.min(Math.max(part, 0), 1) * STEPS);
}
