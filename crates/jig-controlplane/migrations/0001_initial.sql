-- Times are microseconds since the Unix epoch, ids and digests text, structured
-- values JSON as text. States are the words of jig-protocol's lifecycle.

-- The text of every definition ever admitted, by its BLAKE3 digest.
CREATE TABLE definition_texts (
    digest TEXT NOT NULL PRIMARY KEY,
    source TEXT NOT NULL
);

CREATE TABLE definitions (
    id TEXT NOT NULL PRIMARY KEY,
    name TEXT NOT NULL UNIQUE,
    generation BIGINT NOT NULL CHECK (generation > 0),
    created_at BIGINT NOT NULL,
    updated_at BIGINT NOT NULL
);

CREATE TABLE definition_generations (
    definition_id TEXT NOT NULL REFERENCES definitions (id),
    generation BIGINT NOT NULL CHECK (generation > 0),
    digest TEXT NOT NULL REFERENCES definition_texts (digest),
    created_at BIGINT NOT NULL,
    PRIMARY KEY (definition_id, generation)
);

CREATE TABLE runs (
    id TEXT NOT NULL PRIMARY KEY,
    definition_id TEXT NOT NULL,
    definition_generation BIGINT NOT NULL,
    -- What this run executes, whatever becomes of the definition.
    snapshot_digest TEXT NOT NULL REFERENCES definition_texts (digest),
    parameters TEXT NOT NULL,
    state TEXT NOT NULL CHECK (state IN ('active', 'accepted', 'failed', 'mixed', 'cancelled')),
    -- Set for a direct run: its liveness marker, relative to the data directory.
    marker TEXT,
    -- The caller's idempotency key, and a digest of what it stood for.
    request_key TEXT UNIQUE,
    request_digest TEXT,
    created_at BIGINT NOT NULL,
    updated_at BIGINT NOT NULL,
    FOREIGN KEY (definition_id, definition_generation)
        REFERENCES definition_generations (definition_id, generation)
);
CREATE INDEX runs_by_state ON runs (state, created_at);

CREATE TABLE jobs (
    id TEXT NOT NULL PRIMARY KEY,
    run_id TEXT NOT NULL REFERENCES runs (id),
    repository TEXT NOT NULL,
    -- The ref that was asked for, where one was; a readmission resolves it anew.
    base_ref TEXT,
    base_sha TEXT NOT NULL,
    state TEXT NOT NULL CHECK (
        state IN ('queued', 'active', 'accepted', 'accepted_unpublished', 'failed', 'cancelled')
    ),
    cancellation_requested BIGINT NOT NULL DEFAULT 0 CHECK (cancellation_requested IN (0, 1)),
    -- When the wish to cancel was handed to the holder.
    cancellation_delivered_at BIGINT,
    -- Only this holder may claim it; NULL means anyone.
    reserved_for TEXT,
    queued_at BIGINT NOT NULL,
    created_at BIGINT NOT NULL,
    updated_at BIGINT NOT NULL,
    UNIQUE (run_id, repository)
);
CREATE INDEX jobs_claim_order ON jobs (state, queued_at, id);

-- What a holder must offer to claim a job, so that a claim parses nothing.
CREATE TABLE job_requirements (
    job_id TEXT NOT NULL REFERENCES jobs (id),
    kind TEXT NOT NULL CHECK (kind IN ('env', 'runtime')),
    name TEXT NOT NULL,
    PRIMARY KEY (job_id, kind, name)
);

-- Who may claim: execution hosts, and the direct runs of this data directory.
CREATE TABLE holders (
    id TEXT NOT NULL PRIMARY KEY,
    capacity BIGINT NOT NULL CHECK (capacity BETWEEN 1 AND 100),
    registered_at BIGINT NOT NULL,
    last_heard_at BIGINT NOT NULL
);

CREATE TABLE holder_capabilities (
    holder_id TEXT NOT NULL REFERENCES holders (id),
    kind TEXT NOT NULL CHECK (kind IN ('env', 'runtime')),
    name TEXT NOT NULL,
    PRIMARY KEY (holder_id, kind, name)
);

CREATE TABLE attempts (
    id TEXT NOT NULL PRIMARY KEY,
    job_id TEXT NOT NULL REFERENCES jobs (id),
    number BIGINT NOT NULL CHECK (number > 0),
    state TEXT NOT NULL CHECK (
        state IN (
            'queued', 'preparing', 'running', 'accepted', 'accepted_unpublished',
            'failed', 'cancelled', 'lost'
        )
    ),
    holder_id TEXT REFERENCES holders (id),
    runtimes TEXT NOT NULL DEFAULT '[]',
    result TEXT,
    error TEXT,
    started_at BIGINT,
    completed_at BIGINT,
    created_at BIGINT NOT NULL,
    UNIQUE (job_id, number)
);
CREATE UNIQUE INDEX one_active_attempt_per_job ON attempts (job_id)
    WHERE state IN ('queued', 'preparing', 'running');
CREATE INDEX attempts_by_age ON attempts (created_at, id);
CREATE INDEX attempts_by_holder ON attempts (holder_id, state);

CREATE TABLE leases (
    attempt_id TEXT NOT NULL PRIMARY KEY REFERENCES attempts (id),
    holder_id TEXT NOT NULL REFERENCES holders (id),
    -- Of the token; stays after the end, late evidence is judged by it.
    token_digest TEXT NOT NULL,
    state TEXT NOT NULL CHECK (state IN ('held', 'missed', 'lost', 'closed')),
    expires_at BIGINT NOT NULL,
    first_missed_at BIGINT
);
CREATE INDEX leases_by_expiry ON leases (state, expires_at);

CREATE TABLE claim_requests (
    holder_id TEXT NOT NULL REFERENCES holders (id),
    request_id TEXT NOT NULL,
    token_digest TEXT NOT NULL,
    attempt_id TEXT NOT NULL REFERENCES attempts (id),
    created_at BIGINT NOT NULL,
    PRIMARY KEY (holder_id, request_id)
);
CREATE INDEX claim_requests_by_attempt ON claim_requests (attempt_id);

CREATE TABLE events (
    attempt_id TEXT NOT NULL REFERENCES attempts (id),
    seq BIGINT NOT NULL CHECK (seq > 0),
    kind TEXT NOT NULL,
    phase TEXT,
    -- The whole event, as in the attempt's trace file.
    body TEXT NOT NULL,
    stored_at BIGINT NOT NULL,
    PRIMARY KEY (attempt_id, seq)
);

CREATE TABLE gate_results (
    attempt_id TEXT NOT NULL REFERENCES attempts (id),
    -- The event that said it.
    seq BIGINT NOT NULL,
    item_number BIGINT NOT NULL,
    phase TEXT NOT NULL,
    gate TEXT NOT NULL,
    round BIGINT NOT NULL,
    passed BIGINT NOT NULL CHECK (passed IN (0, 1)),
    item TEXT NOT NULL,
    ok BIGINT NOT NULL CHECK (ok IN (0, 1)),
    note TEXT NOT NULL,
    recorded_at BIGINT NOT NULL,
    PRIMARY KEY (attempt_id, seq, item_number)
);

CREATE TABLE envelopes (
    attempt_id TEXT NOT NULL REFERENCES attempts (id),
    phase TEXT NOT NULL,
    -- For an invalid one the seq of its event, for a valid one the phase's entry.
    emission BIGINT NOT NULL CHECK (emission > 0),
    valid BIGINT NOT NULL CHECK (valid IN (0, 1)),
    body TEXT NOT NULL,
    parse_error TEXT,
    recorded_at BIGINT NOT NULL,
    PRIMARY KEY (attempt_id, phase, valid, emission)
);

-- Work trees that are kept on disk for a person to look at.
CREATE TABLE worktrees (
    attempt_id TEXT NOT NULL PRIMARY KEY REFERENCES attempts (id),
    holder_id TEXT NOT NULL REFERENCES holders (id),
    repository TEXT NOT NULL,
    path TEXT NOT NULL,
    reason TEXT NOT NULL,
    state TEXT NOT NULL CHECK (state IN ('retained', 'released', 'lost')),
    created_at BIGINT NOT NULL,
    updated_at BIGINT NOT NULL
);
CREATE INDEX worktrees_by_repository ON worktrees (holder_id, repository, state);
