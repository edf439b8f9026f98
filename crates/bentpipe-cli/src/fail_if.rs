//! `--fail-if 'x_limit > 1.5'`: a bound on a figure of the results, so that a test can fail by it.
//!
//! A condition is `FIGURE OP VALUE` or `NAME.FIGURE OP VALUE`: NAME is a flow, a variant or a link, without it all are meant; OP is
//! one of > >= < <=; VALUE has the figure's unit. Each command has its own figures.

use bentpipe_io::note;
use bentpipe_language::quantity::{BadQuantity, DURATION, RATE, SIZE};
use bentpipe_language::suggest::did_you_mean;

use crate::failure::Failure;

/// The kind of a figure, which determines how its values are written.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Kind {
    /// A bare number.
    Number,
    /// A time with its unit, in seconds.
    Time,
    /// A rate with its unit, in bit/s.
    Rate,
    /// An amount of data with its unit, in bytes.
    Size,
    /// A percentage with its sign, in percent.
    Percent,
}

/// A figure that a command can be judged by.
#[derive(Debug, PartialEq, Eq)]
pub(crate) struct Figure {
    pub(crate) name: &'static str,
    pub(crate) kind: Kind,
}

const fn figure(name: &'static str, kind: Kind) -> Figure {
    Figure { name, kind }
}

/// Of a flow.
pub(crate) const RUN: &[Figure] = &[
    figure("time", Kind::Time),
    figure("goodput", Kind::Rate),
    figure("x_limit", Kind::Number),
    figure("bytes", Kind::Size),
    figure("retransmissions", Kind::Number),
    figure("timeouts", Kind::Number),
    figure("response_median", Kind::Time),
    figure("response_p95", Kind::Time),
    figure("response_p99", Kind::Time),
];

/// Of a variant: medians, and the ratio to the first variant.
pub(crate) const COMPARE: &[Figure] = &[
    figure("time", Kind::Time),
    figure("goodput", Kind::Rate),
    figure("x_limit", Kind::Number),
    figure("ratio", Kind::Number),
    figure("unfinished", Kind::Number),
];

/// Of a flow in real time; differences without their sign.
pub(crate) const VERIFY: &[Figure] = &[
    figure("time", Kind::Time),
    figure("difference", Kind::Percent),
    figure("kernel_time", Kind::Time),
    figure("kernel_difference", Kind::Percent),
];

/// Of a command behind links: its time, and what the links dropped and delivered.
pub(crate) const SHELL: &[Figure] =
    &[figure("time", Kind::Time), figure("dropped", Kind::Number), figure("bytes", Kind::Size)];

#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Than {
    More,
    AtLeast,
    Less,
    AtMost,
}

/// The operators, longer ones before their beginnings.
const OPERATORS: [(&str, Than); 4] =
    [(">=", Than::AtLeast), ("<=", Than::AtMost), (">", Than::More), ("<", Than::Less)];

/// A condition under which the command fails.
#[derive(Clone, Debug, PartialEq)]
pub(crate) struct Bound {
    text: String,
    scope: Option<String>,
    figure: &'static Figure,
    than: Than,
    limit: f64,
}

/// The value of a figure in the results.
#[derive(Clone, Debug, PartialEq)]
pub(crate) struct Reading<'a> {
    /// The flow, variant or link; empty if the figure is about all of them.
    pub(crate) scope: &'a str,
    /// The figure's name.
    pub(crate) figure: &'static str,
    /// `None` if a transfer did not finish: then every bound on it fails.
    pub(crate) value: Option<f64>,
}

impl Kind {
    fn example(self) -> &'static str {
        match self {
            Kind::Number => "1.5",
            Kind::Time => "8 s",
            Kind::Rate => "2 Mbit/s",
            Kind::Size => "64 kB",
            Kind::Percent => "2 %",
        }
    }

    fn parse(self, text: &str) -> Option<f64> {
        let quantity = |read: Result<u64, BadQuantity>, size: f64| read.ok().map(|value| value as f64 / size);
        let number = |text: &str| text.trim().parse().ok().filter(|value: &f64| value.is_finite());
        match self {
            Kind::Number => number(text),
            Kind::Time => quantity(DURATION.parse(text), 1e9),
            Kind::Rate => quantity(RATE.parse(text), 1.0),
            Kind::Size => quantity(SIZE.parse(text), 1.0),
            Kind::Percent => number(text.trim().strip_suffix('%')?),
        }
    }

    fn show(self, value: f64) -> String {
        match self {
            // Whole numbers stay whole.
            Kind::Number => format!("{}", (value * 1e4).round() / 1e4),
            Kind::Time => format!("{value:.3} s"),
            Kind::Rate => crate::output::rate(value),
            Kind::Size => format!("{value} B"),
            Kind::Percent => format!("{value:.2} %"),
        }
    }
}

impl Bound {
    /// Reads a condition on one of these figures.
    pub(crate) fn parse(text: &str, figures: &'static [Figure]) -> Result<Bound, String> {
        let names = || figures.iter().map(|figure| figure.name).collect::<Vec<_>>().join(", ");
        let place = OPERATORS.iter().filter_map(|(sign, than)| Some((text.find(sign)?, *sign, *than)));
        let Some((at, sign, than)) = place.min_by_key(|(at, ..)| *at) else {
            return Err(format!("expected FIGURE > VALUE (or >=, <, <=); the figures are {}", names()));
        };
        let (left, right) = (text[..at].trim(), text[at + sign.len()..].trim());
        let (scope, name) = match left.rsplit_once('.') {
            Some((scope, name)) => (Some(scope.trim().to_owned()), name.trim()),
            None => (None, left),
        };
        let Some(figure) = figures.iter().find(|figure| figure.name == name) else {
            let near = did_you_mean(name, figures.iter().map(|figure| figure.name));
            let near = near.map(|near| format!("; {near}")).unwrap_or_default();
            return Err(format!("there is no figure `{name}`{near} (figures: {})", names()));
        };
        let limit = figure.kind.parse(right).ok_or_else(|| {
            format!(
                "`{right}` is not a value of `{name}`: expected something such as `{name} {sign} {}`",
                figure.kind.example()
            )
        })?;
        Ok(Bound { text: text.to_owned(), scope, figure, than, limit })
    }

    /// The condition as it was given.
    pub(crate) fn text(&self) -> &str {
        &self.text
    }

    /// True if the condition is about this reading.
    pub(crate) fn is_about(&self, reading: &Reading<'_>) -> bool {
        reading.figure == self.figure.name && self.scope.as_deref().is_none_or(|scope| covers(scope, reading.scope))
    }

    /// The error for a condition that applies to none of these names.
    fn strange(&self, scope: Option<&str>, names: &[&str]) -> Failure {
        let help = match scope.filter(|_| !names.is_empty()) {
            Some(scope) => {
                // Both directions of a link have a name, too.
                let both = names.iter().filter_map(|name| name.split_once('/')).map(|(link, _)| link);
                did_you_mean(scope, names.iter().copied().chain(both))
                    .unwrap_or_else(|| format!("expected one of {}", names.join(", ")))
            }
            None => format!("the results have no `{}`", self.figure.name),
        };
        Failure::usage(format!("--fail-if '{}' names something that the results do not have", self.text), Some(help))
    }

    /// Why the reading fails, if it does.
    pub(crate) fn failure(&self, reading: &Reading<'_>) -> Option<String> {
        if !self.is_about(reading) {
            return None;
        }
        let whose = if reading.scope.is_empty() { String::new() } else { format!("{}: ", reading.scope) };
        let name = self.figure.name;
        let Some(value) = reading.value else {
            return Some(format!("{whose}there is no {name}, a transfer did not finish (--fail-if '{}')", self.text));
        };
        let fails = match self.than {
            Than::More => value > self.limit,
            Than::AtLeast => value >= self.limit,
            Than::Less => value < self.limit,
            Than::AtMost => value <= self.limit,
        };
        fails.then(|| format!("{whose}{name} is {} (--fail-if '{}')", self.figure.kind.show(value), self.text))
    }
}

/// True if a condition's name means this flow, variant or link: `sat` means both directions, `sat/forward` one of them.
fn covers(scope: &str, name: &str) -> bool {
    name.strip_prefix(scope).is_some_and(|rest| rest.is_empty() || rest.starts_with('/'))
}

/// Checks, before any run, that the flows, links or variants named by the conditions exist.
///
/// # Errors
/// Wrong usage if a condition names a flow, link or variant that does not exist.
pub(crate) fn check_names<'a>(bounds: &[Bound], names: impl Iterator<Item = &'a str> + Clone) -> Result<(), Failure> {
    for bound in bounds {
        if let Some(scope) = bound.scope.as_deref().filter(|scope| !names.clone().any(|name| covers(scope, name))) {
            return Err(bound.strange(Some(scope), &names.clone().collect::<Vec<_>>()));
        }
    }
    Ok(())
}

/// Checks that there are readings for each condition, whatever their values.
///
/// # Errors
/// Wrong usage if a condition applies to none of the readings.
pub(crate) fn check(bounds: &[Bound], readings: &[Reading<'_>]) -> Result<(), Failure> {
    for bound in bounds {
        if !readings.iter().any(|reading| bound.is_about(reading)) {
            let mut names: Vec<_> =
                readings.iter().filter(|one| one.figure == bound.figure.name).map(|one| one.scope).collect();
            names.dedup();
            return Err(bound.strange(bound.scope.as_deref(), &names));
        }
    }
    Ok(())
}

/// Prints which conditions are met, and returns true if none is.
///
/// # Errors
/// Wrong usage if a condition applies to none of the readings.
pub(crate) fn kept(bounds: &[Bound], readings: &[Reading<'_>]) -> Result<bool, Failure> {
    check(bounds, readings)?;
    let mut all_kept = true;
    for bound in bounds {
        for failure in readings.iter().filter_map(|reading| bound.failure(reading)) {
            note!("{failure}");
            all_kept = false;
        }
    }
    Ok(all_kept)
}

#[cfg(test)]
mod tests {
    use super::*;

    const FIGURES: &[Figure] = &[
        figure("x_limit", Kind::Number),
        figure("time", Kind::Time),
        figure("goodput", Kind::Rate),
        figure("difference", Kind::Percent),
    ];

    fn fails(condition: &str, value: Option<f64>) -> bool {
        let bound = Bound::parse(condition, FIGURES).expect("a condition");
        bound.failure(&Reading { scope: "download", figure: bound.figure.name, value }).is_some()
    }

    #[test]
    fn conditions_compare_in_the_figures_unit() {
        assert!(fails("x_limit > 1.5", Some(1.6)) && !fails("x_limit > 1.5", Some(1.5)));
        assert!(fails("x_limit>=1.5", Some(1.5)) && !fails("x_limit>=1.5", Some(1.4)));
        assert!(fails("time > 800 ms", Some(0.9)) && !fails("time > 1 min", Some(59.0)));
        assert!(fails("goodput < 2 Mb/s", Some(1.9e6)) && !fails("goodput <= 2 Mb/s", Some(2.1e6)));
        assert!(fails("difference > 2 %", Some(2.1)));
        assert!(fails("download.time > 8 s", Some(9.0)) && !fails("upload.time > 8 s", Some(9.0)));
        assert!(fails("time > 8 s", None), "a transfer that did not finish fails every bound");
    }

    #[test]
    fn a_link_has_two_directions() {
        let about = |condition: &str, scope| {
            let bound = Bound::parse(condition, SHELL).expect("a condition");
            bound.failure(&Reading { scope, figure: "dropped", value: Some(2.0) }).is_some()
        };
        assert!(about("sat.dropped > 1", "sat/forward") && about("sat.dropped > 1", "sat/backward"));
        assert!(!about("sat.dropped > 1", "satellite/forward") && !about("sat/forward.dropped > 1", "sat/backward"));
        let bounds = [Bound::parse("sat.dropped > 1", SHELL).expect("a condition")];
        assert!(check_names(&bounds, ["sat/forward"].into_iter()).is_ok());
        let said = |name: &str| match check_names(&bounds, [name].into_iter()) {
            Err(Failure::Usage(_, Some(help))) => help,
            other => panic!("{other:?}"),
        };
        assert_eq!(said("lan/forward"), "expected one of lan/forward");
        assert_eq!(said("sta/forward"), "did you mean `sta`?");
    }

    #[test]
    fn mistakes_say_what_was_expected() {
        let refused = |text: &str| Bound::parse(text, FIGURES).expect_err("no condition");
        assert!(
            refused("x_limit = 3").contains("expected FIGURE > VALUE (or >=, <, <=); the figures are x_limit, time")
        );
        assert!(refused("xlimit > 3").contains("there is no figure `xlimit`; did you mean `x_limit`?"));
        assert!(refused("time > 8").contains("`8` is not a value of `time`: expected something such as `time > 8 s`"));
        assert!(refused("x_limit > NaN").contains("is not a value"));
        let readings = [Reading { scope: "download", figure: "time", value: Some(1.0) }];
        let bound = |text: &str| [Bound::parse(text, FIGURES).expect("a condition")];
        assert!(kept(&bound("time > 8 s"), &readings).is_ok_and(|kept| kept));
        assert!(
            matches!(kept(&bound("downlaod.time > 8 s"), &readings), Err(Failure::Usage(_, Some(help))) if help.contains("`download`"))
        );
        assert!(
            matches!(kept(&bound("goodput < 1 Mbit/s"), &readings), Err(Failure::Usage(_, Some(help))) if help.contains("no `goodput`"))
        );
    }
}
