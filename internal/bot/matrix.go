package bot

import (
	"cmp"
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
	"slices"
	"sync"

	"switchyard/internal/domain"
)

// matrix is the transport of the Matrix network, for one account.
type matrix struct {
	homeserver string
	username   string
	password   domain.Secret
	operators  []string
	state      State
	log        *slog.Logger
	http       *http.Client

	login sync.Mutex // held while logging in, so that it happens once for all who need it

	mu      sync.Mutex
	client  *matrixClient
	session matrixSession
	stored  string // session as the store has it
	note    string // what became of the last invitation that was not taken
}

// matrixSession is what is kept over restarts. Transaction ids are told apart by device: with the same device
// nothing is posted twice.
type matrixSession struct {
	UserID      string                `json:"user_id"`
	DeviceID    string                `json:"device_id"`
	DisplayName string                `json:"display_name"`
	Token       string                `json:"access_token"`
	PasswordMAC string                `json:"password_mac"` // tells a changed password, which must prove itself
	NextBatch   string                `json:"next_batch"`
	Rooms       map[string]matrixRoom `json:"rooms"`
	Invited     map[string]string     `json:"invited,omitempty"` // rooms to be answered about → who invites
}

type matrixRoom struct {
	Name string `json:"name"`
}

func newMatrix(o Options, homeserver, username string, password domain.Secret) *matrix {
	return &matrix{
		homeserver: homeserver, username: username, password: password,
		operators: o.Operators, state: o.State, log: o.Log, http: newHTTPClient(),
	}
}

// Account names the homeserver and the user as they were entered.
func (m *matrix) Account() string { return "bot.matrix " + m.homeserver + " " + m.username }

// Connect finds the homeserver, logs in where there is no valid session, and reads where the bot is a member.
func (m *matrix) Connect(ctx context.Context) error {
	ctx, cancel := context.WithTimeout(ctx, 3*callLimit)
	defer cancel()
	client, err := discover(ctx, m.http, m.homeserver)
	if err != nil {
		return err
	}
	session, err := m.load(ctx)
	if err != nil {
		return err
	}
	m.mu.Lock()
	m.client, m.session = client, session
	m.mu.Unlock()
	if session.Token == "" || session.PasswordMAC != m.mac(session.Token) {
		if err := m.logIn(ctx, session.Token); err != nil {
			return err
		}
	}
	if err := m.call(ctx, matrixCall{method: http.MethodGet, path: "/v3/account/whoami"}); err != nil {
		return explainMatrix(err)
	}
	return m.reconcile(ctx)
}

func (m *matrix) load(ctx context.Context) (matrixSession, error) {
	session := matrixSession{}
	stored, err := m.state.State(ctx, m.Account())
	if err == nil && stored != "" {
		err = json.Unmarshal([]byte(stored), &session)
	}
	if session.Rooms == nil {
		session.Rooms = map[string]matrixRoom{}
	}
	return session, err
}

// change applies f to the session and stores it, even as the bot ends.
func (m *matrix) change(ctx context.Context, f func(*matrixSession)) error {
	m.mu.Lock()
	defer m.mu.Unlock()
	f(&m.session)
	text, err := json.Marshal(m.session)
	if err != nil || string(text) == m.stored {
		return err
	}
	if err := m.state.SetState(context.WithoutCancel(ctx), m.Account(), string(text)); err != nil {
		return err
	}
	m.stored = string(text)
	return nil
}

func (m *matrix) mac(token string) string {
	mac := hmac.New(sha256.New, []byte(token))
	mac.Write([]byte(m.password.Reveal()))
	return hex.EncodeToString(mac.Sum(nil))
}

// logIn gets a new token in place of stale, for the same device, unless somebody else just did.
func (m *matrix) logIn(ctx context.Context, stale string) error {
	m.login.Lock()
	defer m.login.Unlock()
	m.mu.Lock()
	client, session := m.client, m.session
	m.mu.Unlock()
	if session.Token != stale {
		return nil
	}
	request := map[string]any{
		"type":                        "m.login.password",
		"identifier":                  map[string]string{"type": "m.id.user", "user": m.username},
		"password":                    m.password.Reveal(),
		"initial_device_display_name": "Switchyard",
	}
	if session.DeviceID != "" {
		request["device_id"] = session.DeviceID
	}
	var answer struct {
		UserID   string `json:"user_id"`
		DeviceID string `json:"device_id"`
		Token    string `json:"access_token"`
	}
	err := obeying(ctx, func() error {
		return client.do(ctx, matrixCall{method: http.MethodPost, path: "/v3/login", body: request, answer: &answer})
	})
	if err != nil {
		return m.loginFailure(err)
	}
	if answer.Token == "" || answer.UserID == "" || answer.DeviceID == "" {
		return domain.Errorf(domain.BadGateway, "The homeserver's answer to the login is incomplete.")
	}
	return m.change(ctx, func(s *matrixSession) {
		if s.UserID != answer.UserID { // somebody else's rooms and position mean nothing
			*s = matrixSession{Rooms: map[string]matrixRoom{}}
		}
		s.UserID, s.DeviceID, s.Token, s.PasswordMAC = answer.UserID, answer.DeviceID, answer.Token, m.mac(answer.Token)
	})
}

func (m *matrix) loginFailure(err error) error {
	var refused *matrixError
	switch {
	case !errors.As(err, &refused) || refused.status >= http.StatusInternalServerError:
		return explainMatrix(err)
	case refused.code == "M_FORBIDDEN":
		return domain.WrapError(domain.Unauthorized, err, "The homeserver refuses this user name or password. Check Bot username and Password, and save.")
	case refused.code == "M_USER_DEACTIVATED":
		return domain.WrapError(domain.Unauthorized, err, "This account is deactivated. Enter another one and save.")
	}
	return domain.WrapError(domain.Unauthorized, err, fmt.Sprintf(
		"The homeserver refuses a login with a password: %s %s.", refused.code, refused.message))
}

// call makes a call within the session. It obeys rate limits, and logs in again once when the token is not valid any more.
func (m *matrix) call(ctx context.Context, call matrixCall) error {
	for again := false; ; again = true {
		m.mu.Lock()
		client, token := m.client, m.session.Token
		m.mu.Unlock()
		if client == nil {
			return domain.Errorf(domain.BadGateway, "The bot is not connected.")
		}
		call.token = domain.Secret(token)
		err := obeying(ctx, func() error {
			ctx, cancel := context.WithTimeout(ctx, callLimit)
			defer cancel()
			return client.do(ctx, call)
		})
		var refused *matrixError
		if again || !errors.As(err, &refused) || refused.code != "M_UNKNOWN_TOKEN" {
			return err
		}
		if err := m.logIn(ctx, token); err != nil {
			return err
		}
	}
}

// explainMatrix gives a failure a message for people.
func explainMatrix(err error) error {
	var refused *matrixError
	if !errors.As(err, &refused) {
		return err
	}
	return domain.WrapError(domain.BadGateway, err, fmt.Sprintf("The homeserver answers with status %d %s %s. The bot keeps trying.",
		refused.status, refused.code, refused.message))
}

// Refresh does nothing: a homeserver tells of changes.
func (m *matrix) Refresh(context.Context) error { return nil }

// Rooms returns where the bot is a member, as far as is known.
func (m *matrix) Rooms() []Room {
	m.mu.Lock()
	defer m.mu.Unlock()
	rooms := make([]Room, 0, len(m.session.Rooms))
	for id, room := range m.session.Rooms {
		name := room.Name
		if name == "" {
			name = id
		}
		rooms = append(rooms, Room{ID: id, Name: name})
	}
	slices.SortFunc(rooms, func(a, b Room) int { return cmp.Compare(a.ID, b.ID) })
	return rooms
}

// Hint says how to get the bot into a room.
func (m *matrix) Hint() string {
	m.mu.Lock()
	defer m.mu.Unlock()
	hint := "Connected, but in no room. Invite " + m.session.UserID + " from an account that bot.operators lists."
	if len(m.operators) == 0 {
		hint = "Connected, but in no room, and nobody may invite the bot: list your Matrix user id under bot.operators in switchyard.toml, restart, and invite " + m.session.UserID + "."
	}
	if m.note != "" {
		hint += " " + m.note
	}
	return hint
}

// Send posts a message that is to be noticed.
func (m *matrix) Send(ctx context.Context, room, key string, message Message) error {
	return m.post(ctx, room, key, "m.text", message)
}

// post sends a message event. The key is the transaction id: the homeserver takes each once from this device.
func (m *matrix) post(ctx context.Context, room, key, kind string, message Message) error {
	content := map[string]any{
		"msgtype":        kind,
		"body":           message.PlainText(),
		"format":         "org.matrix.custom.html",
		"formatted_body": message.HTML(),
		"m.mentions":     struct{}{}, // nobody is called by what happens to stand in a text
	}
	err := m.call(ctx, matrixCall{
		method: http.MethodPut, path: "/v3/rooms/" + url.PathEscape(room) + "/send/m.room.message/" + url.PathEscape(key), body: content,
	})
	var refused *matrixError
	if errors.As(err, &refused) && refused.ofRoom() && refused.status >= 400 && refused.status < 500 {
		return fmt.Errorf("%w: %w", errRefused, err)
	}
	return explainMatrix(err)
}
