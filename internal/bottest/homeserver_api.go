package bottest

import (
	"encoding/json"
	"fmt"
	"net/http"
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
	case path == "/v3/account/whoami" && r.Method == http.MethodGet:
		reply(w, map[string]any{"user_id": BotUser, "device_id": device})
	case path == "/v3/joined_rooms" && r.Method == http.MethodGet:
		h.joinedRooms(w)
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
