-- The alerts that stand, in the order in which the leader noticed them: targets have positions in this list.
CREATE TABLE noted_alerts (
	key      TEXT PRIMARY KEY,
	kind     TEXT NOT NULL,
	project  TEXT NOT NULL,
	since_ms BIGINT NOT NULL,
	seq      BIGINT NOT NULL
);
ALTER TABLE targets DROP COLUMN told;
