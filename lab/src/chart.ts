// A plot over time: uPlot handles the axes, the pointer and the zoom; `Hooks.draw` draws the marks.
import uPlot from "uplot";

export interface Range {
  min: number;
  max: number;
}

export interface Style {
  text: string;
  faint: string;
  grid: string;
  plane: string;
  lost: string;
  colours: string[];
}

let known: { theme: string; style: Style } | undefined;
const dark = matchMedia("(prefers-color-scheme: dark)");

/** The theme's colours, from the style sheet. */
export function style(): Style {
  const theme = `${document.documentElement.dataset.theme} ${dark.matches}`;
  if (known?.theme !== theme) known = { theme, style: read() };
  return known.style;
}

function read(): Style {
  // The value of the property is the text `light-dark(..)`. Only an element that uses it has the colour.
  const user = document.body.appendChild(document.createElement("span"));
  const css = getComputedStyle(user);
  const colour = (name: string) => {
    user.style.color = `var(${name})`;
    return css.color;
  };
  const style = {
    text: colour("--text"),
    faint: colour("--faint"),
    grid: colour("--grid"),
    plane: colour("--plane"),
    lost: colour("--lost"),
    colours: [...Array(6).keys()].map((n) => colour(`--case-${n}`)),
  };
  user.remove();
  return style;
}

/** The canvas of a plot. Positions are in canvas pixels. */
export interface Brush {
  ctx: CanvasRenderingContext2D;
  x: (at: number) => number;
  y: (value: number) => number;
  /** Canvas pixels per CSS pixel. */
  ratio: number;
  box: { left: number; top: number; width: number; height: number };
  style: Style;
}

export interface Hooks {
  draw: (brush: Brush) => void;
  /** Gets the time under the pointer, or `undefined` when the pointer leaves. */
  hover: (at: number | undefined) => void;
  zoom: (from: number, to: number) => void;
  reset: () => void;
}

/** Width of the axis beside each plot. It is the same for all, so that plots and ribbon share the time axis. */
export const GUTTER = 62;
export const MARGIN = 14;

export class Chart {
  #plot: uPlot;
  #parent: HTMLElement;
  #x: Range = { min: 0, max: 1 };
  #y: Range = { min: 0, max: 1 };
  #height: number;

  constructor(parent: HTMLElement, label: string, unit: (value: number) => string, height: number, hooks: Hooks, last: boolean) {
    this.#parent = parent;
    this.#height = height;
    const font = "11px system-ui, sans-serif";
    const axis = { stroke: () => style().faint, grid: { stroke: () => style().grid, width: 1 }, ticks: { show: false }, font, labelFont: font };
    this.#plot = new uPlot(
      {
        width: Math.max(parent.clientWidth, 200),
        height,
        padding: [10, MARGIN, last ? 0 : 2, 0],
        legend: { show: false },
        cursor: { sync: { key: "time" }, drag: { x: true, y: false, setScale: false }, points: { show: false }, y: false },
        scales: {
          x: { time: false, range: () => [this.#x.min, this.#x.max] },
          y: { range: () => [this.#y.min, this.#y.max] },
        },
        axes: [
          { ...axis, show: true, size: last ? 20 : 8, label: last ? "time (s)" : "", labelSize: last ? 14 : 0, labelGap: 0, gap: 3, values: (_u, ticks) => (last ? ticks.map((tick) => trim(tick)) : ticks.map(() => "")) },
          { ...axis, size: GUTTER - 18, label, labelSize: 18, gap: 4, space: 28, values: (_u, ticks) => ticks.map(unit) },
        ],
        series: [{}, { show: true, stroke: "transparent", points: { show: false } }],
        hooks: {
          draw: [(plot) => this.#draw(plot, hooks)],
          setCursor: [
            (plot) => {
              const left = plot.cursor.left ?? -1;
              hooks.hover(left < 0 ? undefined : plot.posToVal(left, "x"));
            },
          ],
          setSelect: [
            (plot) => {
              const { left, width } = plot.select;
              if (width < 4) return;
              hooks.zoom(plot.posToVal(left, "x"), plot.posToVal(left + width, "x"));
              plot.setSelect({ left: 0, width: 0, top: 0, height: 0 }, false);
            },
          ],
        },
      },
      [
        [0, 1],
        [null, null],
      ],
      parent,
    );
    this.#plot.over.addEventListener("dblclick", () => hooks.reset());
  }

  #draw(plot: uPlot, hooks: Hooks): void {
    const { ctx, bbox: box } = plot;
    ctx.save();
    ctx.beginPath();
    ctx.rect(box.left, box.top, box.width, box.height);
    ctx.clip();
    const ratio = devicePixelRatio || 1;
    hooks.draw({
      ctx,
      x: (at) => plot.valToPos(at, "x", true),
      y: (value) => plot.valToPos(value, "y", true),
      ratio,
      box,
      style: style(),
    });
    ctx.restore();
  }

  /** Redraws the plot over these ranges. */
  show(x: Range, top: number, bottom = 0): void {
    this.#x = x;
    const over = Math.max(top - bottom, 1e-9) * 0.06;
    this.#y = top > bottom ? { min: bottom > 0 ? bottom - over : 0, max: top + over } : { min: 0, max: 1 };
    this.#plot.setData(
      [
        [x.min, x.max],
        [null, null],
      ],
      true,
    );
  }

  fit(): void {
    const width = this.#parent.clientWidth;
    if (width > 0 && width !== this.#plot.width) this.#plot.setSize({ width, height: this.#height });
  }
}

function trim(value: number): string {
  return String(Number(value.toFixed(6)));
}
