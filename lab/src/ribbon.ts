// The ribbon: fades over time, drawn by hand. Dragging on it makes a fade, dragging a fade moves it, Delete removes it.
import { GUTTER, MARGIN, type Range } from "./chart";
import { seconds } from "./units";

export type Fade = [start: number, end: number];

/** Min length of a drawn fade, seconds. */
const SHORTEST = 0.01;

interface Grip {
  kind: "new" | "move";
  /** All fades except the dragged one. */
  rest: Fade[];
  origin: number;
  fade: Fade;
}

export class Ribbon {
  #svg: SVGSVGElement;
  #list: HTMLElement;
  #note: HTMLElement;
  #fades: Fade[] = [];
  #view: Range = { min: 0, max: 1 };
  #grip: Grip | undefined;
  #chosen = -1;
  #changed: (fades: Fade[]) => void;

  constructor(svg: SVGSVGElement, list: HTMLElement, note: HTMLElement, changed: (fades: Fade[]) => void) {
    this.#svg = svg;
    this.#list = list;
    this.#note = note;
    this.#changed = changed;
    svg.addEventListener("pointerdown", (event) => this.#down(event));
    svg.addEventListener("pointermove", (event) => this.#move(event));
    svg.addEventListener("pointerup", () => this.#up());
    svg.addEventListener("pointercancel", () => this.#up());
    svg.addEventListener("keydown", (event) => this.#key(event));
  }

  get dragging(): boolean {
    return this.#grip !== undefined;
  }

  show(fades: Fade[], view: Range): void {
    this.#view = view;
    if (!this.#grip) {
      this.#fades = fades;
      if (this.#chosen >= fades.length) this.#chosen = -1;
      this.#table();
    }
    this.#draw();
  }

  #width(): number {
    return Math.max(this.#svg.clientWidth - GUTTER - MARGIN, 1);
  }

  #x(at: number): number {
    return GUTTER + ((at - this.#view.min) / (this.#view.max - this.#view.min)) * this.#width();
  }

  #at(event: PointerEvent): number {
    const left = event.clientX - this.#svg.getBoundingClientRect().left - GUTTER;
    const part = Math.min(Math.max(left / this.#width(), 0), 1);
    return Math.max(this.#view.min + part * (this.#view.max - this.#view.min), 0);
  }

  #down(event: PointerEvent): void {
    if (event.button !== 0) return;
    event.preventDefault();
    this.#svg.focus();
    this.#svg.setPointerCapture(event.pointerId);
    const at = this.#at(event);
    // Some pixels beside a fade count as on it, for fingers and thin fades.
    const near = (4 / this.#width()) * (this.#view.max - this.#view.min);
    const hit = this.#fades.findIndex(([from, to]) => at >= from - near && at <= to + near);
    this.#chosen = hit;
    const rest = this.#fades.filter((_, n) => n !== hit);
    this.#grip = { kind: hit < 0 ? "new" : "move", rest, origin: at, fade: this.#fades[hit] ?? [at, at + SHORTEST] };
    this.#draw();
  }

  #move(event: PointerEvent): void {
    const grip = this.#grip;
    if (!grip) return;
    const at = this.#at(event);
    const [from, to] = grip.fade;
    const moved: Fade =
      grip.kind === "new"
        ? [Math.min(grip.origin, at), Math.max(grip.origin, at, Math.min(grip.origin, at) + SHORTEST)]
        : [Math.max(from + at - grip.origin, 0), Math.max(from + at - grip.origin, 0) + to - from];
    if (Math.abs(at - grip.origin) < (2 / this.#width()) * (this.#view.max - this.#view.min)) return;
    this.#set([...grip.rest, moved], moved);
  }

  #up(): void {
    this.#grip = undefined;
    this.#table();
  }

  #key(event: KeyboardEvent): void {
    const step = (this.#view.max - this.#view.min) / (event.shiftKey ? 20 : 100);
    const chosen = this.#fades[this.#chosen];
    if (event.key === "Enter" || event.key === "Insert") this.add();
    else if ((event.key === "Delete" || event.key === "Backspace") && chosen) {
      this.#set(this.#fades.filter((fade) => fade !== chosen));
      this.#table();
    } else if (event.key === "ArrowDown" || event.key === "ArrowUp") {
      const count = this.#fades.length;
      if (count > 0) this.#chosen = (this.#chosen + (event.key === "ArrowDown" ? 1 : count - 1) + count) % count;
      this.#draw();
    } else if ((event.key === "ArrowLeft" || event.key === "ArrowRight") && chosen) {
      const by = event.key === "ArrowLeft" ? Math.max(-step, -chosen[0]) : step;
      const moved: Fade = [chosen[0] + by, chosen[1] + by];
      this.#set([...this.#fades.filter((fade) => fade !== chosen), moved], moved);
      this.#table();
    } else return;
    event.preventDefault();
  }

  /** Adds a fade in the middle of the longest gap in view. */
  add(): void {
    const { min, max } = this.#view;
    const seen = this.#fades.filter(([from, to]) => to > min && from < max);
    const edges: Fade[] = [[min, min], ...seen, [max, max]];
    const gaps = edges.slice(1).map(([from], n): Fade => [edges[n]![1], from]);
    const [from, to] = gaps.reduce((best, gap) => (gap[1] - gap[0] > best[1] - best[0] ? gap : best));
    const long = Math.max(Math.min((max - min) / 40, (to - from) / 2), SHORTEST);
    const made: Fade = [(from + to - long) / 2, (from + to + long) / 2];
    this.#set([...this.#fades, made], made);
    this.#table();
  }

  clear(): void {
    this.#set([]);
    this.#table();
  }

  /** Sorts the fades and joins those that touch. */
  #set(fades: Fade[], keep?: Fade): void {
    const joined: Fade[] = [];
    // Rounded to milliseconds, to keep the scenario's text readable.
    const round = (value: number) => Math.round(value * 1000) / 1000;
    for (const [from, to] of fades.map(([from, to]): Fade => [round(from), round(to)]).sort((a, b) => a[0] - b[0])) {
      const last = joined[joined.length - 1];
      if (last && from <= last[1]) last[1] = Math.max(last[1], to);
      else joined.push([from, to]);
    }
    this.#fades = joined;
    this.#chosen = keep ? joined.findIndex(([from, to]) => keep[0] >= from - 0.001 && keep[0] <= to) : -1;
    this.#draw();
    this.#changed(joined);
  }

  #draw(): void {
    const height = this.#svg.clientHeight || 34;
    const marks = this.#fades.map(([from, to], n) => {
      const left = Math.max(this.#x(from), GUTTER);
      const right = Math.min(this.#x(to), GUTTER + this.#width());
      if (right < GUTTER || left > GUTTER + this.#width()) return "";
      return `<rect class="fade${n === this.#chosen ? " chosen" : ""}" x="${left}" y="3" width="${Math.max(right - left, 2)}" height="${height - 6}" rx="2"><title>${seconds(from)} to ${seconds(to)}</title></rect>`;
    });
    const empty = `<rect class="strip" x="${GUTTER}" y="0.5" width="${this.#width()}" height="${height - 1}" rx="5"/>`;
    const hint = this.#fades.length ? "" : `<text class="hint" x="${GUTTER + this.#width() / 2}" y="${height / 2 + 4}" text-anchor="middle">clear sky · drag here to draw a fade</text>`;
    this.#svg.innerHTML = `<text class="name" x="${GUTTER - 8}" y="${height / 2 + 4}" text-anchor="end">fades</text>${empty}${hint}${marks.join("")}`;
    const total = this.#fades.reduce((sum, [from, to]) => sum + to - from, 0);
    this.#note.textContent = this.#fades.length ? `${this.#fades.length} ${this.#fades.length === 1 ? "fade" : "fades"}, ${seconds(total)} in total` : "";
  }

  /** Shows the fades as numbers, for keyboards, screen readers and exact values. */
  #table(): void {
    const MAX_ROWS = 40;
    if (this.#list.contains(document.activeElement)) return;
    const rows = this.#fades.slice(0, MAX_ROWS).map(
      ([from, to], n) => `<li><label>start <input type="number" min="0" step="any" value="${Number(from.toFixed(3))}" data-n="${n}" data-what="start" aria-label="start of fade ${n + 1}, seconds"> s</label>
        <label>length <input type="number" min="0.001" step="any" value="${Number((to - from).toFixed(3))}" data-n="${n}" data-what="length" aria-label="length of fade ${n + 1}, seconds"> s</label>
        <button type="button" data-n="${n}" aria-label="remove fade ${n + 1}">×</button></li>`,
    );
    if (this.#fades.length > MAX_ROWS) rows.push(`<li>and ${this.#fades.length - MAX_ROWS} more</li>`);
    this.#list.innerHTML = rows.join("");
    for (const input of this.#list.querySelectorAll("input")) {
      input.addEventListener("change", () => {
        const n = Number(input.dataset.n);
        const [from, to] = this.#fades[n]!;
        const value = Number(input.value);
        if (!Number.isFinite(value) || value < 0) return;
        const next: Fade = input.dataset.what === "start" ? [value, value + to - from] : [from, from + Math.max(value, 0.001)];
        this.#set([...this.#fades.filter((_, other) => other !== n), next], next);
      });
    }
    for (const button of this.#list.querySelectorAll("button")) {
      button.addEventListener("click", () => {
        button.blur();
        this.#set(this.#fades.filter((_, other) => other !== Number(button.dataset.n)));
        this.#table();
      });
    }
  }
}
