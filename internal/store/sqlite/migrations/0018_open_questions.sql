-- Open questions are counted without a look at what they ask, which can be hundreds of megabytes.
DROP INDEX questions_by_end;
DROP INDEX open_questions;
CREATE INDEX questions_by_end ON questions (ended_at_ms, expires_at_ms);
