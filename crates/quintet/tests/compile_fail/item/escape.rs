// What an access shows goes with it, or at its next quiet point; a set goes after all of them.
use quintet::ItemSet;
use quintet::item_set::{ArcRef, Keyed, MappedRef, Pin, QuietHandle, Ref, Refs};
use std::sync::Arc;

struct Word(String);

impl Keyed for Word {
    type Key = str;
    fn key(&self) -> &str {
        &self.0
    }
}

type Set = ItemSet<Box<Word>>;

fn an_item_outlives_its_guard(set: &Set) {
    let mut kept: Option<&Word> = None;
    {
        let pin = set.pin();
        kept = pin.get("x"); //~ E0597
    }
    println!("{}", kept.is_some());
}

fn an_item_of_a_guard_without_a_name(set: &Set) {
    let mut kept = None;
    kept = set.pin().get("x"); //~ E0716
    println!("{}", kept.is_some_and(|word: &Word| word.0.is_empty()));
}

fn an_item_outlives_its_handle(set: &Set) {
    let mut kept: Option<&Word> = None;
    {
        let handle = set.quiet_handle();
        kept = handle.get("x"); //~ E0597
    }
    println!("{}", kept.is_some());
}

fn an_item_passes_a_quiet_point(set: &Set) {
    let mut handle = set.quiet_handle();
    let kept = handle.get("x");
    handle.quiescent(); //~ E0502
    println!("{}", kept.is_some());
}

fn an_item_passes_a_rest(set: &Set) {
    let mut handle = set.quiet_handle();
    let kept = handle.get("x");
    drop(handle.offline()); //~ E0502
    println!("{}", kept.is_some());
}

fn an_item_passes_a_flush(set: &Set) {
    let mut handle = set.quiet_handle();
    let kept = handle.get("x");
    handle.flush(); //~ E0502
    println!("{}", kept.is_some());
}

fn what_was_replaced_passes_a_quiet_point(set: &Set) {
    let mut handle = set.quiet_handle();
    let kept = handle.insert(Word("x".into()));
    handle.quiescent(); //~ E0502
    println!("{}", kept.is_some());
}

fn what_was_removed_passes_a_quiet_point(set: &Set) {
    let mut handle = set.quiet_handle();
    let kept = handle.remove_owned("x");
    handle.quiescent(); //~ E0502
    println!("{}", kept.is_some());
}

fn what_was_there_passes_a_quiet_point(set: &Set) {
    let mut handle = set.quiet_handle();
    let kept = handle.insert_new(Word("x".into()));
    handle.quiescent(); //~ E0502
    println!("{}", kept.is_ok());
}

fn what_was_made_passes_a_quiet_point(set: &Set) {
    let mut handle = set.quiet_handle();
    let kept = handle.get_or_insert_with("x", || Word("x".into()));
    handle.quiescent(); //~ E0502
    println!("{}", kept.0);
}

fn an_iterator_passes_a_quiet_point(set: &Set) {
    let mut handle = set.quiet_handle();
    let mut items = handle.iter();
    handle.quiescent(); //~ E0502
    println!("{}", items.next().is_some());
}

fn an_item_of_an_iterator_passes_a_quiet_point(set: &Set) {
    let mut handle = set.quiet_handle();
    let kept = handle.iter_exact().next();
    handle.quiescent(); //~ E0502
    println!("{}", kept.is_some());
}

fn a_shared_item_passes_a_quiet_point(set: &ItemSet<Arc<Word>>) {
    let mut handle = set.quiet_handle();
    let kept: Option<ArcRef<'_, Word>> = handle.get_arc("x");
    handle.quiescent(); //~ E0502
    println!("{}", kept.is_some());
}

fn many_items_pass_a_quiet_point(set: &Set) {
    let mut handle = set.quiet_handle();
    let mut found = [None];
    handle.get_many(["x"], &mut found);
    handle.quiescent(); //~ E0502
    println!("{}", found[0].is_some());
}

fn an_item_that_retain_shows_is_kept(set: &Set) {
    let mut kept: Option<&Word> = None;
    set.pin().retain(|item| {
        kept = Some(item); //~ borrowed data escapes outside of closure
        true
    });
    println!("{}", kept.is_some());
}

fn a_handle_outlives_its_set() {
    let mut kept: Option<QuietHandle<'_, Box<Word>>> = None;
    {
        let set = Set::new();
        kept = Some(set.quiet_handle()); //~ E0597
    }
    drop(kept);
}

fn a_guard_outlives_its_set() {
    let mut kept: Option<Pin<'_, Box<Word>>> = None;
    {
        let set = Set::new();
        kept = Some(set.pin()); //~ E0597
    }
    drop(kept);
}

fn a_set_goes_while_its_handle_lives() {
    let set = Set::new();
    let handle = set.quiet_handle();
    drop(set); //~ E0505
    drop(handle);
}

fn a_handle_works_while_it_is_offline(set: &Set) {
    let mut handle = set.quiet_handle();
    let offline = handle.offline();
    handle.get("x"); //~ E0502
    drop(offline);
}

fn what_a_set_lends_outlives_it() {
    let mut kept: Option<Ref<'_, Box<Word>>> = None;
    {
        let set = Set::new();
        kept = set.get("x"); //~ E0597
    }
    drop(kept);
}

fn what_a_handle_lends_outlives_it(set: &Set) {
    let mut kept: Option<Ref<'_, Box<Word>>> = None;
    {
        let handle = set.handle();
        kept = handle.get("x"); //~ E0597
    }
    drop(kept);
}

fn what_an_owned_handle_lends_outlives_it(set: &Arc<Set>) {
    let mut kept: Option<Ref<'_, Box<Word>>> = None;
    {
        let handle = set.owned_handle();
        kept = handle.get("x"); //~ E0597
    }
    drop(kept);
}

fn what_an_owned_quiet_handle_lends_outlives_it(set: &Arc<Set>) {
    let mut kept: Option<&Word> = None;
    {
        let handle = set.owned_quiet_handle();
        kept = handle.get("x"); //~ E0597
    }
    println!("{}", kept.is_some());
}

fn the_set_of_an_owned_handle_outlives_it(set: &Arc<Set>) {
    let mut kept: Option<&Set> = None;
    {
        let handle = set.owned_handle();
        kept = Some(handle.set()); //~ E0597
    }
    println!("{}", kept.is_some());
}

fn a_guard_of_a_handle_outlives_it(set: &Arc<Set>) {
    let mut kept: Option<Pin<'_, Box<Word>>> = None;
    {
        let handle = set.owned_handle();
        kept = Some(handle.pin()); //~ E0597
    }
    drop(kept);
}

fn a_walk_of_a_handle_outlives_it(set: &Arc<Set>) {
    let mut kept: Option<Refs<'_, Box<Word>>> = None;
    {
        let handle = set.owned_handle();
        kept = Some(handle.iter()); //~ E0597
    }
    drop(kept);
}

fn a_handle_is_sent_while_it_lends(set: &Arc<Set>) {
    let handle = set.owned_handle();
    let kept = handle.get("x");
    std::thread::spawn(move || drop(handle)); //~ E0505
    println!("{}", kept.is_some());
}

fn an_item_outlives_its_ref(set: &Set) {
    let mut kept: Option<&Word> = None;
    {
        let lent = set.get("x").unwrap();
        kept = Some(&lent); //~ E0597
    }
    println!("{}", kept.is_some());
}

fn a_part_outlives_its_handle(set: &Arc<Set>) {
    let mut kept: Option<MappedRef<'_, String>> = None;
    {
        let handle = set.owned_handle();
        kept = handle.get("x").map(|word| Ref::map(word, |word| &word.0)); //~ E0597
    }
    drop(kept);
}

fn an_item_that_update_shows_is_kept(set: &Set) {
    let mut kept: Option<&Word> = None;
    set.update("x", |item| {
        kept = Some(item); //~ borrowed data escapes outside of closure
        Word("x".into())
    });
    println!("{}", kept.is_some());
}

// An item's `Drop` runs with the set's: what it borrows must live until then.
struct Loud<'t>(&'t str);

impl Drop for Loud<'_> {
    fn drop(&mut self) {
        println!("{}", self.0);
    }
}

impl Keyed for Loud<'_> {
    type Key = str;
    fn key(&self) -> &str {
        self.0
    }
}

fn an_item_borrows_what_goes_before_its_set() {
    let set = ItemSet::<Box<Loud<'_>>>::new();
    let text = String::from("x");
    set.pin().insert(Loud(&text)); //~ E0597
}

fn main() {}
