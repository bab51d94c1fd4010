-- Gateways that are alive, or were until lately.
CREATE TABLE gateways (
	id         TEXT COLLATE "C" PRIMARY KEY,
	name       TEXT NOT NULL, -- of its host
	started_at TIMESTAMPTZ NOT NULL,
	until      TIMESTAMPTZ NOT NULL -- the end of its lease
);

-- Which gateway does what. Writes check gateway and epoch in their own transaction.
CREATE TABLE duties (
	name    TEXT COLLATE "C" PRIMARY KEY,
	gateway TEXT COLLATE "C" NOT NULL, -- '' for none
	epoch   BIGINT NOT NULL, -- grows with each grant
	since   TIMESTAMPTZ NOT NULL
);
CREATE INDEX duties_by_gateway ON duties (gateway);
