package domain

import (
	"encoding/binary"
	"errors"
	"hash/fnv"
	"maps"
	"slices"
	"time"
)

// move is kept small, since there may be many.
type move struct {
	atMS     int64
	stayedMS int64 // time in from; negative if unknown
	from, to uint8
	story    uint32 // hash of its id
}

func (h *StageHistory) remember(m move) {
	if len(h.moves) >= maxMoves {
		h.countOlder(h.moves[:maxMoves/10])
		h.moves = slices.Delete(h.moves, 0, maxMoves/10)
	}
	h.moves = append(h.moves, m)
	h.limits = nil
}

// correct replaces a recent move by another one, or removes it if is is nil.
func (h *StageHistory) correct(was move, is *move) {
	h.limits = nil
	for i, m := range slices.Backward(h.moves) {
		if m != was {
			continue
		}
		if is == nil {
			h.moves = slices.Delete(h.moves, i, i+1)
		} else {
			h.moves[i] = *is
		}
		return
	}
}

// newMove returns a story's move between two stages, false when there are too many stages.
func (h *StageHistory) newMove(storyID, from, to string, arrived, left time.Time) (m move, ok bool) {
	m = move{atMS: left.UnixMilli(), stayedMS: -1, from: h.index(from), to: h.index(to), story: storyHash(storyID)}
	if !arrived.IsZero() {
		m.stayedMS = max(-1, left.UnixMilli()-arrived.UnixMilli())
	}
	return m, max(m.from, m.to) < maxStageNames
}

// storyHash is the same in every process, because moves are saved.
func storyHash(id string) uint32 {
	h := fnv.New32a()
	_, _ = h.Write([]byte(id))
	return h.Sum32()
}

// AppendMoves appends the newest limit moves before before, in about 12 bytes each, and the counters of the older ones.
func (h *StageHistory) AppendMoves(b []byte, before time.Time, limit int) []byte {
	b = binary.AppendUvarint(b, uint64(len(h.names)))
	for _, name := range h.names {
		b = AppendString(b, name)
	}
	moves := slices.DeleteFunc(slices.Clone(h.moves), func(m move) bool { return m.atMS >= before.UnixMilli() })
	older := StageHistory{older: maps.Clone(h.older)}
	if over := len(moves) - limit; over > 0 {
		older.countOlder(moves[:over])
		moves = moves[over:]
	}
	b = binary.AppendUvarint(b, uint64(len(moves)))
	last := int64(0)
	for _, m := range moves {
		b = binary.AppendVarint(b, m.atMS-last)
		b = binary.AppendUvarint(b, uint64(m.stayedMS+1))
		b = binary.LittleEndian.AppendUint32(append(b, m.from, m.to), m.story)
		last = m.atMS
	}
	return older.appendOlder(b)
}

var errBadMoves = errors.New("the stored moves are malformed")

// RestoreMoves decodes the moves at the beginning of b, which are older than all in the history, and returns the rest of b.
func (h *StageHistory) RestoreMoves(b []byte) (rest []byte, err error) {
	names, b, err := CutNumber(b)
	if err != nil || names > maxStageNames {
		return nil, errBadMoves
	}
	for range names {
		var name string
		if name, b, err = CutString(b); err != nil {
			return nil, err
		}
		h.names = append(h.names, name)
	}
	n, b, err := CutNumber(b)
	if err != nil || n > maxMoves {
		return nil, errBadMoves
	}
	h.moves, h.version = slices.Grow(h.moves, int(n)), h.version+1
	last := int64(0)
	for range n {
		step, size := binary.Varint(b)
		if size <= 0 {
			return nil, errBadMoves
		}
		var stayed uint64
		if stayed, b, err = CutNumber(b[size:]); err != nil || len(b) < 6 || max(int(b[0]), int(b[1])) >= len(h.names) {
			return nil, errBadMoves
		}
		last += step
		h.moves = append(h.moves, move{
			atMS: last, stayedMS: int64(stayed) - 1, from: b[0], to: b[1], story: binary.LittleEndian.Uint32(b[2:]),
		})
		b = b[6:]
	}
	return h.restoreOlder(b)
}

// AppendString appends the length of a text and the text.
func AppendString(b []byte, text string) []byte {
	return append(binary.AppendUvarint(b, uint64(len(text))), text...)
}

// CutString decodes a text at the beginning of b, written by AppendString, and returns the rest of b.
func CutString(b []byte) (text string, rest []byte, err error) {
	length, b, err := CutNumber(b)
	if err != nil || length > uint64(len(b)) {
		return "", nil, errBadMoves
	}
	return string(b[:length]), b[length:], nil
}

// CutNumber decodes a number at the beginning of b and returns the rest of b.
func CutNumber(b []byte) (n uint64, rest []byte, err error) {
	n, size := binary.Uvarint(b)
	if size <= 0 {
		return 0, nil, errBadMoves
	}
	return n, b[size:], nil
}
