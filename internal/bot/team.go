package bot

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

	"switchyard/internal/domain"
)

const (
	// channelPause is the least time between two messages to a channel, which Slack prescribes.
	channelPause = time.Second
	// channelsAge is the oldest that the list of channels gets while nothing is posted.
	channelsAge = 30 * time.Second
	// maxMentions is the most mentions that may wait for their answers.
	maxMentions = 64
)

// team is the transport for one Slack workspace. It receives messages through the Supervisor's TeamEvents and
// TeamCommands.
type team struct {
	api      *slack.Client
	secret   domain.Secret // checks the signature of requests
	state    State
	log      *slog.Logger
	mentions chan mention

	accepting sync.Mutex // held while a mention is queued, so that the queue has room for what is recorded

	mu       sync.Mutex
	user     string // the bot's own user id
	channels []Room
	slots    map[string]chan time.Time // by channel: when it accepts the next message; empty while one is being sent
	muted    map[string]time.Time      // by channel that refused the last message: since when
}

func newTeam(o Options, token, secret domain.Secret) *team {
	client := newHTTPClient()
	client.Timeout = callLimit
	client.Transport = limited{client.Transport}
	return &team{
		api: slack.New(token.Reveal(), slack.OptionHTTPClient(client),
			slack.OptionAPIURL(strings.TrimRight(o.TeamAPIURL, "/")+"/")),
		secret: secret, state: o.State, log: o.Log,
		mentions: make(chan mention, maxMentions), slots: map[string]chan time.Time{},
		muted: map[string]time.Time{},
	}
}

// Account is the same for every workspace: a batch names its channels, whose ids are globally unique.
func (t *team) Account() string { return "bot.team" }

// Connect checks the token and its scopes, and reads which channels the bot is a member of.
func (t *team) Connect(ctx context.Context) error {
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

// Refresh reads which channels the bot is a member of.
func (t *team) Refresh(ctx context.Context) error {
	found := map[string]Room{}
	parameters := slack.GetConversationsForUserParameters{
		Types: []string{"public_channel", "private_channel"}, ExcludeArchived: true, Limit: 200,
	}
	for {
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
	rooms := slices.Clone(t.channels)
	for i := range rooms {
		rooms[i].MutedSince = t.muted[rooms[i].ID]
	}
	return rooms
}

// Hint says how to get the bot into a channel.
func (t *team) Hint() string {
	return "Connected, but in no channel. Write /invite with the bot's name in each channel that it should post to."
}

// Receive answers mentions and refreshes the list of channels.
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
			m.Text = t.unmarked(m.Text) // the bot's own id is known only now
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
