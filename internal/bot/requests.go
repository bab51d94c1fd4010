package bot

import (
	"context"
	"crypto/rand"
	"errors"
	"net/http"
	"strings"

	"switchyard/internal/domain"
)

// SendTest sends a test message to every room. It returns BadGateway with the reason if any of them did not accept it.
func (s *Supervisor) SendTest(ctx context.Context) error {
	b, _ := s.current()
	status := s.Status()
	switch {
	case b == nil || status.State != domain.BotConnected:
		return domain.Errorf(domain.BadGateway, "the bot is %s. %s", status.State, status.Detail)
	case len(status.Rooms) == 0:
		return domain.Errorf(domain.BadGateway, "%s", status.Detail)
	}
	message := say("This is a test message from %s. What happens in your projects is posted here.", Bold("Switchyard"))
	key := "test-" + rand.Text()
	return b.call(ctx, func(ctx context.Context) error {
		var failed []string
		var causes []error
		for _, room := range b.chat.Rooms() {
			if err := b.chat.Send(ctx, room.ID, key, message); err != nil {
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
