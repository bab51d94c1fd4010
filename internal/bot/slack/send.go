package slack

import (
	"context"
	"errors"
	"fmt"
	"html"
	"net/url"
	"regexp"
	"slices"
	"strings"
	"time"
	"unicode"

	"github.com/slack-go/slack"
	"github.com/slack-go/slack/slackutilsx"

	"switchyard/internal/bot"
	"switchyard/internal/clock"
	"switchyard/internal/domain"
	"switchyard/internal/supervise"
)

// Send posts a message. Slack has no keys that would identify a repeated one.
func (t *chat) Send(ctx context.Context, room, _ string, message bot.Message) (id string, err error) {
	return t.post(ctx, room, "", message)
}

// Posted returns false: Slack's messages have no keys.
func (t *chat) Posted(context.Context, string, string) (bool, error) { return false, nil }

// messageID returns the id of a message, whose time is unique in its channel.
func messageID(channel, time string) string { return channel + "/" + time }

func (t *chat) post(ctx context.Context, channel, thread string, message bot.Message) (id string, err error) {
	options := []slack.MsgOption{
		slack.MsgOptionText(Mrkdwn(message), false), slack.MsgOptionDisableLinkUnfurl(), slack.MsgOptionDisableMediaUnfurl(),
	}
	if thread != "" {
		options = append(options, slack.MsgOptionTS(thread))
	}
	slot := t.slot(channel)
	select {
	case <-ctx.Done():
		return "", ctx.Err()
	case free := <-slot:
		defer func() { slot <- time.Now().Add(channelPause) }()
		if !supervise.Sleep(ctx, time.Until(free)) {
			return "", ctx.Err()
		}
	}
	err = t.waitOut(ctx, func() error {
		return bot.Finish(ctx, func(ctx context.Context) error {
			to, time, err := t.api.PostMessageContext(ctx, channel, options...)
			id = messageID(to, time)
			return err
		})
	})
	t.setMuted(channel, errors.Is(err, bot.ErrRefused))
	if err != nil {
		return "", err
	}
	return id, nil
}

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
		limited, ok := errors.AsType[*slack.RateLimitedError](err)
		if !ok {
			return 0, false
		}
		return limited.RetryAfter, true
	}))
}

// Slack's error codes for a channel that does not accept a message, and for a token that does not work.
var (
	channelErrors = []string{
		"channel_not_found", "not_in_channel", "is_archived", "restricted_action", "restricted_action_read_only_channel",
		"restricted_action_thread_only_channel", "restricted_action_non_threadable_channel", "msg_too_long", "no_text",
		"invalid_blocks", "thread_not_found", "cannot_reply_to_message", "message_limit_exceeded",
	}
	tokenErrors = []string{
		"invalid_auth", "not_authed", "account_inactive", "token_revoked", "token_expired", "not_allowed_token_type",
		"no_permission", "org_login_required", "ekm_access_denied", "access_denied", "two_factor_setup_required",
	}
)

func explain(err error) error {
	refused, isRefused := errors.AsType[slack.SlackErrorResponse](err)
	failed, isFailed := errors.AsType[slack.StatusCodeError](err)
	unanswered, isUnanswered := errors.AsType[*url.Error](err)
	switch {
	case err == nil || errors.Is(err, context.Canceled):
		return err
	case slices.Contains(channelErrors, refused.Err):
		return fmt.Errorf("%w: %w", bot.ErrRefused, err)
	case slices.Contains(tokenErrors, refused.Err):
		return domain.WrapError(domain.Unauthorized, err,
			"Slack refuses the bot token ("+refused.Err+"). Copy the Bot User OAuth Token, "+
				"which begins with xoxb-, from the app's OAuth & Permissions page, and save.")
	case refused.Err == "missing_scope":
		return domain.WrapError(domain.Unauthorized, err,
			"The Slack app lacks the scope "+bot.Short(refused.Needed, bot.MaxName)+
				". Add it on the app's OAuth & Permissions page, reinstall the app, and save its new token.")
	case isRefused:
		return domain.WrapError(domain.BadGateway, err,
			"Slack answers "+bot.Short(refused.Err, bot.MaxName)+". The bot keeps trying.")
	case isFailed:
		return domain.WrapError(domain.BadGateway, err,
			fmt.Sprintf("Slack answers with status %d. The bot keeps trying.", failed.Code))
	case isUnanswered:
		if address, parseErr := url.Parse(unanswered.URL); parseErr == nil {
			return bot.Unreachable(err, address.Host)
		}
	}
	return domain.WrapError(domain.BadGateway, err, "Slack's answer cannot be understood. The bot keeps trying.")
}

// Mrkdwn renders m in Slack's markup. It has escapes only for &, < and >, which mentions and links consist of;
// the characters for bold, italic, struck and code text are replaced by look-alikes.
func Mrkdwn(m bot.Message) string {
	return m.Render("\n", func(s bot.Span) string {
		text := slackutilsx.EscapeMessage(s.Text)
		switch {
		case text == "":
			return ""
		case s.Link != "":
			return "<" + slackutilsx.EscapeMessage(s.Link) + "|" + escape(text) + ">"
		case s.Style == bot.CodeStyle:
			return "`" + strings.ReplaceAll(text, "`", "ˋ") + "`"
		case s.Style == bot.BoldStyle:
			return "*" + escape(text) + "*"
		}
		return escape(text)
	})
}

var signs = strings.NewReplacer("*", "∗", "~", "∼", "`", "ˋ")

// escape replaces the characters that Slack would read as formatting. An underscore formats only at the edge of a
// word.
func escape(text string) string {
	runes := []rune(signs.Replace(text))
	inWord := func(i int) bool {
		return i >= 0 && i < len(runes) && (unicode.IsLetter(runes[i]) || unicode.IsDigit(runes[i]) || runes[i] == '_')
	}
	for i, r := range runes {
		if r == '_' && !(inWord(i-1) && inWord(i+1)) {
			runes[i] = 'ˍ'
		}
	}
	return string(runes)
}

// markup matches the mentions and links in Slack's texts: <@U1>, <#C1|general>, <http://a.example|a>.
var markup = regexp.MustCompile(`<([^<>|]*)(?:\|([^<>]*))?>`)

func unformatted(text, user string) string {
	text = markup.ReplaceAllStringFunc(text, func(mark string) string {
		parts := markup.FindStringSubmatch(mark)
		switch {
		case user != "" && parts[1] == "@"+user:
			return " "
		case parts[2] != "":
			return parts[2]
		}
		return strings.TrimLeft(parts[1], "@#!")
	})
	return strings.TrimLeft(html.UnescapeString(text), " :,")
}
