// The results as rows: a bar for the time over the limit, with a mark at the limit.
import type { Case } from "./cases";
import type { FlowSummary } from "./protocol";
import { bytes, count, number, rate, seconds } from "./units";

const escape = (text: string) => text.replace(/[&<>"]/g, (letter) => `&#${letter.charCodeAt(0)};`);

/** The text of a result: its time, or how it ended. */
function outcome(one: Case, flow: FlowSummary): { text: string; bad: boolean } {
  if (one.result!.stopped) return { text: `stopped after ${seconds(one.result!.summary.end_s)}: too many events`, bad: true };
  if (flow.aborted) return { text: flow.aborted, bad: true };
  if (flow.time_s !== null) return { text: seconds(flow.time_s), bad: false };
  if (one.result!.summary.timed_out) return { text: `not done in ${seconds(one.result!.summary.end_s)}`, bad: true };
  return { text: flow.goodput_bit_s === null ? "nothing arrived" : rate(flow.goodput_bit_s), bad: false };
}

export class Bars {
  #parent: HTMLElement;
  #choose: (key: string) => void;

  constructor(parent: HTMLElement, choose: (key: string) => void) {
    this.#parent = parent;
    this.#choose = choose;
    parent.addEventListener("click", (event) => {
      const row = (event.target as HTMLElement).closest<HTMLElement>("[data-key]");
      if (row) this.#choose(row.dataset.key!);
    });
    parent.addEventListener("keydown", (event) => {
      const rows = [...parent.querySelectorAll<HTMLElement>("[data-key]")];
      const step = { ArrowDown: 1, ArrowRight: 1, ArrowUp: -1, ArrowLeft: -1 }[event.key];
      const at = rows.indexOf(document.activeElement as HTMLElement);
      if (step === undefined || at < 0) return;
      event.preventDefault();
      const next = rows[(at + step + rows.length) % rows.length]!;
      this.#choose(next.dataset.key!);
      parent.querySelector<HTMLElement>(`[data-key="${CSS.escape(next.dataset.key!)}"]`)?.focus();
    });
  }

  show(cases: Case[], focus: Case | undefined, flow: number): void {
    const flows = cases.map((one) => one.result?.summary.flows[flow]);
    const ratios = flows.map((one) => one?.x_limit ?? 0);
    const longest = Math.max(1.25, ...ratios);
    const part = (value: number) => `${(value / longest) * 100}%`;
    const had = this.#parent.contains(document.activeElement) ? (document.activeElement as HTMLElement).dataset.key : undefined;
    this.#parent.innerHTML = cases
      .map((one, n) => {
        const result = flows[n];
        const chosen = one === focus;
        const told = one.error ? { text: one.error, bad: true } : result ? outcome(one, result) : { text: "…", bad: false };
        const ratio = result?.x_limit;
        const facts = result && !one.error ? `${count(result.retransmissions)} retransmitted · ${count(result.timeouts)} ${result.timeouts === 1 ? "timeout" : "timeouts"}` : "";
        return `<div class="bar${one.stale ? " stale" : ""}" role="radio" aria-checked="${chosen}" tabindex="${chosen ? 0 : -1}" data-key="${escape(one.key)}" style="--case: var(--case-${one.colour})">
          <span class="label"><svg width="18" height="10" aria-hidden="true"><path d="M0 5h18" stroke="var(--case)" stroke-width="3.5" stroke-dasharray="${one.dash.join(" ")}"/></svg>${escape(one.label)}</span>
          <span class="track" aria-hidden="true"><span class="fill" style="width:${part(ratio ?? 0)}"></span><span class="mark" style="left:${part(1)}"></span></span>
          <span class="ratio">${ratio ? `${ratio.toFixed(2)}<small> × limit</small>` : "–"}</span>
          <span class="told${told.bad ? " bad" : ""}"><b>${escape(told.text)}</b> ${facts}</span>
        </div>`;
      })
      .join("");
    if (had !== undefined) this.#parent.querySelector<HTMLElement>(`[data-key="${CSS.escape(had)}"]`)?.focus();
  }
}

/** The results as text for a screen reader. */
export function spoken(cases: Case[], flow: number): string {
  return cases
    .map((one) => {
      const result = one.result?.summary.flows[flow];
      if (one.error) return `${one.label}: ${one.error}`;
      if (!result) return `${one.label}: running`;
      const x = result.x_limit === null ? "" : `, ${result.x_limit.toFixed(2)} times the limit`;
      return `${one.label}: ${outcome(one, result).text}${x}, ${result.retransmissions} retransmissions`;
    })
    .join(". ");
}

/** The limit as text. With a gateway it may differ, because no handshake crosses the satellite link. */
export function limit(cases: Case[], one: Case | undefined, flow: number): string {
  const result = one?.result?.summary.flows[flow];
  if (!result) return "";
  const limits = new Set(cases.map((other) => other.result?.summary.flows[flow]?.limit_time_s).filter((time) => time !== undefined));
  const whose = limits.size > 1 ? `limit with ${one!.label}` : "limit";
  if (result.limit_time_s !== null && result.limit_time_s > 0) return `${whose}: ${seconds(result.limit_time_s)} for ${bytes(result.bytes)}`;
  return result.limit_goodput_bit_s === null ? "" : `limit: ${rate(result.limit_goodput_bit_s)}`;
}

const MAX_FLOWS = 12;

/** The chosen result as tables. */
export function tables(one: Case | undefined, flows: HTMLElement, links: HTMLElement): void {
  const { summary } = one?.result ?? {};
  if (!summary) {
    flows.innerHTML = links.innerHTML = "";
    return;
  }
  const row = (cells: string[]) => `<tr><th scope="row">${escape(cells[0]!)}</th>${cells.slice(1).map((cell) => `<td>${escape(cell)}</td>`).join("")}</tr>`;
  const head = (cells: string[]) => `<thead><tr>${cells.map((cell) => `<th scope="col">${cell}</th>`).join("")}</tr></thead>`;
  const rows = summary.flows.slice(0, MAX_FLOWS).flatMap((flow) => [
    row([flow.name, flow.variant ?? "udp", bytes(flow.bytes), flow.time_s === null ? "–" : seconds(flow.time_s), flow.goodput_bit_s === null ? "–" : rate(flow.goodput_bit_s), count(flow.retransmissions), count(flow.timeouts), flow.x_limit === null ? "–" : flow.x_limit.toFixed(2)]),
    ...(flow.legs ?? []).map((leg) => row([`${leg.from} → ${leg.to}`, leg.variant, "", "", "", count(leg.retransmissions), count(leg.timeouts), ""])),
  ]);
  const more = summary.flows.length - MAX_FLOWS;
  if (more > 0) rows.push(`<tr><td colspan="8">and ${more} more</td></tr>`);
  flows.innerHTML = `<caption>Flows with ${escape(one!.label)}</caption>${head(["flow", "transport", "data", "time", "goodput", "retransmitted", "timeouts", "x limit"])}<tbody>${rows.join("")}</tbody>`;
  links.innerHTML = `<caption>Links</caption>${head(["link", "rate", "used", "delivered", "dropped by the queue", "lost on the link", "longest queue"])}<tbody>${summary.links
    .map((link) =>
      row([link.name, link.rate_bit_s === null ? "unlimited" : rate(link.rate_bit_s), link.utilisation === null ? "–" : `${number(link.utilisation * 100)} %`, count(link.delivered_packets), count(link.dropped.queue_full + link.dropped.early + link.dropped.listed + link.dropped.too_long), count(link.dropped.channel), `${count(link.max_queue_packets)} packets`]),
    )
    .join("")}</tbody>`;
}
