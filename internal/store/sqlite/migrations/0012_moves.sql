-- The moves of all projects before a time, in one value: what charts are drawn from is there right after a start. There is one
-- row, or none when the stays must be read instead.
CREATE TABLE moves (
	id        INTEGER PRIMARY KEY,
	before_ms BIGINT NOT NULL,
	moves     BLOB NOT NULL
);
