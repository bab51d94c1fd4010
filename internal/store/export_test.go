package store

func init() {
	maxMatches, fewMatches, scanned = 500, 30, 200
}

// MaxMatches is how many matches are read from the index of words.
func MaxMatches() int { return maxMatches }
