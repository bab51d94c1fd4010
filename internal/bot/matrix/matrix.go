// Package matrix is the bot's transport for Matrix: one account on one homeserver, in rooms without encryption.
package matrix

import (
	"context"
	"crypto/hmac"
	"crypto/sha256"
	"encoding/hex"
	"encoding/json"
	"errors"
	"fmt"
	"log/slog"
	"net/http"
	"net/url"
	"strconv"
	"sync"
	"sync/atomic"
	"time"

	"switchyard/internal/bot"
	"switchyard/internal/domain"
	"switchyard/internal/supervise"
)

// chat is the transport for one account.
type chat struct {
	*account
	operators  []string
	log        *slog.Logger
	homeserver string
	http       *http.Client
}

func New(o bot.Options, settings map[string]domain.Secret) bot.Transport {
	homeserver, username := settings["homeserver"].Reveal(), settings["username"].Reveal()
	s := &session{state: o.State, key: "bot.matrix " + homeserver + " " + username}
	s.saved.Store(&savedSession{})
	a := &account{session: s, username: username, password: settings["password"]}
	return &chat{account: a, operators: o.Operators, log: o.Log, homeserver: homeserver, http: bot.NewHTTPClient(o)}
}

// Reach returns an error unless the homeserver of these settings answers. It does not log in.
func Reach(ctx context.Context, o bot.Options, settings map[string]domain.Secret) error {
	_, err := discover(ctx, bot.NewHTTPClient(o), settings["homeserver"].Reveal())
	return err
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
func (c *chat) Send(ctx context.Context, room, key string, message bot.Message) (id string, err error) {
	return c.post(ctx, c.successor(room), outgoing{key: key, kind: "m.text", message: message})
}

// Posted reports whether the message with this key is among a room's newest. Not every homeserver remembers the
// transaction id of an aborted request.
func (c *chat) Posted(ctx context.Context, room, key string) (bool, error) {
	keys, err := c.postedKeys(ctx, c.successor(room))
	return keys[key], err
}

const (
	// requestEnds is how long a homeserver may still work on a request whose client process was killed.
	requestEnds = 2 * time.Second
	// maxPosted is how many of the bot's messages in a room are searched for one.
	maxPosted = 500
	// historyPage is how many messages are read at once.
	historyPage = 100
)

// account makes calls to the homeserver within the session, and logs in when needed.
type account struct {
	*session
	username string
	password domain.Secret
	login    sync.Mutex // held while logging in, so that it happens once for all calls that need it
	client   atomic.Pointer[apiClient]
}

// call makes a call. It logs in again once if the token is no longer valid.
func (a *account) call(ctx context.Context, call apiCall) error {
	token := a.now().Token
	call.token = domain.Secret(token)
	err := a.client.Load().do(ctx, call)
	if asRefusal(err).code == "M_UNKNOWN_TOKEN" {
		if err := a.logIn(ctx, token); err != nil {
			return err
		}
		call.token = domain.Secret(a.now().Token)
		err = a.client.Load().do(ctx, call)
	}
	return explain(err)
}

func (a *account) get(ctx context.Context, path string, query url.Values, answer any) error {
	return a.call(ctx, apiCall{method: http.MethodGet, path: path, query: query, answer: answer})
}

// roomState reads the content of a room's state event, if there is one that the bot may read.
func (a *account) roomState(ctx context.Context, room, kind string) (content stateContent, found bool, err error) {
	var text json.RawMessage
	err = a.get(ctx, roomPath(room, "state/"+kind), nil, &text)
	if code := asRefusal(err).code; code == "M_NOT_FOUND" || code == "M_FORBIDDEN" {
		return content, false, nil
	}
	return readState(text), err == nil, err
}

// roomPath returns the path of a room's resource, which must already be escaped.
func roomPath(room, resource string) string {
	return "/v3/rooms/" + url.PathEscape(room) + "/" + resource
}

// mac returns a value that shows whether a token was obtained with the current password, without storing the password.
func (a *account) mac(token string) string {
	mac := hmac.New(sha256.New, []byte(token))
	mac.Write([]byte(a.password.Reveal()))
	return hex.EncodeToString(mac.Sum(nil))
}

// logIn replaces the token stale with a new one, for the same device, unless another call has already done so.
func (a *account) logIn(ctx context.Context, stale string) error {
	a.login.Lock()
	defer a.login.Unlock()
	saved := a.now()
	if saved.Token != stale {
		return nil
	}
	request := map[string]any{
		"type":                        "m.login.password",
		"identifier":                  map[string]string{"type": "m.id.user", "user": a.username},
		"password":                    a.password.Reveal(),
		"initial_device_display_name": "Switchyard",
	}
	if saved.DeviceID != "" {
		request["device_id"] = saved.DeviceID
	}
	var answer struct {
		UserID   string `json:"user_id"`
		DeviceID string `json:"device_id"`
		Token    string `json:"access_token"`
	}
	err := a.client.Load().do(ctx, apiCall{method: http.MethodPost, path: "/v3/login", body: request, answer: &answer})
	if err != nil {
		return loginFailure(err)
	}
	if answer.Token == "" || answer.UserID == "" || answer.DeviceID == "" {
		return domain.Errorf(domain.BadGateway, "The homeserver's answer to the login is incomplete.")
	}
	return a.change(ctx, func(s *savedSession) {
		if s.UserID != answer.UserID { // the rooms and the position belong to another user
			*s = newSession()
		}
		s.UserID, s.DeviceID, s.Token, s.PasswordMAC = answer.UserID, answer.DeviceID, answer.Token, a.mac(answer.Token)
	})
}

// loginFailure gives a failed login a message for people. It hides the apiError: a refused login must not be taken for
// a refusal by the room that a call was about.
func loginFailure(err error) error {
	refused, cause := asRefusal(err), errors.New("login: "+err.Error())
	switch {
	case refused.status == 0:
		return err
	case refused.status >= http.StatusInternalServerError || refused.code == "":
		return domain.WrapError(domain.BadGateway, cause, domain.MessageOf(explain(err)))
	case refused.code == "M_FORBIDDEN":
		return domain.WrapError(domain.Unauthorized, cause,
			"The homeserver refuses this user name or password. Check Bot username and Password, and save.")
	case refused.code == "M_USER_DEACTIVATED":
		return domain.WrapError(domain.Unauthorized, cause, "This account is deactivated. Enter another one and save.")
	}
	return domain.WrapError(domain.Unauthorized, cause, fmt.Sprintf(
		"The homeserver refuses a login with a password: %s %s.", refused.code, refused.message))
}

// postedKeys returns the keys of the bot's newest messages in a room; none if it may not read them. It first waits
// until requests of an earlier process have ended.
func (a *account) postedKeys(ctx context.Context, room string) (map[string]bool, error) {
	user := a.now().UserID
	if !supervise.Sleep(ctx, time.Until(a.client.Load().created.Add(requestEnds))) {
		return nil, ctx.Err()
	}
	keys := map[string]bool{}
	sender, _ := json.Marshal(user) // a string always encodes
	filter := `{"types":["m.room.message"],"senders":[` + string(sender) + `]}`
	_, err := a.history(ctx, room, filter, "", "", maxPosted, func(e roomEvent) bool {
		var content struct {
			Key string `json:"switchyard.key"`
		}
		// A homeserver may ignore the filter.
		if e.Sender == user && json.Unmarshal(e.Content, &content) == nil && content.Key != "" {
			keys[content.Key] = true
		}
		return true
	})
	if asRefusal(err).isRefusedByRoom() {
		err = nil
	}
	return keys, err
}

// history calls each with at most limit of a room's events, newest first, until it returns false: those between two
// positions, or from the newest if from is "" and to the oldest if to is "". It reports whether there are more.
func (a *account) history(
	ctx context.Context, room, filter, from, to string, limit int, each func(roomEvent) bool,
) (more bool, err error) {
	query := url.Values{"dir": {"b"}, "limit": {strconv.Itoa(historyPage)}, "filter": {filter}}
	for name, position := range map[string]string{"from": from, "to": to} {
		if position != "" {
			query.Set(name, position)
		}
	}
	read := 0
	for range 2 * limit / historyPage { // a page may be empty, since some homeservers filter it last
		var page struct {
			Chunk []roomEvent `json:"chunk"`
			End   string      `json:"end"`
		}
		if err := a.get(ctx, roomPath(room, "messages"), query, &page); err != nil {
			return false, err
		}
		for _, e := range page.Chunk {
			if read == limit {
				return true, nil
			}
			if read++; !each(e) {
				return false, nil
			}
		}
		if page.End == "" {
			return false, nil
		}
		query.Set("from", page.End)
	}
	return true, nil
}
