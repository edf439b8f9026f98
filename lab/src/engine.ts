// Runs the engine in workers. Only requests of the newest generation count; older ones are dropped or terminated.
import base64 from "virtual:engine";
import EngineWorker from "./worker?worker&inline";
import type { Answer, Request } from "./protocol";

/** A stale run is terminated after this time. Terminating it sooner costs more than it saves. */
const PATIENCE_MS = 100;
/** Max number of workers. */
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

  /** Starts a generation. Answers to earlier requests are not delivered any more. */
  renew(): void {
    this.#generation++;
    this.#queue = [];
    const stale = this.#generation;
    setTimeout(() => this.#end(stale), PATIENCE_MS);
  }

  /** True while a request of this generation is unanswered. */
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

  /** Terminates workers that run requests from before this generation. */
  #end(generation: number): void {
    this.#threads = this.#threads.map((thread) => {
      if (!thread.job || thread.job.generation >= generation) return thread;
      thread.worker.terminate();
      return this.#start();
    });
    this.#next();
  }
}
