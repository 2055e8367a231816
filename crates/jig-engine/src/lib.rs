//! Drives one attempt through its chain: guards, agent and code phases, gates, boundary, repair edges, parallel groups, acceptance. Embeddable.
