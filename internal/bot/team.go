package bot

import (
	"context"
	"errors"
	"fmt"
	"log/slog"
	"maps"
	"net/url"
	"slices"
	"strings"
	"sync"
	"time"

	"github.com/slack-go/slack"

	"switchyard/internal/domain"
	"switchyard/internal/supervise"
)

const (
	// channelPause is the least time between two messages to a channel, which Slack asks for.
	channelPause = time.Second
	// channelsAge is how old the list of channels may become while nothing is posted.
	channelsAge = 30 * time.Second
	// maxMentions is the number of mentions that may wait for their answers.
	maxMentions = 64
)

// team is the transport of Slack's API, for one workspace. What people say comes in through TeamEvents and
// TeamCommands of the Supervisor.
type team struct {
	api      *slack.Client
	secret   domain.Secret // checks the signature of what comes in
	state    State
	log      *slog.Logger
	mentions chan mention
	seen     seen

	mu       sync.Mutex
	user     string // the bot's own user id
	channels []Room
	turns    map[string]chan time.Time // each channel's: when it takes the next message; absent while one is under way
}

// mention is a question that was said in a channel, with its text as Slack writes it.
type mention struct {
	Question
	channel, thread string
}

func newTeam(o Options, token, secret domain.Secret) *team {
	client := newHTTPClient()
	client.Timeout = callLimit
	client.Transport = limited{client.Transport}
	return &team{
		api: slack.New(token.Reveal(), slack.OptionHTTPClient(client),
			slack.OptionAPIURL(strings.TrimRight(o.TeamAPIURL, "/")+"/")),
		secret: secret, state: o.State, log: o.Log,
		mentions: make(chan mention, maxMentions), seen: seen{state: o.State}, turns: map[string]chan time.Time{},
	}
}

// Account is the same for every workspace: a batch names the channels that it goes to, whose ids are unique.
func (t *team) Account() string { return "bot.team" }

// Connect checks the token and what it allows, and reads which channels the bot is a member of.
func (t *team) Connect(ctx context.Context) error {
	err := t.obeying(ctx, func() error {
		answer, err := t.api.AuthTestContext(ctx)
		if err == nil {
			t.mu.Lock()
			t.user = answer.UserID
			t.mu.Unlock()
		}
		return err
	})
	if err != nil {
		return err
	}
	return t.Refresh(ctx)
}

// Refresh asks which channels the bot is a member of.
func (t *team) Refresh(ctx context.Context) error {
	found := map[string]Room{}
	parameters := slack.GetConversationsForUserParameters{
		Types: []string{"public_channel", "private_channel"}, ExcludeArchived: true, Limit: 200,
	}
	for {
		var channels []slack.Channel
		var next string
		err := t.obeying(ctx, func() (err error) {
			channels, next, err = t.api.GetConversationsForUserContext(ctx, &parameters)
			return err
		})
		if err != nil {
			return err
		}
		parameters.Cursor = next
		for _, channel := range channels {
			found[channel.ID] = Room{ID: channel.ID, Name: "#" + short(channel.Name, maxName)}
		}
		if parameters.Cursor == "" {
			break
		}
	}
	t.mu.Lock()
	defer t.mu.Unlock()
	t.channels = slices.SortedFunc(maps.Values(found), func(a, b Room) int { return strings.Compare(a.ID, b.ID) })
	return nil
}

// Rooms returns the channels that the bot is a member of.
func (t *team) Rooms() []Room {
	t.mu.Lock()
	defer t.mu.Unlock()
	return slices.Clone(t.channels)
}

// Hint says how to get the bot into a channel.
func (t *team) Hint() string {
	return "Connected, but in no channel. Write /invite with the bot's name in each channel that it is to post to."
}

// Receive answers mentions and keeps the list of channels fresh.
func (t *team) Receive(ctx context.Context, answer Answer) error {
	refresh := time.NewTicker(channelsAge)
	defer refresh.Stop()
	for {
		select {
		case <-ctx.Done():
			return ctx.Err()
		case <-refresh.C:
			if err := t.Refresh(ctx); err != nil {
				return err
			}
		case m := <-t.mentions:
			m.Text = t.unmarked(m.Text) // not before the bot knows its own id
			reply, ok := answer(ctx, m.Question)
			if !ok {
				continue
			}
			if err := t.post(ctx, m.channel, m.thread, reply); errors.Is(err, errRefused) {
				t.log.WarnContext(ctx, "bot: reply refused", "channel", m.channel, "error", err)
			} else if err != nil {
				return err
			}
		}
	}
}

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

// Slack's words for a channel that does not take a message, and for a token that is of no use.
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

func explainTeam(err error) error {
	var refused slack.SlackErrorResponse
	var failed slack.StatusCodeError
	switch {
	case err == nil || errors.Is(err, context.Canceled):
		return err
	case errors.As(err, &refused) && slices.Contains(channelErrors, refused.Err):
		return fmt.Errorf("%w: %w", errRefused, err)
	case errors.As(err, &refused) && slices.Contains(tokenErrors, refused.Err):
		return domain.WrapError(domain.Unauthorized, err,
			"Slack refuses the bot token ("+refused.Err+"). Copy the Bot User OAuth Token, which begins with xoxb-, from the app's OAuth & Permissions page, and save.")
	case errors.As(err, &refused) && refused.Err == "missing_scope":
		return domain.WrapError(domain.Unauthorized, err, fmt.Sprintf(
			"The Slack app lacks the scope %s. Add it on the app's OAuth & Permissions page, reinstall the app, and save its new token.", short(refused.Needed, maxName)))
	case errors.As(err, &refused):
		return domain.WrapError(domain.BadGateway, err, "Slack answers "+short(refused.Err, maxName)+". The bot keeps trying.")
	case errors.As(err, &failed):
		return domain.WrapError(domain.BadGateway, err, fmt.Sprintf("Slack answers with status %d. The bot keeps trying.", failed.Code))
	}
	var wrapped *url.Error
	if errors.As(err, &wrapped) {
		if address, parseErr := url.Parse(wrapped.URL); parseErr == nil {
			return unreachable(err, address.Host)
		}
	}
	return domain.WrapError(domain.BadGateway, err, "Slack's answer cannot be understood. The bot keeps trying.")
}
