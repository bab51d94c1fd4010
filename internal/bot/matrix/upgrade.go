package matrix

import (
	"cmp"
	"context"
)

// tombstoneContent is the content of m.room.tombstone, which closes an upgraded room.
type tombstoneContent struct {
	Replacement string `json:"replacement_room"`
}

// maxMoved is how many upgrades are remembered, for messages that were on their way to the old room.
const maxMoved = 100

// followTombstone moves on from an upgraded room that refuses messages, and reports whether the bot is in the new room.
func (m *membership) followTombstone(ctx context.Context, room string) (bool, error) {
	if !m.isMember(room) {
		return m.successor(room) != room, nil
	}
	var tombstone tombstoneContent
	if _, err := m.roomState(ctx, room, "m.room.tombstone", &tombstone); err != nil {
		return false, err
	}
	return m.follow(ctx, room, tombstone.Replacement, "")
}

// follow moves from a room to its successor, through the homeserver of the user via, and reports whether the bot is in
// it. While the successor cannot be joined, the bot stays: it accepts an invitation to it from anybody. A sync and a
// refused message may both call follow, even concurrently, so each step may be done twice.
func (m *membership) follow(ctx context.Context, room, successor, via string) (bool, error) {
	if successor == "" || successor == room || !m.isMember(room) {
		return false, nil
	}
	if err := m.changeRoom(ctx, room, func(r *knownRoom) { r.Successor = successor }); err != nil {
		return false, err
	}
	if !m.isMember(successor) {
		if joined, err := m.join(ctx, successor, cmp.Or(via, room)); !joined {
			return false, err
		}
		// Users who may close a room must not be able to send the bot where it was never invited.
		var create createContent
		if _, err := m.roomState(ctx, successor, "m.room.create", &create); err != nil {
			return false, err
		}
		if create.Predecessor.RoomID != room {
			m.log.WarnContext(ctx, "bot: the new room does not name the old one", "room", room, "new", successor)
			m.remark("It left the last room, which was closed and names a successor that does not replace it.")
			if err := m.leave(ctx, successor); err != nil {
				return false, err
			}
			return false, m.leave(ctx, room)
		}
		before, _ := m.room(room)
		if err := m.enter(ctx, successor, before.Direct); err != nil {
			return false, err
		}
	}
	m.log.InfoContext(ctx, "bot: followed an upgrade", "room", room, "new", successor)
	err := m.change(ctx, func(s *savedSession) {
		if s.Moved == nil || len(s.Moved) >= maxMoved {
			s.Moved = map[string]string{}
		}
		s.Moved[room] = successor
	})
	if err != nil {
		return false, err
	}
	return m.isMember(successor), m.leave(ctx, room)
}
