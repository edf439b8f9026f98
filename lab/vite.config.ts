// Bundles the page, its worker and the engine into one HTML file.
import { readFileSync } from "node:fs";
import { gzipSync } from "node:zlib";
import { defineConfig, type Plugin } from "vite";
import { viteSingleFile } from "vite-plugin-singlefile";

const WASM = process.env.BENTPIPE_WASM ?? "../target/wasm32-unknown-unknown/page/bentpipe_wasm.wasm";
const ENGINE = "virtual:engine";

/** The module `virtual:engine`: the engine, compressed, as base64. A page opened as a file cannot fetch it. */
function engine(): Plugin {
  return {
    name: "engine",
    resolveId: (id) => (id === ENGINE ? `\0${ENGINE}` : undefined),
    load: (id) => {
      if (id !== `\0${ENGINE}`) return undefined;
      const wasm = gzipSync(readFileSync(WASM), { level: 9 });
      return `export default ${JSON.stringify(wasm.toString("base64"))};`;
    },
  };
}

export default defineConfig({
  plugins: [engine(), viteSingleFile()],
  worker: { format: "iife" },
  build: { target: "es2022", modulePreload: false, chunkSizeWarningLimit: 2000 },
  server: { fs: { allow: [".."] } },
});
