package bot

import (
	"cmp"
	"context"
	"encoding/json"
	"fmt"
	"math"
	"slices"
	"strings"

	"switchyard/internal/clock"
	"switchyard/internal/domain"
)

func (s *Supervisor) begin(b *bot, status domain.BotStatus) {
	s.mu.Lock()
	defer s.mu.Unlock()
	status.Transport, status.Since = cmp.Or(status.Transport, s.status.Transport), clock.Now()
	s.running, s.status = b, status
}

// report sets the status to b's state, unless another bot runs by now.
func (s *Supervisor) report(b *bot, state domain.BotState, detail string) {
	s.mu.Lock()
	defer s.mu.Unlock()
	if s.running != b {
		return
	}
	if s.status.State != state {
		s.status.Since = clock.Now()
		s.options.Log.Info("bot", "transport", s.status.Transport, "state", state)
	}
	s.status.State, s.status.Detail = state, detail
}

// Status returns the bot's live state.
func (s *Supervisor) Status() domain.BotStatus {
	b, status := s.current()
	status.Rooms = []string{}
	if b == nil {
		return status
	}
	rooms := b.chat.Rooms()
	slices.SortStableFunc(rooms, func(a, b Room) int { return cmp.Compare(a.Name, b.Name) })
	for _, room := range rooms {
		status.Rooms = append(status.Rooms, room.Name)
	}
	if status.State == domain.BotConnected {
		status.Detail = mutedDetail(rooms)
		if len(rooms) == 0 {
			status.Detail = b.chat.Hint()
		}
	}
	return status
}

// maxMuted is the most rooms that are listed as not accepting messages.
const maxMuted = 10

// mutedDetail says in which rooms the bot may not post, "" for none.
func mutedDetail(rooms []Room) string {
	muted := slices.DeleteFunc(slices.Clone(rooms), func(r Room) bool { return r.MutedSince.IsZero() })
	if len(muted) == 0 {
		return ""
	}
	var names []string
	for _, room := range muted[:min(len(muted), maxMuted)] {
		names = append(names, room.Name+" (since "+room.MutedSince.UTC().Format("2 Jan 15:04")+" UTC)")
	}
	detail := "The bot may not post in " + strings.Join(names, ", ")
	if hidden := len(muted) - len(names); hidden > 0 {
		detail += fmt.Sprintf(" and %s", domain.Count(hidden, "other room", "other rooms"))
	}
	return detail + "."
}

func (s *Supervisor) current() (*bot, domain.BotStatus) {
	s.mu.Lock()
	defer s.mu.Unlock()
	return s.running, s.status
}

// Posted returns the id up to which the bot has posted the stream, math.MaxInt64 while it is off.
func (s *Supervisor) Posted(ctx context.Context) (id int64, err error) {
	if s.Status().State == domain.BotOff {
		return math.MaxInt64, nil
	}
	return s.Cursor(ctx)
}

// Cursor returns the id up to which the bot has posted the stream, whether it runs or not.
func (s *Supervisor) Cursor(ctx context.Context) (id int64, err error) {
	stored, err := s.options.State.State(ctx, outboxKey)
	if err != nil || stored == "" {
		return math.MaxInt64, err
	}
	var o outbox
	err = json.Unmarshal([]byte(stored), &o)
	return o.Cursor, err
}
