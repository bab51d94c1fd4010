-- Each writing transaction merges a little of the index; much of it at once, which takes up to seconds, only where that is not enough.
INSERT INTO event_words (event_words, rank) VALUES ('automerge', 0);
INSERT INTO event_words (event_words, rank) VALUES ('crisismerge', 500);
