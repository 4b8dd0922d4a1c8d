//! What the papers claim.
