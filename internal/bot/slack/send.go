package slack

import (
	"context"
	"errors"
	"time"

	"github.com/slack-go/slack"

	"switchyard/internal/bot"
	"switchyard/internal/clock"
	"switchyard/internal/supervise"
)

// Send posts a message. Slack has no keys by which it would recognize a repeated one.
func (t *chat) Send(ctx context.Context, room, _ string, message bot.Message) error {
	return t.post(ctx, room, "", message)
}

// Posted returns false: Slack's messages have no keys.
func (t *chat) Posted(context.Context, string, string) (bool, error) { return false, nil }

func (t *chat) post(ctx context.Context, channel, thread string, message bot.Message) error {
	options := []slack.MsgOption{
		slack.MsgOptionText(Mrkdwn(message), false), slack.MsgOptionDisableLinkUnfurl(), slack.MsgOptionDisableMediaUnfurl(),
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
		return bot.Finish(ctx, func(ctx context.Context) error {
			_, _, err := t.api.PostMessageContext(ctx, channel, options...)
			return err
		})
	})
	t.setMuted(channel, errors.Is(err, bot.ErrRefused))
	return err
}

// setMuted records whether a channel refused the last message.
func (t *chat) setMuted(channel string, muted bool) {
	t.mu.Lock()
	defer t.mu.Unlock()
	if _, before := t.muted[channel]; !muted {
		delete(t.muted, channel)
	} else if !before {
		t.muted[channel] = clock.Now()
	}
}

// slot returns a channel's slot: a goroutine that receives from it may post, at or after the time received.
func (t *chat) slot(channel string) chan time.Time {
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

// waitOut makes a call, waits out rate limits, and gives its failure a message for people.
func (t *chat) waitOut(ctx context.Context, call func() error) error {
	return explain(bot.WaitOut(ctx, call, func(err error) (time.Duration, bool) {
		limited, is := errors.AsType[*slack.RateLimitedError](err)
		if !is {
			return 0, false
		}
		return limited.RetryAfter, true
	}))
}
