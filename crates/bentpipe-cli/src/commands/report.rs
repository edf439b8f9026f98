//! `bentpipe report`: one page about a scenario, for people without bentpipe.

use std::ffi::OsStr;
use std::path::{Path, PathBuf};

use bentpipe_io::note;
use bentpipe_sim::recommend::{Options, RecommendError, Recommendation};
use bentpipe_sim::record::{Outlook, Plot, Sequence, Summary};
use bentpipe_study::drawing::topology;
use bentpipe_study::output::is_stream;
use bentpipe_study::report::{Page, write_whole};
use bentpipe_study::scenario::Scenario;
use serde::Serialize;

use super::plots::figure;
use super::run::{LINK_UNITS, drive, faults, flows, links, more, x_limit};
use super::{explain, recommend as systems};
use crate::args::Report;
use crate::failure::{End, Failure};
use crate::output::{self, Grid, Inputs, Remake};
use crate::{interrupt, progress, source};

/// The recommendation's margin: the default of `bentpipe recommend`.
const MARGIN: f64 = 0.05;

const PLOTS: [(Plot, &str); 5] = [
    (Plot::Sequence, "Sequence numbers"),
    (Plot::Window, "Window and data in flight"),
    (Plot::Queue, "Queue before the bottleneck"),
    (Plot::RoundTrip, "Round trip"),
    (Plot::Throughput, "Goodput"),
];

#[derive(Serialize)]
struct Json<'a> {
    #[serde(flatten)]
    remake: &'a Remake,
    page: String,
    #[serde(flatten)]
    summary: &'a Summary,
    /// `null` if systems were not compared.
    recommendation: Option<Recommendation>,
    scenario: String,
}

pub(crate) fn report(args: &Report) -> Result<End, Failure> {
    let mut inputs = Inputs::default();
    let scenario = source::load_with_variant(&args.world, args.variant.as_deref(), &mut inputs)?;
    let path = args.out.clone().unwrap_or_else(|| PathBuf::from(format!("{}.html", scenario.name)));
    let print = output::beside(&inputs, &[Some(&path)])?;
    check_name(&path)?;
    output::check_writable(&path)?;
    let remake = Remake::new(scenario.seed);
    let outlook = Outlook::new(&scenario).map_err(Failure::broken)?;
    let mut sequence = Sequence::at_bottleneck(&scenario);
    let result = drive(&scenario, &mut sequence, || true)?;
    let summary = Summary::new(&scenario, &result);
    let mut page = Page::new(&scenario.name, &scenario.description, scenario.source.as_deref());
    page.drawing(&topology(&scenario, &scenario.name).svg);
    page.heading("Result");
    table(&mut page, &flows(&summary));
    page.note(x_limit(&summary));
    let faults = faults(&scenario, &summary);
    for fault in &faults {
        page.note(&fault.replace("\n  help: ", ". Help: "));
    }
    more(&summary).iter().for_each(|grid| table(&mut page, grid));
    table(&mut page, &links(&summary));
    page.note(LINK_UNITS);
    let mut recommendation = None;
    if !interrupt::asked() && !args.no_recommend {
        page.heading("What would help");
        let compared = source::with_hosts(scenario.clone(), &args.hosts)?;
        if args.hosts != source::AS_WRITTEN && compared.to_toml() != scenario.to_toml() {
            let hosts = &args.hosts;
            page.note(&format!("In this comparison the hosts run `{hosts}`, not what they run above."));
        }
        recommendation = what_would_help(&mut page, &compared, args.reps)?;
    }
    page.heading("Over time");
    let bar = progress::steps(PLOTS.len() as u64);
    bar.set_message("plots");
    for (plot, caption) in PLOTS {
        let figure = figure(&scenario, &sequence, plot);
        // A figure of UDP flows alone has no panel.
        if figure.panels.iter().any(|panel| !panel.series.is_empty()) {
            page.figure(&figure.to_svg().map_err(Failure::broken)?, caption);
        }
        bar.inc(1);
    }
    bar.finish_and_clear();
    page.heading("Paths and settings");
    page.listing(&explain::text(&scenario, &outlook));
    page.heading("How to remake it");
    page.listing(&remake.line());
    page.details("The scenario in full", &scenario.to_toml());
    if interrupt::asked() {
        note!("interrupted: no page was written");
        return Ok(End::Interrupted);
    }
    write_whole(&path, page.finish().as_bytes()).map_err(Failure::unwritten)?;
    if args.json {
        let (page, scenario) = (path.display().to_string(), scenario.to_toml());
        print(&output::json(&Json { remake: &remake, page, summary: &summary, recommendation, scenario })?)?;
    } else {
        note!("the report is in {}", path.display());
    }
    for fault in &faults {
        note!("{fault}");
    }
    Ok(if faults.is_empty() { End::Done } else { End::Failed })
}

/// Refuses a name that is not a page's, such as that of the scenario: browsers open pages by their names.
fn check_name(path: &Path) -> Result<(), Failure> {
    let is_page = |ending: &OsStr| ending.eq_ignore_ascii_case("html") || ending.eq_ignore_ascii_case("htm");
    if is_stream(path) || path.extension().is_some_and(is_page) {
        return Ok(());
    }
    Err(Failure::usage(format!("{}: a page's name must end in .html or .htm", path.display()), None))
}

fn table(page: &mut Page, grid: &Grid) {
    page.table(&grid.header, grid.numbers, &grid.rows);
}

/// The systems for this path, as `bentpipe recommend --no-flips` compares them.
/// `None` if the path does not suit them: the page says why.
fn what_would_help(page: &mut Page, scenario: &Scenario, reps: u32) -> Result<Option<Recommendation>, Failure> {
    let options = Options { reps, flip_reps: 0, margin: MARGIN, threads: 0, stop: interrupt::asked };
    match systems::search(scenario, &options) {
        Ok(found) => {
            table(page, &systems::grid(&found));
            page.note(systems::notes(&found).trim());
            if let Some(verdict) = &found.verdict {
                page.note(&systems::sentences(&found, verdict, false, MARGIN));
            }
            Ok(Some(found))
        }
        Err(RecommendError::Unfit(unfit)) => {
            page.note(&format!("Systems are not compared: {unfit}."));
            Ok(None)
        }
        Err(RecommendError::Run(error)) => Err(Failure::broken(error)),
    }
}
