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

// pieceSize is the average size of a piece of moves, in bytes, and maxPieces the greatest number of pieces. The page of one project
// reads only one of them (make bench, "first look at a project and its charts").
const pieceSize, maxPieces = 32 << 10, 512

// pieceOf returns which of the pieces a project is in.
func pieceOf(project string, pieces int) int {
	h := fnv.New32a()
	_, _ = h.Write([]byte(project))
	return int(h.Sum32() % uint32(pieces))
}

// unreadPieces tracks the pieces of moves that have not been read yet.
type unreadPieces struct {
	pieces int          // how many there were in all
	left   map[int]bool // those not read yet
	whole  bool         // whether the current stays have been read
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

// unreadHistory is the stored history of a project, not decoded yet: decoding those of all projects takes a while, and the page of
// one should not wait for that.
type unreadHistory struct {
	moves []byte
	stays []domain.Stay // those after moves
}

// encodeMoves encodes, in pieces, the moves before a time of all projects that are completely in memory. The caller holds mu.
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
	pieces = make([][]byte, min(1+size/s.pieceSize, maxPieces))
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

// readAllPieces reads the pieces that have not been read yet.
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

// readPiece reads a piece unless it has been read. Projects missing in it are read from stays when needed.
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
	s.registry = nil // the piece may have removed projects: run forget again
	for project, moves := range moves {
		if !s.hasMoves(project) {
			s.keepUnread(project, moves)
		}
	}
	return nil
}

// keepUnread keeps a project's part of a piece, with its later stays, until it is needed. The caller holds mu.
func (s *Stays) keepUnread(project string, moves []byte) {
	u := s.moves.unread
	s.unread[project] = &unreadHistory{moves: moves, stays: u.stays[project]}
	delete(u.stays, project)
	if u.whole {
		s.complete[project] = true
	} else {
		s.movesOnly[project] = true
	}
	if h := s.byProject[project]; h != nil { // it has been needed before
		s.takeIn(h, project)
	}
}

var errShortMoves = errors.New("the stored moves are truncated or in another format")

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

// takeIn decodes the stored history of a project. If that fails, the project's stays are read when needed. The caller holds mu.
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
