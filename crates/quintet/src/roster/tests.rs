//! Seats are taken, left and found.

use super::*;

fn taken<S: Send + Sync>(roster: &Roster<S>) -> usize {
    let mut seats = 0;
    roster.visit(|_| seats += 1);
    seats
}

fn all<S: Send + Sync>(roster: &Roster<S>) -> usize {
    let mut seats = 0;
    roster.visit_all(|_| seats += 1);
    seats
}

fn join(roster: &Arc<Roster<AtomicU64>>) -> Seat<AtomicU64> {
    Roster::join(roster, || AtomicU64::new(0))
}

#[test]
fn a_vacated_seat_is_taken_again() {
    let roster = Roster::<AtomicU64>::new();
    let (first, second) = (join(&roster), join(&roster));
    first.store(1, Ordering::Relaxed);
    second.store(2, Ordering::Relaxed);
    assert_eq!((taken(&roster), all(&roster)), (2, 2));
    drop(first);
    assert_eq!((taken(&roster), all(&roster)), (1, 2));
    let third = join(&roster);
    assert_eq!((taken(&roster), all(&roster)), (2, 2));
    assert_eq!(third.load(Ordering::Relaxed), 1, "the state stays as it was left");
    assert_eq!(second.load(Ordering::Relaxed), 2);
}

#[test]
fn a_thread_that_panics_gives_its_seat_back() {
    let roster = Roster::<AtomicU64>::new();
    for _ in 0..10 {
        let roster = Arc::clone(&roster);
        let outcome = std::thread::spawn(move || {
            let _seat = join(&roster);
            std::panic::resume_unwind(Box::new("on purpose"));
        });
        assert!(outcome.join().is_err());
    }
    assert_eq!((taken(&roster), all(&roster)), (0, 1));
}

#[test]
fn an_abandoned_seat_is_nobodys_until_it_is_vacated() {
    let roster = Roster::<AtomicU64>::new();
    let first = join(&roster);
    let address = first.address();
    first.abandon();
    drop(join(&roster));
    assert_eq!((taken(&roster), all(&roster), Arc::strong_count(&roster)), (1, 2, 1));
    // SAFETY: abandoned above, and vacated here only.
    unsafe { roster.vacate(address, false) };
    assert_eq!(taken(&roster), 0);
    let seats: Vec<_> = (0..2).map(|_| join(&roster)).collect();
    assert_eq!((all(&roster), seats.len()), (2, 2), "both are taken again");
}

#[test]
fn thousands_of_threads_find_a_seat_each() {
    let roster = Roster::<AtomicU64>::new();
    let seats: Vec<_> = (0..2_000).map(|_| join(&roster)).collect();
    seats.iter().for_each(|seat| {
        seat.fetch_add(1, Ordering::Relaxed);
    });
    let mut sum = 0;
    roster.visit(|seat| {
        assert_eq!(seat.load(Ordering::Relaxed), 1, "each has its own");
        sum += seat.load(Ordering::Relaxed);
    });
    assert_eq!(sum, 2_000);
    drop(seats);
    assert_eq!(taken(&roster), 0);
    assert!(all(&roster) < 2_000 + LARGEST);
}

#[test]
fn chunks_grow_with_the_number_of_seats() {
    let roster = Roster::<AtomicU64>::new();
    let mut seats = Vec::new();
    let sizes = [(1, 1), (2, 2), (3, 4), (4, 4), (5, 8), (64, 64), (65, 128), (129, 192)];
    for (number, there) in sizes {
        seats.resize_with(number, || join(&roster));
        assert_eq!((taken(&roster), all(&roster)), (number, there));
    }
}

#[test]
fn only_laden_seats_are_taken_as_such() {
    let roster = Roster::<AtomicU64>::new();
    let seats: Vec<_> = (0..5).map(|_| join(&roster)).collect();
    seats[3].store(3, Ordering::Relaxed);
    seats[3].set_laden(true);
    assert!(Roster::take_laden(&roster).is_none(), "taken seats are nobody else's");
    drop(seats);
    let laden = Roster::take_laden(&roster).expect("one was left laden");
    assert_eq!(laden.load(Ordering::Relaxed), 3);
    assert!(Roster::take_laden(&roster).is_none());
    drop(laden);
    assert!(Roster::take_laden(&roster).is_none(), "not laden unless its last owner says so");
}

#[test]
fn a_laden_seat_is_the_first_to_be_taken() {
    let roster = Roster::<AtomicU64>::new();
    let (first, second) = (join(&roster), join(&roster));
    first.store(1, Ordering::Relaxed);
    first.set_laden(true);
    drop((first, second));
    assert_eq!(join(&roster).load(Ordering::Relaxed), 1);
    assert!(Roster::take_laden(&roster).is_none());
}
