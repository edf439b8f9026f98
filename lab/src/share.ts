// Stores the state in the URL's fragment, so that a link is a whole experiment and no server sees it.
import type { System } from "./protocol";

export interface Shared {
  toml: string;
  variants?: string[];
  systems?: System[];
  flow?: number;
  link?: string;
}

const PREFIX = "#lab=";
/** Written by `bentpipe lab FILE`: only the scenario, percent-encoded. */
const PLAIN = "#toml=";

async function through(bytes: Uint8Array, stream: TransformStream): Promise<Uint8Array> {
  const piped = new Blob([bytes as BlobPart]).stream().pipeThrough(stream);
  return new Uint8Array(await new Response(piped).arrayBuffer());
}

export async function toFragment(shared: Shared): Promise<string> {
  const packed = await through(new TextEncoder().encode(JSON.stringify(shared)), new CompressionStream("deflate-raw"));
  const letters = Array.from(packed, (byte) => String.fromCharCode(byte)).join("");
  return PREFIX + btoa(letters).replaceAll("+", "-").replaceAll("/", "_").replaceAll("=", "");
}

/** Decodes a fragment; `undefined` if it is not one of these forms, "damaged" if it is one and cannot be decoded. */
export async function fromFragment(fragment: string): Promise<Shared | "damaged" | undefined> {
  try {
    if (fragment.startsWith(PLAIN)) return { toml: decodeURIComponent(fragment.slice(PLAIN.length)) };
    if (!fragment.startsWith(PREFIX)) return undefined;
    const letters = atob(fragment.slice(PREFIX.length).replaceAll("-", "+").replaceAll("_", "/"));
    const bytes = Uint8Array.from(letters, (letter) => letter.charCodeAt(0));
    const text = new TextDecoder().decode(await through(bytes, new DecompressionStream("deflate-raw")));
    const shared: unknown = JSON.parse(text);
    if (typeof shared !== "object" || shared === null || typeof (shared as Shared).toml !== "string") return "damaged";
    return shared as Shared;
  } catch {
    return "damaged";
  }
}
