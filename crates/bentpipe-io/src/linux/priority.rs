//! Thread priority: the thread that moves packets must not wait for the programs that send them.

use thread_priority::{
    NormalThreadSchedulePolicy, RealtimeThreadSchedulePolicy, ThreadPriority, ThreadSchedulePolicy,
    set_thread_priority_and_policy, thread_native_id,
};

/// Gives the calling thread priority over all ordinary threads (SCHED_RR, lowest priority). Returns false if the system
/// refuses because CAP_SYS_NICE is missing. Threads and programs started later inherit the priority, so start those
/// that should not have it first.
pub fn hurry() -> bool {
    set(ThreadSchedulePolicy::Realtime(RealtimeThreadSchedulePolicy::RoundRobin), 1)
}

/// Gives the calling thread eleven times the share of an ordinary thread when processors are scarce (nice -11, which audio
/// servers use), and lets it run after those of [`hurry`]. Returns false, and is inherited, as above.
pub fn prefer() -> bool {
    // The library divides nice 20 to -20 into 99 steps.
    set(ThreadSchedulePolicy::Normal(NormalThreadSchedulePolicy::Other), 75)
}

fn set(policy: ThreadSchedulePolicy, step: u8) -> bool {
    let priority = ThreadPriority::Crossplatform(step.try_into().expect("it is from 0 to 99"));
    set_thread_priority_and_policy(thread_native_id(), priority, policy).is_ok()
}
