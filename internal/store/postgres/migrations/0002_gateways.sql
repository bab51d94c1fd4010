-- What several gateways need to know of each other's changes.

-- An agent's row says by which transaction it was changed last, so that gateways read what is new only, and when, by the
-- clock of the database, the agent was seen last: those of gateways may be wrong.
ALTER TABLE agents
	ADD COLUMN changed BIGINT NOT NULL DEFAULT 0,
	ADD COLUMN seen_at TIMESTAMPTZ NOT NULL DEFAULT clock_timestamp();

CREATE FUNCTION note_agent_change() RETURNS trigger LANGUAGE plpgsql AS $$
BEGIN
	NEW.changed := pg_current_xact_id()::text::bigint;
	IF TG_OP = 'INSERT' OR NEW.last_seen_ms <> OLD.last_seen_ms THEN
		NEW.seen_at := clock_timestamp();
	END IF;
	RETURN NEW;
END $$;
CREATE TRIGGER agents_change BEFORE INSERT OR UPDATE ON agents FOR EACH ROW EXECUTE FUNCTION note_agent_change();

-- What names a project, or an agent's assignment, cannot outlive it: two gateways may change both at the same time. It is
-- checked at the commit.
ALTER TABLE agents
	ADD COLUMN project_ref TEXT COLLATE "C" GENERATED ALWAYS AS (NULLIF(assigned_project, '')) STORED
		REFERENCES projects (name) DEFERRABLE INITIALLY DEFERRED,
	ADD UNIQUE (id, assigned_project);
ALTER TABLE state
	ADD COLUMN project_ref TEXT COLLATE "C" GENERATED ALWAYS AS (CASE WHEN key = 'active_project' THEN value END) STORED
		REFERENCES projects (name) DEFERRABLE INITIALLY DEFERRED;
ALTER TABLE named_tokens
	ADD COLUMN agent_ref TEXT COLLATE "C" GENERATED ALWAYS AS (NULLIF(agent_id, '')) STORED,
	ADD FOREIGN KEY (agent_ref, project) REFERENCES agents (id, assigned_project) DEFERRABLE INITIALLY DEFERRED;

-- Sign-ins that wait for their callback.
CREATE TABLE sign_in_flows (
	state        BYTEA PRIMARY KEY, -- SHA-256
	verifier     TEXT NOT NULL,
	redirect_uri TEXT NOT NULL,
	began_at     TIMESTAMPTZ NOT NULL DEFAULT clock_timestamp()
);

-- What must not be acted on twice: logins that have had their callback, requests of chat servers.
CREATE TABLE seen_once (
	kind   TEXT NOT NULL,
	digest BYTEA NOT NULL, -- SHA-256
	at     TIMESTAMPTZ NOT NULL DEFAULT clock_timestamp(),
	PRIMARY KEY (kind, digest)
);
CREATE INDEX seen_once_by_time ON seen_once (kind, at);

-- Removals of projects that can still be undone.
CREATE TABLE removals (
	id      TEXT PRIMARY KEY,
	removal TEXT NOT NULL, -- JSON; it holds the project's token
	at      TIMESTAMPTZ NOT NULL DEFAULT clock_timestamp()
);

-- The bot: its configuration, what the gateway that runs it tells of it, and test messages that others ask that for.
CREATE TABLE bot_config (
	only_row BOOLEAN PRIMARY KEY DEFAULT TRUE CHECK (only_row),
	config   TEXT NOT NULL, -- JSON; not JSONB, which cannot hold every string
	version  BIGINT NOT NULL -- grows with each save
);
CREATE TABLE bot_run (
	only_row BOOLEAN PRIMARY KEY DEFAULT TRUE CHECK (only_row),
	run      TEXT NOT NULL, -- JSON
	at       TIMESTAMPTZ NOT NULL
);
CREATE TABLE bot_tests (
	id       TEXT PRIMARY KEY,
	asked_at TIMESTAMPTZ NOT NULL DEFAULT clock_timestamp(),
	taken    BOOLEAN NOT NULL DEFAULT FALSE,
	answer   TEXT -- NULL until it is there
);
