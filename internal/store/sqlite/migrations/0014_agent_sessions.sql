-- Sessions of coding agents, as their hooks tell.
CREATE TABLE agent_sessions (
	asker   TEXT NOT NULL, -- an account: whose token the hooks came with
	id      TEXT NOT NULL, -- the client's own
	last_ms BIGINT NOT NULL, -- when it was last heard: a later state replaces an earlier one
	state   TEXT NOT NULL, -- JSON
	PRIMARY KEY (asker, id)
);
