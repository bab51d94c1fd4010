-- Stories that came, as gateways saw them in pipelines: no event tells of that. Whichever gateway saves stays reads it here, and
-- so do all others.
CREATE TABLE arrivals (
	id         BIGINT GENERATED ALWAYS AS IDENTITY PRIMARY KEY,
	project    TEXT COLLATE "C" NOT NULL,
	story_id   TEXT COLLATE "C" NOT NULL,
	story_name TEXT COLLATE "C" NOT NULL,
	stage      TEXT COLLATE "C" NOT NULL,
	at_ms      BIGINT NOT NULL,
	told_by    BIGINT NOT NULL DEFAULT pg_current_xact_id()::text::bigint, -- the transaction
	told_at    TIMESTAMPTZ NOT NULL DEFAULT clock_timestamp(),
	saved      BOOLEAN NOT NULL DEFAULT FALSE -- with the stay that it began
);
CREATE INDEX arrivals_by_transaction ON arrivals (told_by);
