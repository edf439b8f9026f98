//! Thread priority: the thread that moves packets must not wait for the programs that send them.

use thread_priority::{
    RealtimeThreadSchedulePolicy, ThreadPriority, ThreadSchedulePolicy, set_thread_priority_and_policy,
    thread_native_id,
};

/// Gives the calling thread priority over all ordinary threads (SCHED_RR, lowest priority). Returns false if the system
/// refuses because CAP_SYS_NICE is missing. Threads and programs started later inherit the priority, so start those
/// that should not have it first.
pub fn hurry() -> bool {
    let lowest = ThreadPriority::Crossplatform(1u8.try_into().expect("1 is from 0 to 99"));
    let policy = ThreadSchedulePolicy::Realtime(RealtimeThreadSchedulePolicy::RoundRobin);
    set_thread_priority_and_policy(thread_native_id(), lowest, policy).is_ok()
}
