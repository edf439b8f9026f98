//! `bentpipe demo`: the times of eight TCPs over a satellite link, and the reasons.
//!
//! The scenario is row "50-on" of table 1 of the transat paper: 1 MB over a GEO link of 2 Mbit/s with a queue of 50
//! packets. The paper's six variants use its TCP (ns-2 of 2003), two use today's (profile `rfc`) with segments of the
//! same length; these have no published value.

use std::io::IsTerminal;
use std::path::Path;

use bentpipe_engine::NoProbe;
use bentpipe_papers::published::TRANSAT_TABLES;
use bentpipe_sim::record::{Sequence, Summary};
use bentpipe_sim::run;
use bentpipe_study::report::Figure;
use bentpipe_study::scenario::{FlowKind, Scenario, TcpFlow};
use serde::Serialize;

use super::plots;
use crate::args::Demo;
use crate::failure::{End, Failure};
use crate::output::{self, Inputs, Remake};
use crate::shipped;

/// The table with the published values.
const TABLE: u8 = 1;
const ROW: &str = "50-on";

/// Profile, variant, description, and column in the paper.
const CONTESTANTS: [(&str, &str, &str, Option<&str>); 8] = [
    ("ns2-2003", "ref", "Reference: NewReno, first window 1", Some("Ref")),
    ("ns2-2003", "ref-iw4", "Reference, first window 4", Some("Ref_IW4")),
    ("ns2-2003", "ref-daass", "Reference, no delayed ACK at the start", Some("Ref_DAASS")),
    ("ns2-2003", "sack", "SACK", Some("SACK")),
    ("ns2-2003", "sack-lt", "SACK, limited transmit", Some("SACK_LT")),
    ("ns2-2003", "enh", "Enhanced: all of these together", Some("Enh")),
    ("rfc", "newreno", "NewReno today (RFC 6582), first window 10", None),
    ("rfc", "sack", "SACK today (RFC 6675), first window 10", None),
];

/// Length of the longest bar in characters, and on a terminal that is narrower than the whole table.
const BAR: f64 = 30.0;
const SHORT_BAR: f64 = 10.0;
const WIDE: u16 = 115;

#[derive(Serialize)]
struct Result {
    profile: &'static str,
    variant: &'static str,
    meaning: &'static str,
    /// Seconds, as are the next two.
    published_s: Option<f64>,
    time_s: f64,
    limit_s: f64,
    x_limit: f64,
}

#[derive(Serialize)]
struct Json<'a> {
    #[serde(flatten)]
    remake: &'a Remake,
    results: &'a [Result],
    picture: String,
}

pub(crate) fn demo(args: &Demo) -> std::result::Result<End, Failure> {
    let picture = args.out.join("bentpipe-demo.svg");
    output::check_folder(&args.out).and_then(|()| output::check_writable(&picture)).map_err(
        |failure| match failure {
            Failure::Broken(message) => Failure::Broken(format!("{message}\n  help: `--out DIR` names another folder")),
            other => other,
        },
    )?;
    let print = output::beside(&Inputs::default(), &[Some(&picture)])?;
    let source = shipped::text("transat").expect("it is shipped");
    let base = Scenario::parse(source, "transat.toml", &[]).map_err(Failure::Scenario)?;
    let mut results = Vec::new();
    for (profile, variant, meaning, column) in CONTESTANTS {
        let scenario = contestant(&base, profile, variant)?;
        let run = run(&scenario, scenario.seed, &mut NoProbe).map_err(Failure::broken)?;
        let summary = Summary::new(&scenario, &run);
        let flow = &summary.flows[0];
        let (Some(time), Some(limit), Some(x_limit)) = (flow.time_s, flow.limit_time_s, flow.x_limit) else {
            return Err(Failure::broken(format!("the transfer with {meaning} did not finish")));
        };
        let published_s = column.and_then(|column| TRANSAT_TABLES.cell(TABLE, ROW, column));
        results.push(Result { profile, variant, meaning, published_s, time_s: time, limit_s: limit, x_limit });
    }
    let remake = Remake::new(base.seed);
    if args.json {
        let picture = picture.display().to_string();
        print(&output::json(&Json { remake: &remake, results: &results, picture })?)?;
    } else {
        print(&text(&results, &picture, &remake))?;
    }
    plots::write(&picture, &why(&base)?, &remake)?;
    Ok(End::Done)
}

const NEXT: [&str; 3] = ["bentpipe run geo", "bentpipe explain transat", "bentpipe reproduce transat --table 1"];

fn text(results: &[Result], picture: &Path, remake: &Remake) -> String {
    let head =
        "1 MB over a geostationary link: 2 Mbit/s, round trip 0.55 s, room for 50 packets before the satellite.\n";
    let (own, rest) = bar_marks();
    let notes = format!(
        "time       {own} the minimum time that the link allows, {rest} the rest\n\
         x limit    time over the minimum time that the link allows any transport\n\
         published  D. Astuti, M. Kojo: Simulation Study of TCP Performance in TRANSAT Satellite Architecture, table 1\n\n\
         Why: {} shows the Reference repair one lost segment per round trip, the Enhanced TCP all of them at once.\n\
         Next: {}\n",
        picture.display(),
        // A command is not broken into lines.
        NEXT.map(|command| command.replace(' ', output::FIXED)).join(" · "),
    );
    let (head, notes) = (output::prose(head), output::prose(&notes));
    format!("{head}\n{}\n\n{notes}{}\n", table(results), remake.line())
}

fn contestant(base: &Scenario, profile: &str, variant: &str) -> std::result::Result<Scenario, Failure> {
    if profile == "ns2-2003" {
        return base.with_variant(variant).map_err(Failure::broken);
    }
    let mut scenario = base.clone();
    // Its rows take precedence over the engine's.
    scenario.variants.clear();
    for flow in &mut scenario.flows {
        if let FlowKind::Tcp(tcp) = &mut flow.kind {
            let mss = tcp.sender.mss;
            let mut modern = TcpFlow::new(profile, variant, tcp.workload).map_err(Failure::broken)?;
            (modern.sender.mss, modern.receiver.mss) = (mss, mss);
            *tcp = modern.into();
        }
    }
    Ok(scenario)
}

fn table(results: &[Result]) -> String {
    let longest = results.iter().map(|result| result.time_s).fold(0.0, f64::max);
    let rows = results.iter().map(|result| {
        vec![
            result.meaning.to_owned(),
            bar(result.time_s, result.limit_s, longest),
            format!("{:.2}", result.time_s),
            output::number(result.published_s, 2),
            format!("{:.2}", result.x_limit),
        ]
    });
    output::table(&["TCP", "time", "ours (s)", "published (s)", "x limit"], 2, rows)
}

/// The marks of a bar's two parts.
fn bar_marks() -> (&'static str, &'static str) {
    if std::io::stdout().is_terminal() { ("█", "▒") } else { ("#", "=") }
}

/// A bar whose first part is the time of the link itself.
fn bar(time: f64, limit: f64, longest: f64) -> String {
    let most = if output::width().is_some_and(|width| width < WIDE) { SHORT_BAR } else { BAR };
    let cells = |part: f64| (part / longest * most).round() as usize;
    let (own, whole) = (cells(limit), cells(time));
    let (full, rest) = bar_marks();
    full.repeat(own) + &rest.repeat(whole.saturating_sub(own))
}

/// End of the plot in seconds; the Reference continues in the same way.
const PICTURE_S: f64 = 20.0;

/// Reference and Enhanced, segment by segment, on the same axes.
fn why(base: &Scenario) -> std::result::Result<Figure, Failure> {
    let mut panels = Vec::new();
    let mut top: f64 = 1.0;
    for (variant, name) in [("ref", "Reference (NewReno)"), ("enh", "Enhanced (SACK)")] {
        let scenario = base.with_variant(variant).map_err(Failure::broken)?;
        let mut sequence = Sequence::at_bottleneck(&scenario);
        let run = run(&scenario, scenario.seed, &mut sequence).map_err(Failure::broken)?;
        let time = output::number(Summary::new(&scenario, &run).flows[0].time_s, 1);
        let panel = sequence.panel(0, &format!("{name}: done after {time} s"), Some(PICTURE_S));
        top = panel.series.iter().flat_map(|series| &series.points).map(|point| point.1).fold(top, f64::max);
        panels.push(panel);
    }
    panels.iter_mut().for_each(|panel| panel.y.range = Some((0.0, top + 10.0)));
    Ok(Figure { title: "1 MB over a geostationary link with a queue of 50 packets".into(), panels })
}
