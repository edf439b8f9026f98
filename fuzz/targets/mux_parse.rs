//! Bytes from the peer: each string is a message of the multiplexer or an error, a message is written again to the bit,
//! and an end that is told anything at all holds no more than its budget and does not panic.

use bentpipe_engine::mux::{Input, Mux, MuxConfig, Output, Side};
use bentpipe_engine::units::Time;
use bentpipe_engine::wire::mux::{emit, parse};
use bentpipe_engine::{Context, Machine, Step};

pub(crate) fn run(data: &[u8]) {
    let config = MuxConfig { side: Side::Responder, window: 4096, max_payload: 100, max_streams: 8, budget: 8192 };
    let mut mux = Mux::new(config);
    // Each message is preceded by its length; 255 gives the end room, or lets a user take.
    let mut rest = data;
    while let [length, more @ ..] = rest {
        let (form, next) = more.split_at(usize::from(*length).min(more.len()));
        rest = next;
        let mut cx = Context::silent(Time::ZERO);
        if let Ok((message, body)) = parse(form) {
            let mut out = [0; 512];
            let length = emit(&message, &[&form[body]], &mut out).expect("what was read can be written");
            assert_eq!(&out[..length], form);
            mux.handle(&mut cx, Input::Message(message));
        }
        mux.handle(&mut cx, Input::Room(u32::from(*length & 3)));
        while let Step::Do(output) = mux.poll(&mut cx) {
            if let Output::Received { stream, len } = output
                && len % 3 == 0
            {
                mux.handle(&mut cx, Input::Taken { stream, bytes: len.into() });
            }
        }
        assert!(mux.held() <= config.budget && mux.len() <= 8);
    }
}
