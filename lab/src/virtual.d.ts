declare module "virtual:engine" {
  /** The engine's wasm, gzipped, as base64. */
  const base64: string;
  export default base64;
}
