//! Enums whose values have a public name.

/// Declares an enum with the name of each value, `ALL` of them in this order, and `name`.
macro_rules! named {
    (
        $(#[$meta:meta])*
        $visible:vis enum $type:ident {
            $($(#[$doc:meta])* $value:ident = $name:literal,)+
        }
    ) => {
        $(#[$meta])*
        $visible enum $type {
            $($(#[$doc])* $value,)+
        }

        impl $type {
            $visible const ALL: [Self; [$($name),+].len()] = [$(Self::$value),+];

            /// As the API, metrics and explanations show it.
            $visible const fn name(self) -> &'static str {
                match self {
                    $(Self::$value => $name,)+
                }
            }
        }
    };
}

pub(crate) use named;
