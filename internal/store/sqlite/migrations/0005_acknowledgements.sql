-- Who takes care of which alert, as long as its trouble lasts.
CREATE TABLE acknowledgements (
	key      TEXT PRIMARY KEY,
	project  TEXT NOT NULL, -- '' for none
	text     TEXT NOT NULL, -- the alert's; another one ends it
	by_whom  TEXT NOT NULL,
	at_ms    BIGINT NOT NULL,
	until_ms BIGINT NOT NULL -- 0 for as long as the trouble lasts
);
