//! The memory of connections: their buffers, and what waits for servers.

use bentpipe_engine::gateway::MIN_UNSENT;

use super::*;

/// A server that is faster than the link fills at most two windows; all its data arrives.
#[test]
fn buffers_grow_with_use_and_not_beyond_the_budget() {
    for (memory, max) in [(8 << 20, 150_000), (4 * MIN_BUFFER as u64, 3 * MIN_BUFFER)] {
        let (mut world, _, id) = open(UplinkConfig { memory, ..config() });
        let mut written = 0;
        loop {
            let room = world.machine.room(id);
            if room == 0 {
                break;
            }
            written += world.machine.write(world.now, id, &vec![1; room]);
        }
        assert!(written <= max && written >= MIN_BUFFER, "{written}");
        assert!(world.machine.stats().memory <= memory);
    }
}

#[test]
fn what_waits_for_a_server_is_memory() {
    let (mut world, mut client, id) = open(config());
    let before = world.machine.stats().memory;
    let much = world.machine.may_wait(id);
    assert_eq!(much, 64 << 10);
    world.machine.set_waiting(id, 100_000);
    world.machine.set_waiting(id, 120_000);
    assert_eq!(world.machine.stats().memory, before + 120_000);
    // A client that takes more than its share goes on, in small steps.
    world.machine.set_waiting(id, config().memory as usize);
    assert_eq!((world.machine.may_wait(id), world.machine.room(id) > 0), (MIN_UNSENT, true));
    world.machine.set_waiting(id, 0);
    assert_eq!((world.machine.stats().memory, world.machine.may_wait(id)), (before, much));
    // The server is gone, and then the client.
    world.machine.set_waiting(id, 5000);
    world.machine.abort(world.now, id);
    exchange(&mut world, &mut client);
    assert_eq!((world.machine.held(), world.machine.stats().memory), (0, 5000));
    world.machine.flushed(id);
    assert_eq!(world.machine.stats().memory, 0);
    // It is over, so nothing waits any more.
    world.machine.set_waiting(id, 1);
    assert_eq!(world.machine.stats().memory, 0);
}
