package poll

import (
	"context"
	"hash/maphash"
	"log/slog"

	"switchyard/internal/upstream"
)

// maxRefused is the most different refused records that are logged for one feed.
const maxRefused = 100

// refused holds the hashes of a feed's refused records that have been logged.
type refused map[uint64]bool

// log logs each refused record once, however often the server sends it.
func (r refused) log(ctx context.Context, log *slog.Logger, project string, records []upstream.RefusedRecord) {
	for _, record := range records {
		key := maphash.Bytes(seed, record.JSON)
		if r[key] || len(r) == maxRefused {
			continue
		}
		r[key] = true
		log.WarnContext(ctx, "record of a feed skipped", "project", project, "error", record.Why)
	}
}
