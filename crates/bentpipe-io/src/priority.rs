//! A thread that the machine runs before others: what moves packets by the clock must not wait for what makes them.

use thread_priority::{
    RealtimeThreadSchedulePolicy, ThreadPriority, ThreadSchedulePolicy, set_thread_priority_and_policy,
    thread_native_id,
};

/// Puts the calling thread before all ordinary ones (SCHED_RR, the lowest of its priorities); whether the system lets
/// it, which takes CAP_SYS_NICE. Threads and programs that it starts from then on are the same: start them first.
pub fn hurry() -> bool {
    let lowest = ThreadPriority::Crossplatform(1u8.try_into().expect("1 is from 0 to 99"));
    let policy = ThreadSchedulePolicy::Realtime(RealtimeThreadSchedulePolicy::RoundRobin);
    set_thread_priority_and_policy(thread_native_id(), lowest, policy).is_ok()
}
