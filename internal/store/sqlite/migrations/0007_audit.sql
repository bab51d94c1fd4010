-- Who changed what. Each row is written in the transaction of its change, where that is made in this database.
CREATE TABLE audit (
	id         INTEGER PRIMARY KEY,
	at_ms      BIGINT NOT NULL,
	who        TEXT NOT NULL,
	via        TEXT NOT NULL, -- the way in
	role       TEXT NOT NULL, -- '' where the change needed none
	action     TEXT NOT NULL,
	subject    TEXT NOT NULL,
	detail     TEXT NOT NULL, -- before and after, without secrets
	request_id TEXT NOT NULL  -- '' where no HTTP request asked for it
);
CREATE INDEX audit_by_time ON audit (at_ms);
CREATE INDEX audit_by_who ON audit (who, id);
CREATE INDEX audit_by_action ON audit (action, id);
