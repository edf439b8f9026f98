//! The points of a sweep: the values of its axes.

use bentpipe_engine::stream::Stream;

use super::{Axis, Design, Spec, Values};

/// The number of points.
///
/// # Errors
/// Fails if the lists of a `list` differ in length. The message names the keys.
pub(crate) fn count(spec: &Spec) -> Result<u128, String> {
    let length = |axis: &Axis| match &axis.values {
        Values::List(list) => list.len() as u128,
        Values::Between(_) => 1,
    };
    match spec.design {
        Design::LatinHypercube(points) => Ok(u128::from(points)),
        Design::Grid => Ok(spec.axes.iter().map(length).fold(1, u128::saturating_mul)),
        Design::List => {
            let Some(first) = spec.axes.first() else { return Ok(1) };
            match spec.axes.iter().find(|axis| length(axis) != length(first)) {
                None => Ok(length(first)),
                Some(other) => {
                    Err(format!("`{}` has {} values and `{}` {}", first.key, length(first), other.key, length(other)))
                }
            }
        }
    }
}

/// The points in order, each with a value for each axis. A grid counts like a clock: its last axis changes first.
pub(crate) fn points(spec: &Spec) -> Vec<Vec<String>> {
    match spec.design {
        Design::LatinHypercube(points) => {
            let columns: Vec<_> = spec.axes.iter().map(|axis| column(axis, points as usize, spec.seed)).collect();
            (0..points as usize).map(|n| columns.iter().map(|column| column[n].clone()).collect()).collect()
        }
        Design::List if !spec.axes.is_empty() => {
            let lists: Vec<_> = spec.axes.iter().map(list).collect();
            (0..lists[0].len()).map(|n| lists.iter().map(|list| list[n].clone()).collect()).collect()
        }
        Design::Grid | Design::List => spec.axes.iter().fold(vec![Vec::new()], |points, axis| {
            let longer = |point: Vec<String>| {
                list(axis).into_iter().map(move |value| point.iter().cloned().chain([value]).collect::<Vec<_>>())
            };
            points.into_iter().flat_map(longer).collect()
        }),
    }
}

fn list(axis: &Axis) -> Vec<String> {
    match &axis.values {
        Values::List(list) => list.clone(),
        Values::Between(range) => vec![range.at(0.0)],
    }
}

/// One axis of a Latin hypercube of n points (McKay, Beckman and Conover 1979): of each n-th part of the axis one draw, in
/// random order. A list of k values is an axis of k equal parts.
fn column(axis: &Axis, n: usize, seed: u64) -> Vec<String> {
    let mut stream = Stream::named(seed, format_args!("sweep/latin-hypercube/{}", axis.key));
    let mut order: Vec<usize> = (0..n).collect();
    // Fisher and Yates's shuffle.
    for i in 0..n {
        order.swap(i, i + ((stream.uniform() * (n - i) as f64) as usize).min(n - i - 1));
    }
    let part = |slot: usize, stream: &mut Stream| (slot as f64 + stream.uniform()) / n as f64;
    order
        .into_iter()
        .map(|slot| {
            let part = part(slot, &mut stream);
            match &axis.values {
                Values::List(list) => list[((part * list.len() as f64) as usize).min(list.len() - 1)].clone(),
                Values::Between(range) => range.drawn(part),
            }
        })
        .collect()
}

#[cfg(test)]
mod tests {
    use bentpipe_sim::record::Measure;

    use super::*;
    use crate::candidate::Candidate;
    use crate::spec::{Range, Scale};

    fn spec(axes: Vec<Axis>, design: Design) -> Spec {
        Spec {
            name: "t".into(),
            text: String::new(),
            scenario: String::new(),
            scenario_name: "t.toml".into(),
            settings: Vec::new(),
            measure: Measure::SlowestTimeS,
            candidates: Candidate::all(&[], &[]),
            baseline: 0,
            axes,
            design,
            repetitions: 1,
            seed: 1,
            stop: None,
            output: None,
        }
    }

    fn list_of(key: &str, values: &[&str]) -> Axis {
        Axis { key: key.into(), values: Values::List(values.iter().map(|value| (*value).to_owned()).collect()) }
    }

    fn shown(spec: &Spec) -> Vec<String> {
        assert_eq!(count(spec), Ok(points(spec).len() as u128));
        points(spec).into_iter().map(|point| point.join(" ")).collect()
    }

    #[test]
    fn grids_and_lists() {
        let axes = || vec![list_of("a", &["1", "2"]), list_of("b", &["x", "y"])];
        assert_eq!(shown(&spec(axes(), Design::Grid)), ["1 x", "1 y", "2 x", "2 y"]);
        assert_eq!(shown(&spec(axes(), Design::List)), ["1 x", "2 y"]);
        assert_eq!(shown(&spec(Vec::new(), Design::Grid)), [""]);
        assert_eq!(shown(&spec(Vec::new(), Design::List)), [""]);
        let uneven = spec(vec![list_of("a", &["1"]), list_of("b", &["x", "y"])], Design::List);
        assert_eq!(count(&uneven).expect_err("uneven"), "`a` has 1 values and `b` 2");
    }

    #[test]
    fn each_part_of_each_axis_has_one_point() {
        let range = Range::new("0 ms", "1 s", Scale::Linear).expect("a range");
        let axes = vec![Axis { key: "d".into(), values: Values::Between(range) }, list_of("v", &["a", "b"])];
        let points = points(&spec(axes.clone(), Design::LatinHypercube(20)));
        let nanos = |text: &str| bentpipe_language::quantity::DURATION.parse(text).expect("a time");
        let mut slots: Vec<u64> = points.iter().map(|point| nanos(&point[0]) / 50_000_000).collect();
        assert_ne!(slots, (0..20).collect::<Vec<_>>(), "in random order");
        slots.sort_unstable();
        assert_eq!(slots, (0..20).collect::<Vec<_>>());
        assert_eq!(points.iter().filter(|point| point[1] == "a").count(), 10);
        assert!(points.iter().any(|point| nanos(&point[0]) % 50_000_000 != 0), "anywhere within its part");
        let mut other = spec(axes, Design::LatinHypercube(20));
        other.seed = 2;
        assert_ne!(super::points(&other), points);
        // Each axis has an order of its own.
        let range = || Values::Between(Range::new("0 ms", "1 s", Scale::Linear).expect("a range"));
        let axes = ["d", "e"].map(|key| Axis { key: key.into(), values: range() }).to_vec();
        assert!(super::points(&spec(axes, Design::LatinHypercube(20))).iter().any(|point| point[0] != point[1]));
    }
}
