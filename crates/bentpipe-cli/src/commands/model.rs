//! `bentpipe model`: formulas.

pub(crate) mod hybrid;

use bentpipe_engine::atm::sonet::{OpticalCarrier, RateLadder};
use serde::Serialize;

use crate::args::{Model, Rates};
use crate::failure::{End, Failure};
use crate::output;

pub(crate) fn model(model: &Model) -> Result<End, Failure> {
    match model {
        Model::Rates(args) => rates(args),
        Model::Hybrid(args) => hybrid::hybrid(args),
    }
}

#[derive(Serialize)]
struct Line {
    line: String,
    mtu_bytes: u32,
    cells_per_datagram: u32,
    line_bits_per_second: f64,
    sonet_bits_per_second: f64,
    aal5_bits_per_second: f64,
    ip_bits_per_second: f64,
    application_bits_per_second: f64,
}

fn rates(args: &Rates) -> Result<End, Failure> {
    if args.json {
        output::print_json(&lines(args))?;
        return Ok(End::Done);
    }
    let ladders: Vec<(String, RateLadder)> =
        args.lines.iter().map(|line| (line.to_string(), ladder(args, line))).collect();
    let rows = (0..layers(&ladders[0].1).len()).map(|row| {
        let cells = ladders.iter().flat_map(|(_, ladder)| {
            let (_, rate) = layers(ladder)[row];
            [format!("{:.3}", rate / 1e6), format!("{:.2}", 100.0 * rate / ladder.line)]
        });
        std::iter::once(layers(&ladders[0].1)[row].0.to_owned()).chain(cells).collect()
    });
    let names = ladders.iter().flat_map(|(line, _)| [format!("{line} Mbit/s"), "%".to_owned()]);
    let header: Vec<String> = std::iter::once("layer".to_owned()).chain(names).collect();
    let header: Vec<&str> = header.iter().map(String::as_str).collect();
    let cells = ladders[0].1.cells;
    output::print(&format!(
        "{}\n\nA datagram of {} B takes {cells} cells.\n",
        output::table(&header, 1, rows),
        args.mtu
    ))?;
    Ok(End::Done)
}

fn ladder(args: &Rates, line: &OpticalCarrier) -> RateLadder {
    line.ladder(args.mtu, args.transport.headers())
}

/// The lines with their rates.
fn lines(args: &Rates) -> Vec<Line> {
    let of = |line: &OpticalCarrier| {
        let ladder = ladder(args, line);
        Line {
            line: line.to_string(),
            mtu_bytes: args.mtu,
            cells_per_datagram: ladder.cells,
            line_bits_per_second: ladder.line,
            sonet_bits_per_second: ladder.payload,
            aal5_bits_per_second: ladder.aal5,
            ip_bits_per_second: ladder.ip,
            application_bits_per_second: ladder.application,
        }
    };
    args.lines.iter().map(of).collect()
}

/// The rates of `bentpipe model rates --json` for these lines; `mtu` and `transport` as its options.
///
/// # Errors
/// Wrong usage for a value that an option refuses.
pub fn json(lines_wanted: &[String], mtu: Option<&str>, transport: Option<&str>) -> Result<String, Failure> {
    output::json(&lines(&Rates::of(lines_wanted, mtu, transport).map_err(|refused| Failure::usage(refused, None))?))
}

fn layers(ladder: &RateLadder) -> [(&'static str, f64); 5] {
    let RateLadder { line, payload, aal5, ip, application, .. } = *ladder;
    [("line", line), ("SONET payload", payload), ("AAL5", aal5), ("IP", ip), ("application", application)]
}
