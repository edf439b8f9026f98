// The marks of plots, from a result's columns: bars from min to max, steps, areas, points.
import type { Brush } from "./chart";
import { type Case, values } from "./cases";
import type { Drawing, Numbers, Scatter } from "./protocol";

interface Look {
  colour: string;
  /** 0 to 1. */
  alpha?: number;
  dash?: number[];
  width?: number;
}

function begin({ ctx, ratio }: Brush, look: Look): void {
  ctx.strokeStyle = ctx.fillStyle = look.colour;
  ctx.globalAlpha = look.alpha ?? 1;
  ctx.lineWidth = (look.width ?? 1.5) * ratio;
  ctx.setLineDash((look.dash ?? []).map((length) => length * ratio));
}

/** A bar from min to max in each column that has values, like xplot's segments. */
export function bars(brush: Brush, one: Case, drawing: Drawing, look: Look): void {
  const { ctx, x, y, ratio } = brush;
  const { from_s, column_s } = one.result!.plot;
  const [lo, hi] = [values(one, drawing.lo), values(one, drawing.hi)];
  begin(brush, look);
  const wide = Math.max(x(from_s + column_s) - x(from_s), (look.width ?? 1.5) * ratio);
  const least = (look.width ?? 1.5) * ratio;
  for (let n = 0; n < lo.length; n++) {
    if (Number.isNaN(lo[n]!)) continue;
    const [low, high] = [y(lo[n]! - 0.5), y(hi[n]! + 0.5)];
    const tall = Math.max(low - high, least);
    ctx.fillRect(x(from_s + n * column_s), (low + high - tall) / 2, wide, tall);
  }
}

/** A step line through the last value of each column; with `band`, also a band from min to max. */
export function steps(brush: Brush, one: Case, drawing: Drawing, look: Look, band = false): void {
  const { ctx, x, y } = brush;
  const { from_s, column_s } = one.result!.plot;
  const [lo, hi, last] = [values(one, drawing.lo), values(one, drawing.hi), values(one, drawing.last)];
  begin(brush, look);
  if (band) {
    ctx.globalAlpha *= 0.35;
    const wide = Math.max(x(from_s + column_s) - x(from_s), 1);
    for (let n = 0; n < lo.length; n++) {
      if (lo[n]! < hi[n]!) ctx.fillRect(x(from_s + n * column_s), y(hi[n]!), wide, y(lo[n]!) - y(hi[n]!));
    }
    ctx.globalAlpha = look.alpha ?? 1;
  }
  ctx.beginPath();
  let before: number | undefined;
  for (let n = 0; n < last.length; n++) {
    const value = last[n]!;
    if (Number.isNaN(value)) continue;
    const at = x(from_s + n * column_s);
    if (before === undefined) ctx.moveTo(at, y(value));
    else {
      ctx.lineTo(at, y(before));
      ctx.lineTo(at, y(value));
    }
    before = value;
  }
  if (before !== undefined) ctx.lineTo(x(from_s + last.length * column_s), y(before));
  ctx.stroke();
}

/** Each column's maximum, filled down to zero, so that narrow peaks stay visible. */
export function area(brush: Brush, one: Case, drawing: Drawing, look: Look): void {
  const { ctx, x, y } = brush;
  const { from_s, column_s } = one.result!.plot;
  const hi = values(one, drawing.hi);
  begin(brush, look);
  // Each pixel is filled once, because overlapping fills are darker. Columns that share a pixel use their maximum.
  const fill = (left: number, right: number, top: number) => ctx.fillRect(left, y(top), right - left, y(0) - y(top));
  let [left, right, top] = [0, 0, 0];
  for (let n = 0; n < hi.length; n++) {
    if (!(hi[n]! > 0)) continue;
    const from = Math.floor(x(from_s + n * column_s));
    const to = Math.max(Math.floor(x(from_s + (n + 1) * column_s)), from + 1);
    if (from < right) top = Math.max(top, hi[n]!);
    else {
      if (top > 0) fill(left, right, top);
      [left, right, top] = [from, to, hi[n]!];
    }
    right = Math.max(right, to);
  }
  if (top > 0) fill(left, right, top);
}

type Shape = "diamond" | "cross" | "plus";

/** A mark for each point. */
export function dots(brush: Brush, one: Case, scatter: Scatter, shape: Shape, look: Look): void {
  const { ctx, x, y, ratio } = brush;
  const points = values(one, scatter.points);
  begin(brush, { width: 1.3, ...look });
  const size = (points.length > 1000 ? 2.2 : 3.4) * ratio;
  ctx.beginPath();
  for (let n = 0; n + 1 < points.length; n += 2) {
    const [at, value] = [x(points[n]!), y(points[n + 1]!)];
    if (shape === "diamond") {
      ctx.moveTo(at, value - size);
      ctx.lineTo(at + size, value);
      ctx.lineTo(at, value + size);
      ctx.lineTo(at - size, value);
      // Cheaper than `closePath` for thousands of marks.
      ctx.lineTo(at, value - size);
    } else {
      const [dx, dy] = shape === "cross" ? [size, size] : [size * 1.2, 0];
      ctx.moveTo(at - dx, value - dy);
      ctx.lineTo(at + dx, value + dy);
      ctx.moveTo(at - dy, value + dx);
      ctx.lineTo(at + dy, value - dx);
    }
  }
  ctx.stroke();
}

/** Ticks from the top for columns with losses. A single loss is visible; the length grows with the logarithm of the count. */
export function losses(brush: Brush, one: Case, counts: Numbers, row: number, look: Look): void {
  const { ctx, x, ratio, box } = brush;
  const { from_s, column_s } = one.result!.plot;
  const all = values(one, counts);
  begin(brush, look);
  const wide = Math.max(x(from_s + column_s) - x(from_s), 1.5 * ratio);
  for (let n = 0; n < all.length; n++) {
    if (!all[n]) continue;
    const tall = (4 + Math.min(Math.log2(all[n]!) * 1.6, 10)) * ratio;
    ctx.fillRect(x(from_s + n * column_s), box.top + row * 16 * ratio, wide, tall);
  }
}

/** A horizontal line with its name. */
export function level(brush: Brush, value: number, name: string, look: Look): void {
  const { ctx, y, ratio, box } = brush;
  begin(brush, { width: 1, dash: [5, 4], ...look });
  const at = Math.round(y(value));
  ctx.beginPath();
  ctx.moveTo(box.left, at);
  ctx.lineTo(box.left + box.width, at);
  ctx.stroke();
  ctx.font = `${10.5 * ratio}px system-ui, sans-serif`;
  ctx.textAlign = "right";
  ctx.textBaseline = at - box.top > 14 * ratio ? "bottom" : "top";
  ctx.globalAlpha = 1;
  ctx.setLineDash([]);
  ctx.lineWidth = 4 * ratio;
  ctx.strokeStyle = brush.style.plane;
  ctx.lineJoin = "round";
  ctx.strokeText(name, box.left + box.width - 4 * ratio, at + (ctx.textBaseline === "top" ? 2 : -2) * ratio);
  ctx.fillText(name, box.left + box.width - 4 * ratio, at + (ctx.textBaseline === "top" ? 2 : -2) * ratio);
}

/** Fades behind the marks, each at least a pixel wide. */
export function shade(brush: Brush, fades: [number, number][], colour: string): void {
  const { ctx, x, box, ratio } = brush;
  begin(brush, { colour, alpha: 0.22 });
  for (const [from, to] of fades) {
    const [left, right] = [x(from), x(to)];
    ctx.fillRect(left, box.top, Math.max(right - left, ratio), box.height);
  }
}

/** The sums of columns as a rate, averaged over groups of `group` columns. */
export function rates(brush: Brush, one: Case, sums: Numbers, group: number, factor: number, look: Look): void {
  const { ctx, x, y } = brush;
  const { from_s, column_s } = one.result!.plot;
  begin(brush, look);
  ctx.beginPath();
  averages(values(one, sums), group).forEach((sum, n) => {
    const value = y((sum * factor) / column_s);
    const [left, right] = [x(from_s + n * group * column_s), x(from_s + (n + 1) * group * column_s)];
    if (n === 0) ctx.moveTo(left, value);
    else ctx.lineTo(left, value);
    ctx.lineTo(right, value);
  });
  ctx.stroke();
}

export function averages(sums: Float64Array, group: number): number[] {
  const out: number[] = [];
  for (let n = 0; n < sums.length; n += group) {
    const part = sums.subarray(n, n + group);
    out.push(part.reduce((sum, value) => sum + value, 0) / part.length);
  }
  return out;
}
