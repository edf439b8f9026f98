// The engine in workers: requests of the newest generation only; what is older is forgotten or ended.
import base64 from "virtual:engine";
import EngineWorker from "./worker?worker&inline";
import type { Answer, Request } from "./protocol";

/** A run that nobody waits for is ended after this time; ending it sooner costs more than it saves. */
const PATIENCE_MS = 100;
/** At most so many threads. */
const MAX_THREADS = 4;

interface Job {
  request: Request;
  generation: number;
  done: (answer: Answer<never>) => void;
}

interface Thread {
  worker: Worker;
  job: Job | undefined;
}

export class Engine {
  #module: WebAssembly.Module;
  #threads: Thread[] = [];
  #queue: Job[] = [];
  #generation = 0;

  private constructor(module: WebAssembly.Module) {
    this.#module = module;
    const cores = Math.min(navigator.hardwareConcurrency || 2, MAX_THREADS);
    for (let n = 0; n < cores; n++) this.#threads.push(this.#start());
  }

  static async load(): Promise<Engine> {
    const packed = Uint8Array.from(atob(base64), (letter) => letter.charCodeAt(0));
    const stream = new Blob([packed]).stream().pipeThrough(new DecompressionStream("gzip"));
    return new Engine(await WebAssembly.compile(await new Response(stream).arrayBuffer()));
  }

  /** Begins a generation: answers to earlier requests do not come any more. */
  renew(): void {
    this.#generation++;
    this.#queue = [];
    const stale = this.#generation;
    setTimeout(() => this.#end(stale), PATIENCE_MS);
  }

  /** True while something is asked and not answered. */
  get busy(): boolean {
    return this.#queue.length > 0 || this.#threads.some((thread) => thread.job?.generation === this.#generation);
  }

  ask<T>(request: Request, done: (answer: Answer<T>) => void): void {
    this.#queue.push({ request, generation: this.#generation, done: done as Job["done"] });
    this.#next();
  }

  #start(): Thread {
    const thread: Thread = { worker: new EngineWorker(), job: undefined };
    thread.worker.postMessage(this.#module);
    thread.worker.onmessage = (event: MessageEvent<Answer<never>>) => {
      const job = thread.job;
      thread.job = undefined;
      this.#next();
      if (job && job.generation === this.#generation) job.done(event.data);
    };
    return thread;
  }

  #next(): void {
    for (const thread of this.#threads) {
      if (thread.job) continue;
      const job = this.#queue.shift();
      if (!job) return;
      thread.job = job;
      thread.worker.postMessage(job.request);
    }
  }

  /** Ends runs from before this generation. */
  #end(generation: number): void {
    this.#threads = this.#threads.map((thread) => {
      if (!thread.job || thread.job.generation >= generation) return thread;
      thread.worker.terminate();
      return this.#start();
    });
    this.#next();
  }
}
