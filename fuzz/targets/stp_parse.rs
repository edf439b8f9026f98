//! Any bytes as an STP segment: refused by name, or read and written again to the bit.

use bentpipe_engine::wire::ip::{Addresses, Ports};
use bentpipe_engine::wire::seq::Numbering;
use bentpipe_engine::wire::stp::{PROTOCOL, Translation};
use bentpipe_engine::wire::tcp::Near;

/// The first byte says how much help the rest gets to come past the first checks.
pub(crate) fn run(data: &[u8]) {
    let Some((&mode, bytes)) = data.split_first() else { return };
    let parse = |text: &str| text.parse().expect("an address");
    let (a, b) = if mode & 1 == 0 { ("192.0.2.1", "192.0.2.2") } else { ("2001:db8::1", "2001:db8::2") };
    let there = Addresses::new(parse(a), parse(b)).expect("of one version");
    let mut bytes = bytes.to_vec();
    if mode & 2 != 0 && bytes.len() >= 20 {
        bytes[16] = 0x10 | bytes[16] & 0x0f;
        bytes[18..20].fill(0);
        let sum = there.pseudo_header(PROTOCOL, bytes.len()).bytes(&bytes).finish();
        bytes[18..20].copy_from_slice(&sum.to_be_bytes());
    }
    let Ok(ports) = Ports::peek(&bytes) else {
        assert!(bytes.len() < 4);
        return;
    };
    let (ours, peers) = (Numbering::from_isn(0xffff_fff0), Numbering::from_isn(u32::from(mode) << 24));
    let sender = Translation { iss: ours, irs: Some(peers), ..Translation::new(there, ports, 0) };
    let receiver = Translation { iss: peers, irs: Some(ours), ..Translation::new(there.reversed(), ports, 0) };
    let near = Near { rcv_nxt: u64::from(mode) << 30, snd_una: u64::from(mode) << 20 };
    let Ok((segment, payload)) = receiver.parse(&bytes, near) else { return };
    let mut out = vec![0; bytes.len()];
    let length = sender.emit(&segment, &[&bytes[payload]], &mut out).expect("what was read can be written");
    // Numbers before the beginning are read as far beyond it, and come out the same.
    assert_eq!(out[..length], bytes[..], "{segment:?}");
}
