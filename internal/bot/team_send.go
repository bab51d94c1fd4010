package bot

import (
	"context"
	"errors"
	"time"

	"github.com/slack-go/slack"

	"switchyard/internal/supervise"
)

// Send posts a message. Slack takes no key by which it would know one that it has already.
func (t *team) Send(ctx context.Context, room, _ string, message Message) error {
	return t.post(ctx, room, "", message)
}

func (t *team) post(ctx context.Context, channel, thread string, message Message) error {
	options := []slack.MsgOption{
		slack.MsgOptionText(message.Mrkdwn(), false), slack.MsgOptionDisableLinkUnfurl(), slack.MsgOptionDisableMediaUnfurl(),
	}
	if thread != "" {
		options = append(options, slack.MsgOptionTS(thread))
	}
	turn := t.turn(channel)
	select {
	case <-ctx.Done():
		return ctx.Err()
	case free := <-turn:
		defer func() { turn <- time.Now().Add(channelPause) }()
		if !supervise.Sleep(ctx, time.Until(free)) {
			return ctx.Err()
		}
	}
	return t.obeying(ctx, func() error {
		_, _, err := t.api.PostMessageContext(ctx, channel, options...)
		return err
	})
}

func (t *team) turn(channel string) chan time.Time {
	t.mu.Lock()
	defer t.mu.Unlock()
	turn := t.turns[channel]
	if turn == nil {
		turn = make(chan time.Time, 1)
		turn <- time.Time{}
		t.turns[channel] = turn
	}
	return turn
}

// obeying makes a call again for as long as Slack asks to wait, and gives its failure a message for people.
func (t *team) obeying(ctx context.Context, call func() error) error {
	for {
		err := call()
		var limited *slack.RateLimitedError
		if !errors.As(err, &limited) {
			return explainTeam(err)
		}
		if !supervise.Sleep(ctx, limited.RetryAfter) {
			return ctx.Err()
		}
	}
}
