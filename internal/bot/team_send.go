package bot

import (
	"context"
	"errors"
	"time"

	"github.com/slack-go/slack"

	"switchyard/internal/clock"
	"switchyard/internal/supervise"
)

// Send posts a message. Slack has no keys by which it would recognize a repeated one.
func (t *team) Send(ctx context.Context, room, _ string, message Message) error {
	return t.post(ctx, room, "", message)
}

// Posted returns false: Slack's messages have no keys.
func (t *team) Posted(context.Context, string, string) (bool, error) { return false, nil }

func (t *team) post(ctx context.Context, channel, thread string, message Message) error {
	options := []slack.MsgOption{
		slack.MsgOptionText(message.Mrkdwn(), false), slack.MsgOptionDisableLinkUnfurl(), slack.MsgOptionDisableMediaUnfurl(),
	}
	if thread != "" {
		options = append(options, slack.MsgOptionTS(thread))
	}
	slot := t.slot(channel)
	select {
	case <-ctx.Done():
		return ctx.Err()
	case free := <-slot:
		defer func() { slot <- time.Now().Add(channelPause) }()
		if !supervise.Sleep(ctx, time.Until(free)) {
			return ctx.Err()
		}
	}
	err := t.waitOut(ctx, func() error {
		return finish(ctx, func(ctx context.Context) error {
			_, _, err := t.api.PostMessageContext(ctx, channel, options...)
			return err
		})
	})
	t.setMuted(channel, errors.Is(err, errRefused))
	return err
}

// setMuted records whether a channel refused the last message.
func (t *team) setMuted(channel string, muted bool) {
	t.mu.Lock()
	defer t.mu.Unlock()
	if _, before := t.muted[channel]; !muted {
		delete(t.muted, channel)
	} else if !before {
		t.muted[channel] = clock.Now()
	}
}

// slot returns a channel's slot: a goroutine that receives from it may post, at or after the time received.
func (t *team) slot(channel string) chan time.Time {
	t.mu.Lock()
	defer t.mu.Unlock()
	slot := t.slots[channel]
	if slot == nil {
		slot = make(chan time.Time, 1)
		slot <- time.Time{}
		t.slots[channel] = slot
	}
	return slot
}

// waitOut repeats a call for as long as Slack answers with a rate limit, and gives its failure a message for people.
func (t *team) waitOut(ctx context.Context, call func() error) error {
	for {
		err := call()
		var limited *slack.RateLimitedError
		if !errors.As(err, &limited) {
			return explainTeam(err)
		}
		if !supervise.Sleep(ctx, max(minRetry, limited.RetryAfter)) {
			return ctx.Err()
		}
	}
}
