//! Threads count words together in a `HashMap` of atomic numbers: a word that is there is counted
//! without a lock and without an allocation.
//!
//! ```sh
//! cargo run --release -p quintet --example word_count -- README.md ARCHITECTURE.md
//! ```

use quintet::HashMap;
use std::error::Error;
use std::sync::atomic::{AtomicU64, Ordering};

const SAMPLE: &str = "the cat and the dog and the bird";

fn count(counts: &HashMap<String, AtomicU64>, text: &str) {
    // A thread's own seat, for a loop.
    let counts = counts.handle();
    for word in text.split(|letter: char| !letter.is_alphanumeric()).filter(|word| !word.is_empty())
    {
        counts.entry_ref(word).or_default().fetch_add(1, Ordering::Relaxed);
    }
}

fn main() -> Result<(), Box<dyn Error>> {
    let files: Vec<String> = std::env::args().skip(1).collect();
    let mut texts = files.iter().map(std::fs::read_to_string).collect::<Result<Vec<_>, _>>()?;
    if texts.is_empty() {
        texts = vec![SAMPLE.to_string(); 4];
    }
    let counts = HashMap::new();
    std::thread::scope(|scope| {
        for text in &texts {
            scope.spawn(|| count(&counts, text));
        }
    });
    let mut words: Vec<_> =
        counts.into_iter().map(|(word, count)| (count.into_inner(), word)).collect();
    words.sort_unstable_by(|one, other| other.cmp(one));
    words.iter().take(10).for_each(|(count, word)| println!("{count:>8}  {word}"));
    if files.is_empty() {
        assert_eq!(words[0], (12, "the".to_string()));
    }
    Ok(())
}
