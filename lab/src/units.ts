// Formats and parses numbers with units.

const DIGITS = 3;

function scaled(value: number, steps: [number, string][], unit: string): string {
  if (value === 0) return `0 ${unit}`;
  const [scale, prefix] = steps.find(([scale]) => Math.abs(value) >= scale * 0.9995) ?? steps[steps.length - 1]!;
  return `${number(value / scale)} ${prefix}${unit}`;
}

const UP: [number, string][] = [[1e12, "T"], [1e9, "G"], [1e6, "M"], [1e3, "k"], [1, ""]];
const DOWN: [number, string][] = [[1, ""], [1e-3, "m"], [1e-6, "µ"]];

/** Three significant digits without trailing zeros; from 1000 on, whole numbers in groups of three digits. */
export function number(value: number): string {
  if (Math.abs(value) >= 1000) return Math.round(value).toLocaleString("en").replaceAll(",", "\u202f");
  return String(Number(value.toPrecision(DIGITS)));
}

export const count = (value: number): string => value.toLocaleString("en").replaceAll(",", "\u202f");
export const rate = (bits: number): string => scaled(bits, UP, "bit/s");
export const bytes = (count: number): string => scaled(count, UP, "B");
export const seconds = (secs: number): string => scaled(secs, DOWN, "s");
export const percent = (part: number): string => `${Number((part * 100).toPrecision(DIGITS))} %`;

/** Parses a number with one of these units: "2 Mbit/s", "40ms", "1e-3". `bare` is the factor without a unit. `undefined` if it is no number. */
function read(text: string, units: Record<string, number>, bare: number): number | undefined {
  const match = /^\s*([0-9.]+(?:e[+-]?[0-9]+)?)\s*([^\s].*?)?\s*$/i.exec(text.replaceAll("\u202f", "").replace(",", "."));
  if (!match) return undefined;
  const value = Number(match[1]);
  const factor = match[2] === undefined ? bare : units[match[2].toLowerCase()];
  return factor === undefined || !Number.isFinite(value) ? undefined : value * factor;
}

const RATES = { "bit/s": 1, "kbit/s": 1e3, "mbit/s": 1e6, "gbit/s": 1e9, "tbit/s": 1e12, bit: 1, kbit: 1e3, mbit: 1e6, gbit: 1e9, tbit: 1e12, k: 1e3, m: 1e6, g: 1e9, t: 1e12 };
const SIZES = { b: 1, kb: 1e3, mb: 1e6, gb: 1e9, tb: 1e12, k: 1e3, m: 1e6, g: 1e9, t: 1e12 };
const SPANS = { s: 1, ms: 1e-3, us: 1e-6, "µs": 1e-6 };

export const readRate = (text: string): number | undefined => read(text, RATES, 1e6);
export const readBytes = (text: string): number | undefined => read(text, SIZES, 1e6);
export const readSeconds = (text: string): number | undefined => read(text, SPANS, 1e-3);
export const readPercent = (text: string): number | undefined => read(text, { "%": 0.01 }, 0.01);

/** The largest seed, 2^64 - 1: more than a number holds exactly. */
const MAX_SEED = (1n << 64n) - 1n;

/** Parses a seed; `undefined` if it is no whole number from 0 to 2^64 - 1. */
export function readSeed(text: string): string | undefined {
  const digits = text.trim();
  return /^[0-9]{1,20}$/.test(digits) && BigInt(digits) <= MAX_SEED ? String(BigInt(digits)) : undefined;
}

/** The seed after this one; 0 follows the largest. */
export const nextSeed = (seed: string): string => String((BigInt(seed) + 1n) & MAX_SEED);
