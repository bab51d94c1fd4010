package matrix

import (
	"cmp"
	"context"
	"maps"
	"reflect"
	"slices"
	"sync"
	"sync/atomic"
	"time"

	"switchyard/internal/bot"
	"switchyard/internal/clock"
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

func newSession() savedSession {
	return savedSession{
		Rooms: map[string]knownRoom{}, Moved: map[string]string{}, Invitations: map[string]invitation{},
	}
}

// isDirect reports whether every message in the room is addressed to the bot: there is one other person, who invited it
// to a direct chat or gave the room no name.
func (r knownRoom) isDirect() bool {
	return r.Direct && r.Members <= 2 || r.Name == "" && r.Members == 2
}

// maxNames is how many of the bot's display names are remembered: people use an old one for a while after a change.
const maxNames = 5

func (s *savedSession) rename(name string) {
	if name = bot.Short(name, bot.MaxName); name == "" {
		return
	}
	others := slices.DeleteFunc(slices.Clone(s.Names), func(old string) bool { return old == name })
	s.Names = append([]string{name}, others[:min(len(others), maxNames-1)]...)
}

// session is what the bot knows, in memory and in the store.
type session struct {
	state  bot.State
	key    string                       // in the state
	saving sync.Mutex                   // orders the changes; readers never wait for it
	saved  atomic.Pointer[savedSession] // as it is stored; replaced, never changed
	news   atomic.Value                 // a string: why the bot last declined or left a room
}

// now returns the stored session, which must not be changed.
func (s *session) now() *savedSession { return s.saved.Load() }

func (s *session) load(ctx context.Context) error {
	saved, err := bot.Load(ctx, s.state, s.key, newSession())
	s.saved.Store(&saved)
	return err
}

// change applies f to the session and stores it, even while the bot is stopping.
func (s *session) change(ctx context.Context, f func(*savedSession)) error {
	s.saving.Lock()
	defer s.saving.Unlock()
	changed := *s.now()
	changed.Rooms = maps.Clone(changed.Rooms)
	changed.Moved = maps.Clone(changed.Moved)
	changed.Invitations = maps.Clone(changed.Invitations)
	if f(&changed); reflect.DeepEqual(changed, *s.now()) {
		return nil
	}
	err := bot.Save(ctx, s.state, s.key, changed)
	if err == nil {
		s.saved.Store(&changed)
	}
	return err
}

// changeRoom applies f to one of the bot's rooms and stores the session; it does nothing for any other room.
func (s *session) changeRoom(ctx context.Context, id string, f func(*knownRoom)) error {
	return s.change(ctx, func(saved *savedSession) {
		if room, ok := saved.Rooms[id]; ok {
			f(&room)
			saved.Rooms[id] = room
		}
	})
}

// setMuted records whether the bot may not post in a room, and since when.
func (s *session) setMuted(ctx context.Context, room string, muted bool) error {
	return s.changeRoom(ctx, room, func(r *knownRoom) {
		if !muted {
			r.MutedSinceMS = 0
		} else if r.MutedSinceMS == 0 {
			r.MutedSinceMS = clock.Now().UnixMilli()
		}
	})
}

func (s *session) forget(ctx context.Context, room string) error {
	return s.change(ctx, func(saved *savedSession) { delete(saved.Rooms, room) })
}

func (s *session) isMember(id string) bool {
	_, ok := s.now().Rooms[id]
	return ok
}

func (s *session) Rooms() []bot.Room {
	var rooms []bot.Room
	for id, room := range s.now().Rooms {
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
	saved := s.now()
	for range saved.Moved {
		next, moved := saved.Moved[room]
		if _, member := saved.Rooms[room]; member || !moved {
			break
		}
		room = next
	}
	return room
}

// predecessor returns the bot's room that another one replaces, "" for none.
func (s *session) predecessor(room string) string {
	for id, r := range s.now().Rooms {
		if r.Successor == room {
			return id
		}
	}
	return ""
}
