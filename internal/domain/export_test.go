package domain

// Len returns the number of moves in the history.
func (h *StageHistory) Len() int { return len(h.moves) }
