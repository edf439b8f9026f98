// The compared cases: each chosen transport with each chosen system, with its colour, line style and latest result.
import type { Answer, Numbers, Ran, System } from "./protocol";

/** Number of colours that colour-blind readers can tell apart (Okabe and Ito 2008), and so of variants at once. */
export const MAX_VARIANTS = 6;
export const SYSTEMS: { system: System; name: string; what: string; dash: number[] }[] = [
  { system: "plain", name: "none", what: "plain TCP, end to end", dash: [] },
  { system: "uplink", name: "uplink", what: "a box before the satellite link terminates connections and forwards the data with a constant window", dash: [9, 3, 2, 3] },
  { system: "link", name: "link", what: "two boxes repair losses on the satellite link, below IP", dash: [2, 3] },
  { system: "split", name: "split", what: "two boxes terminate connections and carry the data as streams over a link that repairs losses", dash: [7, 4] },
];

export interface Case {
  key: string;
  variant: string;
  system: System;
  label: string;
  /** Index of its colour. */
  colour: number;
  dash: number[];
  result: Ran | undefined;
  numbers: Float64Array;
  error: string | undefined;
  /** True while a newer result is pending. */
  stale: boolean;
  took: number;
}

/** The cases of these choices. Existing cases keep their colour and their last result. */
export function choose(variants: string[], systems: System[], before: Case[]): Case[] {
  const colours = new Map(before.map((one) => [one.variant, one.colour]));
  for (const variant of variants) {
    if (colours.has(variant)) continue;
    const taken = new Set(variants.map((other) => colours.get(other)));
    colours.set(variant, [...Array(MAX_VARIANTS).keys()].find((colour) => !taken.has(colour)) ?? 0);
  }
  return variants.flatMap((variant) =>
    SYSTEMS.filter(({ system }) => systems.includes(system)).map(({ system, name, dash }) => {
      const key = `${variant}/${system}`;
      const old = before.find((one) => one.key === key);
      const label = system === "plain" ? variant : `${variant} · ${name}`;
      const colour = colours.get(variant) ?? 0;
      return old ?? { key, variant, system, label, colour, dash, result: undefined, numbers: new Float64Array(), error: undefined, stale: true, took: 0 };
    }),
  );
}

export function accept(one: Case, answer: Answer<Ran>): void {
  one.stale = false;
  one.took = answer.took;
  one.error = answer.error;
  one.result = answer.ok;
  one.numbers = answer.numbers;
}

/** The numbers of a result. */
export function values(one: Case, where: Numbers): Float64Array {
  return one.numbers.subarray(where.at, where.at + where.len);
}
