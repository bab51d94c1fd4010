package domain

import (
	"cmp"
	"encoding/binary"
	"maps"
	"slices"
	"time"
)

// olderMoves counts moves of a day that a history no longer keeps individually.
type olderMoves struct {
	day      int32 // see dayNumber
	from, to uint8
}

// dayNumber numbers days in t's time zone.
func dayNumber(t time.Time) int32 {
	year, month, day := t.Date()
	return int32(time.Date(year, month, day, 0, 0, 0, 0, time.UTC).Unix() / (24 * 60 * 60))
}

// countOlder counts moves that are about to be removed, for charts.
func (h *StageHistory) countOlder(moves []move) {
	if h.older == nil {
		h.older = map[olderMoves]uint32{}
	}
	newest := int32(0)
	for _, m := range moves {
		day := dayNumber(time.UnixMilli(m.atMS))
		if o := (olderMoves{day, m.from, m.to}); h.older[o] > 0 || len(h.older) < maxOlder {
			h.older[o]++
		}
		newest = max(newest, day)
	}
	h.forgetOlder(newest)
}

// forgetOlder removes counters that charts from day on no longer need.
func (h *StageHistory) forgetOlder(day int32) {
	maps.DeleteFunc(h.older, func(o olderMoves, _ uint32) bool { return o.day <= day-2*ChartDays })
}

// chartOlder adds the finished stories among them to charts whose first day is start.
func (h *StageHistory) chartOlder(c *Charts, start time.Time, finishes [][]bool) {
	first := dayNumber(start)
	for o, n := range h.older {
		if !finishes[o.from][o.to] {
			continue
		}
		switch at := int(o.day - first); {
		case at >= 0:
			c.Days[min(at, len(c.Days)-1)].Finished += int(n)
		case at >= -ChartDays:
			c.Before += int(n)
		}
	}
}

func (h *StageHistory) appendOlder(b []byte) []byte {
	b = binary.AppendUvarint(b, uint64(len(h.older)))
	for _, o := range slices.SortedFunc(maps.Keys(h.older), func(a, b olderMoves) int {
		return cmp.Or(cmp.Compare(a.day, b.day), cmp.Compare(a.from, b.from), cmp.Compare(a.to, b.to))
	}) {
		b = binary.AppendUvarint(append(binary.AppendVarint(b, int64(o.day)), o.from, o.to), uint64(h.older[o]))
	}
	return b
}

// restoreOlder decodes counters written by appendOlder, and returns the rest of b.
func (h *StageHistory) restoreOlder(b []byte) (rest []byte, err error) {
	n, b, err := CutNumber(b)
	if err != nil || n > maxOlder {
		return nil, errBadMoves
	}
	h.older = make(map[olderMoves]uint32, n)
	for range n {
		day, size := binary.Varint(b)
		if size <= 0 || len(b) < size+2 {
			return nil, errBadMoves
		}
		o := olderMoves{int32(day), b[size], b[size+1]}
		var count uint64
		if count, b, err = CutNumber(b[size+2:]); err != nil || max(int(o.from), int(o.to)) >= len(h.names) {
			return nil, errBadMoves
		}
		h.older[o] = uint32(count)
	}
	return b, nil
}
