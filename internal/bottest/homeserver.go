// Package bottest has fakes for testing the chat bot: a Matrix homeserver and Slack's API, each for one bot. They
// check that the client follows the rules.
package bottest

import (
	"net/http"
	"net/http/httptest"
	"slices"
	"sync"
	"testing"

	"switchyard/internal/domain"
)

// Users of the homeserver, and the bot's password.
const (
	BotUser  = "@yard:hs.test"
	Operator = "@op:hs.test"
	Stranger = "@stranger:hs.test"
	Password = "canary-password"
)

// Homeserver is a Matrix homeserver for one bot, written from the client-server specification. It refuses what the
// specification forbids, and fails the test for what no client may do. Use its exported fields, except HTTP, only
// within Do.
type Homeserver struct {
	HTTP    *httptest.Server
	Devices map[string]string // access token → device
	Logins  int
	Limited int  // how many of the next calls are refused with a rate limit
	NoProof bool // there is no password login
	Forgets bool // the homeserver forgets positions of syncs, once
	// Forgetful makes the homeserver ignore transaction ids. Dendrite ignores them while a request is in progress and
	// after a restart.
	Forgetful bool
	// Before, unless nil, is called first for each call, and handles it if it returns true.
	Before func(w http.ResponseWriter, r *http.Request) bool

	t  testing.TB
	mu sync.Mutex // guards all below
	rooms
	password string
	name     string // the bot's display name
	tokens   int
	sent     map[string]string // device, room and transaction → event
}

// Post is a message event in a room.
type Post struct {
	Sender, Body, HTML, Kind string
	Key                      string // the bot's transaction id
	Thread                   string // event id of the thread's first message
	ID                       string // event id
}

// NewHomeserver starts a homeserver that ends with the test.
func NewHomeserver(t testing.TB) *Homeserver {
	h := newHomeserver(t)
	h.HTTP = httptest.NewServer(h)
	t.Cleanup(func() {
		h.HTTP.CloseClientConnections()
		h.HTTP.Close()
	})
	return h
}

// NewMemoryHomeserver is NewHomeserver in memory, for tests with fake time.
func NewMemoryHomeserver(t testing.TB) *Homeserver {
	h := newHomeserver(t)
	h.HTTP = NewServer(t, h)
	return h
}

func newHomeserver(t testing.TB) *Homeserver {
	return &Homeserver{
		t: t, password: Password, name: "The Yard", Devices: map[string]string{},
		rooms: rooms{byID: map[string]*room{}, changed: make(chan struct{})}, sent: map[string]string{},
	}
}

// Config returns a valid configuration for a bot on this homeserver.
func (h *Homeserver) Config() domain.BotConfig {
	return domain.BotConfig{Transport: domain.BotMatrix, Settings: map[string]domain.Secret{
		"homeserver": domain.Secret(h.HTTP.URL), "username": "yard", "password": Password,
	}}
}

// Create creates a room as user.
func (h *Homeserver) Create(id, name, user string, encrypted bool) {
	h.mu.Lock()
	defer h.mu.Unlock()
	h.create(id, name, user, map[string]any{}).encrypted = encrypted
}

// CreateSpace creates a space, which is a room that lists rooms, as user.
func (h *Homeserver) CreateSpace(id, name, user string) {
	h.mu.Lock()
	defer h.mu.Unlock()
	h.create(id, name, user, map[string]any{"type": "m.space"})
}

// Upgrade replaces a room by another one as user: from then on nobody can post in the old one. Joining the new room
// requires an invitation.
func (h *Homeserver) Upgrade(id, successor, user string) {
	h.mu.Lock()
	defer h.mu.Unlock()
	h.create(successor, h.room(id).name, user, map[string]any{"predecessor": map[string]any{"room_id": id}})
	h.room(id).muted = true
	h.setState(id, user, "m.room.tombstone",
		map[string]any{"body": "This room has been replaced", "replacement_room": successor})
}

// Mute forbids the bot to post in a room, or allows it again.
func (h *Homeserver) Mute(id string, muted bool) {
	h.mu.Lock()
	defer h.mu.Unlock()
	h.room(id).muted = muted
	level := 0
	if muted {
		level = 50
	}
	h.setState(id, Operator, "m.room.power_levels",
		map[string]any{"events_default": level, "users": map[string]any{Operator: 100}})
}

// Rename changes the bot's display name.
func (h *Homeserver) Rename(name string) {
	h.mu.Lock()
	defer h.mu.Unlock()
	h.name = name
	for id, room := range h.byID {
		if room.members[BotUser] {
			h.tell(update{room: id, event: map[string]any{
				"type": "m.room.member", "event_id": h.nextEvent(), "sender": BotUser, "state_key": BotUser,
				"content":  map[string]any{"membership": "join", "displayname": name},
				"unsigned": map[string]any{"prev_content": map[string]any{"membership": "join"}},
			}})
		}
	}
}

// ChangePassword changes the password of the bot's account and logs its devices out.
func (h *Homeserver) ChangePassword(password string) {
	h.mu.Lock()
	defer h.mu.Unlock()
	h.password = password
	clear(h.Devices)
}

// Invite invites the bot to a room.
func (h *Homeserver) Invite(id, user string) {
	h.mu.Lock()
	defer h.mu.Unlock()
	h.tell(update{room: id, membership: "invite", event: map[string]any{
		"type": "m.room.member", "sender": user, "state_key": BotUser, "content": map[string]any{"membership": "invite"},
	}})
}

// Say posts a message as user.
func (h *Homeserver) Say(id, user, text string) {
	h.Event(id, user, "m.room.message", map[string]any{"msgtype": "m.text", "body": text})
}

// SayWithin is Say for a function that Do calls: all that it says comes at once.
func (h *Homeserver) SayWithin(id, user, text string) {
	h.append(id, user, "m.room.message", map[string]any{"msgtype": "m.text", "body": text})
}

// Event adds an event by user to a room.
func (h *Homeserver) Event(id, user, kind string, content map[string]any) {
	h.mu.Lock()
	defer h.mu.Unlock()
	h.append(id, user, kind, content)
}

// Posts returns the bot's messages in a room.
func (h *Homeserver) Posts(id string) []Post {
	h.mu.Lock()
	defer h.mu.Unlock()
	var posts []Post
	for _, u := range h.updates {
		event := u.event
		if u.room != id || event["type"] != "m.room.message" || event["sender"] != BotUser {
			continue
		}
		content := event["content"].(map[string]any)
		text := func(key string) string {
			value, _ := content[key].(string)
			return value
		}
		post := Post{
			Sender: BotUser, Body: text("body"), HTML: text("formatted_body"), Kind: text("msgtype"),
			Key: text("switchyard.key"), ID: event["event_id"].(string),
		}
		if relation, ok := content["m.relates_to"].(map[string]any); ok && relation["rel_type"] == "m.thread" {
			post.Thread, _ = relation["event_id"].(string)
		}
		posts = append(posts, post)
	}
	return posts
}

// Expel removes the bot from a room without notifying it.
func (h *Homeserver) Expel(id string) {
	h.mu.Lock()
	defer h.mu.Unlock()
	delete(h.room(id).members, BotUser)
}

// IsMember reports whether the bot is in a room.
func (h *Homeserver) IsMember(id string) bool {
	h.mu.Lock()
	defer h.mu.Unlock()
	return h.room(id).members[BotUser]
}

// Joined reports whether the bot has ever joined a room.
func (h *Homeserver) Joined(id string) bool {
	h.mu.Lock()
	defer h.mu.Unlock()
	return slices.ContainsFunc(h.updates, func(u update) bool {
		return u.room == id && u.event["type"] == "m.room.member" && u.event["sender"] == BotUser
	})
}

// Do calls f while no call is in progress.
func (h *Homeserver) Do(f func()) {
	h.mu.Lock()
	defer h.mu.Unlock()
	f()
}
