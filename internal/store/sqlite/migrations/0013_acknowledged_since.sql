-- When the trouble began that was acknowledged: one that began later is another one. 0 where that is not known.
ALTER TABLE acknowledgements ADD COLUMN since_ms BIGINT NOT NULL DEFAULT 0;
