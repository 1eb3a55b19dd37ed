//! `Debug` for types whose parts are many, secret or of no use in a log.

/// Writes the name of a type, and of its fields those that are named here.
macro_rules! opaque {
    ($type:ident $(, $field:ident)*) => {
        impl std::fmt::Debug for $type {
            fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
                let mut shown = f.debug_struct(stringify!($type));
                $(shown.field(stringify!($field), &self.$field);)*
                shown.finish_non_exhaustive()
            }
        }
    };
}

pub(crate) use opaque;
