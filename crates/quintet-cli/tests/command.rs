//! The command as its users meet it: bad input, exit codes, files, and a tiny race end to end.
#![deny(unsafe_code)]

use serde_json::Value;
use std::collections::BTreeSet;
use std::path::PathBuf;
use std::process::{Command, Output};

fn quintet(args: &[&str]) -> Output {
    let mut command = Command::new(env!("CARGO_BIN_EXE_quintet"));
    command.args(args).env_remove("NO_COLOR").output().expect("the command starts")
}

fn text(bytes: &[u8]) -> String {
    String::from_utf8(bytes.to_vec()).expect("output is UTF-8")
}

/// An empty directory of its own for a test.
fn scratch(name: &str) -> PathBuf {
    let path = PathBuf::from(env!("CARGO_TARGET_TMPDIR")).join(name);
    let _ = std::fs::remove_dir_all(&path);
    std::fs::create_dir_all(&path).expect("the target directory is writable");
    path
}

fn is_empty(directory: &PathBuf) -> bool {
    std::fs::read_dir(directory).expect("it exists").next().is_none()
}

/// Wrong use: exit code 2, nothing on stdout, one to three lines on stderr that say `part`.
#[track_caller]
fn refused(args: &[&str], part: &str) {
    let output = quintet(args);
    let error = text(&output.stderr);
    assert_eq!(output.status.code(), Some(2), "{args:?}: {error}");
    assert_eq!(text(&output.stdout), "", "{args:?}");
    assert!((1..=3).contains(&error.lines().count()), "{args:?}: {error}");
    assert!(error.contains(part), "{args:?}: {error}");
}

#[test]
fn bad_input_is_explained_in_three_lines() {
    refused(&["race", "--family", "rivls"], "did you mean --family rivals?");
    refused(&["race", "--family", "nonsense-xyz"], "the families are");
    refused(&["race", "--threads", "0"], "zero");
    refused(&["race", "--threads", "two"], "not a number");
    refused(&["race", "--threads", "99999"], "too many");
    refused(&["race", "--threads", ""], "not a number");
    refused(&["race", "--keys", "0"], "zero");
    refused(&["race", "--keys", "1G"], "not a number");
    refused(&["race", "--check", "no/such/file"], "cannot read");
    refused(&["race", "--table", "no/such/file"], "cannot read");
    refused(&["race", "--rounds", "0"], "--rounds");
    refused(&["race", "--rounds", "x"], "invalid value");
    refused(&["race", "--seconds", "0"], "--seconds");
    refused(&["race", "--workload", "hot"], "did you mean --workload hit");
    refused(&["race", "--family", "word", "--tables", "dishmap"], "did you mean --tables dashmap");
    refused(&["race", "--no-such-option"], "--no-such-option");
    refused(&["rase"], "race");
    refused(&["torture", "--family", "rival"], "did you mean --family rivals?");
    refused(&["torture", "--threads", "0"], "--threads");
    refused(&["torture", "--seconds", "0"], "--seconds");
    refused(&["weigh", "rivals", "no such table", "10"], "no table");
}

#[test]
fn unwritable_files_are_refused_before_the_race() {
    let directory = scratch("unwritable");
    let inside_nothing = directory.join("missing").join("out.json");
    refused(&["race", "--json", inside_nothing.to_str().unwrap()], "cannot write");
    refused(&["race", "--json", directory.to_str().unwrap()], "directory");
    refused(&["race", "--html", inside_nothing.to_str().unwrap()], "cannot write");
    refused(&["torture", "--json", inside_nothing.to_str().unwrap()], "cannot write");
    assert!(is_empty(&directory));
}

#[test]
fn a_later_refusal_leaves_no_file_of_an_earlier_option() {
    let directory = scratch("later");
    let good = directory.join("out.json");
    let bad = directory.join("missing").join("out.html");
    refused(
        &["race", "--json", good.to_str().unwrap(), "--html", bad.to_str().unwrap()],
        "cannot write",
    );
    assert!(is_empty(&directory));
}

#[test]
fn help_version_choose_and_list_are_fine() {
    for args in [&["--help"][..], &["--version"], &["choose"], &["race", "--list"]] {
        let output = quintet(args);
        assert_eq!(output.status.code(), Some(0), "{args:?}");
        assert!(!output.stdout.is_empty(), "{args:?}");
        assert!(!text(&output.stdout).contains('\x1b'), "colour without a terminal: {args:?}");
    }
    let list = text(&quintet(&["race", "--list"]).stdout);
    for word in ["rivals", "reclaim", "region", "hit-zipf", "memory-after-remove", "stalled"] {
        assert!(list.contains(word), "{word}");
    }
}

/// What `race --list` says under one head: a workload and its reason, or a role and its tables.
type Listed = (String, String);

/// Reads the list back, family by family: a family starts at the left edge, heads stand in the first
/// 28 columns, a line without a head goes on with the text of the line before.
fn listed(list: &str) -> Vec<Vec<Listed>> {
    let mut families: Vec<Vec<Listed>> = Vec::new();
    for line in list.lines() {
        if !line.starts_with(' ') {
            families.push(Vec::new());
            continue;
        }
        let family = families.last_mut().expect("a family comes first");
        let (head, rest) = line.split_at_checked(28).expect("heads are of ASCII");
        match head.trim().trim_start_matches("* ") {
            "" => family.last_mut().expect("a head comes first").1 += &format!(" {rest}"),
            head => family.push((head.to_owned(), rest.to_owned())),
        }
    }
    families
}

/// Columns of 28 characters hold a mark, a space and the name of a table; those of 36 a cell of ours,
/// where builds are held against each other: in what counts operations.
#[test]
fn every_table_has_room_for_its_name() {
    let mut seen = BTreeSet::new();
    for family in listed(&text(&quintet(&["race", "--list"]).stdout)) {
        let (tables, workloads): (Vec<Listed>, Vec<Listed>) =
            family.into_iter().partition(|(head, _)| head.ends_with(':'));
        for (role, names) in tables {
            for table in names.split(", ") {
                assert!(table.len() + 2 < 28, "{table}");
                seen.insert(table.to_owned());
                let form = table.trim_start_matches("quintet");
                let rates = workloads.iter().map(|(workload, _)| workload);
                let rates = rates.filter(|w| !w.starts_with("memory") && !w.ends_with("-latency"));
                for workload in rates.filter(|_| role == "ours:") {
                    assert!(format!("{workload} 10^6 2t{form}").len() < 36, "{workload}{form}");
                }
            }
        }
    }
    for table in ["quintet", "papaya (batch)", "WordMap (pin)"] {
        assert!(seen.contains(table), "{seen:?}");
    }
}

/// A race over few keys and rounds.
fn tiny(family: &str, more: &[&str]) -> Output {
    let args = ["race", "--family", family, "--quick", "--keys", "200", "--rounds", "2"];
    quintet(&[&args[..], more].concat())
}

fn lines(output: &[u8]) -> Vec<Value> {
    let text = text(output);
    text.lines().map(|line| serde_json::from_str(line).expect("one object per line")).collect()
}

/// The lines about cells.
fn cells(output: &[u8]) -> Vec<Value> {
    let lines = lines(output);
    lines.into_iter().filter(|line| line["workload"].is_string()).collect()
}

const FIELDS: [&str; 26] = [
    "family",
    "workload",
    "measure",
    "table",
    "version",
    "threads",
    "processes",
    "keys",
    "mops",
    "rounds",
    "p50_ns",
    "p99_ns",
    "p9999_ns",
    "max_ns",
    "max_best_ns",
    "max_faults_ns",
    "max_faults_best_ns",
    "disturbed",
    "jitter_ns",
    "bytes_per_entry",
    "hit_ratio",
    "ratio_to_best_rival",
    "ratio_low",
    "ratio_high",
    "struck",
    "limit",
];

fn names<'a>(lines: &'a [Value], field: &str) -> BTreeSet<&'a str> {
    lines.iter().filter_map(|line| line[field].as_str()).collect()
}

#[test]
fn a_tiny_race_of_the_rivals_measures_every_workload() {
    let output = tiny("rivals", &["--threads", "1", "--json", "-"]);
    assert_eq!(output.status.code(), Some(0), "{}", text(&output.stderr));
    let lines = cells(&output.stdout);
    for line in &lines {
        let object = line.as_object().expect("an object");
        assert!(object.keys().all(|field| FIELDS.contains(&field.as_str())), "{line}");
        assert!(object.values().all(|value| !value.is_null()), "{line}");
        assert_eq!((&line["family"], &line["keys"]), (&"rivals".into(), &200.into()));
        assert!(line.get("ratio_to_best_rival").is_none(), "no table here is ours: {line}");
    }
    let workloads = names(&lines, "workload");
    for name in [
        "hit",
        "miss",
        "insert",
        "grow",
        "update",
        "remove",
        "mix90",
        "mix50",
        "churn",
        "hit-zipf",
        "hit-str",
        "memory",
        "memory-after-remove",
    ] {
        assert!(workloads.contains(name), "{name} is missing from {workloads:?}");
    }
    assert!(names(&lines, "table").len() >= 9);
    let pick =
        |workload: &'static str| lines.iter().filter(move |line| line["workload"] == workload);
    assert!(pick("hit").all(|line| line["mops"].as_f64() > Some(0.0) && line["rounds"] == 2));
    assert!(pick("grow").all(|line| line["mops"].as_f64() > Some(0.0)));
    for line in pick("grow-latency") {
        let figure = |field: &str| line[field].as_u64().expect("a number of nanoseconds");
        assert!(figure("p50_ns") <= figure("p99_ns") && figure("p99_ns") <= figure("p9999_ns"));
        assert!(figure("max_best_ns") <= figure("max_ns"), "{line}");
        assert!(figure("max_faults_best_ns") <= figure("max_faults_ns"), "{line}");
    }
    assert!(pick("grow-latency").count() >= 9);
    assert!(pick("memory").all(|line| line["bytes_per_entry"].is_number()));
}

#[test]
fn our_lines_carry_a_ratio_and_limits_carry_none() {
    let output = tiny("reclaim", &["--threads", "1,2", "--json", "-"]);
    assert_eq!(output.status.code(), Some(0), "{}", text(&output.stderr));
    let lines = cells(&output.stdout);
    let ours = |line: &&Value| ["quintet", "quintet (qsbr)"].iter().any(|n| line["table"] == *n);
    for line in &lines {
        assert_eq!(ours(&line), line["ratio_to_best_rival"].is_number(), "{line}");
        if ours(&line) {
            let number = |field: &str| line[field].as_f64().expect("a number");
            assert!(number("ratio_low") <= number("ratio_to_best_rival"), "{line}");
            assert!(number("ratio_to_best_rival") <= number("ratio_high"), "{line}");
        }
    }
    let limits = lines.iter().filter(|line| line["limit"] == true);
    let limits: BTreeSet<&str> = limits.filter_map(|line| line["table"].as_str()).collect();
    assert!(limits.contains("quintet (fence)") && limits.contains("fence (SeqCst)"), "{limits:?}");
    let threads: BTreeSet<u64> = lines.iter().filter_map(|line| line["threads"].as_u64()).collect();
    assert_eq!(threads, BTreeSet::from([1, 2]));
}

/// Processes on one cache: every workload, every cache that is installed, and nothing left behind.
#[cfg(target_os = "linux")]
#[test]
fn a_tiny_race_of_caches_runs_by_processes() {
    let output = tiny("cache", &["--threads", "1,2", "--json", "-"]);
    let error = text(&output.stderr);
    assert_eq!(output.status.code(), Some(0), "{error}");
    let lines = cells(&output.stdout);
    let workloads = BTreeSet::from([
        "get-64b",
        "get-hot-64b",
        "set-64b",
        "mix90-64b",
        "get-1k",
        "set-1k",
        "get-1m",
        "set-1m",
    ]);
    assert_eq!(names(&lines, "workload"), workloads);
    let tables = names(&lines, "table");
    for name in ["quintet", "heed (LMDB)", "moka (one process)", "quick_cache (one process)"] {
        assert!(tables.contains(name), "{name} is missing from {tables:?}");
    }
    let copied = lines.iter().filter(|line| line["table"] == "memcpy (one process)");
    let copied: BTreeSet<_> = copied.filter_map(|line| line["workload"].as_str()).collect();
    assert_eq!(copied, BTreeSet::from(["get-1m", "set-1m"]), "the limit of long values alone");
    for server in ["redis", "memcached"] {
        let told = error.lines().filter(|line| line.contains(server)).count();
        assert_eq!(tables.contains(server), told == 0, "{server}: {error}");
        assert!(told <= 1, "one line: {error}");
    }
    let processes: BTreeSet<u64> =
        lines.iter().filter_map(|line| line["processes"].as_u64()).collect();
    assert_eq!(processes, BTreeSet::from([1, 2]));
    for line in &lines {
        assert!(line["mops"].as_f64() > Some(0.0), "{line}");
        assert_eq!(line["table"] == "quintet", line["ratio_to_best_rival"].is_number(), "{line}");
    }
}

/// Hit ratios: the same figures whenever it is asked, a table, lines and a drawing.
#[test]
fn a_tiny_race_of_policies_counts_hits() {
    let race = ["race", "--family", "policy", "--quick", "--keys", "4k", "--workload", "zipf-1.0"];
    let run = |more: &[&str]| {
        let output = quintet(&[&race[..], more].concat());
        assert_eq!(output.status.code(), Some(0), "{}", text(&output.stderr));
        output.stdout
    };
    let tables = BTreeSet::from([
        "quintet lru",
        "quintet s3fifo",
        "quintet sieve",
        "moka",
        "quick_cache",
        "exact LRU",
        "clairvoyant",
    ]);
    let lines = cells(&run(&["--json", "-"]));
    assert_eq!(names(&lines, "table"), tables);
    assert_eq!(
        names(&lines, "workload"),
        BTreeSet::from(["zipf-1.0-entries-10", "zipf-1.0-bytes-10"])
    );
    for line in &lines {
        let ratio = line["hit_ratio"].as_f64().expect("a number");
        assert!((0.3..1.0).contains(&ratio) && line["measure"] == "hits", "{line}");
        let ours = line["table"].as_str().is_some_and(|name| name.starts_with("quintet"));
        assert_eq!(ours, line["ratio_to_best_rival"].is_number(), "{line}");
    }
    let exact = |lines: &[Value]| {
        let of = |line: &&Value| line["table"] == "exact LRU";
        lines.iter().find(of).map(|line| line["hit_ratio"].clone())
    };
    assert_eq!(exact(&cells(&run(&["--json", "-", "--tables", "exact"]))), exact(&lines));
    assert_ne!(
        exact(&cells(&run(&["--json", "-", "--tables", "exact", "--seed", "1"]))),
        exact(&lines)
    );
    let shown = text(&run(&["--tables", "quintet,moka"]));
    assert!(shown.lines().any(|line| line.starts_with("| zipf-1.0-bytes-10")), "{shown}");
    assert!(text(&run(&["--plot", "-", "--tables", "moka"])).starts_with("<svg "));
    for wrong in [&["--keys", "100"][..], &["--tables", "nobody"], &["--workload", "nothing"]] {
        let output = quintet(&[&["race", "--family", "policy", "--quick"], wrong].concat());
        assert_eq!(output.status.code(), Some(2), "{wrong:?}");
    }
    assert_eq!(quintet(&["race", "--family", "cache", "--plot", "-"]).status.code(), Some(2));
}

/// This build against itself: the ratios may be anything, the cells and their fields may not.
#[test]
fn a_build_is_held_against_another_cell_by_cell() {
    let this = env!("CARGO_BIN_EXE_quintet");
    let more = ["--workload", "hit", "--against", this, "--json", "-"];
    let output = tiny("word", &more);
    assert_eq!(output.status.code(), Some(0), "{}", text(&output.stderr));
    let lines = cells(&output.stdout);
    assert_eq!(names(&lines, "workload"), BTreeSet::from(["hit", "hit-zipf"]));
    for line in &lines {
        assert!(line["table"].as_str().unwrap().starts_with("quintet"), "no rivals: {line}");
        assert_eq!((&line["rounds"], &line["keys"]), (&2.into(), &200.into()));
        let number = |field: &str| line[field].as_f64().expect("a number");
        assert!(number("mops") > 0.0 && number("other_mops") > 0.0, "{line}");
        assert!(number("ratio_low") <= number("ratio"), "{line}");
        assert!(number("ratio") <= number("ratio_high"), "{line}");
    }
    let threads: BTreeSet<u64> = lines.iter().filter_map(|line| line["threads"].as_u64()).collect();
    assert_eq!(threads, BTreeSet::from([1, 2]));
}

#[test]
fn what_is_no_build_of_this_race_is_refused() {
    let race = ["race", "--family", "word", "--keys", "200", "--against"];
    refused(&[&race[..], &["no/such/file"]].concat(), "cannot find");
    refused(&[&race[..], &["/bin/true"]].concat(), "shares this race");
}

#[test]
fn instructions_are_counted_or_one_line_says_why_not() {
    let this = env!("CARGO_BIN_EXE_quintet");
    let more = ["--workload", "section", "--count", "--against", this, "--json", "-"];
    let output = tiny("reclaim", &more);
    let error = text(&output.stderr);
    if output.status.code() == Some(2) {
        assert!(error.contains("valgrind is not installed"), "{error}");
        return;
    }
    assert_eq!(output.status.code(), Some(0), "{error}");
    let lines = cells(&output.stdout);
    assert_eq!(names(&lines, "table"), BTreeSet::from(["quintet", "quintet (qsbr)"]));
    for line in &lines {
        let number = |field: &str| line[field].as_f64().expect("a number");
        assert!((2.0..2000.0).contains(&number("instructions")), "{line}");
        assert!(number("locked") < 0.5, "entering a section locks nothing: {line}");
        assert!((0.99..1.01).contains(&number("instructions_ratio")), "{line}");
    }
}

#[test]
fn only_the_tables_asked_for_race() {
    let more = ["--workload", "hit", "--threads", "1", "--tables", "papaya,dash", "--json", "-"];
    let output = tiny("rivals", &more);
    assert_eq!(output.status.code(), Some(0), "{}", text(&output.stderr));
    let lines = cells(&output.stdout);
    let asked = |line: &serde_json::Value| {
        let table = line["table"].as_str().unwrap();
        table.starts_with("papaya") || table.starts_with("dash")
    };
    assert!(lines.len() >= 2 && lines.iter().all(asked), "{lines:?}");
}

#[test]
fn files_are_whole_and_nothing_else_is_left() {
    let directory = scratch("files");
    let (json, html) = (directory.join("out.json"), directory.join("out.html"));
    std::fs::write(&json, "an older result").unwrap();
    let more = ["--workload", "hit", "--threads", "1"];
    let files = ["--json", json.to_str().unwrap(), "--html", html.to_str().unwrap()];
    let output = tiny("rivals", &[&more[..], &files].concat());
    assert_eq!(output.status.code(), Some(0), "{}", text(&output.stderr));
    assert!(text(&output.stdout).contains("rivals hit, 200 keys"), "the table is shown as well");
    assert!(cells(&std::fs::read(&json).unwrap()).len() >= 9);
    let page = std::fs::read_to_string(&html).unwrap();
    assert!(page.starts_with("<!doctype html>") && page.contains("papaya"));
    assert_eq!(std::fs::read_dir(&directory).unwrap().count(), 2);
}

/// A race whose file is kept: two tables, one workload.
fn kept(name: &str, more: &[&str]) -> (PathBuf, Output) {
    let json = scratch(name).join("out.json");
    let race = ["--workload", "hit", "--tables", "quintet,dashmap", "--threads", "1"];
    let file = ["--json", json.to_str().unwrap()];
    let output = tiny("word", &[&race[..], &file, more].concat());
    (json, output)
}

#[test]
fn a_file_tells_where_and_how_it_was_made() {
    let (json, output) = kept("about", &[]);
    assert_eq!(output.status.code(), Some(0), "{}", text(&output.stderr));
    let header = &lines(&std::fs::read(json).unwrap())[0]["about"];
    for field in ["machine", "kernel", "huge_pages", "compiler", "commit", "date"] {
        assert!(header[field].is_string(), "{field}: {header}");
    }
    assert!(header["compiler"].as_str().unwrap().starts_with("rustc "), "{header}");
    assert!(header["cores"].as_u64() >= Some(1) && header["clean"].is_boolean(), "{header}");
    let busy = header["busy_share"].as_f64().expect("a share");
    assert!((0.0..=1.0).contains(&busy) && header["finished"] == true, "{header}");
}

#[test]
fn a_run_is_compared_with_a_record() {
    let (json, _) = kept("check", &[]);
    let path = json.to_str().unwrap();
    // A record that nothing can lose against, then one that everything loses against.
    for (ratio, code) in [(0.0001, 0), (9999.0, 1)] {
        let mut file = String::new();
        for mut line in cells(&std::fs::read(path).unwrap()) {
            for field in ["ratio_to_best_rival", "ratio_low", "ratio_high"] {
                if line.get(field).is_some() {
                    line[field] = ratio.into();
                }
            }
            file += &format!("{line}\n");
        }
        std::fs::write(path, file).unwrap();
        let race = ["--workload", "hit", "--tables", "quintet,dashmap", "--threads", "1"];
        let output = tiny("word", &[&race[..], &["--check", path]].concat());
        assert_eq!(output.status.code(), Some(code), "{}", text(&output.stderr));
        let told = text(&output.stdout);
        assert_eq!(told.contains("word hit 200, 1 thread, quintet"), code == 1, "{told}");
    }
    let other = tiny("reclaim", &["--workload", "section", "--threads", "1", "--check", path]);
    assert_eq!(other.status.code(), Some(2));
    assert!(text(&other.stderr).contains("nothing of this race is in the record"));
}

#[test]
fn a_record_becomes_a_table_of_a_page() {
    let (json, _) = kept("table", &[]);
    let output = quintet(&["race", "--table", json.to_str().unwrap()]);
    assert_eq!(output.status.code(), Some(0), "{}", text(&output.stderr));
    let page = text(&output.stdout);
    assert!(page.lines().all(|line| line.starts_with('|') && line.ends_with('|')), "{page}");
    assert!(page.contains("| word quintet | `hit` | 200 | ") && page.contains("| dashmap |"));
}

#[test]
fn what_people_read_fits_eighty_columns() {
    let more = ["--workload", "m", "--threads", "1,2,3"];
    for shown in [quintet(&["race", "--list"]), tiny("word", &more), tiny("rivals", &more)] {
        assert_eq!(shown.status.code(), Some(0), "{}", text(&shown.stderr));
        for line in text(&shown.stdout).lines() {
            assert!(line.chars().count() <= 80, "{} in {line:?}", line.chars().count());
        }
    }
}

#[test]
fn torture_prints_its_seed_first_and_finds_nothing() {
    let args = ["torture", "--family", "reclaim", "--seconds", "1", "--seed", "7"];
    let output = quintet(&args);
    assert_eq!(output.status.code(), Some(0), "{}", text(&output.stderr));
    assert!(text(&output.stdout).starts_with("seed 7"), "{}", text(&output.stdout));

    let output = quintet(&[&args[..], &["--json", "-"]].concat());
    let lines = lines(&output.stdout);
    assert_eq!(lines.len(), 3);
    for line in lines {
        assert_eq!((&line["family"], &line["seed"]), (&"reclaim".into(), &7.into()));
        assert_eq!((&line["violations"], &line["leaks"]), (&0.into(), &0.into()));
        assert!(line["operations"].as_u64() > Some(0));
    }
}

/// The short form of the kill soak.
#[cfg(target_os = "linux")]
#[test]
fn killed_processes_lose_nothing_of_a_cache() {
    let output = quintet(&["torture", "--family", "cache", "--seconds", "8", "--json", "-"]);
    let lines = lines(&output.stdout);
    assert_eq!(output.status.code(), Some(0), "{lines:?} {}", text(&output.stderr));
    assert_eq!(lines.len(), 9);
    for line in lines {
        for field in ["violations", "lost", "hangs", "leaks"] {
            assert_eq!(line[field], 0, "{field}: {line}");
        }
        assert!(line["kills"].as_u64() >= Some(4) && line["cycles"].as_u64() >= Some(1), "{line}");
    }
}

/// Ctrl-C after the first stage: exit code 130, and what is finished is shown and in the file.
#[cfg(unix)]
#[test]
fn an_interrupted_race_keeps_what_is_finished() {
    use std::io::{BufRead, BufReader};
    let directory = scratch("kept");
    let json = directory.join("out.json");
    let race = ["race", "--family", "reclaim", "--tables", "quintet,seize", "--threads", "1"];
    let mut child = Command::new(env!("CARGO_BIN_EXE_quintet"))
        .args(race)
        .args(["--rounds", "2", "--json", json.to_str().unwrap()])
        .stdout(std::process::Stdio::piped())
        .spawn()
        .expect("the command starts");
    let shown = BufReader::new(child.stdout.take().unwrap());
    let mut shown = shown.lines().map(Result::unwrap);
    assert!(shown.any(|line| line.contains("reclaim section")));
    let kill = Command::new("kill").args(["-INT", &child.id().to_string()]).status().unwrap();
    assert!(kill.success());
    shown.for_each(drop);
    assert_eq!(child.wait().unwrap().code(), Some(130));
    let file = std::fs::read(&json).unwrap();
    assert_eq!(lines(&file)[0]["about"]["finished"], false);
    let workloads = cells(&file);
    let workloads = names(&workloads, "workload");
    assert!(workloads.contains("section") && !workloads.contains("stalled"), "{workloads:?}");
    assert_eq!(std::fs::read_dir(&directory).unwrap().count(), 1);
}

/// Ctrl-C before anything is finished: exit code 130, and neither a result nor its unfinished form.
#[cfg(unix)]
#[test]
fn an_interrupted_race_leaves_no_file() {
    let directory = scratch("interrupted");
    let json = directory.join("out.json");
    let mut child = Command::new(env!("CARGO_BIN_EXE_quintet"))
        .args(["race", "--family", "rivals", "--json", json.to_str().unwrap()])
        .stdout(std::process::Stdio::null())
        .spawn()
        .expect("the command starts");
    while is_empty(&directory) {
        std::thread::sleep(std::time::Duration::from_millis(5));
    }
    let kill = Command::new("kill").args(["-INT", &child.id().to_string()]).status().unwrap();
    assert!(kill.success());
    assert_eq!(child.wait().unwrap().code(), Some(130));
    assert!(is_empty(&directory));
}
