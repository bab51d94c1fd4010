-- What was read of projects' histories in git. Their moves are in stage_visits, with source git.
CREATE TABLE histories (
	project  TEXT COLLATE "C" PRIMARY KEY,
	id       TEXT NOT NULL, -- that its server gave it
	since_ms BIGINT NOT NULL, -- the first move, 0 for none
	live_ms  BIGINT NOT NULL, -- since when the project has been followed
	changed  BIGINT NOT NULL DEFAULT pg_current_xact_id()::text::bigint -- as in stage_visits
);
