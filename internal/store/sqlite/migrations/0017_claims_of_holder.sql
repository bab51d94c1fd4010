-- The claims of a holder are read for each call of a model; those of an agent that is removed are few.
DROP INDEX claims_of_agent;
CREATE INDEX claims_of_holder ON claims (holder);
