// The shipped scenarios that the page can run, which has no QUIC.
const files = import.meta.glob<string>("../../scenarios/*.toml", { query: "?raw", import: "default", eager: true });

/** Name and text of each. */
export const PRESETS = new Map(
  Object.entries(files).filter(([, text]) => !/^type = "quic"$/m.test(text)).map(([path, text]) => [path.replace(/^.*\/(.*)\.toml$/, "$1"), text]),
);

/** The first groups of the list. All other scenarios follow. */
export const GROUPS: [string, string[]][] = [
  ["Orbits and markets", ["geo", "geo-bursts", "geo-ku", "geo-ka-rain", "maritime-vsat", "meo", "leo", "starlink", "d2d"]],
  ["What helps", ["slacp-geo", "slacp-voice", "split-stp", "stp", "request-response"]],
];

export function groups(): [string, string[]][] {
  const known = new Set(GROUPS.flatMap(([, names]) => names));
  const rest = [...PRESETS.keys()].filter((name) => !known.has(name)).sort();
  const present = GROUPS.map(([title, names]): [string, string[]] => [title, names.filter((name) => PRESETS.has(name))]);
  return [...present, ["From papers", rest]];
}
