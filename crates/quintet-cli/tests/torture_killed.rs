//! A torture that is itself killed leaves nobody behind.
#![cfg(target_os = "linux")]
#![deny(unsafe_code)]

use std::os::unix::process::CommandExt;
use std::process::{Command, Stdio};
use std::time::{Duration, Instant};

/// How many living processes belong to the group.
fn members(group: u32) -> usize {
    let processes = std::fs::read_dir("/proc").unwrap().flatten();
    let stats =
        processes.filter_map(|entry| std::fs::read_to_string(entry.path().join("stat")).ok());
    let in_group = |stat: &String| {
        // Behind the name, which may hold anything: state, parent, group.
        let rest = stat.rsplit_once(") ").map_or("", |(_, rest)| rest);
        let words: Vec<&str> = rest.split(' ').take(3).collect();
        words.len() == 3 && words[0] != "Z" && words[2] == group.to_string()
    };
    stats.filter(in_group).count()
}

/// Waits until the group has a number of members that will do.
fn until(group: u32, what: &str, enough: impl Fn(usize) -> bool) {
    let end = Instant::now() + Duration::from_secs(60);
    while !enough(members(group)) {
        assert!(Instant::now() < end, "{what}: {} processes", members(group));
        std::thread::sleep(Duration::from_millis(20));
    }
}

#[test]
fn the_workers_of_a_killed_torture_end() {
    for family in ["cache", "tier-map"] {
        let mut command = Command::new(env!("CARGO_BIN_EXE_quintet"));
        command.args(["torture", "--family", family, "--seconds", "600"]).process_group(0);
        let mut torture = command.stdout(Stdio::null()).stderr(Stdio::null()).spawn().unwrap();
        let group = torture.id();
        until(group, "no workers", |members| members > 2);
        torture.kill().unwrap();
        torture.wait().unwrap();
        until(group, "workers go on", |members| members == 0);
        // What it could not remove any more.
        for file in std::fs::read_dir("/dev/shm").into_iter().flatten().flatten() {
            let name = file.file_name();
            if name.to_string_lossy().contains(&format!("-{group}-")) {
                let _ = std::fs::remove_file(file.path());
            }
        }
    }
}
