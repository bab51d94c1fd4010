package poll

import "switchyard/internal/domain"

// split splits a read into parts of at most size records, each with the position that it leads to, so that storing a
// huge feed does not hold up the others.
func split(read domain.FeedRead, size int) []domain.FeedRead {
	var parts []domain.FeedRead
	for len(read.Records) > size {
		part := read
		part.Records, read.Records = read.Records[:size], read.Records[size:]
		// The remaining records have later stamps, or the same one.
		since := max(min(part.Records[size-1].At.UnixMilli(), read.Records[0].At.UnixMilli()-1), 0)
		part.Cursor.Since = min(since, read.Cursor.Since)
		part.Cursor.Sequence = max(part.Cursor.Sequence-int64(len(read.Records)), 0)
		parts = append(parts, part)
	}
	return append(parts, read)
}
