//! Git for jig: hardened git runs, attempt repositories, pinned trees, capture / compare / restore of a work tree, tree merge.
