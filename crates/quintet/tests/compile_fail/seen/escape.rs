// A record is borrowed from its set and goes with it.
use quintet::SeenSet;

fn a_record_outlives_its_set() {
    let mut kept: Option<&String> = None;
    {
        let set = SeenSet::<String>::new();
        let id = set.handle().insert("x".to_owned()).id();
        kept = set.get(id); //~ E0597
    }
    println!("{kept:?}");
}

fn main() {
    a_record_outlives_its_set();
}
