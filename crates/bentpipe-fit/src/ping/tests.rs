use bentpipe_engine::stream::Stream;

use super::*;

/// A log of pings each 0.1 s for 20 min: 30 ms, exponential jitter of 3 ms, a level drawn anew every `period` seconds from second 12.
fn log(seed: u64, period: Option<f64>, loss: f64) -> Pings {
    let mut stream = Stream::named(seed, "test/pings");
    let levels: Vec<f64> = (0..500).map(|_| stream.uniform() * 10.0).collect();
    let mut text = String::new();
    for n in 1..12_000_u32 {
        let at = 1_000_020.0 + f64::from(n) / 10.0;
        let level = period.map_or(0.0, |period| levels[((at - 1_000_020.0 + period - 12.0) / period) as usize]);
        if stream.uniform() >= loss {
            text.push_str(&format!("{at:.3} {n} {:.2}\n", 30.0 + level + stream.exponential(3.0)));
        }
    }
    fit(Path::new("log"), Box::new(std::io::Cursor::new(text))).expect("a log")
}

#[test]
fn steps_are_found_where_they_are() {
    let found = log(1, Some(15.0), 0.0).steps.expect("steps");
    // 1_000_020 is a whole minute, so the steps are at 12, 27, 42 and 57.
    assert_eq!((found.period, found.phase % 15.0), (15.0, 12.0), "{found:?}");
    assert!(found.size > 2.0 * found.elsewhere, "{found:?}");
}

/// The log has 15 instants of the true period, too few to see it, and 30 of half of it.
#[test]
fn half_a_period_is_none() {
    let mut stream = Stream::named(1, "test/half");
    let levels: Vec<f64> = (0..16).map(|_| stream.uniform() * 10.0).collect();
    let line = |n: u32| {
        let at = 1_000_020.0 + f64::from(n) / 10.0;
        format!("{at:.3} {n} {:.2}\n", 30.0 + levels[n as usize / 200] + stream.exponential(0.5))
    };
    let text: String = (0..3100).map(line).collect();
    assert_eq!(fit(Path::new("log"), Box::new(std::io::Cursor::new(text))).expect("a log").steps, None);
}

#[test]
fn noise_has_no_steps() {
    assert_eq!((0..10).filter(|&seed| log(seed, None, 0.0).steps.is_some()).count(), 0);
}

#[test]
fn a_log_is_measured() {
    let pings = log(3, None, 0.01);
    assert!(pings.base_round_trip.allows(0.030), "{:?}", pings.base_round_trip);
    // The median of an exponential jitter is ln 2 of its mean.
    assert!(pings.median.allows(0.030 + 0.003 * 2.0_f64.ln()), "{:?}", pings.median);
    assert!(pings.losses.probability.allows(0.01), "{:?}", pings.losses);
    assert!((pings.spacing - 0.1).abs() < 1e-6);
    assert!(matches!(pings.rate, Estimate::Unknown { .. }));
}

/// `ping` writes round trips of 100 ms or more in whole milliseconds. All of a steady path are then the same.
#[test]
fn intervals_hold_what_the_log_rounds_away() {
    let mut stream = Stream::named(1, "test/rounded");
    let text: String = (1..=12_000_u32)
        .map(|n| {
            let took = 611.6 + 0.3 * stream.uniform();
            format!(
                "[{:.3}] 64 bytes from 192.0.2.1: icmp_seq={n} ttl=50 time={took:.0} ms\n",
                1000.0 + f64::from(n) / 5.0
            )
        })
        .collect();
    let pings = fit(Path::new("log"), Box::new(std::io::Cursor::new(text))).expect("a log");
    assert!(pings.base_round_trip.allows(0.6116), "{:?}", pings.base_round_trip);
    assert!(pings.median.allows(0.61175), "{:?}", pings.median);
    assert!(pings.p99.allows(0.611897), "{:?}", pings.p99);
    assert!(!pings.median.allows(0.6114) && !pings.median.allows(0.6126), "{:?}", pings.median);
}

/// Nearly all medians of two seconds are the same whole millisecond, so the few that are not stand out of some period.
#[test]
fn steps_smaller_than_a_digit_are_none() {
    let found = (0..20).filter(|&seed| {
        let mut stream = Stream::named(seed, "test/digits");
        let line = |n: u32, took: f64| format!("{:.3} {n} {took:.0}\n", 1000.0 + f64::from(n) / 10.0);
        let text: String = (1..=4000).map(|n| line(n, 546.0 + 0.32 * stream.exponential(1.0))).collect();
        fit(Path::new("log"), Box::new(std::io::Cursor::new(text))).expect("a log").steps.is_some()
    });
    assert_eq!(found.count(), 0);
}

/// Twelve seconds of an eight-minute log waited 20 s in a full queue. No round trip is shorter than that of the empty path, and a
/// single event is no period.
#[test]
fn a_stall_is_neither_a_negative_time_nor_a_period() {
    let mut stream = Stream::named(1, "test/stall");
    let took = |n: u32| if (1200..1260).contains(&n) { 20_000.0 } else { 600.0 };
    let line = |n: u32| format!("{:.1} {n} {:.2}\n", 1000.0 + f64::from(n) / 5.0, took(n) + 5.0 * stream.uniform());
    let text: String = (1..=2400).map(line).collect();
    let pings = fit(Path::new("log"), Box::new(std::io::Cursor::new(text))).expect("a log");
    let Estimate::Measured { low: least, .. } = pings.base_round_trip else { panic!("{:?}", pings.base_round_trip) };
    assert!(least > 0.59, "{least}");
    for quantile in [&pings.median, &pings.p95, &pings.p99] {
        assert!(matches!(quantile, Estimate::Measured { low, .. } if *low >= least), "{quantile:?}");
    }
    assert_eq!(pings.steps, None);
}

/// 20 parts, each with a value above the quantile: 20 values each for 95 %.
#[test]
fn a_quantile_says_what_it_takes() {
    let estimate = |count: u32| {
        let times: Vec<f64> = (0..count).map(f64::from).collect();
        quantile(&Sample::new(times.clone()).expect("numbers"), &times, 0.95)
    };
    let few = estimate(399);
    assert!(
        matches!(&few, Estimate::Unknown { why } if why == "399 answers are too few for this quantile: it takes 400"),
        "{few:?}"
    );
    assert!(matches!(estimate(400), Estimate::Measured { .. }));
}

#[test]
fn times_in_another_unit_are_refused_as_such() {
    let refused = |times: [&str; 3]| {
        let text: String = times.iter().zip(1..).map(|(at, n)| format!("{at} {n} 30.0\n")).collect();
        fit(Path::new("log"), Box::new(std::io::Cursor::new(text))).expect_err("no log").to_string()
    };
    let nanoseconds = refused(["1000000000", "2000000000", "3000000000"]);
    assert!(
        nanoseconds.ends_with("expected times in seconds, and pings between 10 us and an hour apart"),
        "{nanoseconds}"
    );
    let backwards = refused(["3", "2", "1"]);
    assert!(backwards.ends_with("expected times that grow from answer to answer"), "{backwards}");
}

/// Every second number is missing, and one answer came twice.
#[test]
fn lost_pings_do_not_stretch_the_interval() {
    let text = "1.0 1 30\n1.2 3 31\n1.2 3 31\n1.4 5 32\n";
    let pings = fit(Path::new("log"), Box::new(std::io::Cursor::new(text))).expect("a log");
    assert!((pings.spacing - 0.1).abs() < 1e-9, "{}", pings.spacing);
    assert_eq!((pings.losses.segments, pings.losses.lost), (5, 2));
    assert!(pings.notes.contains(&"1 answer came twice".to_owned()), "{:?}", pings.notes);
}

/// The phase is that of the clock's minute, wherever the log begins: here 7 s after a whole minute, with steps at 12, 27, 42 and 57 s.
#[test]
fn a_phase_is_that_of_the_minute() {
    let mut stream = Stream::named(1, "test/phase");
    let samples: Vec<_> = (0..12_000_u32)
        .map(|n| {
            let at = 1_000_027.0 + f64::from(n) / 10.0;
            let is_far = ((at - 1_000_020.0 + 3.0) / 15.0) as u32 % 2 == 1;
            (at, if is_far { 0.04 } else { 0.03 } + 0.001 * stream.uniform())
        })
        .collect();
    let found = steps::find(&samples).expect("steps");
    assert_eq!((found.period, found.phase % 15.0), (15.0, 12.0), "{found:?}");
}
