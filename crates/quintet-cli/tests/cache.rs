//! `quintet cache` as its users meet it: real processes on real shared memory.
#![cfg(target_os = "linux")]

use serde_json::Value;
use std::io::Write;
use std::os::unix::fs::PermissionsExt;
use std::path::PathBuf;
use std::process::{Command, Output, Stdio};

/// A cache name of this test run, removed at the end; notes of files go to a directory of its own.
struct Cache {
    name: String,
    state: PathBuf,
}

impl Cache {
    fn named(test: &str) -> Self {
        let name = format!("clitest-{}-{test}", std::process::id());
        let state = PathBuf::from(env!("CARGO_TARGET_TMPDIR")).join(&name);
        Self { name, state }
    }

    fn new(test: &str) -> Self {
        let cache = Self::named(test);
        cache.fine(&["create", &cache.name, "--capacity", "4MiB"]);
        cache
    }

    fn command(&self, args: &[&str]) -> Command {
        let mut command = Command::new(env!("CARGO_BIN_EXE_quintet"));
        command.arg("cache").args(args).env("XDG_STATE_HOME", &self.state);
        command.stdin(Stdio::null());
        command
    }

    fn run(&self, args: &[&str]) -> Output {
        self.command(args).output().expect("the command starts")
    }

    /// Runs with NAME after the verb.
    fn on(&self, verb: &str, args: &[&str]) -> Output {
        self.run(&[&[verb, &self.name], args].concat())
    }

    /// Exit code 0, nothing on stderr; returns stdout.
    #[track_caller]
    fn fine(&self, args: &[&str]) -> Vec<u8> {
        let output = self.run(args);
        assert_eq!(output.status.code(), Some(0), "{args:?}: {}", text(&output.stderr));
        assert_eq!(text(&output.stderr), "", "{args:?}");
        output.stdout
    }

    #[track_caller]
    fn ok(&self, verb: &str, args: &[&str]) -> String {
        text(&self.fine(&[&[verb, &self.name], args].concat()))
    }

    /// Exit code 2, nothing on stdout, three lines on stderr that say all of `parts`.
    #[track_caller]
    fn refused(&self, args: &[&str], parts: &[&str]) {
        let output = self.run(args);
        let error = text(&output.stderr);
        assert_eq!(output.status.code(), Some(2), "{args:?}: {error}");
        assert_eq!(text(&output.stdout), "", "{args:?}");
        assert!((1..=3).contains(&error.lines().count()), "{args:?}: {error}");
        assert!(parts.iter().all(|part| error.contains(part)), "{args:?}: {error}");
    }
}

impl Drop for Cache {
    fn drop(&mut self) {
        let _ = self.run(&["remove", &self.name]);
        let _ = std::fs::remove_dir_all(&self.state);
    }
}

fn text(bytes: &[u8]) -> String {
    String::from_utf8(bytes.to_vec()).expect("output is UTF-8")
}

fn json(text: &str) -> Value {
    serde_json::from_str(text).expect("one JSON object")
}

#[test]
fn a_value_comes_back_as_its_bytes_and_nothing_else() {
    let cache = Cache::new("bytes");
    assert_eq!(cache.ok("set", &["key", "value"]), "");
    assert_eq!(cache.ok("get", &["key"]), "value");
    cache.ok("set", &["empty", ""]);
    assert_eq!(cache.ok("get", &["empty"]), "");
    cache.ok("set", &["negative", "-5"]);
    assert_eq!(cache.ok("get", &["negative"]), "-5");

    let bytes: Vec<u8> = (0..=255).cycle().take(20_000).collect();
    let mut child = cache
        .command(&["set", &cache.name, "binary", "-"])
        .stdin(Stdio::piped())
        .spawn()
        .expect("the command starts");
    child.stdin.take().expect("a pipe").write_all(&bytes).expect("it reads");
    assert_eq!(child.wait().expect("it ends").code(), Some(0));
    assert_eq!(cache.fine(&["get", &cache.name, "binary"]), bytes);
}

#[test]
fn an_absent_key_is_exit_code_one_without_a_word() {
    let cache = Cache::new("absent");
    for verb in ["get", "del"] {
        let output = cache.on(verb, &["nothing"]);
        assert_eq!(output.status.code(), Some(1), "{verb}");
        assert!(output.stdout.is_empty() && output.stderr.is_empty(), "{verb}");
    }
    cache.ok("set", &["key", "value"]);
    cache.ok("del", &["key"]);
    assert_eq!(cache.on("get", &["key"]).status.code(), Some(1));
}

#[test]
fn a_value_lives_as_long_as_it_was_told() {
    let cache = Cache::new("ttl");
    cache.ok("set", &["brief", "value", "--ttl", "1ms"]);
    cache.ok("set", &["long", "value", "--ttl", "1h"]);
    // Lazily expired: the lookup notices, however late it comes.
    std::thread::sleep(std::time::Duration::from_millis(20));
    assert_eq!(cache.on("get", &["brief"]).status.code(), Some(1));
    assert_eq!(cache.ok("get", &["long"]), "value");
    let line = json(&cache.ok("scan", &["--json"]));
    let ttl = line["ttl_ms"].as_u64().expect("it expires");
    assert!(ttl > 3_500_000 && ttl <= 3_600_000, "{ttl}");
}

#[test]
fn numbers_count() {
    let cache = Cache::new("incr");
    assert_eq!(cache.ok("incr", &["n"]), "1\n");
    assert_eq!(cache.ok("incr", &["n", "10"]), "11\n");
    assert_eq!(cache.ok("incr", &["n", "-20"]), "-9\n");
    assert_eq!(cache.ok("incr", &["m", "1", "--initial", "41"]), "42\n");
    assert_eq!(cache.ok("get", &["n"]), "-9");
    cache.ok("set", &["word", "word"]);
    cache.refused(&["incr", &cache.name, "word"], &["no decimal number", "set the key"]);
}

/// Many processes count at once; no step is lost.
#[test]
fn processes_share_one_counter() {
    let cache = Cache::new("shared");
    let count = |_| cache.command(&["incr", &cache.name, "n"]).stdout(Stdio::null()).spawn();
    let running: Vec<_> = (0..12).map(count).collect();
    for child in running {
        assert!(child.expect("it starts").wait().expect("it ends").success());
    }
    assert_eq!(cache.ok("get", &["n"]), "12");
}

#[test]
fn a_scan_lists_what_is_there() {
    let cache = Cache::new("scan");
    for (key, value) in [("a:1", "one"), ("a:2", "two"), ("b:1", "line\nbreak")] {
        cache.ok("set", &[key, value]);
    }
    let sorted = |text: String| {
        let mut lines: Vec<String> = text.lines().map(str::to_owned).collect();
        lines.sort_unstable();
        lines
    };
    assert_eq!(sorted(cache.ok("scan", &[])), ["a:1", "a:2", "b:1"]);
    assert_eq!(sorted(cache.ok("scan", &["--prefix", "a:"])), ["a:1", "a:2"]);
    assert_eq!(cache.ok("scan", &["--prefix", "b", "--values"]), "b:1\tline\\nbreak\n");
    assert_eq!(cache.ok("scan", &["--limit", "2"]).lines().count(), 2);
    let lines = cache.ok("scan", &["--json", "--prefix", "b"]);
    assert_eq!(json(&lines), serde_json::json!({"key": "b:1", "value": "line\nbreak"}));
}

#[test]
fn stat_tells_what_happened_in_three_forms() {
    let cache = Cache::new("stat");
    cache.ok("set", &["key", "value"]);
    cache.ok("get", &["key"]);
    cache.on("get", &["nothing"]);
    let stat = json(&cache.ok("stat", &["--json"]));
    for (field, expected) in [("hits", 1), ("misses", 1), ("sets", 1), ("entries", 1)] {
        assert_eq!(stat[field], expected, "{field}: {stat}");
    }
    assert_eq!(stat["hit_ratio"], 0.5);
    assert_eq!(stat["processes"], 0, "who looks does not count: {stat}");
    for field in ["evictions_lru", "evictions_window", "evictions_expired", "recoveries", "load"] {
        assert!(stat[field].is_number(), "{field}: {stat}");
    }
    // What was asked for, and the header.
    let bytes = stat["bytes"].as_u64().expect("a number");
    assert!(bytes > 3 << 20 && bytes < (4 << 20) + (64 << 10), "{bytes}");

    let lines = cache.ok("stat", &["--prometheus"]);
    assert!(lines.contains(&format!("quintet_cache_hits_total{{cache=\"{}\"}} 1\n", cache.name)));
    for line in lines.lines() {
        let sample = line.split_once(' ').expect("name and value");
        let comment = line.starts_with("# HELP quintet_cache_") || line.starts_with("# TYPE ");
        assert!(comment || sample.1.parse::<f64>().is_ok(), "{line}");
    }
    let page = cache.ok("stat", &[]);
    assert!(page.contains("hit ratio") && page.contains("50.0 %"), "{page}");
    cache.refused(&["stat", &cache.name, "--json", "--prometheus"], &["cannot be used with"]);
}

#[test]
fn a_policy_is_chosen_at_creation_and_shown() {
    let cache = Cache::new("policy");
    assert_eq!(json(&cache.ok("stat", &["--json"]))["policy"], "lru");
    cache.ok("remove", &[]);
    cache.ok("create", &["--capacity", "4MiB", "--policy", "s3fifo"]);
    assert_eq!(json(&cache.ok("stat", &["--json"]))["policy"], "s3fifo");
    let lines = cache.ok("stat", &["--prometheus"]);
    assert!(lines.contains("policy=\"s3fifo\"} 1\n"), "{lines}");
    let page = cache.ok("stat", &[]);
    assert!(page.lines().any(|line| line == "policy         s3fifo"), "{page}");
    cache.ok("create", &["--if-absent", "--capacity", "4MiB", "--policy", "s3fifo"]);
    let other = ["create", &cache.name, "--if-absent", "--capacity", "4MiB", "--policy", "sieve"];
    cache.refused(&other, &["policy"]);
    cache.refused(&["create", &cache.name, "--policy", "mru"], &["lru, s3fifo, sieve"]);
}

#[test]
fn top_prints_one_frame_where_there_is_no_terminal() {
    let cache = Cache::new("top");
    let frame = cache.ok("top", &["--every", "10ms"]);
    for word in [&cache.name[..], "hit ratio", "load", "per second", "PROCESS"] {
        assert!(frame.contains(word), "{word}: {frame}");
    }
    assert!(!frame.contains('\x1b'), "{frame:?}");
}

#[test]
fn check_repairs_and_says_what_is_there() {
    let cache = Cache::new("check");
    cache.ok("set", &["key", "value"]);
    assert!(cache.ok("check", &[]).contains("1 entries"));
    let report = json(&cache.ok("check", &["--json"]));
    assert_eq!((&report["ok"], &report["entries"]), (&true.into(), &1.into()));
    assert_eq!(report["recovered_operations"], 0);
}

/// Bytes written over the cells and blocks: the answer is no, and says what to do.
#[test]
fn check_finds_damage() {
    let cache = Cache::new("damage");
    for number in 0..100 {
        cache.ok("set", &[&format!("key{number}"), "value"]);
    }
    let path = format!("/dev/shm/quintet-{}", cache.name);
    let mut bytes = std::fs::read(&path).expect("its file");
    let half = bytes.len() / 2;
    bytes[half..].fill(0xa5);
    // In place: the file is mapped by its inode.
    let mut file = std::fs::File::options().write(true).open(&path).expect("its file");
    file.write_all(&bytes).expect("room");
    let output = cache.on("check", &[]);
    let error = text(&output.stderr);
    assert_eq!(output.status.code(), Some(1), "{error}{}", text(&output.stdout));
    assert!(error.contains("damaged") && error.contains("create it again"), "{error}");
    assert_eq!(cache.on("check", &["--json"]).status.code(), Some(1));
}

#[test]
fn evict_puts_out_the_oldest() {
    let cache = Cache::new("evict");
    for number in 0..10 {
        cache.ok("set", &[&format!("key{number}"), "value"]);
    }
    assert!(cache.ok("evict", &["--count", "4"]).contains("4 evicted"));
    assert_eq!(cache.ok("scan", &[]).lines().count(), 6);
    let stat = json(&cache.ok("stat", &["--json"]));
    assert_eq!(stat["evictions_lru"], 4);
    cache.ok("set", &["brief", "value", "--ttl", "1ms"]);
    std::thread::sleep(std::time::Duration::from_millis(300));
    let report = json(&cache.ok("evict", &["--json"]));
    assert_eq!((&report["expired"], &report["evicted"]), (&1.into(), &0.into()));
}

/// Keys of a namespace are its own; a flush empties it and nothing else.
#[test]
fn namespaces_are_apart() {
    let cache = Cache::new("spaces");
    cache.ok("set", &["k", "outside"]);
    cache.ok("set", &["k", "inside", "--namespace", "ns"]);
    assert_eq!(cache.ok("get", &["k"]), "outside");
    assert_eq!(cache.ok("get", &["k", "--namespace", "ns"]), "inside");
    assert_eq!(cache.ok("incr", &["n", "5", "--namespace", "ns"]), "5\n");
    assert_eq!(cache.ok("scan", &[]), "k\n");
    let mut keys: Vec<_> =
        cache.ok("scan", &["--namespace", "ns"]).lines().map(str::to_owned).collect();
    keys.sort();
    assert_eq!(keys, ["k", "n"]);
    let all = cache.ok("scan", &["--all", "--json"]);
    assert_eq!(all.lines().filter(|line| json(line)["namespace"] == "ns").count(), 2);
    assert_eq!(all.lines().count(), 3);
    assert_eq!(cache.on("get", &["k", "--namespace", "other"]).status.code(), Some(1));
    assert_eq!(cache.on("del", &["k", "--namespace", "other"]).status.code(), Some(1));
    assert_eq!(cache.ok("scan", &["--namespace", "other"]), "", "asking makes none");
    assert_eq!(cache.on("flush", &["--namespace", "other"]).status.code(), Some(1));
    cache.ok("flush", &["--namespace", "ns"]);
    assert_eq!(cache.on("get", &["k", "--namespace", "ns"]).status.code(), Some(1));
    assert_eq!(cache.ok("get", &["k"]), "outside");
    cache.ok("flush", &[]);
    assert_eq!(cache.on("get", &["k"]).status.code(), Some(1));
}

#[test]
fn evict_spares_what_was_used() {
    let cache = Cache::new("unused");
    cache.ok("set", &["k", "v"]);
    assert_eq!(
        json(&cache.ok("evict", &["--unused", "1h", "--json"]))["evicted"],
        0,
        "it was used within the hour"
    );
    assert_eq!(json(&cache.ok("evict", &["--count", "1", "--json"]))["evicted"], 1);
}

#[test]
fn a_full_cache_that_never_evicts_says_so() {
    let cache = Cache::named("full");
    cache.fine(&["create", &cache.name, "--capacity", "512KiB", "--no-evict"]);
    let value = "v".repeat(8000);
    let mut number = 0;
    let refused = loop {
        let output = cache.on("set", &[&format!("key{number}"), &value]);
        if output.status.code() != Some(0) {
            break output;
        }
        number += 1;
        assert!(number < 100, "it must fill");
    };
    let error = text(&refused.stderr);
    assert_eq!(refused.status.code(), Some(2), "{error}");
    assert!(error.contains("evicts nothing") && error.contains("--capacity"), "{error}");
    assert_eq!(cache.ok("scan", &[]).lines().count(), number);
    cache.refused(&["evict", &cache.name, "--count", "1"], &["evicts nothing"]);
}

#[test]
fn create_minds_its_options() {
    let cache = Cache::named("create");
    let name = &cache.name[..];
    let create = ["create", name, "--capacity", "1MiB"];
    cache.fine(&[&create[..], &["--mode", "0660", "--max-value", "2KiB"]].concat());
    let path = format!("/dev/shm/quintet-{name}");
    let mode = std::fs::metadata(&path).expect("its file").permissions().mode();
    assert_eq!(mode & 0o777, 0o660);

    cache.refused(&create, &["exists", "--if-absent"]);
    cache.ok("set", &["key", "value"]);
    cache.fine(&[&create[..], &["--if-absent"]].concat());
    assert_eq!(cache.ok("get", &["key"]), "value", "it is the same cache");
    cache.refused(&["set", name, "key", &"v".repeat(2049)], &["longer than 2048", "--max-value"]);
    cache.ok("set", &["key", &"v".repeat(2048)]);

    let capacity = |size| ["create", "x", "--capacity", size];
    cache.refused(&capacity("1KiB"), &["too small", "--capacity"]);
    cache.refused(&capacity("much"), &["whole number"]);
    cache.refused(&["create", "x"], &["--capacity"]);
    cache.refused(&["create", "a/b", "--capacity", "1MiB"], &["no slash", "--path"]);
    cache.refused(&[&capacity("1MiB")[..], &["--mode", "0400"]].concat(), &["0600"]);
    cache.refused(&[&capacity("1MiB")[..], &["--max-value", "1MiB"]].concat(), &["longest value"]);
}

#[test]
fn wrong_names_are_explained() {
    let cache = Cache::new("names");
    let slip = format!("{}s", cache.name);
    let near = format!("did you mean {}?", cache.name);
    for args in [
        &["set", &slip[..], "key", "value"][..],
        &["get", &slip, "key"],
        &["del", &slip, "key"],
        &["incr", &slip, "key"],
        &["scan", &slip],
        &["stat", &slip],
        &["top", &slip],
        &["check", &slip],
        &["evict", &slip],
        &["remove", &slip],
    ] {
        cache.refused(args, &["does not exist", &near]);
    }
    cache.refused(&["get", "no-such-thing-at-all-zz", "key"], &["does not exist"]);
    cache.refused(&["get", "", "key"], &["cannot name a cache"]);
    cache.refused(&["frobnicate"], &["frobnicate"]);

    let foreign = format!("/dev/shm/quintet-{}-foreign", cache.name);
    std::fs::write(&foreign, vec![7u8; 1 << 16]).expect("room");
    let name = format!("{}-foreign", cache.name);
    cache.refused(&["get", &name, "key"], &["not a quintet segment"]);
    std::fs::remove_file(&foreign).expect("it was there");
}

#[test]
fn ls_lists_caches_and_remove_takes_them_away() {
    let cache = Cache::new("ls");
    cache.ok("set", &["key", "value"]);
    let row = |listing: String| {
        listing.lines().find(|line| line.contains(&cache.name)).map(str::to_owned)
    };
    let line = row(text(&cache.fine(&["ls"]))).expect("a row");
    assert!(line.contains("4.0 MiB") && line.contains('1'), "{line}");
    let line = json(&row(text(&cache.fine(&["ls", "--json"]))).expect("a line"));
    assert_eq!((&line["cache"], &line["entries"]), (&cache.name[..].into(), &1.into()));
    cache.ok("remove", &[]);
    assert_eq!(row(text(&cache.fine(&["ls"]))), None);
    assert_eq!(cache.on("remove", &[]).status.code(), Some(2));
}

/// A cache in a file: found by its name and by its path, kept when everybody is gone.
#[test]
fn a_cache_in_a_file_goes_by_its_name() {
    let cache = Cache::named("file");
    std::fs::create_dir_all(&cache.state).expect("the target directory is writable");
    let file = cache.state.join("kept.cache");
    let file = file.to_str().expect("UTF-8");
    cache.fine(&["create", &cache.name, "--capacity", "1MiB", "--path", file]);
    cache.ok("set", &["key", "value"]);
    assert_eq!(cache.ok("get", &["key"]), "value");
    assert_eq!(cache.fine(&["get", file, "key"]), b"value");
    assert!(text(&cache.fine(&["ls"])).contains(file));
    cache.ok("remove", &[]);
    assert!(!PathBuf::from(file).exists());
    assert!(!text(&cache.fine(&["ls"])).contains(&cache.name));
    let nowhere = cache.state.join("no/such/dir");
    let nowhere = nowhere.to_str().expect("UTF-8");
    cache.refused(
        &["create", "x", "--capacity", "1MiB", "--path", nowhere],
        &["does not exist", "make the directory"],
    );
}

/// A container's shared-memory mount is small: the error says how to enlarge it.
#[test]
fn a_small_mount_is_told_from_a_full_disk() {
    let quintet = env!("CARGO_BIN_EXE_quintet");
    let script = format!(
        "mount -t tmpfs -o size=1m tmpfs /dev/shm || exit 77; \
         exec {quintet} cache create small --capacity 64MiB"
    );
    let output = Command::new("unshare").args(["-rm", "sh", "-c", &script]).output();
    let output = match output {
        Ok(output) if output.status.code() == Some(2) => output,
        _ => return println!("skipped: no mount of its own"),
    };
    let error = text(&output.stderr);
    assert!(error.lines().count() <= 3, "{error}");
    for part in ["no room for 64.0 MiB", "1.0 MiB", "--shm-size", "emptyDir", "--capacity"] {
        assert!(error.contains(part), "{part}: {error}");
    }
}

#[test]
fn help_is_there_for_every_subcommand() {
    let cache = Cache::named("help");
    let help = text(&cache.fine(&["--help"]));
    for verb in [
        "create", "set", "add", "cas", "get", "del", "touch", "ttl", "incr", "mget", "mset",
        "scan", "dump", "load", "stat", "top", "check", "evict", "flush", "remove", "ls",
    ] {
        assert!(help.contains(verb), "{verb}");
        let help = text(&cache.fine(&[verb, "--help"]));
        assert!(help.contains(&format!("Example:\n  quintet cache {verb}")), "{help}");
    }
}

#[test]
fn blocks_are_as_long_as_they_were_told() {
    let cache = Cache::named("block");
    cache.fine(&["create", &cache.name, "--capacity", "16MiB", "--block", "1KiB"]);
    assert_eq!(json(&cache.ok("stat", &["--json"]))["block_bytes"], 1024);
    let other = Cache::named("odd-block");
    other.refused(&["create", &other.name, "--capacity", "16MiB", "--block", "1000"], &["--block"]);
}

#[test]
fn namespaces_with_long_names_are_not_confused() {
    let cache = Cache::new("long-namespaces");
    let (one, other) = ("n".repeat(60) + "1", "n".repeat(60) + "2");
    for name in [&one, &other] {
        cache.ok("set", &["key", name, "--namespace", name]);
    }
    assert_eq!(cache.ok("get", &["key", "--namespace", &one]), one);
    cache.ok("flush", &["--namespace", &one]);
    assert_eq!(cache.on("get", &["key", "--namespace", &one]).status.code(), Some(1));
    assert_eq!(cache.ok("get", &["key", "--namespace", &other]), other);
}

#[test]
fn each_namespace_is_counted_and_can_be_removed() {
    let cache = Cache::new("count-namespaces");
    cache.ok("set", &["key", "1", "--namespace", "users"]);
    cache.ok("get", &["key", "--namespace", "users"]);
    let stat = json(&cache.ok("stat", &["--json"]));
    let users = &stat["namespaces"][1];
    assert_eq!(users["namespace"], "users");
    assert_eq!((users["entries"].as_u64(), users["hits"].as_u64()), (Some(1), Some(1)));
    assert!(cache.ok("stat", &[]).contains("users"));
    let text = cache.ok("stat", &["--prometheus"]);
    assert!(text.contains("quintet_cache_namespace_entries{cache="), "{text}");
    cache.ok("flush", &["--namespace", "users", "--remove"]);
    assert_eq!(json(&cache.ok("stat", &["--json"]))["namespaces"], Value::Array(Vec::new()));
}

#[test]
fn conditions_and_times_to_live() {
    let cache = Cache::new("conditions");
    let code = |verb: &str, args: &[&str]| cache.on(verb, args).status.code();
    assert_eq!(cache.ok("add", &["k", "1"]), "");
    assert_eq!(code("add", &["k", "2"]), Some(1));
    assert_eq!(code("cas", &["k", "2", "3"]), Some(1));
    assert_eq!(cache.ok("cas", &["k", "1", "3"]), "");
    assert_eq!(code("cas", &["absent", "1", "3"]), Some(1));
    assert_eq!(cache.ok("get", &["k"]), "3");
    assert_eq!(cache.ok("ttl", &["k"]), "never\n");
    cache.ok("touch", &["k", "--ttl", "1h"]);
    let left = cache.ok("ttl", &["k"]);
    let left: u64 = left.trim_end().trim_end_matches("ms").parse().expect("milliseconds");
    assert!((3_500_000..=3_600_000).contains(&left), "{left}");
    cache.ok("touch", &["k"]);
    assert_eq!(cache.ok("ttl", &["k"]), "never\n");
    for verb in ["ttl", "touch"] {
        assert_eq!(code(verb, &["absent"]), Some(1));
        assert_eq!(code(verb, &["k", "--namespace", "absent"]), Some(1));
    }
}

#[test]
fn keys_and_values_begin_as_they_like() {
    let cache = Cache::new("hyphens");
    for key in ["-5", "--", "--namespace-like", "-x"] {
        let key = if key == "--" { "-" } else { key };
        cache.ok("set", &[key, "-value"]);
        assert_eq!(cache.ok("get", &[key]), "-value", "{key}");
    }
    cache.ok("set", &["-5", "other", "--namespace", "ns"]);
    assert_eq!(cache.ok("get", &["-5", "--namespace", "ns"]), "other");
    assert_eq!(cache.ok("incr", &["-n", "-3"]), "-3\n");
    cache.ok("del", &["-5"]);
    assert_eq!(cache.on("get", &["-5"]).status.code(), Some(1));
}

#[test]
fn many_keys_at_once() {
    let cache = Cache::new("many");
    cache.ok("mset", &["a", "1", "b", "-2", "c", "3 words here"]);
    assert_eq!(cache.ok("mget", &["a", "b", "c"]), "a\t1\nb\t-2\nc\t3 words here\n");
    let some = cache.on("mget", &["a", "absent", "c", "--json"]);
    assert_eq!(some.status.code(), Some(1));
    let lines: Vec<Value> = text(&some.stdout).lines().map(json).collect();
    assert_eq!((lines.len(), &lines[1]["value"]), (2, &Value::from("3 words here")));
    cache.ok("mset", &["--", "-a", "-b"]);
    assert_eq!(cache.ok("mget", &["--", "-a"]), "-a\t-b\n");
    cache.refused(&["mset", &cache.name, "a", "1", "b"], &["no value", "KEY VALUE"]);
}

/// What is dumped can be loaded: bytes, namespaces and times to live included.
#[test]
fn a_dump_can_be_loaded() {
    let (from, to) = (Cache::new("dump"), Cache::new("load"));
    from.ok("mset", &["a", "1", "b", "two"]);
    from.ok("set", &["k", "v", "--namespace", "ns", "--ttl", "1h"]);
    let mut set = from.command(&["set", &from.name, "bytes", "-"]);
    let mut set = set.stdin(Stdio::piped()).spawn().expect("it starts");
    set.stdin.take().expect("a pipe").write_all(&[0, 255, 10, 128]).expect("it reads");
    assert!(set.wait().expect("it ends").success());
    let lines = from.ok("dump", &[]);
    assert_eq!(lines.lines().count(), 4);
    let load = |text: &str| {
        let mut load = to.command(&["load", &to.name]);
        let load = load.stdin(Stdio::piped()).stdout(Stdio::piped()).stderr(Stdio::piped());
        let mut load = load.spawn().expect("it starts");
        load.stdin.take().expect("a pipe").write_all(text.as_bytes()).expect("it reads");
        load.wait_with_output().expect("it ends")
    };
    assert_eq!(text(&load(&lines).stdout), "4 loaded\n");
    assert_eq!(to.fine(&["get", &to.name, "bytes"]), [0, 255, 10, 128]);
    assert_eq!(to.ok("get", &["k", "--namespace", "ns"]), "v");
    assert!(to.ok("ttl", &["k", "--namespace", "ns"]).ends_with("ms\n"));
    for wrong in ["{", "[]", r#"{"key": 1, "value": ""}"#, r#"{"key": "k", "value_hex": "0"}"#] {
        let output = load(wrong);
        assert_eq!(output.status.code(), Some(2), "{wrong}");
        assert!(text(&output.stderr).contains("line 1"), "{wrong}: {}", text(&output.stderr));
    }
}

#[test]
fn the_list_shows_owner_age_and_size() {
    let cache = Cache::new("list");
    let lines = text(&cache.fine(&["ls", "--json"]));
    let line = lines.lines().map(json).find(|line| line["cache"] == cache.name.as_str());
    let line = line.expect("it is listed");
    assert!(!line["owner"].as_str().expect("a name").is_empty());
    assert!(line["age_s"].as_u64().expect("seconds") < 3600);
    assert!(line["bytes"].as_u64().expect("bytes") > 1 << 20);
    let table = text(&cache.fine(&["ls"]));
    assert!(["OWNER", "AGE", "SIZE"].iter().all(|head| table.contains(head)), "{table}");
}

/// On a terminal it asks first; elsewhere, and with --yes, it does not.
#[test]
fn remove_asks_on_a_terminal() {
    let cache = Cache::new("ask");
    let quintet = env!("CARGO_BIN_EXE_quintet");
    let on_terminal = |answer: &str| {
        let command = format!("{quintet} cache remove {}", cache.name);
        let mut script = Command::new("script");
        script.args(["-qec", &command, "/dev/null"]).env("XDG_STATE_HOME", &cache.state);
        let mut script = script.stdin(Stdio::piped()).stdout(Stdio::piped()).spawn().ok()?;
        script.stdin.take()?.write_all(answer.as_bytes()).ok()?;
        script.wait_with_output().ok()
    };
    let Some(refused) = on_terminal("n\n") else {
        return println!("skipped: no command `script` to make a terminal");
    };
    assert!(text(&refused.stdout).contains("[y/N]"), "{}", text(&refused.stdout));
    cache.ok("stat", &[]);
    on_terminal("y\n").expect("it started before");
    assert_eq!(cache.on("stat", &[]).status.code(), Some(2));
}

/// A namespace and each process are held to quotas, told of, and let go.
#[test]
fn quotas_are_set_shown_and_lifted() {
    let cache = Cache::named("quota");
    cache.ok("create", &["--capacity", "1MiB", "--quotas", "--tiers", "3"]);
    cache.ok("quota", &["--namespace", "guests", "--entries", "1"]);
    cache.ok("quota", &["--each-process", "--inserts", "500", "--bytes", "8KiB"]);
    for key in ["a", "b", "c"] {
        cache.ok("set", &[key, "x", "--namespace", "guests"]);
    }
    let shown = cache.ok("quota", &[]);
    for word in ["guests", "(each process)", "(unnamed)", "500", "SUSPECTED"] {
        assert!(shown.contains(word), "{word} in {shown}");
    }
    let stat = cache.ok("stat", &[]);
    assert!(stat.contains("2 entries beyond their quotas"), "{stat}");
    let stat = cache.ok("stat", &["--json"]);
    assert!(stat.contains("\"quota_entries\":1") && stat.contains("\"suspects\":2"), "{stat}");
    cache.ok("quota", &["--namespace", "guests", "--none"]);
    let shown = cache.ok("quota", &["--namespace", "guests", "--json"]);
    assert!(shown.contains("\"entries\":null") && shown.contains("\"held_entries\":1"), "{shown}");
}

/// A cache without accounts refuses a quota, and says what to do.
#[test]
fn a_cache_without_accounts_has_no_quotas() {
    let cache = Cache::new("no-quota");
    cache.refused(&["quota", &cache.name, "--entries", "1"], &["quotas"]);
}

/// Every command goes through the store: what one evicts another finds, and what one removes nobody
/// finds.
#[test]
fn a_store_takes_what_leaves_and_gives_it_back() {
    let cache = Cache::named("store");
    std::fs::create_dir_all(&cache.state).unwrap();
    let path = cache.state.join("store").display().to_string();
    let store = format!("lmdb:{path}?size=64MiB&sync=none");
    let name = cache.name.clone();
    cache.fine(&["create", &name, "--capacity", "1MiB", "--store", &store]);
    // More than fits, by processes that end at once.
    let value = "v".repeat(1000);
    for part in 0..4 {
        let keys: Vec<String> = (0..500).map(|number| format!("key{part}-{number}")).collect();
        let pairs: Vec<&str> = keys.iter().flat_map(|key| [key.as_str(), &value]).collect();
        cache.ok("mset", &pairs);
    }
    for key in ["key0-0", "key1-7", "key3-499"] {
        assert_eq!(cache.ok("get", &[key]), value, "{key}");
    }
    assert!(cache.ok("evict", &["--count", "100000"]).contains("evicted"));
    assert_eq!(cache.ok("scan", &[]), "");
    assert_eq!(cache.ok("get", &["key2-3"]), value);
    cache.ok("del", &["key2-3"]);
    cache.ok("evict", &["--count", "100000"]);
    assert_eq!(cache.on("get", &["key2-3"]).status.code(), Some(1));
    assert_eq!(cache.on("del", &["key2-3"]).status.code(), Some(1));
    let stat = json(&cache.ok("stat", &["--json"]));
    assert!(stat["store_writes"].as_u64().unwrap() >= 2000, "{stat}");
    assert!(stat["store_hits"].as_u64().unwrap() >= 2, "{stat}");
    assert_eq!((&stat["store_drops"], &stat["store_queue"]), (&0.into(), &0.into()), "{stat}");
    assert_eq!(stat["store"]["closed"], Value::Null, "{stat}");
    let page = cache.ok("stat", &[]);
    assert!(page.contains("store writes") && page.contains(&format!("lmdb:{path}")), "{page}");
    let other = Cache::named("store-refused");
    let create = ["create", &other.name, "--capacity", "1MiB", "--store"];
    other.refused(&[&create[..], &["mysql://h"]].concat(), &["mysql", "lmdb:PATH"]);
    other.refused(&[&create[..], &["redis://127.0.0.1:1"]].concat(), &["store"]);
    assert_eq!(other.on("stat", &[]).status.code(), Some(2), "nothing was made");
}
