-- The trigrams that event_words has, to find those that begin with one or two characters. It is a view that takes no space.
CREATE VIRTUAL TABLE event_trigrams USING fts5vocab (event_words, 'row');
