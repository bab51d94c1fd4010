package bottest

import (
	"encoding/json"
	"fmt"
	"net/http"
	"net/url"
	"strings"
)

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
	default:
		h.serve(w, r, path, device, body)
	}
}

// serve answers a call of a known device.
func (h *Homeserver) serve(w http.ResponseWriter, r *http.Request, path, device string, body map[string]any) {
	switch {
	case path == "/v3/account/whoami" && r.Method == http.MethodGet:
		reply(w, map[string]any{"user_id": BotUser, "device_id": device})
	case path == "/v3/joined_rooms" && r.Method == http.MethodGet:
		h.mu.Lock()
		defer h.mu.Unlock()
		reply(w, map[string]any{"joined_rooms": h.joined()})
	case path == "/v3/sync" && r.Method == http.MethodGet:
		h.sync(w, r)
	case strings.HasPrefix(path, "/v3/profile/"):
		h.mu.Lock()
		defer h.mu.Unlock()
		reply(w, map[string]any{"displayname": h.name})
	case strings.HasPrefix(path, "/v3/rooms/"):
		h.inRoom(w, r, strings.Split(strings.TrimPrefix(path, "/v3/rooms/"), "/"), device, body)
	case strings.HasPrefix(path, "/v3/join/") && r.Method == http.MethodPost:
		h.inRoom(w, r, []string{strings.TrimPrefix(path, "/v3/join/"), "join"}, device, body)
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
	if user := identifier["user"]; user != "yard" && user != BotUser || body["password"] != h.password {
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

// isInvited reports whether the bot may join a room, by its last membership.
func (h *Homeserver) isInvited(id string) (invited bool) {
	for _, u := range h.updates {
		if u.room == id && (u.membership != "" || u.event["type"] == "m.room.member") {
			invited = u.membership == "invite"
		}
	}
	return invited
}

// send answers the sending of a message under a key that is the same at each attempt.
func (h *Homeserver) send(w http.ResponseWriter, room *room, key, id, kind string, body map[string]any) {
	event := h.sent[key]
	switch {
	case event == "" && room.muted:
		refuse(w, 403, "M_FORBIDDEN")
		return
	case event == "":
		event = h.append(id, BotUser, kind, body)
	}
	if !h.Forgetful {
		h.sent[key] = event
	}
	reply(w, map[string]any{"event_id": event})
}

func (h *Homeserver) inRoom(
	w http.ResponseWriter, r *http.Request, parts []string, device string, body map[string]any,
) {
	h.mu.Lock()
	defer h.mu.Unlock()
	id, _ := url.PathUnescape(parts[0])
	room := h.room(id)
	rest := strings.Join(parts[1:], "/")
	is := func(method, path string) bool { return r.Method == method && rest == path }
	switch {
	case is("POST", "join") && !h.isInvited(id):
		refuse(w, 403, "M_FORBIDDEN")
	case is("POST", "join"):
		room.members[BotUser] = true
		h.tell(update{room: id, event: map[string]any{
			"type": "m.room.member", "event_id": h.nextEvent(), "sender": BotUser, "state_key": BotUser,
			"content": map[string]any{"membership": "join", "displayname": h.name},
		}})
		reply(w, map[string]any{"room_id": id})
	case is("POST", "leave"):
		delete(room.members, BotUser)
		h.tell(update{room: id, membership: "leave"})
		reply(w, map[string]any{})
	case !room.members[BotUser]:
		refuse(w, 403, "M_FORBIDDEN")
	case is("GET", "state/m.room.encryption") && room.encrypted:
		reply(w, map[string]any{"algorithm": "m.megolm.v1.aes-sha2"})
	case is("GET", "state/m.room.name") && room.name != "":
		reply(w, map[string]any{"name": room.name})
	case r.Method == http.MethodGet && strings.HasPrefix(rest, "state/"):
		content, ok := room.state[strings.TrimPrefix(rest, "state/")]
		if !ok {
			refuse(w, 404, "M_NOT_FOUND")
			return
		}
		reply(w, content)
	case is("GET", "messages"):
		h.page(h.t, w, id, r.URL.Query())
	case len(parts) == 4 && is("PUT", "send/m.room.message/"+parts[3]) && parts[3] != "":
		h.send(w, room, device+" "+id+" "+parts[3], id, parts[2], body)
	default:
		h.t.Errorf("%s %s is not in the specification", r.Method, rest)
		refuse(w, 404, "M_UNRECOGNIZED")
	}
}
