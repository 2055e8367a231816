//! What files hold.
