// `word_type!` is told the type of the field: any other type that happens to coerce is refused.
#![allow(dead_code)]
mod one_reference_too_many {
    #[derive(Clone, Copy)]
    struct Id(&'static u64);
    quintet::word_type!(Id(&'static &'static u64)); //~ E0308
}

mod one_reference_too_few {
    #[derive(Clone, Copy)]
    struct Id(&'static &'static u64);
    quintet::word_type!(Id(&'static u64)); //~ E0308
}

mod another_width {
    #[derive(Clone, Copy)]
    struct Id(u32);
    quintet::word_type!(Id(u64)); //~ E0308
}

mod no_word {
    #[derive(Clone, Copy)]
    struct Id([u8; 9]);
    quintet::word_type!(Id([u8; 9])); //~ E0277
}

mod two_fields {
    #[derive(Clone, Copy)]
    struct Id(u32, u32);
    quintet::word_type!(Id(u32)); //~ E0061
}

mod a_field_with_a_name {
    #[derive(Clone, Copy)]
    struct Id {
        number: u32,
    }
    quintet::word_type!(Id(u32)); //~ E0609
}

mod not_copy {
    struct Id(u32);
    quintet::word_type!(Id(u32)); //~ E0277
}

mod a_word_by_way_of_deref {
    struct Id {
        inner: (u32,),
    }
    impl std::ops::Deref for Id {
        type Target = (u32,);
        fn deref(&self) -> &(u32,) {
            &self.inner
        }
    }
    impl Clone for Id {
        fn clone(&self) -> Self {
            *self
        }
    }
    impl Copy for Id {}
    quintet::word_type!(Id(u32)); //~ `Self` constructor can only be used
}

// What it must not be disturbed by.
mod names_of_the_caller {
    #![allow(non_camel_case_types)]
    type u64 = ();
    struct Copy;
    trait Sealed {}
    mod core {}
    mod std {}
    #[derive(::std::clone::Clone, ::std::marker::Copy)]
    struct Id(u16);
    quintet::word_type!(Id(u16));
}

fn main() {}
