//! The seeds of the fuzz targets, run as ordinary tests. Each input that once found a fault is among them.

#[path = "../../../../fuzz/targets/adversary.rs"]
mod adversary;
#[path = "../../../../fuzz/targets/chance.rs"]
mod chance;
#[path = "../../../../fuzz/targets/io_pair.rs"]
mod io_pair;
#[path = "../../../../fuzz/targets/play.rs"]
mod play;
#[path = "../../../../fuzz/targets/slacp_pair.rs"]
mod slacp_pair;

use chance::chance;
use play::play;

#[test]
fn io_pair_seeds() {
    play(include_str!("../../../../fuzz/seeds/io_pair.hex"), io_pair::run);
}

#[test]
fn slacp_pair_seeds() {
    play(include_str!("../../../../fuzz/seeds/slacp_pair.hex"), slacp_pair::run);
}

#[test]
fn adversary_seeds() {
    play(include_str!("../../../../fuzz/seeds/adversary.hex"), |input| _ = adversary::run(input));
}

/// Runs the adversary this many times with random choices. Returns the number of packets that it injected.
fn adversary_runs(runs: u32) -> adversary::Injected {
    let mut next = chance();
    let mut sum = adversary::Injected::default();
    for run in 0..runs {
        let length = 20 + next() as usize % 4000;
        let input: Vec<u8> = (0..length).map(|_| next() as u8).collect();
        let injected = std::panic::catch_unwind(|| adversary::run(&input));
        let Ok(injected) = injected else { panic!("run {run} fails") };
        sum.delivered += injected.delivered;
        sum.withheld += injected.withheld;
    }
    sum
}

/// In half of the runs the adversary knows the sequence number.
#[test]
fn adversary_by_chance() {
    let sum = adversary_runs(2000);
    assert!(sum.delivered > 20_000 && sum.withheld > 1000, "{sum:?}");
}

#[test]
#[ignore = "minutes"]
fn adversary_by_chance_for_long() {
    adversary_runs(200_000);
}
