// Package bottest is what the chat bot is tested against: a Matrix homeserver and Slack's API, both for one bot. They check
// what a client may do.
package bottest

import (
	"encoding/json"
	"fmt"
	"net/http"
	"net/http/httptest"
	"net/url"
	"strconv"
	"strings"
	"sync"
	"testing"
	"time"

	"switchyard/internal/domain"
)

// Who is on the homeserver, and the bot's password there.
const (
	BotUser  = "@yard:hs.test"
	Operator = "@op:hs.test"
	Stranger = "@stranger:hs.test"
	Password = "canary-password"
)

// Homeserver is a Matrix homeserver for one bot, written from the client-server specification. It refuses what the
// specification forbids, and reports what no client may do. Its exported fields but HTTP are for Do.
type Homeserver struct {
	HTTP    *httptest.Server
	Devices map[string]string // access token → device
	Logins  int
	Limited int  // so many of the next calls are refused for being too many
	NoProof bool // no password login
	Forgets bool // positions of syncs, once
	// Before, when it is set, sees each call first, and answers it when it returns true.
	Before func(w http.ResponseWriter, r *http.Request) bool

	t       testing.TB
	mu      sync.Mutex
	tokens  int
	rooms   map[string]*room
	updates []update
	changed chan struct{}
	sent    map[string]string // device, room and transaction → event
}

type room struct {
	name      string
	encrypted bool
	members   map[string]bool
	posts     []Post
}

// Post is a message event in a room.
type Post struct {
	Sender, Body, HTML, Kind string
}

// update is what a sync tells: an event of a joined room, or a change of the bot's membership.
type update struct {
	room, membership string
	event            map[string]any
}

// NewHomeserver starts a homeserver that ends with the test.
func NewHomeserver(t testing.TB) *Homeserver {
	h := &Homeserver{
		t: t, Devices: map[string]string{}, rooms: map[string]*room{},
		changed: make(chan struct{}), sent: map[string]string{},
	}
	h.HTTP = httptest.NewServer(h)
	t.Cleanup(func() {
		h.HTTP.CloseClientConnections()
		h.HTTP.Close()
	})
	return h
}

// Config is a bot's configuration that is right here.
func (h *Homeserver) Config() domain.BotConfig {
	return domain.BotConfig{
		Transport: domain.BotMatrix, Homeserver: &h.HTTP.URL, Username: pointer("yard"), Password: pointer(domain.Secret(Password)),
	}
}

func (h *Homeserver) room(id string) *room {
	if h.rooms[id] == nil {
		h.rooms[id] = &room{members: map[string]bool{}}
	}
	return h.rooms[id]
}

func (h *Homeserver) tell(u update) {
	h.updates = append(h.updates, u)
	close(h.changed)
	h.changed = make(chan struct{})
}

// Create makes a room of user's.
func (h *Homeserver) Create(id, name, user string, encrypted bool) {
	h.mu.Lock()
	defer h.mu.Unlock()
	room := h.room(id)
	room.name, room.encrypted = name, encrypted
	room.members[user] = true
}

// Invite invites the bot to a room.
func (h *Homeserver) Invite(id, user string) {
	h.mu.Lock()
	defer h.mu.Unlock()
	h.tell(update{room: id, membership: "invite", event: map[string]any{
		"type": "m.room.member", "sender": user, "state_key": BotUser, "content": map[string]any{"membership": "invite"},
	}})
}

// Say posts a message of user's.
func (h *Homeserver) Say(id, user, text string) {
	h.Event(id, user, "m.room.message", map[string]any{"msgtype": "m.text", "body": text})
}

// Event adds an event of user's to a room.
func (h *Homeserver) Event(id, user, kind string, content map[string]any) {
	h.mu.Lock()
	defer h.mu.Unlock()
	h.append(id, user, kind, content)
}

func (h *Homeserver) append(id, user, kind string, content map[string]any) string {
	event := fmt.Sprintf("$e%d", len(h.updates))
	if kind == "m.room.message" {
		body, _ := content["body"].(string)
		formatted, _ := content["formatted_body"].(string)
		sort, _ := content["msgtype"].(string)
		h.room(id).posts = append(h.room(id).posts, Post{user, body, formatted, sort})
	}
	h.tell(update{room: id, event: map[string]any{
		"type": kind, "event_id": event, "sender": user, "content": content, "unsigned": map[string]any{"age": 1},
	}})
	return event
}

// Posts returns what the bot has said in a room.
func (h *Homeserver) Posts(id string) []Post {
	h.mu.Lock()
	defer h.mu.Unlock()
	var posts []Post
	for _, p := range h.room(id).posts {
		if p.Sender == BotUser {
			posts = append(posts, p)
		}
	}
	return posts
}

// Expel removes the bot from a room without telling it.
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

// Do calls f while no call is under way.
func (h *Homeserver) Do(f func()) {
	h.mu.Lock()
	defer h.mu.Unlock()
	f()
}

func refuse(w http.ResponseWriter, status int, code string) {
	w.Header().Set("Content-Type", "application/json")
	w.WriteHeader(status)
	fmt.Fprintf(w, `{"errcode":%q,"error":"refused"}`, code)
}

func reply(w http.ResponseWriter, v any) {
	w.Header().Set("Content-Type", "application/json")
	_ = json.NewEncoder(w).Encode(v)
}

func (h *Homeserver) ServeHTTP(w http.ResponseWriter, r *http.Request) {
	if strings.Contains(r.URL.RawQuery, "access_token") {
		h.t.Errorf("access token in the address: %s", r.URL)
	}
	h.mu.Lock()
	before := h.Before
	h.mu.Unlock()
	if before != nil && before(w, r) {
		return
	}
	path, ok := strings.CutPrefix(r.URL.EscapedPath(), "/_matrix/client")
	if !ok {
		refuse(w, 404, "M_UNRECOGNIZED")
		return
	}
	if path == "/versions" && r.Method == http.MethodGet {
		reply(w, map[string]any{"versions": []string{"v1.1", "v1.11"}})
		return
	}
	var body map[string]any
	if r.Method == http.MethodPost || r.Method == http.MethodPut {
		if r.Header.Get("Content-Type") != "application/json" || json.NewDecoder(r.Body).Decode(&body) != nil {
			h.t.Errorf("%s %s without a JSON body", r.Method, path)
			refuse(w, 400, "M_NOT_JSON")
			return
		}
	}
	h.mu.Lock()
	if h.Limited > 0 && !strings.HasPrefix(path, "/v3/sync") {
		h.Limited--
		h.mu.Unlock()
		w.WriteHeader(http.StatusTooManyRequests)
		fmt.Fprint(w, `{"errcode":"M_LIMIT_EXCEEDED","error":"slow down","retry_after_ms":20}`)
		return
	}
	if path == "/v3/login" && r.Method == http.MethodPost {
		h.login(w, body)
		h.mu.Unlock()
		return
	}
	token, found := strings.CutPrefix(r.Header.Get("Authorization"), "Bearer ")
	device, known := h.Devices[token]
	h.mu.Unlock()
	switch {
	case !found:
		refuse(w, 401, "M_MISSING_TOKEN")
	case !known:
		refuse(w, 401, "M_UNKNOWN_TOKEN")
	case path == "/v3/account/whoami" && r.Method == http.MethodGet:
		reply(w, map[string]any{"user_id": BotUser, "device_id": device})
	case path == "/v3/joined_rooms" && r.Method == http.MethodGet:
		h.joinedRooms(w)
	case path == "/v3/sync" && r.Method == http.MethodGet:
		h.sync(w, r)
	case strings.HasPrefix(path, "/v3/profile/"):
		reply(w, map[string]any{"displayname": "The Yard"})
	case strings.HasPrefix(path, "/v3/rooms/"):
		h.inRoom(w, r.Method, strings.Split(strings.TrimPrefix(path, "/v3/rooms/"), "/"), device, body)
	default:
		h.t.Errorf("%s %s is not in the specification", r.Method, path)
		refuse(w, 404, "M_UNRECOGNIZED")
	}
}

func (h *Homeserver) login(w http.ResponseWriter, body map[string]any) {
	identifier, _ := body["identifier"].(map[string]any)
	if body["type"] != "m.login.password" || identifier["type"] != "m.id.user" {
		h.t.Errorf("login %v", body["type"])
		refuse(w, 400, "M_UNKNOWN")
		return
	}
	if h.NoProof {
		refuse(w, 400, "M_UNKNOWN")
		return
	}
	if user := identifier["user"]; user != "yard" && user != BotUser || body["password"] != Password {
		refuse(w, 403, "M_FORBIDDEN")
		return
	}
	h.Logins++
	h.tokens++
	device, _ := body["device_id"].(string)
	if device == "" {
		device = fmt.Sprintf("DEVICE%d", h.tokens)
	}
	for token, d := range h.Devices {
		if d == device { // a device has one token
			delete(h.Devices, token)
		}
	}
	token := fmt.Sprintf("canary-access-token-%d", h.tokens)
	h.Devices[token] = device
	reply(w, map[string]any{"user_id": BotUser, "device_id": device, "access_token": token})
}

func (h *Homeserver) joinedRooms(w http.ResponseWriter) {
	h.mu.Lock()
	defer h.mu.Unlock()
	rooms := []string{}
	for id, room := range h.rooms {
		if room.members[BotUser] {
			rooms = append(rooms, id)
		}
	}
	reply(w, map[string]any{"joined_rooms": rooms})
}

func (h *Homeserver) sync(w http.ResponseWriter, r *http.Request) {
	query := r.URL.Query()
	if filter := query.Get("filter"); !json.Valid([]byte(filter)) {
		h.t.Errorf("filter %q", filter)
	}
	timeout, err := strconv.Atoi(query.Get("timeout"))
	if err != nil {
		h.t.Errorf("timeout %q", query.Get("timeout"))
	}
	since := 0
	if text := query.Get("since"); text != "" {
		if since, err = strconv.Atoi(strings.TrimPrefix(text, "s")); err != nil {
			refuse(w, 400, "M_UNKNOWN")
			return
		}
	}
	h.mu.Lock()
	forgets := h.Forgets && since > 0
	if forgets {
		h.Forgets = false
	}
	h.mu.Unlock()
	if forgets {
		refuse(w, 400, "M_UNKNOWN")
		return
	}
	deadline := time.After(time.Duration(timeout) * time.Millisecond)
	for {
		h.mu.Lock()
		changed, news := h.changed, len(h.updates) > since
		if news || timeout == 0 {
			reply(w, h.since(since))
			h.mu.Unlock()
			return
		}
		h.mu.Unlock()
		select {
		case <-changed:
		case <-deadline:
			timeout = 0
		case <-r.Context().Done():
			return
		}
	}
}

// since is the answer to a sync: the last word on each room's membership, and the events of the joined ones.
func (h *Homeserver) since(since int) map[string]any {
	join, invite, leave := map[string]any{}, map[string]any{}, map[string]any{}
	for _, u := range h.updates[since:] {
		if u.membership != "" || h.room(u.room).members[BotUser] {
			delete(invite, u.room)
		}
		switch {
		case u.membership == "leave":
			delete(join, u.room)
			leave[u.room] = map[string]any{}
		case u.membership == "invite" && !h.room(u.room).members[BotUser]:
			invite[u.room] = map[string]any{"invite_state": map[string]any{"events": []any{u.event}}}
		case u.membership == "" && h.room(u.room).members[BotUser]:
			delete(leave, u.room)
			events := []any{}
			if known, ok := join[u.room].(map[string]any); ok {
				events = known["timeline"].(map[string]any)["events"].([]any)
			}
			join[u.room] = map[string]any{"timeline": map[string]any{"events": append(events, u.event)}}
		}
	}
	return map[string]any{
		"next_batch": fmt.Sprintf("s%d", len(h.updates)),
		"rooms":      map[string]any{"join": join, "invite": invite, "leave": leave},
	}
}

func (h *Homeserver) inRoom(w http.ResponseWriter, method string, parts []string, device string, body map[string]any) {
	h.mu.Lock()
	defer h.mu.Unlock()
	id, _ := url.PathUnescape(parts[0])
	room := h.room(id)
	rest := strings.Join(parts[1:], "/")
	switch {
	case method == http.MethodPost && rest == "join":
		invited := false
		for _, u := range h.updates {
			if u.room == id && (u.membership != "" || u.event["type"] == "m.room.member") {
				invited = u.membership == "invite"
			}
		}
		if !invited {
			refuse(w, 403, "M_FORBIDDEN")
			return
		}
		room.members[BotUser] = true
		h.tell(update{room: id, event: map[string]any{
			"type": "m.room.member", "event_id": "$j" + id, "sender": BotUser, "state_key": BotUser, "content": map[string]any{"membership": "join"},
		}})
		reply(w, map[string]any{"room_id": id})
	case method == http.MethodPost && rest == "leave":
		delete(room.members, BotUser)
		h.tell(update{room: id, membership: "leave"})
		reply(w, map[string]any{})
	case !room.members[BotUser]:
		refuse(w, 403, "M_FORBIDDEN")
	case method == http.MethodGet && rest == "state/m.room.encryption" && room.encrypted:
		reply(w, map[string]any{"algorithm": "m.megolm.v1.aes-sha2"})
	case method == http.MethodGet && rest == "state/m.room.name" && room.name != "":
		reply(w, map[string]any{"name": room.name})
	case method == http.MethodGet && strings.HasPrefix(rest, "state/"):
		refuse(w, 404, "M_NOT_FOUND")
	case method == http.MethodPut && len(parts) == 4 && parts[1] == "send" && parts[2] == "m.room.message" && parts[3] != "":
		key := device + " " + id + " " + parts[3]
		if h.sent[key] == "" {
			h.sent[key] = h.append(id, BotUser, parts[2], body)
		}
		reply(w, map[string]any{"event_id": h.sent[key]})
	default:
		h.t.Errorf("%s %s is not in the specification", method, rest)
		refuse(w, 404, "M_UNRECOGNIZED")
	}
}

func pointer[T any](value T) *T { return &value }
