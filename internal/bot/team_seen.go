package bot

import (
	"context"
	"encoding/json"
	"slices"
	"sync"
	"time"
)

// Requests are remembered for longer than Slack repeats them (an hour) and their signatures are valid (five minutes).
const (
	seenKey = "bot.team.seen"
	seenFor = 2 * time.Hour
	maxSeen = 1000
)

// Seen remembers the handled requests of chat servers.
type Seen interface {
	// RecordBotRequest records a request and reports whether it is new.
	RecordBotRequest(ctx context.Context, id string) (first bool, err error)
}

// seen remembers the handled requests, across restarts.
type seen struct {
	shared Seen // nil for a single gateway

	state State

	mu      sync.Mutex
	entries []seenEntry // nil before the first use
}

type seenEntry struct {
	ID   string `json:"id"`
	AtMS int64  `json:"at_ms"`
}

// first records id and reports whether it is new.
func (s *seen) first(ctx context.Context, id string) (bool, error) {
	s.mu.Lock()
	defer s.mu.Unlock()
	return s.note(ctx, id)
}

// note is first for a caller that holds the lock.
func (s *seen) note(ctx context.Context, id string) (bool, error) {
	if s.shared != nil {
		return s.shared.RecordBotRequest(ctx, id)
	}
	if s.entries == nil {
		stored, err := s.state.State(ctx, seenKey)
		if err != nil {
			return false, err
		}
		s.entries = []seenEntry{}
		if stored != "" {
			if err := json.Unmarshal([]byte(stored), &s.entries); err != nil {
				return false, err
			}
		}
	}
	if slices.ContainsFunc(s.entries, func(e seenEntry) bool { return e.ID == id }) {
		return false, nil
	}
	now := time.Now()
	entries := slices.DeleteFunc(slices.Clone(s.entries), func(e seenEntry) bool { return now.Sub(time.UnixMilli(e.AtMS)) > seenFor })
	entries = append(entries, seenEntry{id, now.UnixMilli()})
	entries = entries[max(0, len(entries)-maxSeen):]
	text, err := json.Marshal(entries)
	if err != nil {
		return false, err
	}
	if err := s.state.SetState(ctx, seenKey, string(text)); err != nil {
		return false, err
	}
	s.entries = entries
	return true, nil
}
