-- Logins that have not ended. Their cookies hold the id, signed and encrypted.
CREATE TABLE sessions (
	id            TEXT PRIMARY KEY,
	who           TEXT NOT NULL,
	via           TEXT NOT NULL, -- the way in
	role          TEXT NOT NULL,
	created_at_ms BIGINT NOT NULL,
	last_seen_ms  BIGINT NOT NULL
);
