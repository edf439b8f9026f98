// An instance of the engine. crates/bentpipe-wasm/src/lib.rs describes its interface.
import type { Answer, Request } from "./protocol";

interface Exports {
  memory: WebAssembly.Memory;
  alloc(len: number): number;
  free(at: number, len: number): void;
  call(at: number, len: number): number;
  last_words(): number;
}

export class Instance {
  #module: WebAssembly.Module;
  #engine: Exports;

  constructor(module: WebAssembly.Module) {
    this.#module = module;
    this.#engine = fresh(module);
  }

  call<T>(request: Request): Answer<T> {
    const began = performance.now();
    const engine = this.#engine;
    try {
      const text = new TextEncoder().encode(JSON.stringify(request));
      const at = engine.alloc(text.length);
      new Uint8Array(engine.memory.buffer, at, text.length).set(text);
      const block = engine.call(at, text.length);
      engine.free(at, text.length);
      const answer = unpack<T>(engine, block);
      return { ...answer, took: performance.now() - began };
    } catch (trap) {
      const error = `The engine stopped: ${words(engine) || String(trap)}`;
      this.#engine = fresh(this.#module);
      return { error, numbers: new Float64Array(), took: performance.now() - began };
    }
  }
}

function fresh(module: WebAssembly.Module): Exports {
  return new WebAssembly.Instance(module).exports as unknown as Exports;
}

function unpack<T>(engine: Exports, at: number): { ok?: T; error?: string; numbers: Float64Array } {
  const view = new DataView(engine.memory.buffer);
  const [len, json] = [view.getUint32(at, true), view.getUint32(at + 4, true)];
  const text = new TextDecoder().decode(new Uint8Array(engine.memory.buffer, at + 8, json));
  const numbers = new Float64Array(engine.memory.buffer.slice(at + Math.ceil((8 + json) / 8) * 8, at + len));
  engine.free(at, len);
  return { ...(JSON.parse(text) as { ok?: T; error?: string }), numbers };
}

/** The panic's message, if it left one. */
function words(engine: Exports): string {
  try {
    const at = engine.last_words();
    const view = new DataView(engine.memory.buffer);
    return new TextDecoder().decode(new Uint8Array(engine.memory.buffer, at + 8, view.getUint32(at + 4, true)));
  } catch {
    return "";
  }
}
