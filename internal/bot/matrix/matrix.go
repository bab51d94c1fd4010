// Package matrix is the bot's transport for Matrix: one account on one homeserver, in rooms without encryption.
package matrix

import (
	"context"
	"log/slog"
	"net/http"

	"switchyard/internal/bot"
	"switchyard/internal/domain"
)

// chat is the transport for one account.
type chat struct {
	*account
	operators  []string
	log        *slog.Logger
	homeserver string
	http       *http.Client
}

// New returns the transport for the account in settings.
func New(o bot.Options, settings map[string]domain.Secret) bot.Transport {
	homeserver, username := settings["homeserver"].Reveal(), settings["username"].Reveal()
	s := &session{state: o.State, key: "bot.matrix " + homeserver + " " + username}
	s.saved.Store(&savedSession{})
	a := &account{session: s, username: username, password: settings["password"]}
	return &chat{account: a, operators: o.Operators, log: o.Log, homeserver: homeserver, http: bot.NewHTTPClient(o)}
}

// Account identifies the homeserver and the user as they were entered.
func (c *chat) Account() string { return c.key }

// Connect finds the homeserver, logs in unless there is a valid session, and reads which rooms the bot is a member of.
func (c *chat) Connect(ctx context.Context) error {
	ctx, cancel := context.WithTimeout(ctx, 3*bot.CallLimit)
	defer cancel()
	client, err := discover(ctx, c.http, c.homeserver)
	if err != nil {
		return err
	}
	if err := c.load(ctx); err != nil {
		return err
	}
	c.client.Store(client)
	if saved := c.now(); saved.Token == "" || saved.PasswordMAC != c.mac(saved.Token) {
		if err := c.logIn(ctx, saved.Token); err != nil {
			return err
		}
	}
	if err := c.get(ctx, "/v3/account/whoami", nil, nil); err != nil {
		return err
	}
	return c.reconcile(ctx)
}

// Refresh does nothing: a homeserver reports changes by itself.
func (c *chat) Refresh(context.Context) error { return nil }

// Hint says how to get the bot into a room.
func (c *chat) Hint() string {
	user := c.now().UserID
	hint := "Connected, but in no room. Invite " + user + " from an account that is listed in bot.operators."
	if len(c.operators) == 0 {
		hint = "Connected, but in no room, and nobody may invite the bot: list your Matrix user id under bot.operators in " +
			"switchyard.toml, restart, and invite " + user + "."
	}
	if news, ok := c.news.Load().(string); ok {
		hint += " " + news
	}
	return hint
}

// Send posts a message for which clients show a notification.
func (c *chat) Send(ctx context.Context, room, key string, message bot.Message) error {
	return c.post(ctx, c.successor(room), outgoing{key: key, kind: "m.text", message: message})
}

// Posted reports whether the message with this key is among a room's newest. Not every homeserver remembers the
// transaction id of an aborted request.
func (c *chat) Posted(ctx context.Context, room, key string) (bool, error) {
	keys, err := c.postedKeys(ctx, c.successor(room))
	return keys[key], err
}
