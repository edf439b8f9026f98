//! What quantities are, and what is none.

use super::*;
use proptest::prelude::*;

#[test]
fn quantities_are_exact() {
    for (text, nanos) in [
        ("255 ms", 255_000_000),
        ("0.1 ms", 100_000),
        ("1.50s", 1_500_000_000),
        ("2e-3 s", 2_000_000),
        ("1_000 us", 1_000_000),
        ("3 min", 180_000_000_000),
        ("7µs", 7_000),
    ] {
        assert_eq!(DURATION.parse(text), Ok(nanos), "{text}");
    }
    assert_eq!(SIZE.parse("1 MB"), Ok(1_000_000));
    assert_eq!(SIZE.parse("64 KiB"), Ok(65_536));
    assert_eq!(RATE.parse("1.5 Mbit/s"), Ok(1_500_000));
    assert_eq!(RATE.parse("1 MB/s"), Ok(8_000_000));
    for text in ["2 Mbit/s", "2 Mb/s", "2Mbps", "2Mbit"] {
        assert_eq!(RATE.parse(text), Ok(2_000_000), "{text}");
    }
    assert_eq!(RATE.parse("1 Tbit/s"), Ok(1_000_000_000_000));
    assert_eq!(parse_probability("1 %"), Ok(0.01));
    assert_eq!(parse_probability("100%"), Ok(1.0));
    assert_eq!(parse_probability("1e-6"), Ok(1e-6));
    assert_eq!(parse_probability("2.5e-1 %"), Ok(0.0025));
    assert_eq!(parse_probability("1e-2147483648 %"), Ok(0.0));
    // Neither hours nor bytes per second.
    assert_eq!((DURATION.format(7_200_000_000_000), RATE.format(8_000_000)), ("7200 s".into(), "8 Mbit/s".into()));
    assert_eq!([1e-6, 0.002].map(format_probability), ["1e-6", "0.002"]);
}

#[test]
fn the_maximum_is_the_last_value() {
    for (dimension, max, more) in [
        (DURATION, "100000000 s", "100000000.000000001 s"),
        (RATE, "1000 Tbit/s", "1000000000000001 bit/s"),
        (PACKETS, "4294967295 packets", "4294967296 packets"),
    ] {
        assert_eq!(dimension.parse(max), Ok(dimension.max));
        assert!(dimension.parse(more).is_err_and(|bad| bad.message.contains("the maximum")), "{more}");
    }
}

#[test]
fn what_is_wrong_is_said() {
    let message = |result: Result<u64, BadQuantity>| {
        let error = result.expect_err("must be refused");
        format!("{} / {}", error.message, error.help.unwrap_or_default())
    };
    assert_eq!(message(DURATION.parse("255")), "`255` has no unit / write for example \"255 ms\"");
    assert_eq!(message(DURATION.parse("-1 ms")), "`-1` is negative / ");
    assert_eq!(message(DURATION.parse("++1 ms")), "`++1` is not a number / ");
    assert_eq!(message(DURATION.parse("0.5 ns")), "`0.5 ns` is not a whole number of ns / ");
    assert_eq!(message(SIZE.parse("64 KB")), "`KB` is not a unit of data / write kB (1000 bytes) or KiB (1024 bytes)");
    assert_eq!(message(RATE.parse("2 mbit/s")), "`mbit/s` is not a unit of rate / did you mean `Mbit/s`?");
    let comma = "the decimal separator is a point, and thousands may be separated by `_`";
    assert_eq!(message(RATE.parse("10,5 Mbit/s")), format!("`,5 Mbit/s` is not a unit of rate / {comma}"));
    assert_eq!(message(DURATION.parse("2 msecs")), "`msecs` is not a unit of time / did you mean `msec`?");
    // As near to `bit/s` as to `Tbit/s`.
    assert_eq!(
        message(RATE.parse("2 Pbit/s")),
        "`Pbit/s` is not a unit of rate / the units are bit/s, B/s, kbit/s, kB/s, Mbit/s, MB/s, Gbit/s, GB/s, Tbit/s"
    );
    assert_eq!(message(RATE.parse("fast")), "`fast` does not begin with a number / ");
    assert!(message(DURATION.parse("1e20 s")).contains("is more than 100000000 s"));
    // The least exponent has no positive counterpart.
    for exponent in [i32::MIN, i32::MAX, -25, 25] {
        assert!(message(DURATION.parse(&format!("1e{exponent} s"))).contains("has too many digits"), "{exponent}");
    }
    for digits in ["1.5000000000000000000000000 s", "0.00000000000000000000001e-24 s"] {
        assert!(message(DURATION.parse(digits)).contains("too many digits"), "{digits}");
    }
    assert!(parse_probability("101 %").is_err());
    assert!(parse_probability("-1e-9").is_err());
    assert!(parse_probability("nan").is_err());
}

proptest! {
    #[test]
    fn formatting_reads_back(value in 0u64..=1_000_000_000_000_000, p in 0.0f64..=1.0) {
        for dimension in [DURATION, RATE, SIZE] {
            prop_assert_eq!(dimension.parse(&dimension.format(value)), Ok(value));
        }
        prop_assert_eq!(parse_probability(&format_probability(p)), Ok(p));
    }

    #[test]
    fn no_text_panics(text in "\\PC*") {
        for dimension in [DURATION, RATE, SIZE, PACKETS] {
            let _ = dimension.parse(&text);
        }
        let _ = parse_probability(&text);
    }
}
