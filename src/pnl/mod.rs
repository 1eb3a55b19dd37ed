//! From a wallet's rows to its positions and gains. Pure: exact integers in, exact integers out.
