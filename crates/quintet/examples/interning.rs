//! Threads give every name a small number, once, and find the name again by its number.
//!
//! ```sh
//! cargo run --release -p quintet --example interning
//! ```

use quintet::SeenSet;

fn main() {
    let names = SeenSet::<String>::new();
    let sentence = "a rose is a rose is a rose";
    // Whoever comes first gives a name its id; all others are told the same one.
    let numbered: Vec<Vec<_>> = std::thread::scope(|scope| {
        let threads = [(); 4].map(|()| {
            scope.spawn(|| {
                let names = names.handle();
                sentence.split(' ').map(|word| names.insert(word).id()).collect()
            })
        });
        threads.into_iter().map(|thread| thread.join().unwrap()).collect()
    });
    assert!(numbered.iter().all(|ids| *ids == numbered[0]));
    assert_eq!(names.len(), 3);
    let found = numbered[0].iter().filter_map(|id| names.get(*id));
    let again: Vec<_> = found.map(String::as_str).collect();
    assert_eq!(again.join(" "), sentence);
    println!("{} words, {} names: {:?}", numbered[0].len(), names.len(), numbered[0]);
}
