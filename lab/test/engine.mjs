// The engine's module in node, as any other program would load it.
import { readFileSync } from "node:fs";
import path from "node:path";
import { ROOT } from "./page.mjs";

const WASM = process.env.BENTPIPE_WASM ?? path.join(ROOT, "target/wasm32-unknown-unknown/page/bentpipe_wasm.wasm");
const module = new WebAssembly.Module(readFileSync(WASM));

export function start() {
  const { memory, alloc, free, call } = new WebAssembly.Instance(module).exports;
  const ask = (request) => {
    const text = new TextEncoder().encode(typeof request === "string" ? request : JSON.stringify(request));
    const at = alloc(text.length);
    new Uint8Array(memory.buffer, at, text.length).set(text);
    const block = call(at, text.length);
    free(at, text.length);
    const view = new DataView(memory.buffer);
    const [len, json] = [view.getUint32(block, true), view.getUint32(block + 4, true)];
    const answer = JSON.parse(new TextDecoder().decode(new Uint8Array(memory.buffer, block + 8, json)));
    const numbers = new Float64Array(memory.buffer.slice(block + Math.ceil((8 + json) / 8) * 8, block + len));
    free(block, len);
    return { ...answer, numbers };
  };
  return { ask, memory, imports: WebAssembly.Module.imports(module) };
}

export const world = (text, name = "test.toml", rest = {}) => ({ text, name, flow: 0, knobs: {}, ...rest });
