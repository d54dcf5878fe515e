// What others' maps allow and this one does not: a value that others can see is replaced, not
// changed.
use quintet::{CopyMap, HashMap};
use std::collections::HashMap as Std;

fn counting_in_place(counts: &HashMap<String, u64>) {
    *counts.entry("cat".to_string()).or_insert(0) += 1; //~ E0594
    counts.entry("cat".to_string()).and_update(|count| count + 1).or_insert(1);
}

fn changing_through_a_reference(counts: &HashMap<String, Vec<u64>>) {
    let found = counts.get("cat").unwrap();
    found.push(1); //~ E0596
    counts.update("cat", |old| old.iter().copied().chain([1]).collect());
}

fn changing_without_being_alone(counts: &HashMap<String, u64>) {
    counts.get_mut("cat"); //~ E0596
}

fn a_value_that_is_not_plain() {
    let _ = CopyMap::<u64, u64>::new();
    let _ = CopyMap::<u64, &'static str>::new(); //~ E0599
}

fn main() {
    counting_in_place(&HashMap::new());
    changing_through_a_reference(&HashMap::new());
    changing_without_being_alone(&HashMap::new());
    a_value_that_is_not_plain();
    let _: Std<u64, u64> = HashMap::from([(1, 2)]).into();
}
