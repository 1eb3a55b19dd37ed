//! Limits and options: what a field means and its usual value stand in one place.

/// Declares a struct with the value of each field, which its `Default` or a constant has.
macro_rules! defaults {
    (
        $(#[$meta:meta])*
        $visible:vis struct $name:ident {
            $($(#[$doc:meta])* $field_visible:vis $field:ident: $type:ty = $value:expr,)+
        }
    ) => {
        $(#[$meta])*
        $visible struct $name {
            $($(#[$doc])* $field_visible $field: $type,)+
        }

        impl Default for $name {
            fn default() -> Self {
                Self { $($field: $value,)+ }
            }
        }
    };
    (
        $(#[$meta:meta])*
        $visible:vis const $constant:ident: struct $name:ident {
            $($(#[$doc:meta])* $field:ident: $type:ty = $value:expr,)+
        }
    ) => {
        $(#[$meta])*
        $visible struct $name {
            $($(#[$doc])* $field: $type,)+
        }

        $visible const $constant: $name = $name { $($field: $value,)+ };
    };
}

pub(crate) use defaults;
