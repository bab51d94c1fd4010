package service

import (
	"context"
	"encoding/binary"
	"errors"
	"hash/fnv"
	"maps"
	"time"

	"switchyard/internal/domain"
)

// movesFormat begins each piece.
const movesFormat = 4

// pieceSize is how large a piece of moves is on average, in bytes, maxPieces how many there are at most: the page of one project
// reads one of them, not all (make bench, "first look at a project and its charts"). Tests have smaller ones.
var pieceSize = 32 << 10

const maxPieces = 512

// pieceOf returns in which of so many pieces a project is.
func pieceOf(project string, pieces int) int {
	h := fnv.New32a()
	_, _ = h.Write([]byte(project))
	return int(h.Sum32() % uint32(pieces))
}

// unreadPieces are the pieces of moves that were not read yet.
type unreadPieces struct {
	pieces int          // how many there were in all
	left   map[int]bool // which of them
	whole  bool         // whether stays has those that last
	stays  map[string][]domain.Stay
}

func newUnreadPieces(pieces int, whole bool, stays []domain.Stay) unreadPieces {
	u := unreadPieces{pieces: pieces, left: map[int]bool{}, whole: whole, stays: map[string][]domain.Stay{}}
	for piece := range pieces {
		u.left[piece] = true
	}
	for _, stay := range stays {
		u.stays[stay.Project] = append(u.stays[stay.Project], stay)
	}
	return u
}

// unreadHistory is what was stored of a project and not decoded yet. Decoding that of all projects takes a while, for which the
// page of one should not wait.
type unreadHistory struct {
	moves []byte
	stays []domain.Stay // after these
}

// encodeMoves encodes the moves before a time, of all projects that memory has whole, in pieces. Callers hold mu.
func (s *Stays) encodeMoves(before time.Time) (pieces [][]byte) {
	projects := len(s.complete) + len(s.movesOnly)
	each := max(minSavedMoves, maxSavedMoves/max(1, projects))
	encoded, size := make(map[string][]byte, projects), 0
	for _, projects := range []map[string]bool{s.complete, s.movesOnly} {
		for project := range projects {
			encoded[project] = s.of(project).AppendMoves(nil, before, each)
			size += len(encoded[project])
		}
	}
	pieces = make([][]byte, min(1+size/pieceSize, maxPieces))
	count := make([]uint64, len(pieces))
	for project, moves := range encoded {
		i := pieceOf(project, len(pieces))
		count[i]++
		pieces[i] = append(binary.AppendUvarint(domain.AppendString(pieces[i], project), uint64(len(moves))), moves...)
	}
	for i, piece := range pieces {
		pieces[i] = append(binary.AppendUvarint([]byte{movesFormat}, count[i]), piece...)
	}
	return pieces
}

// readAllPieces reads the pieces that were not read yet.
func (s *Stays) readAllPieces(ctx context.Context) error {
	s.mu.Lock()
	left := maps.Clone(s.moves.unread.left)
	s.mu.Unlock()
	return s.readPieces(ctx, left)
}

// readPiecesOf reads the pieces that hold these projects.
func (s *Stays) readPiecesOf(ctx context.Context, projects map[string]bool) error {
	s.mu.Lock()
	left := map[int]bool{}
	if u := s.moves.unread; len(u.left) > 0 {
		for project := range projects {
			if piece := pieceOf(project, u.pieces); u.left[piece] {
				left[piece] = true
			}
		}
	}
	s.mu.Unlock()
	return s.readPieces(ctx, left)
}

func (s *Stays) readPieces(ctx context.Context, pieces map[int]bool) error {
	for piece := range pieces {
		if err := s.readPiece(ctx, piece); err != nil {
			return err
		}
	}
	return nil
}

// readPiece reads a piece, unless that was done. What it lacks is read from stays when it is needed.
func (s *Stays) readPiece(ctx context.Context, piece int) error {
	s.pieces.Lock()
	defer s.pieces.Unlock()
	s.mu.Lock()
	left, before, generation := s.moves.unread.left[piece], s.moves.before, s.generation
	s.mu.Unlock()
	if !left {
		return nil
	}
	encoded, err := s.store.MovesPiece(ctx, piece, before)
	if err != nil && domain.CodeOf(err) != domain.NotFound {
		return err
	}
	moves, _ := splitPiece(encoded)
	s.mu.Lock()
	defer s.mu.Unlock()
	if s.generation != generation {
		return nil
	}
	delete(s.moves.unread.left, piece)
	s.revision++
	s.registry = nil // it may hold projects that are gone
	for project, moves := range moves {
		if !s.hasMoves(project) {
			s.keepUnread(project, moves)
		}
	}
	return nil
}

// keepUnread keeps what a piece has of a project, with its stays since, until it is needed. Callers hold mu.
func (s *Stays) keepUnread(project string, moves []byte) {
	u := s.moves.unread
	s.unread[project] = &unreadHistory{moves: moves, stays: u.stays[project]}
	delete(u.stays, project)
	if u.whole {
		s.complete[project] = true
	} else {
		s.movesOnly[project] = true
	}
	if h := s.byProject[project]; h != nil { // somebody has asked for it before
		s.takeIn(h, project)
	}
}

var errShortMoves = errors.New("moves that were saved are of another format, or cut off")

// splitPiece returns the moves of each project that a piece holds.
func splitPiece(b []byte) (map[string][]byte, error) {
	if len(b) == 0 || b[0] != movesFormat {
		return nil, errShortMoves
	}
	n, b, err := domain.CutNumber(b[1:])
	if err != nil {
		return nil, err
	}
	moves := map[string][]byte{}
	for range n {
		var project string
		if project, b, err = domain.CutString(b); err != nil {
			return nil, err
		}
		var length uint64
		if length, b, err = domain.CutNumber(b); err != nil || length > uint64(len(b)) {
			return nil, errors.Join(errShortMoves, err)
		}
		moves[project], b = b[:length], b[length:]
	}
	return moves, nil
}

// takeIn decodes what was stored of a project. If that fails, the stays that it was made from are read when they are needed.
// Callers hold mu.
func (s *Stays) takeIn(h *domain.StageHistory, project string) {
	u := s.unread[project]
	delete(s.unread, project)
	if _, err := h.RestoreMoves(u.moves); err != nil {
		*h = domain.StageHistory{}
		delete(s.complete, project)
		delete(s.movesOnly, project)
		return
	}
	for _, stay := range u.stays {
		h.Restore(stay)
	}
}
