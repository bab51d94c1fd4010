package bot

import (
	"cmp"
	"context"
	"log/slog"
	"net/http"
	"slices"
	"sync"
	"time"

	"switchyard/internal/domain"
)

// matrix is the transport for one Matrix account.
type matrix struct {
	homeserver string
	username   string
	password   domain.Secret
	operators  []string
	state      State
	log        *slog.Logger
	http       *http.Client

	login  sync.Mutex // held while logging in, so that it happens once for all calls that need it
	saving sync.Mutex // orders the writes of the session; readers of the session never wait for it
	stored string     // the session in the store, guarded by saving

	mu        sync.Mutex // guards the fields below; never held during I/O
	client    *matrixClient
	session   matrixSession
	connected time.Time // when Connect was last called
	note      string    // why the bot last declined or left a room
}

func newMatrix(o Options, homeserver, username string, password domain.Secret) *matrix {
	return &matrix{
		homeserver: homeserver, username: username, password: password,
		operators: o.Operators, state: o.State, log: o.Log, http: newHTTPClient(),
	}
}

// Account identifies the homeserver and the user as they were entered.
func (m *matrix) Account() string { return "bot.matrix " + m.homeserver + " " + m.username }

// Connect finds the homeserver, logs in unless there is a valid session, and reads which rooms the bot is a member of.
func (m *matrix) Connect(ctx context.Context) error {
	ctx, cancel := context.WithTimeout(ctx, 3*callLimit)
	defer cancel()
	began := time.Now()
	client, err := discover(ctx, m.http, m.homeserver)
	if err != nil {
		return err
	}
	session, err := m.load(ctx)
	if err != nil {
		return err
	}
	m.mu.Lock()
	m.client, m.session, m.connected = client, session, began
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

// Refresh does nothing: a homeserver reports changes by itself.
func (m *matrix) Refresh(context.Context) error { return nil }

// Rooms returns the rooms that the bot is known to be a member of.
func (m *matrix) Rooms() []Room {
	m.mu.Lock()
	defer m.mu.Unlock()
	rooms := make([]Room, 0, len(m.session.Rooms))
	for id, room := range m.session.Rooms {
		r := Room{ID: id, Name: cmp.Or(room.Name, id)}
		if room.MutedSinceMS != 0 {
			r.MutedSince = time.UnixMilli(room.MutedSinceMS)
		}
		rooms = append(rooms, r)
	}
	slices.SortFunc(rooms, func(a, b Room) int { return cmp.Compare(a.ID, b.ID) })
	return rooms
}

// Hint says how to get the bot into a room.
func (m *matrix) Hint() string {
	m.mu.Lock()
	defer m.mu.Unlock()
	hint := "Connected, but in no room. Invite " + m.session.UserID + " from an account that is listed in bot.operators."
	if len(m.operators) == 0 {
		hint = "Connected, but in no room, and nobody may invite the bot: list your Matrix user id under bot.operators in switchyard.toml, restart, and invite " + m.session.UserID + "."
	}
	if m.note != "" {
		hint += " " + m.note
	}
	return hint
}

func (m *matrix) remark(note string) {
	m.mu.Lock()
	defer m.mu.Unlock()
	m.note = note
}
