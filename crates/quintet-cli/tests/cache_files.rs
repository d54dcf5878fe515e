//! `quintet cache` and what belongs to others: their files, their caches, their terminals. Real
//! processes on real files.
#![cfg(target_os = "linux")]

use std::os::unix::fs::{MetadataExt, PermissionsExt};
use std::os::unix::process::CommandExt;
use std::path::{Path, PathBuf};
use std::process::{Command, Output, Stdio};
use std::time::Duration;

/// Somebody else than whoever runs the tests.
const NOBODY: u32 = 65534;
/// And another one.
const SOMEBODY: u32 = 54321;

/// A directory and a name of a story's own.
struct Story {
    name: String,
    directory: PathBuf,
}

impl Story {
    fn new(story: &str) -> Self {
        let name = format!("files-{}-{story}", std::process::id());
        let directory = PathBuf::from(env!("CARGO_TARGET_TMPDIR")).join(&name);
        std::fs::create_dir_all(&directory).expect("the target directory is writable");
        Self { name, directory }
    }

    fn file(&self, name: &str) -> String {
        self.directory.join(name).to_str().expect("UTF-8").to_owned()
    }

    /// Where a cache in memory of this name lies.
    fn memory(&self) -> PathBuf {
        PathBuf::from(format!("/dev/shm/quintet-{}", self.name))
    }

    fn command(&self, args: &[&str]) -> Command {
        let mut command = Command::new(env!("CARGO_BIN_EXE_quintet"));
        command.arg("cache").args(args).env("XDG_STATE_HOME", self.directory.join("state"));
        command.stdin(Stdio::null());
        command
    }

    fn run(&self, args: &[&str]) -> Output {
        self.command(args).output().expect("the command starts")
    }

    #[track_caller]
    fn fine(&self, args: &[&str]) -> String {
        let output = self.run(args);
        assert_eq!(output.status.code(), Some(0), "{args:?}: {}", text(&output.stderr));
        text(&output.stdout)
    }

    /// Exit code 2, and at most three lines on stderr that say all of `parts`.
    #[track_caller]
    fn refused(&self, args: &[&str], parts: &[&str]) {
        is_refused(&self.run(args), args, parts);
    }

    /// Where another user finds the command: the directory of the build may be closed to them.
    /// Nothing if it cannot be shown to them.
    fn shown(&self) -> Option<PathBuf> {
        let shown = std::env::temp_dir().join(&self.name);
        let there =
            shown.exists() || std::fs::hard_link(env!("CARGO_BIN_EXE_quintet"), &shown).is_ok();
        there.then_some(shown)
    }

    /// Whether there is somebody else to be. Else says what is skipped.
    fn has_others(&self) -> bool {
        let has = is_root() && self.shown().is_some();
        if !has {
            println!("skipped: needs root, and a directory for all beside the build");
        }
        has
    }

    /// The same as another user.
    fn as_nobody(&self, args: &[&str]) -> Output {
        self.as_user(NOBODY, args)
    }

    fn as_user(&self, user: u32, args: &[&str]) -> Output {
        let mut command = Command::new(self.shown().expect("asked for before"));
        command.arg("cache").args(args).stdin(Stdio::null());
        command.uid(user).gid(user).env("XDG_STATE_HOME", "/nonexistent");
        command.output().expect("the command starts")
    }
}

impl Drop for Story {
    fn drop(&mut self) {
        let _ = self.run(&["remove", &self.name, "--any-owner"]);
        let _ = std::fs::remove_file(std::env::temp_dir().join(&self.name));
        let _ = std::fs::remove_dir_all(&self.directory);
    }
}

fn text(bytes: &[u8]) -> String {
    String::from_utf8_lossy(bytes).into_owned()
}

#[track_caller]
fn is_refused(output: &Output, args: &[&str], parts: &[&str]) {
    let error = text(&output.stderr);
    assert_eq!(output.status.code(), Some(2), "{args:?}: {error}");
    assert!((1..=3).contains(&error.lines().count()), "{args:?}: {error}");
    assert!(parts.iter().all(|part| error.contains(part)), "{args:?}: {error}");
}

/// Everything that lies in a directory.
fn listing(directory: &Path) -> Vec<String> {
    let names = std::fs::read_dir(directory).expect("it is there").flatten();
    let mut names: Vec<_> = names.map(|entry| text(entry.file_name().as_encoded_bytes())).collect();
    names.sort();
    names
}

/// Files that users have: nothing of ours, whatever they begin with.
fn foreign_files() -> Vec<(&'static str, Vec<u8>)> {
    let image = [vec![0; 1 << 20], b"a partition".to_vec()].concat();
    vec![
        ("empty", Vec::new()),
        ("zeros", vec![0; 8]),
        ("image", image),
        ("notes", b"do not lose me".to_vec()),
        ("almost", b"quintet".to_vec()),
    ]
}

fn is_root() -> bool {
    std::fs::metadata("/proc/self").is_ok_and(|meta| meta.uid() == 0)
}

#[test]
fn a_users_file_is_never_replaced() {
    let story = Story::new("replace");
    for (name, bytes) in foreign_files() {
        let file = story.file(name);
        std::fs::write(&file, &bytes).expect("room");
        std::fs::set_permissions(&file, PermissionsExt::from_mode(0o640)).expect("it is ours");
        let inode = std::fs::metadata(&file).expect("it is there").ino();
        let create = ["create", &story.name, "--capacity", "1MiB", "--path", &file];
        story.refused(&create, &["not a quintet segment"]);
        story.refused(&[&create[..], &["--if-absent"]].concat(), &["not a quintet segment"]);
        story.refused(&["get", &file, "key"], &["not a quintet segment"]);
        let meta = std::fs::metadata(&file).expect("it is there");
        assert_eq!((meta.ino(), meta.mode() & 0o777), (inode, 0o640), "{name}");
        assert!(std::fs::read(&file).expect("it is there") == bytes, "{name}");
        std::fs::remove_file(&file).expect("it was there");
    }
    assert_eq!(listing(&story.directory), [""; 0], "nothing is left behind");
}

#[test]
fn remove_takes_away_nothing_but_a_cache() {
    let story = Story::new("remove");
    for (name, bytes) in foreign_files() {
        let (file, lock) = (story.file(name), story.file(&format!("{name}.lock")));
        std::fs::write(&file, &bytes).expect("room");
        std::fs::write(&lock, "mine too").expect("room");
        story.refused(&["remove", &file], &["not a quintet segment"]);
        assert!(std::fs::read(&file).expect("still there") == bytes, "{name}");
        assert_eq!(text(&std::fs::read(&lock).expect("still there")), "mine too");
    }
    let file = story.file("cache");
    let lock = story.file("cache.lock");
    std::fs::write(&lock, "of another program").expect("room");
    story.fine(&["create", &story.name, "--capacity", "1MiB", "--path", &file]);
    story.fine(&["set", &story.name, "key", "value"]);
    story.fine(&["remove", &story.name]);
    assert!(!Path::new(&file).exists());
    assert_eq!(text(&std::fs::read(&lock).expect("still there")), "of another program");
    std::fs::write(story.memory(), "not a cache").expect("room");
    story.refused(&["remove", &story.name], &["not a quintet segment"]);
    std::fs::remove_file(story.memory()).expect("still there");
}

#[test]
fn whatever_fails_or_goes_leaves_nothing_behind() {
    let story = Story::new("traces");
    let ours = || {
        let names = listing(Path::new("/dev/shm"));
        names.into_iter().filter(|name| name.contains(&story.name)).collect::<Vec<_>>()
    };
    let create = |size| ["create", &story.name, "--capacity", size];
    story.refused(&create("1KiB"), &["too small"]);
    story.refused(&create("4TiB"), &["capacity"]);
    story.refused(&create("150GiB"), &["no room"]);
    story.refused(&[&create("1MiB")[..], &["--handles", "0"]].concat(), &["handles"]);
    story.refused(&["get", &story.name, "key"], &["does not exist"]);
    story.refused(&["remove", &story.name], &["does not exist"]);
    assert_eq!(ours(), [""; 0]);
    let nowhere = story.file("no/such/file");
    let with_path = |path| [&create("1MiB")[..], &["--path", path]].concat();
    story.refused(&with_path(&nowhere), &["does not exist"]);
    story.refused(
        &[&create("1KiB")[..], &["--path", &story.file("small")]].concat(),
        &["too small"],
    );
    assert_eq!(listing(&story.directory), [""; 0], "no cache, no note, no directory");
    story.fine(&create("1MiB"));
    story.refused(&create("1MiB"), &["exists"]);
    assert_eq!(ours(), [format!("quintet-{}", story.name)], "the cache alone");
    story.fine(&["remove", &story.name]);
    assert_eq!(ours(), [""; 0]);
}

/// A name that could not be noted makes no cache that nobody finds.
#[test]
fn a_path_without_a_home_makes_no_cache() {
    let story = Story::new("homeless");
    let file = story.file("cache");
    let args = ["create", &story.name, "--capacity", "1MiB", "--path", &file];
    let mut command = story.command(&args);
    let output = command.env_remove("XDG_STATE_HOME").env_remove("HOME").output();
    is_refused(&output.expect("it starts"), &args, &["no home directory", "XDG_STATE_HOME"]);
    assert!(!Path::new(&file).exists());
    story.fine(&args);
    let other = ["create", &story.name, "--capacity", "1MiB", "--path", &story.file("other")];
    story.refused(&other, &["there is a cache", &file]);
}

/// The owner's `--if-absent` changes nothing about who may use the cache; another user's is content
/// with it when told to.
#[test]
fn if_absent_locks_nobody_out() {
    let story = Story::new("lockout");
    if !story.has_others() {
        return;
    }
    let create = ["create", &story.name, "--capacity", "1MiB"];
    story.fine(&[&create[..], &["--mode", "0666"]].concat());
    let mode = || std::fs::metadata(story.memory()).expect("it is there").mode() & 0o777;
    story.fine(&[&create[..], &["--if-absent"]].concat());
    assert_eq!(mode(), 0o666);
    story.refused(&create, &["exists"]);
    for args in [
        &["set", &story.name, "key", "of nobody"][..],
        &["create", &story.name, "--capacity", "1MiB", "--if-absent"],
    ] {
        let output = story.as_nobody(args);
        assert_eq!(output.status.code(), Some(0), "{args:?}: {}", text(&output.stderr));
    }
    assert_eq!(story.fine(&["get", &story.name, "key"]), "of nobody");
}

/// A setting of the system for the length of a story.
struct Setting {
    file: &'static str,
    before: String,
}

impl Setting {
    /// Nothing, and a line that says so, where the system does not let it be changed.
    fn change(file: &'static str, value: &str) -> Option<Self> {
        let changed = std::fs::read_to_string(file)
            .and_then(|before| std::fs::write(file, value).map(|()| Self { file, before }));
        if changed.is_err() {
            println!("skipped: {file} cannot be set here");
        }
        changed.ok()
    }
}

impl Drop for Setting {
    fn drop(&mut self) {
        let _ = std::fs::write(self.file, &self.before);
    }
}

/// Systems that forbid to open another user's file in a sticky directory in the way that would make
/// it: a shared cache is opened in no such way.
#[test]
fn a_shared_cache_is_used_where_files_of_others_are_protected() {
    let story = Story::new("protected");
    if !story.has_others() {
        return;
    }
    let create = ["create", &story.name, "--capacity", "1MiB"];
    // Not by root: whoever owns the directory is excepted.
    let made = story.as_user(SOMEBODY, &[&create[..], &["--mode", "0666"]].concat());
    assert_eq!(made.status.code(), Some(0), "{}", text(&made.stderr));
    for strict in ["1", "2"] {
        let Some(_set) = Setting::change("/proc/sys/fs/protected_regular", strict) else { return };
        for args in [
            &["set", &story.name, "key", strict, "--any-owner"][..],
            &["create", &story.name, "--capacity", "1MiB", "--if-absent", "--any-owner"],
            &["get", &story.name, "key", "--any-owner"],
        ] {
            let output = story.as_nobody(args);
            assert_eq!(output.status.code(), Some(0), "{args:?}: {}", text(&output.stderr));
        }
        let again = story.as_nobody(&create);
        is_refused(&again, &create, &["exists"]);
    }
    assert_eq!(story.fine(&["get", &story.name, "key", "--any-owner"]), "2");
}

/// On a file system that may only be read, whatever reads works, and whatever writes is told why it
/// does not.
#[test]
fn a_file_system_that_may_only_be_read() {
    let story = Story::new("frozen");
    let directory = story.file("mount");
    std::fs::create_dir_all(&directory).expect("the target directory is writable");
    let mount = |args: &[&str]| {
        let done = Command::new("mount").args(args).arg(&directory).output();
        done.is_ok_and(|done| done.status.success())
    };
    if !mount(&["-t", "tmpfs", "-o", "size=8m", "tmpfs"]) {
        return println!("skipped: mounting is not permitted here");
    }
    let file = format!("{directory}/cache");
    story.fine(&["create", &story.name, "--path", &file, "--capacity", "1MiB"]);
    story.fine(&["set", &file, "key", "value", "--ttl", "1h"]);
    assert!(mount(&["-o", "remount,ro"]));
    let outcome = std::panic::catch_unwind(|| {
        assert_eq!(story.fine(&["get", &file, "key"]), "value");
        assert_eq!(story.fine(&["mget", &file, "key"]), "key\tvalue\n");
        assert!(story.fine(&["ttl", &file, "key"]).ends_with("ms\n"));
        for args in [["scan", &file], ["dump", &file], ["stat", &file]] {
            story.fine(&args);
        }
        let why = "a file system that may only be read";
        story.refused(&["set", &file, "key", "other"], &[why, "remount"]);
        story.refused(&["del", &file, "key"], &[why]);
        story.refused(&["remove", &file], &[why]);
        let other = format!("{directory}/other");
        let create = ["create", "another", "--path", &other, "--capacity", "1MiB"];
        story.refused(&create, &[why, "another one"]);
    });
    let unmounted = Command::new("umount").arg(&directory).output();
    assert!(unmounted.is_ok_and(|done| done.status.success()));
    if let Err(failed) = outcome {
        std::panic::resume_unwind(failed);
    }
}

/// Whoever is content with a cache opens it and makes no file: in a sticky directory that could be
/// forbidden.
#[test]
fn if_absent_makes_no_file_beside_a_cache_that_is_there() {
    let story = Story::new("beside");
    story.fine(&["create", &story.name, "--capacity", "1MiB"]);
    let trace = story.file("trace");
    let mut command = Command::new("strace");
    command.args(["-f", "-e", "trace=open,openat,creat", "-o", &trace]);
    command.arg(env!("CARGO_BIN_EXE_quintet")).args(["cache", "create", &story.name]);
    command.args(["--capacity", "1MiB", "--if-absent"]);
    match command.output() {
        Ok(output) if output.status.success() => {}
        _ => return println!("skipped: strace is not permitted here"),
    }
    let calls = std::fs::read_to_string(&trace).expect("strace wrote it");
    let of_the_cache: Vec<_> = calls.lines().filter(|line| line.contains(&story.name)).collect();
    assert!(!of_the_cache.is_empty(), "{calls}");
    assert!(!of_the_cache.iter().any(|line| line.contains("O_CREAT")), "{of_the_cache:#?}");
}

/// Anybody can make a cache of any name before its owner does.
#[test]
fn a_cache_that_somebody_else_made_is_refused() {
    let story = Story::new("squat");
    if !story.has_others() {
        return;
    }
    let create = ["create", &story.name, "--capacity", "1MiB"];
    let squatted = story.as_nobody(&[&create[..], &["--mode", "0666"]].concat());
    assert_eq!(squatted.status.code(), Some(0), "{}", text(&squatted.stderr));
    let content = [&create[..], &["--if-absent"]].concat();
    for args in [&content[..], &["get", &story.name, "k"], &["set", &story.name, "k", "secret"]] {
        story.refused(args, &["user 65534 made", "--any-owner"]);
        let trusting = story.run(&[args, &["--any-owner"]].concat());
        assert!(matches!(trusting.status.code(), Some(0 | 1)), "{}", text(&trusting.stderr));
    }
    assert!(story.fine(&["stat", &story.name]).contains("entries"), "looking trusts nobody");
    assert!(story.fine(&["ls"]).contains(&story.name));
}

#[test]
fn if_absent_wants_what_was_asked_for() {
    let story = Story::new("differs");
    let create = |more: &[&'static str]| {
        let mut args = vec!["create".to_owned(), story.name.clone(), "--if-absent".to_owned()];
        args.extend(more.iter().map(|word| word.to_string()));
        args
    };
    let run = |more: &[&'static str]| {
        let args = create(more);
        let args: Vec<&str> = args.iter().map(String::as_str).collect();
        (story.run(&args), format!("{args:?}"))
    };
    assert!(run(&["--capacity", "1MiB"]).0.status.success());
    assert!(run(&["--capacity", "1MiB"]).0.status.success());
    for (more, why) in [
        (&["--capacity", "2MiB"][..], "capacity is 1048576, not 2097152"),
        (&["--capacity", "1MiB", "--mode", "0666"], "mode is 0600, not 0666"),
        (&["--capacity", "1MiB", "--max-value", "1KiB"], "longest value is"),
        (&["--capacity", "1MiB", "--handles", "3"], "handles is"),
    ] {
        let (output, args) = run(more);
        is_refused(&output, &[&args], &[why, "--any-size"]);
        assert!(run(&[more, &["--any-size"]].concat()).0.status.success(), "{args}");
    }
}

/// As many readers as come, whatever writers there are; a full house is said to be full.
#[test]
fn a_cache_without_a_free_seat_still_answers_gets() {
    let story = Story::new("seats");
    story.fine(&["create", &story.name, "--capacity", "1MiB", "--handles", "1"]);
    story.fine(&["set", &story.name, "key", "value"]);
    let place = quintet::cache::Place::Name(story.name.clone());
    let cache = quintet::TierCache::attach(&place).expect("it is there");
    let handle = cache.handle().expect("the only one");
    assert_eq!(story.fine(&["get", &story.name, "key"]), "value");
    story.refused(&["set", &story.name, "key", "other"], &["seats"]);
    drop(handle);
    story.fine(&["set", &story.name, "key", "other"]);
}

#[test]
fn what_is_no_file_is_called_by_its_name() {
    let story = Story::new("kinds");
    let (link, pipe, directory) = (story.file("link"), story.file("pipe"), story.file("dir"));
    std::os::unix::fs::symlink("/etc/hostname", &link).expect("a link");
    assert!(Command::new("mkfifo").arg(&pipe).status().expect("mkfifo").success());
    std::fs::create_dir(&directory).expect("a directory");
    for (path, what) in
        [(link, "a symbolic link"), (pipe, "a named pipe"), (directory, "a directory")]
    {
        story.refused(&["get", &path, "key"], &[what, "regular file"]);
        story.refused(&["remove", &path], &[what]);
        let create = ["create", &story.name, "--capacity", "1MiB", "--path", &path];
        story.refused(&create, &[what]);
        assert!(std::fs::symlink_metadata(&path).is_ok(), "{path} is still there");
    }
}

#[test]
fn ls_prints_no_control_characters() {
    let story = Story::new("ls");
    let odd = format!("/dev/shm/quintet-{}\u{1b}[31mred\u{7}", story.name);
    std::fs::write(&odd, b"quintet\x01 and no more").expect("room");
    let named = format!("{}\u{1b}[2J", story.name);
    story.fine(&["create", &named, "--capacity", "1MiB"]);
    let listed = story.fine(&["ls"]);
    std::fs::remove_file(&odd).expect("it was there");
    story.fine(&["remove", &named]);
    assert!(listed.contains(&story.name), "{listed}");
    assert!(!listed.contains(['\u{1b}', '\u{7}']), "{listed:?}");
}

#[test]
fn a_reader_that_has_seen_enough_is_no_error() {
    let story = Story::new("head");
    story.fine(&["create", &story.name, "--capacity", "64MiB"]);
    let script = format!(
        "head -c 900000 /dev/zero | {0} cache set {1} key - && \
         {{ {0} cache get {1} key; echo $? >&2; }} | head -c 1",
        env!("CARGO_BIN_EXE_quintet"),
        story.name
    );
    let output = Command::new("sh").args(["-c", &script]).output().expect("a shell");
    assert_eq!(text(&output.stderr).trim(), "0");
}

/// The number of processes is right wherever the question comes from.
#[test]
fn stat_counts_processes_of_another_pid_namespace() {
    let story = Story::new("pids");
    story.fine(&["create", &story.name, "--capacity", "1MiB"]);
    let place = quintet::cache::Place::Name(story.name.clone());
    let cache = quintet::TierCache::attach(&place).expect("it is there");
    let handle = cache.handle().expect("a seat");
    let count = |json: &str| {
        let object: serde_json::Value = serde_json::from_str(json).expect("one object");
        object["processes"].as_u64()
    };
    assert_eq!(count(&story.fine(&["stat", &story.name, "--json"])), Some(1));
    let mut command = Command::new("unshare");
    command.args(["--pid", "--fork", "--mount-proc", env!("CARGO_BIN_EXE_quintet")]);
    let output = command.args(["cache", "stat", &story.name, "--json"]).output();
    match output {
        Ok(output) if output.status.success() => {
            assert_eq!(count(&text(&output.stdout)), Some(1), "from another namespace");
        }
        _ => println!("skipped: unshare --pid is not permitted here"),
    }
    drop(handle);
    drop(cache);
    assert_eq!(count(&story.fine(&["stat", &story.name, "--json"])), Some(0));
}

#[test]
fn top_notices_that_its_cache_was_removed() {
    let story = Story::new("top");
    story.fine(&["create", &story.name, "--capacity", "1MiB"]);
    let mut top = story.command(&["top", &story.name, "--every", "1s"]);
    let top = top.stdout(Stdio::piped()).stderr(Stdio::piped()).spawn().expect("it starts");
    std::thread::sleep(Duration::from_millis(500));
    story.fine(&["remove", &story.name]);
    let output = top.wait_with_output().expect("it ends");
    let error = text(&output.stderr);
    assert_eq!(output.status.code(), Some(1), "{error}");
    assert!(error.contains("was removed"), "{error}");
}

/// A capacity is what the file takes, to the byte: a mount of that size holds it.
#[test]
fn a_mount_of_its_capacity_holds_a_cache() {
    let story = Story::new("mount");
    let script = format!(
        "mount -t tmpfs -o size=64m tmpfs /dev/shm || exit 77; \
         {} cache create {} --capacity 64MiB && stat -c %s /dev/shm/quintet-*",
        env!("CARGO_BIN_EXE_quintet"),
        story.name
    );
    let output = Command::new("unshare").args(["--mount", "sh", "-c", &script]).output();
    match output {
        Ok(output) if output.status.code() != Some(77) && output.status.code() != Some(1) => {
            assert_eq!(output.status.code(), Some(0), "{}", text(&output.stderr));
            let bytes: u64 = text(&output.stdout).trim().parse().expect("a size");
            assert!(bytes <= 64 << 20 && bytes > (64 << 20) - 4096, "{bytes}");
        }
        _ => println!("skipped: no mount of its own"),
    }
}

/// More than the words can name is refused, not cut.
#[test]
fn a_capacity_beyond_all_bounds_is_refused() {
    let story = Story::new("bounds");
    story.refused(&["create", &story.name, "--capacity", "200GiB"], &["larger blocks"]);
    assert!(!story.memory().exists());
}
