//! `Send` and `Sync` asserted at compile time.

/// Fails to compile unless the type is `Send`.
///
/// ```
/// quintet_testkit::assert_send!(Vec<u8>);
/// ```
/// ```compile_fail
/// quintet_testkit::assert_send!(std::rc::Rc<u8>);
/// ```
#[macro_export]
macro_rules! assert_send {
    ($type:ty) => {
        const _: () = {
            const fn needs_send<T: ?Sized + Send>() {}
            needs_send::<$type>();
        };
    };
}

/// Fails to compile unless the type is `Sync`.
///
/// ```
/// quintet_testkit::assert_sync!(Vec<u8>);
/// ```
/// ```compile_fail
/// quintet_testkit::assert_sync!(std::cell::Cell<u8>);
/// ```
#[macro_export]
macro_rules! assert_sync {
    ($type:ty) => {
        const _: () = {
            const fn needs_sync<T: ?Sized + Sync>() {}
            needs_sync::<$type>();
        };
    };
}

/// Fails to compile if the type is `Send`.
///
/// ```
/// quintet_testkit::assert_not_send!(std::rc::Rc<u8>);
/// ```
/// ```compile_fail
/// quintet_testkit::assert_not_send!(Vec<u8>);
/// ```
#[macro_export]
macro_rules! assert_not_send {
    ($type:ty) => {
        $crate::assert_not_implemented!($type, Send);
    };
}

/// Fails to compile if the type is `Sync`.
///
/// ```
/// quintet_testkit::assert_not_sync!(std::cell::Cell<u8>);
/// ```
/// ```compile_fail
/// quintet_testkit::assert_not_sync!(Vec<u8>);
/// ```
#[macro_export]
macro_rules! assert_not_sync {
    ($type:ty) => {
        $crate::assert_not_implemented!($type, Sync);
    };
}

/// With the trait, two implementations would fit and the call is ambiguous.
#[doc(hidden)]
#[macro_export]
macro_rules! assert_not_implemented {
    ($type:ty, $trait:path) => {
        const _: () = {
            struct With;
            struct Without;
            trait Ambiguous<A> {
                fn call() {}
            }
            impl<T: ?Sized> Ambiguous<Without> for T {}
            impl<T: ?Sized + $trait> Ambiguous<With> for T {}
            let _ = <$type as Ambiguous<_>>::call;
        };
    };
}
