// What is no word is refused where the map is made, and the error says what a word is.
use quintet::WordMap;

fn a_string_is_no_key() {
    let _: WordMap<String, u64> = WordMap::new(); //~ `String` is no word: keys and values of a `WordMap` are `Copy` and fit into 64 bits
}

fn a_vector_is_no_value() {
    let _ = WordMap::<u64, Vec<u8>>::with_capacity(9); //~ `Vec<u8>` is no word
}

fn a_pair_of_large_numbers_is_no_word() {
    let _: WordMap<(u64, u64), u64> = WordMap::builder().capacity(9).build(); //~ `(u64, u64)` is no word
}

static A_STATIC_IS_OF_WORDS: WordMap<u64, [u8; 9]> = WordMap::new(); //~ `[u8; 9]` is no word

fn entries_are_words() {
    let _: WordMap<u64, String> = [(1, String::new())].into_iter().collect(); //~ `String` is no word
}

fn only_integers_are_counted_with(map: &WordMap<u64, f64>) {
    map.insert(1, 1.0);
    map.fetch_add(1, 1.0); //~ `f64` is no integer: only integers are counted with
}

fn main() {}
