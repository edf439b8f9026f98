// Stores the state in the URL's fragment, so that a link is a whole experiment and no server sees it. A fragment may come from anybody, so
// each value is checked before the page uses it.
import type { System } from "./protocol";

export interface Shared {
  toml: string;
  variants?: string[];
  systems?: System[];
  flow?: number;
  link?: string;
}

/** Why a fragment is not used, as the end of a sentence. */
export interface Refused {
  refused: string;
}

/** Max length of a fragment, characters. Chromium keeps addresses up to this length. */
const MAX_FRAGMENT = 1 << 21;
/** Max length of the experiment in it, bytes. Packed text can be a thousand times as long as its fragment. */
const MAX_BYTES = 4_000_000;
const TOO_LONG: Refused = { refused: `the experiment is longer than ${MAX_BYTES / 1e6} MB, the maximum for a link` };
const DAMAGED: Refused = { refused: "the link was cut off or changed" };

/** `bentpipe lab FILE` writes this, too (crates/bentpipe-cli/src/commands/lab.rs). */
const PREFIX = "#lab=";

/** The bytes that come out of `stream`; `undefined` if there are more than `MAX_BYTES`. */
async function through(bytes: Uint8Array, stream: TransformStream<BufferSource, Uint8Array>): Promise<Uint8Array | undefined> {
  const reader = new Blob([bytes as BlobPart]).stream().pipeThrough(stream as TransformStream<Uint8Array, Uint8Array>).getReader();
  const parts: Uint8Array[] = [];
  let length = 0;
  for (;;) {
    const { done, value } = await reader.read();
    if (done) break;
    parts.push(value);
    length += value.length;
    if (length > MAX_BYTES) {
      await reader.cancel();
      return undefined;
    }
  }
  const all = new Uint8Array(length);
  let at = 0;
  for (const part of parts) {
    all.set(part, at);
    at += part.length;
  }
  return all;
}

/** The state as a fragment; `undefined` if it is too long for a link. */
export async function toFragment(shared: Shared): Promise<string | undefined> {
  const bytes = new TextEncoder().encode(JSON.stringify(shared));
  const packed = bytes.length > MAX_BYTES ? undefined : await through(bytes, new CompressionStream("deflate-raw"));
  if (!packed) return undefined;
  const letters = Array.from(packed, (byte) => String.fromCharCode(byte)).join("");
  const fragment = PREFIX + btoa(letters).replaceAll("+", "-").replaceAll("/", "_").replaceAll("=", "");
  return fragment.length > MAX_FRAGMENT ? undefined : fragment;
}

/** Decodes a fragment; `undefined` if it has no experiment. */
export async function fromFragment(fragment: string): Promise<Shared | Refused | undefined> {
  if (!fragment.startsWith(PREFIX)) return undefined;
  if (fragment.length > MAX_FRAGMENT) return TOO_LONG;
  try {
    const letters = atob(fragment.slice(PREFIX.length).replaceAll("-", "+").replaceAll("_", "/"));
    const bytes = Uint8Array.from(letters, (letter) => letter.charCodeAt(0));
    const unpacked = await through(bytes, new DecompressionStream("deflate-raw"));
    return unpacked ? checked(JSON.parse(new TextDecoder("utf-8", { fatal: true }).decode(unpacked))) : TOO_LONG;
  } catch {
    return DAMAGED;
  }
}

/** The values that the page knows; all others are left out. */
function checked(given: unknown): Shared | Refused {
  if (typeof given !== "object" || given === null || Array.isArray(given)) return DAMAGED;
  const { toml, variants, systems, flow, link } = given as Record<string, unknown>;
  if (typeof toml !== "string") return { refused: "its `toml` is not a text" };
  const shared: Shared = { toml };
  if (variants !== undefined) {
    if (!isTexts(variants)) return { refused: "its `variants` are not a list of texts" };
    shared.variants = [...new Set(variants)];
  }
  if (systems !== undefined) {
    if (!isTexts(systems)) return { refused: "its `systems` are not a list of texts" };
    // The page ignores those that it does not have.
    shared.systems = systems as System[];
  }
  if (flow !== undefined) {
    if (!Number.isSafeInteger(flow) || (flow as number) < 0) return { refused: "its `flow` is not a whole number from 0" };
    shared.flow = flow as number;
  }
  if (link !== undefined) {
    if (typeof link !== "string") return { refused: "its `link` is not a text" };
    shared.link = link;
  }
  return shared;
}

function isTexts(value: unknown): value is string[] {
  return Array.isArray(value) && value.every((one) => typeof one === "string");
}
