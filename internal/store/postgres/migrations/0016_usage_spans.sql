-- Sums of usage_calls by quarter of an hour, with which days begin in every time zone: reports add these up.
CREATE TABLE usage_spans (
	span           BIGINT NOT NULL, -- at_ms / 900000
	project        TEXT NOT NULL,
	story_id       TEXT NOT NULL,
	holder         TEXT NOT NULL,
	client         TEXT NOT NULL,
	session        TEXT NOT NULL,
	model          TEXT NOT NULL,
	by_whom        TEXT NOT NULL,
	agent_id       TEXT NOT NULL,
	usd            BIGINT NOT NULL,
	input          BIGINT NOT NULL,
	cache_read     BIGINT NOT NULL,
	cache_creation BIGINT NOT NULL,
	output         BIGINT NOT NULL,
	calls          BIGINT NOT NULL,
	unpriced       BIGINT NOT NULL,
	last_ms        BIGINT NOT NULL,
	PRIMARY KEY (span, project, story_id, holder, client, session, model)
);
INSERT INTO usage_spans SELECT at_ms / 900000, project, story_id, holder, client, session, model, MAX(by_whom),
		MAX(agent_id), SUM(CASE WHEN cost < 0 THEN 0 ELSE cost END), SUM(input), SUM(cache_read), SUM(cache_creation),
		SUM(output), COUNT(*), SUM(CASE WHEN cost < 0 THEN 1 ELSE 0 END), MAX(at_ms)
	FROM usage_calls GROUP BY 1, project, story_id, holder, client, session, model;
