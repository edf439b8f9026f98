// A worker with an instance of the engine. The first message is the module, all others are requests.
import { Instance } from "./instance";
import type { Request } from "./protocol";

let instance: Instance | undefined;

self.onmessage = (event: MessageEvent<WebAssembly.Module | Request>) => {
  const data = event.data;
  if (data instanceof WebAssembly.Module) {
    instance = new Instance(data);
    return;
  }
  const answer = instance!.call(data);
  self.postMessage(answer, { transfer: [answer.numbers.buffer as ArrayBuffer] });
};
