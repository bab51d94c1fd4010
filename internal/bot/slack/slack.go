// Package slack is the bot's transport for Slack: one workspace, in the channels that the bot is invited to.
package slack

import (
	"context"
	"errors"
	"log/slog"
	"maps"
	"slices"
	"strings"
	"sync"
	"time"

	"github.com/slack-go/slack"

	"switchyard/internal/bot"
	"switchyard/internal/domain"
)

const (
	// channelPause is the least time between two messages to a channel, which Slack prescribes.
	channelPause = time.Second
	// channelsAge is how old the list of channels may get while nothing is posted.
	channelsAge = 30 * time.Second
	// maxMentions is the most mentions that may wait for their answers.
	maxMentions = 64
	// maxPages is the most pages of channels that are read, of 200 each: a faulty server's cursor may never end.
	maxPages = 100
)

// chat is the transport for one workspace.
type chat struct {
	api      *slack.Client
	secret   domain.Secret // checks the signature of requests
	state    bot.State
	log      *slog.Logger
	mentions chan mention

	accepting sync.Mutex // held while a mention is queued, so that the queue has room for what is recorded

	mu       sync.Mutex
	user     string // the bot's own user id
	channels []bot.Room
	slots    map[string]chan time.Time // by channel: when it accepts the next message; empty while one is being sent
	muted    map[string]time.Time      // by channel that refused the last message: since when
}

func New(o bot.Options, settings map[string]domain.Secret) bot.Transport {
	client := bot.NewHTTPClient(o)
	client.Timeout = bot.CallLimit
	return &chat{
		api: slack.New(settings["team_bot_token"].Reveal(), slack.OptionHTTPClient(client),
			slack.OptionAPIURL(strings.TrimRight(o.TeamAPIURL, "/")+"/")),
		secret: settings["team_signing_secret"], state: o.State, log: o.Log, mentions: make(chan mention, maxMentions),
		slots: map[string]chan time.Time{}, muted: map[string]time.Time{},
	}
}

// Account is the same for every workspace: a batch names its channels, whose ids are globally unique.
func (t *chat) Account() string { return "bot.team" }

// Connect checks the token and its scopes, and reads which channels the bot is a member of.
func (t *chat) Connect(ctx context.Context) error {
	err := t.waitOut(ctx, func() error {
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

func (t *chat) Refresh(ctx context.Context) error {
	found := map[string]bot.Room{}
	parameters := slack.GetConversationsForUserParameters{
		Types: []string{"public_channel", "private_channel"}, ExcludeArchived: true, Limit: 200,
	}
	for range maxPages {
		var channels []slack.Channel
		var next string
		err := t.waitOut(ctx, func() (err error) {
			channels, next, err = t.api.GetConversationsForUserContext(ctx, &parameters)
			return err
		})
		if err != nil {
			return err
		}
		parameters.Cursor = next
		for _, channel := range channels {
			found[channel.ID] = bot.Room{ID: channel.ID, Name: "#" + bot.Short(channel.Name, bot.MaxName)}
		}
		if parameters.Cursor == "" {
			break
		}
	}
	t.mu.Lock()
	defer t.mu.Unlock()
	t.channels = slices.SortedFunc(maps.Values(found), func(a, b bot.Room) int { return strings.Compare(a.ID, b.ID) })
	return nil
}

func (t *chat) Rooms() []bot.Room {
	t.mu.Lock()
	defer t.mu.Unlock()
	rooms := slices.Clone(t.channels)
	for i := range rooms {
		rooms[i].MutedSince = t.muted[rooms[i].ID]
	}
	return rooms
}

func (t *chat) Hint() string {
	return "Connected, but in no channel. Write /invite with the bot's name in each channel that it should post to."
}

// Receive answers mentions and refreshes the list of channels.
func (t *chat) Receive(ctx context.Context, answer bot.Answer) error {
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
			t.mu.Lock()
			user := t.user // which is known only now
			t.mu.Unlock()
			if !m.Addressed && strings.Contains(m.Text, "<@"+user+">") {
				continue // Slack also sends a mention as an event of its own
			}
			m.Text = unformatted(m.Text, user)
			reply, ok := answer(ctx, m.Question)
			if !ok {
				continue
			}
			if _, err := t.post(ctx, m.Room, m.thread, reply); errors.Is(err, bot.ErrRefused) {
				t.log.WarnContext(ctx, "bot: reply refused", "channel", m.Room, "error", err)
			} else if err != nil {
				return err
			}
		}
	}
}
