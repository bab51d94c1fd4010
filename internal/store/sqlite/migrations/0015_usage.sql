-- Calls of models by coding agents. Nothing of what was said in them is here. Money is in millionths of a US dollar,
-- -1 for none.
CREATE TABLE usage_calls (
	key            TEXT PRIMARY KEY, -- a hash of what makes it one call
	at_ms          BIGINT NOT NULL,
	project        TEXT NOT NULL, -- '' for none
	story_id       TEXT NOT NULL, -- '' for none
	holder         TEXT NOT NULL, -- who sent it, as claims have it
	by_whom        TEXT NOT NULL,
	agent_id       TEXT NOT NULL, -- '' unless an agent's command sent it
	client         TEXT NOT NULL,
	session        TEXT NOT NULL, -- '' for none
	model          TEXT NOT NULL,
	input          BIGINT NOT NULL,
	cache_read     BIGINT NOT NULL,
	cache_creation BIGINT NOT NULL,
	output         BIGINT NOT NULL,
	stated         BIGINT NOT NULL, -- by the client
	cost           BIGINT NOT NULL -- stated, or by our prices
);
CREATE INDEX usage_by_time ON usage_calls (at_ms);
CREATE INDEX usage_of_story ON usage_calls (project, story_id, at_ms);

-- What stories cost, by model, and in '' what is for none. It outlives the calls.
CREATE TABLE usage_sums (
	project        TEXT NOT NULL,
	story_id       TEXT NOT NULL,
	model          TEXT NOT NULL,
	usd            BIGINT NOT NULL,
	input          BIGINT NOT NULL,
	cache_read     BIGINT NOT NULL,
	cache_creation BIGINT NOT NULL,
	output         BIGINT NOT NULL,
	calls          BIGINT NOT NULL,
	unpriced       BIGINT NOT NULL, -- calls without a price
	first_ms       BIGINT NOT NULL,
	last_ms        BIGINT NOT NULL,
	PRIMARY KEY (project, story_id, model)
);
CREATE TABLE usage_sessions (
	project  TEXT NOT NULL,
	story_id TEXT NOT NULL,
	session  TEXT NOT NULL,
	PRIMARY KEY (project, story_id, session)
);

-- Claims that have ended within a day: calls are reported later than they are made.
CREATE TABLE ended_claims (
	project  TEXT NOT NULL,
	story_id TEXT NOT NULL,
	holder   TEXT NOT NULL,
	since_ms BIGINT NOT NULL,
	ended_ms BIGINT NOT NULL
);
CREATE INDEX ended_claims_of ON ended_claims (holder, ended_ms);
