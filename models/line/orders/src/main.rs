//! Single claims of the table of orderings in RULES.md, under loom. Each as claimed, then one step weaker, which must fail (or is said to hold).
//! RUSTFLAGS="--cfg loom" cargo run --release --offline
use loom::sync::atomic::{fence, AtomicU64, Ordering, Ordering::*};
use loom::sync::Arc;
use loom::thread;
const VIRGIN: u64 = 0; const MOVED: u64 = 2; const FROZEN: u64 = 16; const LIVE: u64 = 100;
fn a(v: u64) -> AtomicU64 { AtomicU64::new(v) }
/// A descriptor is used for two slots; a reader's second look must tell.
fn desc(store: Ordering, load: Ordering, second: Ordering) {
    let s = Arc::new((a(LIVE), a(LIVE + 1), a(0), a(VIRGIN)));
    let m = s.clone();
    let h = thread::spawn(move || {
        m.2.store(LIVE, store); let _ = m.0.compare_exchange(LIVE, FROZEN, AcqRel, Acquire);
        let _ = m.3.compare_exchange(VIRGIN, LIVE, Release, Relaxed); m.0.store(MOVED, Release);
        m.2.store(LIVE + 1, store); let _ = m.1.compare_exchange(LIVE + 1, FROZEN, AcqRel, Acquire);
    });
    if s.0.load(Acquire) == FROZEN { let x = s.2.load(load); if s.0.load(second) == FROZEN { assert_eq!(x, LIVE); } }
    h.join().unwrap();
}
/// A stores the tag of a lane that it passes and claims K behind it, B stores K's own tag and fills V, D sees V and asks both tags.
fn tags(k_load: Ordering, fill: Ordering) {
    let s = Arc::new((a(0), a(0), a(0), a(VIRGIN))); let (x, y) = (s.clone(), s.clone()); // passed tag, own tag, K, V
    let h1 = thread::spawn(move || { x.0.store(1, Relaxed); let _ = x.2.compare_exchange(0, 7, Release, Relaxed); });
    let h2 = thread::spawn(move || { if y.2.load(k_load) == 7 { y.1.store(1, Relaxed); let _ = y.3.compare_exchange(VIRGIN, LIVE, fill, Relaxed); } });
    if s.3.load(Acquire) == LIVE { assert_eq!((s.0.load(Relaxed), s.1.load(Relaxed)), (1, 1), "a live key without the tags on its way"); }
    h1.join().unwrap(); h2.join().unwrap();
}
/// CLOSED in a snapshot, then `next`.
fn closed(fenced: bool) {
    let s = Arc::new((a(0), a(0))); let m = s.clone();
    let h = thread::spawn(move || { m.1.store(9, Release); let _ = m.0.compare_exchange(0, 1, Release, Relaxed); });
    let k = s.0.load(Relaxed); if fenced { fence(Acquire); }
    if s.1.load(Relaxed) == 0 { assert_ne!(k, 1, "CLOSED without a successor"); }
    h.join().unwrap();
}
/// A helper that lost the copy stores MOVED; who sees it finds the copy.
fn moved(store: Ordering) {
    let s = Arc::new((a(FROZEN), a(VIRGIN))); let (x, y) = (s.clone(), s.clone());
    let h1 = thread::spawn(move || { let _ = x.1.compare_exchange(VIRGIN, LIVE, Release, Relaxed); });
    let h2 = thread::spawn(move || { let _ = y.1.compare_exchange(VIRGIN, LIVE, Release, Relaxed); y.0.store(MOVED, store); });
    if s.0.load(Acquire) == MOVED { assert_eq!(s.1.load(Acquire), LIVE, "MOVED without a copy"); }
    h1.join().unwrap(); h2.join().unwrap();
}
/// Two copiers store the same special value in the slot's cell; who sees OWN reads it.
fn own(cas: Ordering) {
    let s = Arc::new((a(0), a(VIRGIN))); let (x, y) = (s.clone(), s.clone());
    let copy = move |t: Arc<(AtomicU64, AtomicU64)>| { t.0.store(5, Relaxed); let _ = t.1.compare_exchange(VIRGIN, 3, cas, Relaxed); };
    let h1 = thread::spawn(move || copy(x)); let h2 = thread::spawn(move || copy(y));
    if s.1.load(Acquire) == 3 { assert_eq!(s.0.load(Relaxed), 5, "OWN without its cell"); }
    h1.join().unwrap(); h2.join().unwrap();
}
/// What a writer published with v reaches one who finds v in S, although the mover loaded an older v: v -> w -> v.
fn passed(freeze: Ordering) {
    let s = Arc::new((a(LIVE), a(VIRGIN), a(0), a(0))); let (x, y) = (s.clone(), s.clone());
    let h1 = thread::spawn(move || { let _ = x.0.compare_exchange(LIVE, LIVE + 1, AcqRel, Acquire); x.2.store(1, Relaxed); if x.0.compare_exchange(LIVE + 1, LIVE, AcqRel, Acquire).is_ok() { x.3.store(1, Relaxed); } });
    let h2 = thread::spawn(move || { let v = y.0.load(Acquire); let back = y.3.load(Relaxed); if v == LIVE && back == 1 && y.0.compare_exchange(LIVE, FROZEN, freeze, Relaxed).is_ok() { let _ = y.1.compare_exchange(VIRGIN, LIVE, Release, Relaxed); } });
    // The writer had come back before the exchange (`back`, seen without order): its data must be there.
    if s.1.load(Acquire) == LIVE { assert_eq!(s.2.load(Relaxed), 1, "a value without what was published with it"); }
    h1.join().unwrap(); h2.join().unwrap();
}
/// Tag and `next`, both Relaxed and in either order: who inserted into T or S itself is never told absent.
fn absent(order: bool) {
    let s = Arc::new((a(0), a(0), a(0))); let x = s.clone(); // tag, next, told
    let h = thread::spawn(move || { if x.1.load(Acquire) == 0 { x.0.store(1, Relaxed); } x.2.store(1, Release); });
    let y = s.clone(); let h2 = thread::spawn(move || { let _ = y.1.compare_exchange(0, 9, Release, Relaxed); });
    if s.2.load(Acquire) == 1 { let (f, n) = if order { let f = s.0.load(Relaxed); (f, s.1.load(Relaxed)) } else { let n = s.1.load(Relaxed); (s.0.load(Relaxed), n) }; assert!(f == 1 || n != 0, "absent though inserted"); }
    h.join().unwrap(); h2.join().unwrap();
}
fn run(name: &str, must_hold: bool, f: impl Fn() + Sync + Send + 'static + std::panic::UnwindSafe) {
    std::panic::set_hook(Box::new(|_| {}));
    let r = std::panic::catch_unwind(|| loom::model(f)); let held = r.is_ok();
    let why = r.err().map_or(String::new(), |e| e.downcast_ref::<String>().cloned().or(e.downcast_ref::<&str>().map(|s| s.to_string())).unwrap_or_default().replace('\n', " "));
    println!("{name:<58} {} {}{why}", if held { "holds" } else { "fails:" }, if held == must_hold { "" } else { "UNEXPECTED " });
}
fn main() {
    run("desc: store Release, load Acquire, second look Relaxed", true, || desc(Release, Acquire, Relaxed));
    run("desc: store Relaxed", false, || desc(Relaxed, Acquire, Relaxed));
    run("desc: load Relaxed", false, || desc(Release, Relaxed, Relaxed));
    run("tags: writer's K load Acquire, exchange of V Release", true, || tags(Acquire, Release));
    run("tags: writer's K load Relaxed", false, || tags(Relaxed, Release));
    run("tags: exchange of V Relaxed", false, || tags(Acquire, Relaxed));
    run("closed: K Relaxed, Acquire fence, next Relaxed", true, || closed(true));
    run("closed: no fence", false, || closed(false));
    run("moved: failed copy Relaxed, MOVED Release", true, || moved(Release));
    run("moved: MOVED Relaxed", false, || moved(Relaxed));
    run("own: cell Relaxed, exchange Release", true, || own(Release));
    run("own: exchange Relaxed", false, || own(Relaxed));
    run("passed: freeze AcqRel", true, || passed(AcqRel));
    run("passed: freeze Release", false, || passed(Release));
    run("absent: tag then next, Relaxed", true, || absent(true));
    run("absent: next then tag, Relaxed", true, || absent(false));
}
