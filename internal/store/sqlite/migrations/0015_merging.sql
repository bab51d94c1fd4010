-- Segments of the index are merged 16 at a time: each page is written half as often as with 4, and the largest ones, of which a word that
-- all texts have is written in one piece, hardly ever.
INSERT INTO event_words (event_words, rank) VALUES ('usermerge', 16);
