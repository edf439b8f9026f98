//! `bentpipe model hybrid`: the throughput of TCP over a hybrid path, for one path or a sweep.

use bentpipe_language::suggest::did_you_mean;
use bentpipe_study::model::hybrid::{Evaluation, Path};
use bentpipe_study::scenario::BadQuantity;
use bentpipe_study::scenario::single::{self, Kind};
use serde::Serialize;

use crate::args::Hybrid;
use crate::args::hybrid::{PACKET, RATE, SEGMENTS};
use crate::failure::{End, Failure};
use crate::output::{self, Remake};
use crate::progress;

/// Parameters that can be given and swept, with their kinds.
const KEYS: [(&str, Kind); 7] = [
    ("buffer", Kind::Packets),
    ("t1", Kind::Duration),
    ("t2", Kind::Duration),
    ("rate", Kind::Rate),
    ("packet", Kind::Size),
    ("loss", Kind::Probability),
    ("segments", Kind::Count),
];

#[derive(Serialize)]
struct Json<'a> {
    #[serde(flatten)]
    remake: Remake,
    model: &'static str,
    /// The swept parameter.
    sweep: Option<&'a str>,
    points: Vec<Point>,
}

#[derive(Serialize)]
struct Point {
    /// The value of the sweep, as text with its unit.
    value: Option<String>,
    #[serde(flatten)]
    evaluation: Evaluation,
}

pub(crate) fn hybrid(args: &Hybrid) -> Result<End, Failure> {
    let given = |key: &str| match key {
        "buffer" => args.buffer.clone(),
        "t1" => args.t1.clone(),
        "t2" => args.t2.clone(),
        "rate" => Some(args.rate.clone()),
        "packet" => Some(args.packet.clone()),
        "loss" => args.loss.clone(),
        "segments" => Some(args.segments.clone()),
        _ => None,
    };
    let swept = args.sweep.as_ref().map(|(key, values)| (key.as_str(), values.as_str()));
    let bar = progress::steps_to_be_counted(progress::ESTIMATED);
    bar.set_message("points");
    let points = points(&given, swept, &|done, of| {
        progress::advance(&bar, done, of);
        true
    });
    bar.finish_and_clear();
    let points = points?;
    let key = swept.map(|(key, _)| key);
    let remake = Remake::new(0);
    if args.json {
        output::print_json(&Json { remake, model: "hybrid", sweep: key, points })?;
    } else {
        let text = match key {
            Some(key) => many(key, &points),
            None => one(&points[0].evaluation),
        };
        output::print(&format!("{text}\nbentpipe {}: {}\n", remake.bentpipe, remake.command))?;
    }
    Ok(End::Done)
}

/// The texts of the parameters, by their names.
type Given<'a> = &'a dyn Fn(&str) -> Option<String>;

/// The model at the given values, or at each of a sweep: a parameter and its values. `go_on` gets the number of the points that are done,
/// and that of all; the sweep ends when it returns false.
fn points(
    given: Given<'_>,
    swept: Option<(&str, &str)>,
    go_on: &dyn Fn(u64, u64) -> bool,
) -> Result<Vec<Point>, Failure> {
    let Some((key, values)) = swept else {
        return Ok(vec![Point { value: None, evaluation: evaluate(given, None)? }]);
    };
    let values = sweep(key, values)?;
    let count = values.len() as u64;
    let point = |(done, value): (u64, String)| {
        if !go_on(done, count) {
            return Err(Failure::broken("stopped"));
        }
        let evaluation = evaluate(given, Some((key, value.as_str())))?;
        Ok(Point { value: Some(value), evaluation })
    };
    (0..).zip(values).map(point).collect()
}

/// The points of `points` as JSON. Of `given`, `rate`, `packet` and `segments` have the defaults of the command. A sweep ends once `stop`
/// returns true.
///
/// # Errors
/// Wrong usage for a parameter that is missing, unknown or impossible. Fails if it was stopped.
pub fn json(given: &[(String, String)], swept: Option<(&str, &str)>, stop: fn() -> bool) -> Result<String, Failure> {
    if let Some((key, _)) = given.iter().find(|(key, _)| KEYS.iter().all(|(known, _)| known != key)) {
        return Err(Failure::usage(format!("the model has no parameter `{key}`"), Some(meant(key))));
    }
    let find = |key: &str| {
        let default = match key {
            "rate" => Some(RATE),
            "packet" => Some(PACKET),
            "segments" => Some(SEGMENTS),
            _ => None,
        };
        let value = given.iter().find(|(name, _)| name == key).map(|(_, value)| value.as_str());
        value.or(default).map(str::to_owned)
    };
    output::json(&points(&find, swept, &|_, _| !stop())?)
}

/// What may have been meant by a parameter.
fn meant(key: &str) -> String {
    let names = KEYS.map(|(name, _)| name);
    did_you_mean(key, names).unwrap_or_else(|| format!("expected one of {}", names.join(", ")))
}

fn sweep(key: &str, values: &str) -> Result<Vec<String>, Failure> {
    let Some((_, kind)) = KEYS.iter().find(|(name, _)| *name == key) else {
        return Err(Failure::usage(format!("--sweep: `{key}` cannot be swept"), Some(meant(key))));
    };
    kind.sweep(values).map_err(|error| refused(&format!("sweep {key}"), error))
}

fn refused(option: &str, error: BadQuantity) -> Failure {
    Failure::usage(format!("--{option}: {}", error.message), error.help)
}

/// The model at the given values, one of which the sweep may replace.
fn evaluate(given: Given<'_>, replaced: Option<(&str, &str)>) -> Result<Evaluation, Failure> {
    let text = |key: &'static str| -> Result<String, Failure> {
        match replaced {
            Some((name, value)) if name == key => Ok(value.to_owned()),
            _ => given(key).ok_or_else(|| {
                Failure::usage(
                    format!("--{key} is missing"),
                    Some(format!("give it a value, or sweep it: --sweep {key}=..")),
                )
            }),
        }
    };
    fn read<T>(
        key: &str,
        text: Result<String, Failure>,
        parse: impl Fn(&str) -> Result<T, BadQuantity>,
    ) -> Result<T, Failure> {
        parse(&text?).map_err(|error| refused(key, error))
    }
    let buffer = read("buffer", text("buffer"), single::packets)?;
    let t1 = read("t1", text("t1"), single::duration)?;
    let t2 = read("t2", text("t2"), single::duration)?;
    let loss = read("loss", text("loss"), single::probability)?;
    let rate = read("rate", text("rate"), single::rate)?;
    let packet = read("packet", text("packet"), single::bytes)?;
    let segments = read("segments", text("segments"), single::count)?;
    let at = replaced.map_or(String::new(), |(key, value)| format!("{key} = {value}: "));
    let outside = |error| Failure::usage(format!("{at}{error}"), None);
    let path = Path::new(f64::from(buffer), (t1, t2), rate, packet, loss, segments).map_err(outside)?;
    Evaluation::new(&path, packet).map_err(outside)
}

/// One path: every quantity with the number of its equation.
fn one(model: &Evaluation) -> String {
    let row = |name: &str, value: f64, unit: &str, equation: &str| {
        vec![name.to_owned(), number(value), unit.to_owned(), equation.to_owned()]
    };
    let (ends, split, needed) = (&model.end_to_end, &model.split, &model.recommended);
    let head = ["", "value", "unit", "equation"];
    let table = |rows: Vec<Vec<String>>| output::left_and_right(&head, 1, rows);
    let path = table(vec![
        row("mu, rate of the satellite link", model.mu_packets_per_s, "packets/s", ""),
        row("mu T2, its bandwidth-delay product", model.bdp_packets, "packets", ""),
        row("beta = B/(mu T2)", model.beta, "", "39"),
        row("alpha = T1 (1-p)/T2", model.alpha, "", "52"),
        row("nu = (1-p)/ln(1/p)", model.nu, "", "4"),
        row("a full pipe in order, exact", model.burst_delay_t2[0], "T2", "65"),
        row("a full pipe in order, logarithm", model.burst_delay_t2[1], "T2", "5"),
        row("one packet overtakes another T2 earlier", model.overtakes, "", "16"),
    ]);
    let end_to_end = table(vec![
        row("Upsilon, satellite part of a round trip", ends.upsilon, "T2", "29"),
        row("rho, its share", ends.rho, "", "37"),
        row("w_max, largest window", ends.max_window_packets, "packets", "36"),
        vec!["case".to_owned(), ends.case.to_string(), String::new(), "40".to_owned()],
        row("A1", ends.a[0], "", "40"),
        row("A2", ends.a[1], "", "40"),
        row("A3", ends.a[2], "", "40"),
        row("throughput", ends.per_mu, "mu", "39"),
        row("", ends.per_capacity, "mu (1-p)", ""),
        row("", ends.kbit_per_s(), "kbit/s", ""),
        row("throughput, whole windows summed", ends.summed_per_mu, "mu", "73"),
        row("the same with the exact delay", ends.summed_exact_delay_per_mu, "mu", "73, 65"),
        row("throughput, integrated", ends.integrated_per_mu, "mu", "73"),
        row("buffer with which every window fills the pipe", needed.end_to_end_fills_pipe_packets, "packets", "53"),
        row("buffer for half the capacity (T2 >> T1)", needed.end_to_end_half_capacity_packets, "packets", "55"),
    ]);
    let splitting = table(vec![
        row("time that a packet stays at the gateway", split.persistence_s * 1e3, "ms", "46"),
        row("mean window", split.window_packets, "packets", "44"),
        row("mean queue", split.queue_packets, "packets", "49"),
        row("throughput", split.per_mu, "mu", "52"),
        row("", split.per_capacity, "mu (1-p)", "52"),
        row("", split.kbit_per_s(), "kbit/s", ""),
        row("the same with B-1 for B", split.per_capacity_less_one, "mu (1-p)", "48"),
        row("buffer for the whole capacity", needed.split_fills_link_packets, "packets", "52"),
        row("the same for T2 >> T1", needed.split_satellite_alone_packets, "packets", "56"),
    ]);
    let notes: String = model.notes.iter().map(|note| format!("• {note}\n")).collect();
    format!("Path\n{path}\n\nEnd to end over ARQ\n{end_to_end}\n\nSplit at the gateway\n{splitting}\n\n{notes}")
}

fn many(key: &str, points: &[Point]) -> String {
    let header = [
        key,
        "beta",
        "alpha",
        "rho",
        "w_max",
        "case",
        "end to end/mu",
        "exact sum/mu",
        "split/mu",
        "buffer (53)",
        "buffer (52)",
    ];
    let rows = points.iter().map(|point| {
        let model = &point.evaluation;
        let (ends, split, needed) = (&model.end_to_end, &model.split, &model.recommended);
        let mut row = vec![point.value.clone().unwrap_or_default()];
        row.extend([model.beta, model.alpha, ends.rho, ends.max_window_packets].map(number));
        row.push(ends.case.to_string());
        row.extend([ends.per_mu, ends.summed_exact_delay_per_mu, split.per_mu].map(number));
        row.extend([needed.end_to_end_fills_pipe_packets, needed.split_fills_link_packets].map(number));
        row
    });
    let table = output::table(&header, 0, rows);
    format!("{table}\n\nend to end: Eq. 39; as a sum: Eq. 73 with 65; split: Eq. 52; buffers in packets\n")
}

/// Five significant digits.
fn number(value: f64) -> String {
    if value == 0.0 || !value.is_finite() {
        return format!("{value}");
    }
    let decimals = (4 - value.abs().log10().floor() as i32).clamp(0, 8) as usize;
    let text = format!("{value:.decimals$}");
    if text.contains('.') { text.trim_end_matches('0').trim_end_matches('.').to_owned() } else { text }
}

#[cfg(test)]
mod tests {
    use super::*;

    /// In Python, Ctrl-C waited for all points.
    #[test]
    fn a_sweep_stops_when_it_is_asked_to() {
        let given = [("buffer", "40 packets"), ("t1", "100 ms"), ("t2", "500 ms")];
        let given = given.map(|(key, value)| (key.to_owned(), value.to_owned()));
        let swept = Some(("loss", "0.1..0.9:0.00001"));
        let Err(Failure::Broken(why)) = json(&given, swept, || true) else { panic!("80001 points") };
        assert_eq!(why, "stopped");
        assert!(json(&given, Some(("loss", "0.1,0.2")), || false).is_ok_and(|text| text.contains("\"0.2\"")));
    }
}
