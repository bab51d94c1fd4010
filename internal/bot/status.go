package bot

import (
	"cmp"
	"context"
	"crypto/rand"
	"errors"
	"fmt"
	"math"
	"net/http"
	"slices"
	"strings"

	"switchyard/internal/clock"
	"switchyard/internal/domain"
)

// report sets the status to b's state, unless another bot is running by now.
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

func (s *Supervisor) Status() domain.BotStatus {
	b, status := s.current()
	status.Rooms, status.HeardMS = []string{}, s.heard.Load()
	if b == nil {
		return status
	}
	rooms := b.chat.Rooms()
	slices.SortStableFunc(rooms, func(a, b Room) int { return cmp.Compare(a.Name, b.Name) })
	status.Rooms = domain.Map(rooms, func(r Room) string { return r.Name })
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
	names := domain.Map(muted[:min(len(muted), maxMuted)], func(r Room) string {
		return r.Name + " (since " + r.MutedSince.UTC().Format("2 Jan 15:04") + " UTC)"
	})
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
	if _, status := s.current(); status.State == domain.BotOff {
		return math.MaxInt64, nil
	}
	o, err := Load(ctx, s.options.State, outboxKey, outbox{Cursor: math.MaxInt64})
	return o.Cursor, err
}

// SendTest sends a test message to every room. It returns BadGateway with the reason if any of them did not accept it.
func (s *Supervisor) SendTest(ctx context.Context) error {
	return s.send(ctx, "test", plainf("This is a test message from %s. What happens in your projects is posted here.",
		Bold("Switchyard")))
}

// Tell posts to every room what somebody tells the team. It returns BadGateway with the reason if any of them did not
// accept it.
func (s *Supervisor) Tell(ctx context.Context, t domain.Announcement) error {
	return s.send(ctx, "told", links(s.options.PublicURL).announcement(t))
}

func (s *Supervisor) send(ctx context.Context, kind string, message Message) error {
	b, _ := s.current()
	status := s.Status()
	switch {
	case b == nil || status.State != domain.BotConnected:
		return domain.Errorf(domain.BadGateway, "the bot is %s. %s", status.State, status.Detail)
	case len(status.Rooms) == 0:
		return domain.Errorf(domain.BadGateway, "%s", status.Detail)
	}
	key := kind + "-" + rand.Text()
	return b.call(ctx, func(ctx context.Context) error {
		var failed []string
		var causes []error
		for _, room := range b.chat.Rooms() {
			if _, err := b.chat.Send(ctx, room.ID, key, message); err != nil {
				failed = append(failed, room.Name)
				causes = append(causes, err)
			}
		}
		if len(failed) == 0 {
			return nil
		}
		reason := domain.MessageOf(causes[0])
		switch {
		case errors.Is(causes[0], ErrRefused):
			reason = "the room refused the message"
		case causes[0] == context.DeadlineExceeded: // the chat server is slow, or rate limits
			reason = "it took too long"
		}
		text := "not sent to " + strings.Join(failed, ", ") + ": " + reason
		return domain.WrapError(domain.BadGateway, errors.Join(causes...), text)
	})
}

// ServeHTTP answers a request of the chat network that the bot speaks.
func (s *Supervisor) ServeHTTP(w http.ResponseWriter, r *http.Request) {
	b, _ := s.current()
	if b != nil {
		if hook, ok := b.chat.(Webhook); ok {
			hook.ServeWebhook(w, r, func(ctx context.Context, q Question) (reply Message, err error) {
				err = b.call(ctx, func(ctx context.Context) error {
					reply, _ = b.answer(ctx, q)
					return nil
				})
				return reply, err
			})
			return
		}
	}
	PlainText(w, http.StatusNotFound, "no bot for this chat is set up")
}
