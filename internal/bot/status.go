package bot

import (
	"cmp"
	"slices"
	"time"

	"switchyard/internal/domain"
)

func (s *Supervisor) begin(transport domain.BotTransport, b *bot, state domain.BotState, detail string) {
	s.mu.Lock()
	defer s.mu.Unlock()
	s.running = b
	s.status = domain.BotStatus{
		Transport: cmp.Or(transport, s.status.Transport), State: state, Detail: detail, SinceMS: time.Now().UnixMilli(),
	}
}

// report notes the state of b, unless another has taken its place.
func (s *Supervisor) report(b *bot, state domain.BotState, detail string) {
	s.mu.Lock()
	defer s.mu.Unlock()
	if s.running != b {
		return
	}
	if s.status.State != state {
		s.status.SinceMS = time.Now().UnixMilli()
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
	for _, room := range b.chat.Rooms() {
		status.Rooms = append(status.Rooms, room.Name)
	}
	slices.Sort(status.Rooms)
	if status.State == domain.BotConnected && len(status.Rooms) == 0 {
		status.Detail = b.chat.Hint()
	}
	return status
}

func (s *Supervisor) current() (*bot, domain.BotStatus) {
	s.mu.Lock()
	defer s.mu.Unlock()
	return s.running, s.status
}
