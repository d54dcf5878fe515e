//! Programs that must not compile.
//!
//! Each file `compile_fail/<folder>/<story>.rs` is a program (with a `main`) that uses the library.
//! Lines that must be refused end with a mark:
//!
//! ```text
//!     let long: &'static str = short; //~ E0597
//!     let less: &SeenSet<&'a str> = set; //~ lifetime may not live long enough
//! ```
//!
//! A mark is an error's number or, for an error without number, a part of its message. The driver
//! compiles each file twice and demands:
//!
//! 1. as it stands, an error of the marked kind on every marked line, and no error on any other
//!    line;
//! 2. without its marked lines, no error at all: it was these lines that were refused, and for no
//!    other reason.
//!
//! Errors of types hide errors of lifetimes in the same function, so let each function hold one
//! mark. A file without a mark is an error. Warnings are not looked at. One file alone:
//! `COMPILE_FAIL=seen/variance cargo test -p quintet --test compile_fail`.
//!
//! The library itself is the one that cargo built for this test; nothing but `rustc` is needed.

use std::fs;
use std::path::{Path, PathBuf};
use std::process::{Command, Output};
use std::time::SystemTime;

const MARK: &str = "//~ ";

/// The compiler and the library to compile against.
struct Rig {
    rustc: PathBuf,
    library: PathBuf,
    /// Where the library's own dependencies lie.
    beside: PathBuf,
    scratch: PathBuf,
}

impl Rig {
    /// Several builds of the library may lie beside this test (other features, other compilers):
    /// the newest that is not newer than the test and that this compiler can read.
    fn find(purpose: &str) -> Self {
        let test = std::env::current_exe().unwrap();
        let beside = test.parent().unwrap().to_path_buf();
        let linked = modified(&test);
        let mut libraries: Vec<_> = fs::read_dir(&beside)
            .unwrap()
            .map(|entry| entry.unwrap().path())
            .filter(|path| {
                let name = path.file_name().unwrap().to_string_lossy();
                name.starts_with("libquintet-") && name.ends_with(".rlib")
            })
            .filter(|path| modified(path) <= linked)
            .collect();
        libraries.sort_by_key(|path| std::cmp::Reverse(modified(path)));
        let scratch = PathBuf::from(env!("CARGO_TARGET_TMPDIR"))
            .join(format!("compile_fail-{purpose}-{}", std::process::id()));
        fs::create_dir_all(&scratch).unwrap();
        let rustc = std::env::var_os("RUSTC").unwrap_or("rustc".into()).into();
        let mut rig = Self { rustc, library: PathBuf::new(), beside, scratch };
        let control = "use quintet::WordMap; fn main() { WordMap::<u64, u64>::new(); }";
        let mut last = None;
        for library in libraries {
            rig.library = library;
            let output = rig.compile("control", control);
            if output.status.success() {
                return rig;
            }
            last = Some(text(&output));
        }
        panic!("no build of the library that `rustc` can read: {last:?}");
    }

    /// Compiles a program as far as all errors are known.
    fn compile(&self, name: &str, program: &str) -> Output {
        let name = name.replace(['/', '\\'], "-");
        let source = self.scratch.join(format!("{name}.rs"));
        fs::write(&source, program).unwrap();
        let mut library = std::ffi::OsString::from("quintet=");
        library.push(&self.library);
        let mut beside = std::ffi::OsString::from("dependency=");
        beside.push(&self.beside);
        Command::new(&self.rustc)
            .args(["--edition=2024", "--crate-type=bin", "--emit=metadata"])
            .args(["--error-format=short", "--cap-lints=allow", "--extern"])
            .arg(library)
            .arg("-L")
            .arg(beside)
            .arg("-o")
            .arg(self.scratch.join(format!("{name}.rmeta")))
            .arg(&source)
            .output()
            .expect("rustc runs")
    }
}

impl Drop for Rig {
    fn drop(&mut self) {
        let _ = fs::remove_dir_all(&self.scratch);
    }
}

fn modified(path: &Path) -> SystemTime {
    fs::metadata(path).and_then(|data| data.modified()).unwrap()
}

fn text(output: &Output) -> String {
    String::from_utf8_lossy(&output.stderr).into_owned()
}

/// (line, what is said) for every error of a short report:
/// `path:line:column: error[E0000]: message`.
fn errors(report: &str) -> Vec<(usize, &str)> {
    let mut found = Vec::new();
    for line in report.lines() {
        if let Some((place, said)) = line.split_once(": error") {
            let number = place.rsplit(':').nth(1).and_then(|number| number.parse().ok());
            found.extend(number.map(|number| (number, said)));
        }
    }
    found
}

/// What is wrong with a file, if anything.
fn judge(rig: &Rig, name: &str, program: &str) -> Result<usize, String> {
    let marks: Vec<(usize, &str)> = (1..)
        .zip(program.lines())
        .filter_map(|(number, line)| Some((number, line.split_once(MARK)?.1.trim())))
        .collect();
    if marks.is_empty() {
        return Err(format!("{name}: no line is marked"));
    }
    let report = text(&rig.compile(name, program));
    let errors = errors(&report);
    let is_kind =
        |said: &str, kind: &str| said.starts_with(&format!("[{kind}]")) || said.contains(kind);
    for (number, kind) in &marks {
        if !errors.iter().any(|(line, said)| line == number && is_kind(said, kind)) {
            return Err(format!("{name}:{number}: no error `{kind}`; the compiler says\n{report}"));
        }
    }
    if let Some((line, _)) = errors.iter().find(|(line, _)| !marks.iter().any(|(at, _)| at == line))
    {
        return Err(format!("{name}:{line}: an error where none is marked\n{report}"));
    }
    let rest: String = program
        .lines()
        .map(|line| if line.contains(MARK) { "\n".into() } else { format!("{line}\n") })
        .collect();
    let output = rig.compile(name, &rest);
    match output.status.success() {
        true => Ok(marks.len()),
        false => Err(format!("{name}: refused even without its marked lines\n{}", text(&output))),
    }
}

/// All programs: name and text.
fn programs() -> Vec<(String, String)> {
    let root = Path::new(env!("CARGO_MANIFEST_DIR")).join("tests/compile_fail");
    let wanted = std::env::var("COMPILE_FAIL").unwrap_or_default();
    let mut found = Vec::new();
    for folder in fs::read_dir(&root).unwrap().map(|entry| entry.unwrap().path()) {
        for file in fs::read_dir(folder).unwrap().map(|entry| entry.unwrap().path()) {
            let name =
                file.strip_prefix(&root).unwrap().with_extension("").to_string_lossy().into_owned();
            if name.contains(&wanted) {
                found.push((name, fs::read_to_string(&file).unwrap()));
            }
        }
    }
    found.sort();
    assert!(!found.is_empty(), "no program is named like COMPILE_FAIL={wanted}");
    found
}

#[test]
fn programs_that_must_not_compile_do_not() {
    let rig = Rig::find("programs");
    let programs = programs();
    let halves = programs.chunks(programs.len().div_ceil(2));
    let wrong: Vec<String> = std::thread::scope(|scope| {
        let judges: Vec<_> = halves
            .map(|half| {
                scope.spawn(|| {
                    let judged = half.iter().map(|(name, text)| judge(&rig, name, text));
                    judged.filter_map(Result::err).collect::<Vec<_>>()
                })
            })
            .collect();
        judges.into_iter().flat_map(|judge| judge.join().unwrap()).collect()
    });
    assert!(wrong.is_empty(), "{} of {}:\n{}", wrong.len(), programs.len(), wrong.join("\n"));
}

/// A type that a table cannot hold is one error, and the error speaks of the table.
#[test]
fn a_wrong_type_is_one_readable_error() {
    let rig = Rig::find("readable");
    for (map, said) in [
        ("let _: WordMap<String, u64> = WordMap::new();", "`String` is no word"),
        ("let _ = WordMap::<u64, String>::builder().build();", "`String` is no word"),
        ("WordMap::<u64, bool>::new().fetch_or(1, true);", "`bool` is no integer"),
    ] {
        let report = text(&rig.compile("one", &format!("use quintet::*; fn main() {{ {map} }}")));
        let errors = errors(&report);
        assert!(errors.len() == 1 && errors[0].1.contains(said), "{report}");
    }
}

/// The driver itself: it must not take a wrong reason for the right one.
#[test]
fn the_driver_knows_wrong_reasons() {
    let rig = Rig::find("driver");
    let judged = |program: &str| judge(&rig, "driver/itself", program);
    let short = "fn main() {\n let mut long: &str = \"\";\n {\n let text = String::new();\n";
    let good = format!("{short} long = &text; //~ E0597\n }}\n println!(\"{{long}}\");\n}}\n");
    assert_eq!(judged(&good), Ok(1));
    assert!(judged(&good.replace("E0597", "E0499")).unwrap_err().contains("no error `E0499`"));
    assert!(judged(&good.replace("//~ E0597", "")).unwrap_err().contains("no line is marked"));
    let elsewhere = good.replace("fn main", "fn other() { missing(); }\nfn main");
    assert!(judged(&elsewhere).unwrap_err().contains("an error where none is marked"));
    let needed = "fn main() {\n let text = 1u8 + 1u16; //~ E0308\n drop(text);\n}\n";
    assert!(judged(needed).is_err());
}
