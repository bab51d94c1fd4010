package matrix

import (
	"cmp"
	"context"
	"encoding/json"
	"slices"
	"sync"
	"time"

	"switchyard/internal/bot"
)

// savedSession is the state kept across restarts. Transaction ids belong to a device, so the device stays the same.
type savedSession struct {
	UserID      string                `json:"user_id"`
	DeviceID    string                `json:"device_id"`
	Names       []string              `json:"names,omitempty"` // display names, latest first
	Token       string                `json:"access_token"`
	PasswordMAC string                `json:"password_mac"` // shows whether the password has changed and must be checked
	NextBatch   string                `json:"next_batch"`
	Rooms       map[string]knownRoom  `json:"rooms"`
	Moved       map[string]string     `json:"moved,omitempty"`       // upgraded room → the room that replaced it
	Invitations map[string]invitation `json:"invitations,omitempty"` // room → its unanswered invitation
}

type knownRoom struct {
	Name         string `json:"name"`
	Direct       bool   `json:"direct,omitempty"`         // invited to as a direct chat
	Members      int    `json:"members,omitempty"`        // 0 while unknown
	MutedSinceMS int64  `json:"muted_since_ms,omitempty"` // since when the bot may not post; 0 if it may
	Successor    string `json:"successor,omitempty"`      // the room that replaces this one, until the bot is in it
}

// isDirect reports whether every message in the room is addressed to the bot: there is one other person, who invited it
// to a direct chat or gave the room no name.
func (r knownRoom) isDirect() bool {
	return r.Direct && r.Members <= 2 || r.Name == "" && r.Members == 2
}

// maxNames is how many of the bot's display names are remembered: people use an old one for a while after a change.
const maxNames = 5

// rename records the bot's display name.
func (s *savedSession) rename(name string) {
	if name = bot.Short(name, bot.MaxName); name == "" || len(s.Names) > 0 && s.Names[0] == name {
		return
	}
	others := slices.DeleteFunc(slices.Clone(s.Names), func(n string) bool { return n == name })
	s.Names = append([]string{name}, others...)
	s.Names = s.Names[:min(len(s.Names), maxNames)]
}

// session is what the bot knows, in memory and in the store.
type session struct {
	state bot.State
	key   string // in the state

	saving sync.Mutex // orders the writes; readers never wait for it
	stored string     // what is in the store, guarded by saving

	mu    sync.Mutex // guards the fields below; never held during I/O
	saved savedSession
	news  string // why the bot last declined or left a room
}

// load reads the session from the store.
func (s *session) load(ctx context.Context) error {
	var saved savedSession
	stored, err := s.state.State(ctx, s.key)
	if err == nil && stored != "" {
		err = json.Unmarshal([]byte(stored), &saved)
	}
	if saved.Rooms == nil {
		saved.Rooms = map[string]knownRoom{}
	}
	s.mu.Lock()
	defer s.mu.Unlock()
	s.saved = saved
	return err
}

// change applies f to the session and stores it, even while the bot is stopping.
func (s *session) change(ctx context.Context, f func(*savedSession)) error {
	s.saving.Lock()
	defer s.saving.Unlock()
	s.mu.Lock()
	f(&s.saved)
	text, err := json.Marshal(s.saved)
	s.mu.Unlock()
	if err != nil || string(text) == s.stored {
		return err
	}
	if err := s.state.SetState(context.WithoutCancel(ctx), s.key, string(text)); err != nil {
		return err
	}
	s.stored = string(text)
	return nil
}

// changeRoom applies f to one of the bot's rooms and stores the session; it does nothing for any other room.
func (s *session) changeRoom(ctx context.Context, id string, f func(*knownRoom)) error {
	before, ok := s.room(id)
	after := before
	if f(&after); !ok || after == before {
		return nil
	}
	return s.change(ctx, func(saved *savedSession) {
		if room, ok := saved.Rooms[id]; ok {
			f(&room)
			saved.Rooms[id] = room
		}
	})
}

func (s *session) forget(ctx context.Context, room string) error {
	if !s.isMember(room) {
		return nil
	}
	return s.change(ctx, func(saved *savedSession) { delete(saved.Rooms, room) })
}

// now returns the session; its maps must not be used.
func (s *session) now() savedSession {
	s.mu.Lock()
	defer s.mu.Unlock()
	return s.saved
}

// room returns what is known about one of the bot's rooms; false if the bot is not a member.
func (s *session) room(id string) (knownRoom, bool) {
	s.mu.Lock()
	defer s.mu.Unlock()
	room, ok := s.saved.Rooms[id]
	return room, ok
}

func (s *session) isMember(id string) bool {
	_, ok := s.room(id)
	return ok
}

// Rooms returns the rooms that the bot is known to be a member of.
func (s *session) Rooms() []bot.Room {
	s.mu.Lock()
	defer s.mu.Unlock()
	rooms := make([]bot.Room, 0, len(s.saved.Rooms))
	for id, room := range s.saved.Rooms {
		r := bot.Room{ID: id, Name: cmp.Or(room.Name, id)}
		if room.MutedSinceMS != 0 {
			r.MutedSince = time.UnixMilli(room.MutedSinceMS)
		}
		rooms = append(rooms, r)
	}
	slices.SortFunc(rooms, func(a, b bot.Room) int { return cmp.Compare(a.ID, b.ID) })
	return rooms
}

// successor returns the room that has replaced this one, or the room itself.
func (s *session) successor(room string) string {
	s.mu.Lock()
	defer s.mu.Unlock()
	for range len(s.saved.Moved) {
		next, moved := s.saved.Moved[room]
		if _, member := s.saved.Rooms[room]; member || !moved {
			break
		}
		room = next
	}
	return room
}

// predecessor returns the bot's room that another one replaces, "" for none.
func (s *session) predecessor(room string) string {
	s.mu.Lock()
	defer s.mu.Unlock()
	for id, r := range s.saved.Rooms {
		if r.Successor == room {
			return id
		}
	}
	return ""
}

func (s *session) remark(news string) {
	s.mu.Lock()
	defer s.mu.Unlock()
	s.news = news
}
