// Requests to the engine and its answers: the types of crates/bentpipe-wasm/src/{request,run,plot}.

export type System = "plain" | "bbr" | "uplink" | "link" | "split";

export interface Knobs {
  rate_bit_s?: number;
  delay_s?: number;
  loss?: number;
  queue_s?: number;
  bytes?: number;
  fades?: [number, number][];
  /** Its digits: a number is exact only up to 2^53. */
  seed?: string;
}

export interface World {
  text: string;
  name: string;
  flow: number;
  link?: string;
  knobs: Knobs;
}

export type Request =
  | { op: "about" }
  | ({ op: "look" } & World)
  | {
      op: "run";
      world: World;
      variant?: string;
      system: System;
      window?: [number, number];
      size: [number, number];
    }
  | { op: "fingerprint"; world: World; limit_s?: number };

export interface Named {
  name: string;
  description: string;
}

export interface About {
  version: string;
  variants: Named[];
  systems: System[];
}

export interface Settings {
  link: string;
  rate_bit_s: number | null;
  delay_s: number;
  loss: number;
  queue_s: number | null;
  queue_packets: number | null;
  bytes: number | null;
  seed: string;
}

export interface Look {
  name: string;
  description: string;
  toml: string;
  settings: Settings;
  path: string[];
  flows: { name: string; from: string; to: string; variant: string | null }[];
  variants: Named[];
  unfit: [System, string][];
  warnings: string;
}

/** The position of numbers in the array that follows the JSON. */
export interface Numbers {
  at: number;
  len: number;
}

export interface Drawing {
  lo: Numbers;
  hi: Numbers;
  last: Numbers;
}

export interface Scatter {
  count: number;
  points: Numbers;
}

export interface FlowSummary {
  name: string;
  from: string;
  to: string;
  variant: string | null;
  bytes: number;
  time_s: number | null;
  goodput_bit_s: number | null;
  limit_time_s: number | null;
  limit_goodput_bit_s: number | null;
  x_limit: number | null;
  segments: number;
  retransmissions: number;
  timeouts: number;
  aborted: string | null;
  legs?: { from: string; to: string; variant: string; retransmissions: number; timeouts: number }[];
}

export interface LinkSummary {
  name: string;
  rate_bit_s: number | null;
  utilisation: number | null;
  delivered_packets: number;
  dropped: { queue_full: number; early: number; channel: number; listed: number; too_long: number };
  max_queue_packets: number;
}

export interface Ran {
  summary: { end_s: number; timed_out: boolean; flows: FlowSummary[]; links: LinkSummary[]; events: number };
  stopped: boolean;
  link: string;
  queue_packets: number | null;
  leg: [string, string] | null;
  bdp_segments: number | null;
  segment_bytes: number;
  fades_s: [number, number][];
  plot: {
    from_s: number;
    column_s: number;
    columns: number;
    sent: Drawing;
    acks: Drawing;
    cwnd: Drawing;
    flight: Drawing;
    queue: Drawing;
    dropped_queue: Numbers;
    dropped_channel: Numbers;
    arrived_bytes: Numbers;
    resent: Scatter;
    lost_queue: Scatter;
    lost_channel: Scatter;
    timeouts_s: number[];
  };
}

export interface Answer<T> {
  ok?: T;
  error?: string;
  numbers: Float64Array;
  /** Time of the call, milliseconds. */
  took: number;
}
