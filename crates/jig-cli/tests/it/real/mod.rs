//! Whole runs of `jig` with the genuine agent programs, whose model is scripted
//! on loopback: what they really do, and what jig really does about it.
//!
//! Start reading at `world`: the place such a run happens in. Then `gate`, the
//! exit gate; `mixed`, two agents in one chain; `containment` and `steering`,
//! agents that do what they may not; `ends` and `stops`, runs that something
//! happens to; `endurance`, many runs in a row.

mod acp;
mod containment;
mod ends;
mod endurance;
mod gate;
mod mixed;
mod steering;
mod stops;
mod structured;
mod world;
