//! Searches `/proc/self/mem` for copies of keys.

use std::env;
use std::io::{Read, Seek, SeekFrom};
use std::process::Command;

use super::world::{World, seconds};
use crate::tunnel::noise::{HASHES, MADE};

/// How often each of these keys, given inverted, occurs in this process's writable memory.
fn copies(inverted: &[[u8; 32]]) -> Vec<usize> {
    let mut found = vec![0; inverted.len()];
    let maps = std::fs::read_to_string("/proc/self/maps").expect("there is /proc");
    let mut memory = std::fs::File::open("/proc/self/mem").expect("it is our own");
    let mut buffer = vec![0; 1 << 20];
    let own = buffer.as_ptr() as u64..buffer.as_ptr() as u64 + buffer.len() as u64;
    // The first two bytes skip nearly everything.
    let pair = |bytes: &[u8]| usize::from(bytes[0]) << 8 | usize::from(bytes[1]);
    let mut begins = vec![false; 1 << 16];
    inverted.iter().for_each(|key| begins[pair(&key.map(|byte| !byte))] = true);
    for line in maps.lines().filter(|line| line.split(' ').nth(1).is_some_and(|mode| mode.starts_with("rw"))) {
        let (start, end) = line.split(' ').next().and_then(|range| range.split_once('-')).expect("a range");
        let [start, end] = [start, end].map(|text| u64::from_str_radix(text, 16).expect("hexadecimal"));
        let mut at = start;
        while at < end {
            // Pieces overlap by the length of a key minus one byte.
            let wanted = buffer.len().min((end - at) as usize);
            let read = memory.seek(SeekFrom::Start(at)).and_then(|_| memory.read(&mut buffer[..wanted]));
            let Ok(length @ 32..) = read else { break };
            for (offset, window) in buffer[..length].windows(32).enumerate() {
                if !begins[pair(window)] {
                    continue;
                }
                for (key, count) in inverted.iter().zip(&mut found) {
                    let is_here = window.iter().zip(key).all(|(byte, key)| !byte == *key);
                    *count += usize::from(is_here && !own.contains(&(at + offset as u64)));
                }
            }
            at += if (at + length as u64) < end { length as u64 - 31 } else { length as u64 };
        }
    }
    found
}

/// The private key is in memory once. The keys of a session, of an unfinished handshake, and everything that `snow` and `ring`
/// derived from them disappear with it. (AES keeps the key as the first words of its schedule.)
#[test]
fn keys_that_are_over_are_gone() {
    // In a process of its own there is little memory to search: the other tests have fifty times as much.
    if env::var_os("BENTPIPE_TEST_ALONE").is_none() {
        let name = std::thread::current().name().expect("a test's").to_owned();
        let alone = Command::new(env::current_exe().expect("it runs"))
            .args([&name, "--exact", "--test-threads=2"])
            .env("BENTPIPE_TEST_ALONE", "yes")
            .output()
            .expect("it starts");
        let said = String::from_utf8_lossy(&alone.stdout);
        assert!(alone.status.success() && said.contains("1 passed"), "{said}");
        return;
    }
    for aes in [true, false] {
        MADE.take();
        HASHES.take();
        let mut world = World::new();
        if !aes {
            world.ends = std::mem::replace(&mut world.ends, World::new().ends).map(crate::tunnel::Tunnel::without_aes);
        }
        let private = world.keys.clone().map(|key| key.inverted_for_test());
        world.run(seconds(1));
        let first: Vec<_> = MADE.with_borrow(|made| made.clone());
        assert_eq!(first.len(), 4, "two keys at each of two ends");
        assert!(copies(&first).iter().all(|&count| count > 0), "the search finds what is there");
        assert_eq!(copies(&HASHES.take()), [0, 0], "nor is the state that they come from");
        assert_eq!(copies(&private), [1, 1]);
        // At 121 s there are new keys, and at 241 s the first ones are wiped.
        for _ in 0..250 {
            world.run(seconds(1));
            world.say(0, b"text");
            world.say(1, b"text");
        }
        assert_eq!(copies(&first), [0; 4], "aes: {aes}");
        assert_eq!(copies(&private), [1, 1]);
        let all = MADE.take();
        assert!(all.len() >= 12);
        drop(world);
        assert_eq!(copies(&all), vec![0; all.len()]);
        assert_eq!(copies(&private), [0, 0]);
    }
}
