package service

import (
	"math"
	"strings"
	"unicode"

	"switchyard/internal/domain"
	"switchyard/internal/fold"
)

// maxNear is how many pairs of letters are compared at most after a search has found nothing: 20,000 names of 40
// letters with a search of 15. It takes a tenth of a second.
const maxNear = 20_000_000

// nearest returns the words of the name (of a project, an agent or a story on a board) that are nearest to the folded
// words, in that order. It returns "" if no name has something near each of them.
func nearest(boards *Boards, all []domain.RegisteredAgent, words []string) (meant string) {
	var names []string
	for _, p := range boards.Registry.Projects {
		names = append(names, fold.Text(p.Name))
	}
	for _, a := range all {
		names = append(names, fold.Text(a.Label))
	}
	for _, board := range boards.searched {
		if board == nil {
			continue
		}
		for _, story := range board().stories {
			names = append(names, story.name())
		}
	}
	compared, best, typed := 0, math.MaxInt, 10
	for _, word := range words {
		typed += len(word)
	}
	for _, name := range names {
		if compared += typed * len(name); compared > maxNear || best <= 1 {
			break
		}
		if near, apart := nearIn(name, words); near != "" && apart < best {
			meant, best = near, apart
		}
	}
	return meant
}

func nearIn(name string, words []string) (near string, apart int) {
	parts := strings.FieldsFunc(name, func(r rune) bool { return !unicode.IsLetter(r) && !unicode.IsDigit(r) })
	found := make([]string, len(words))
	for i, word := range words {
		runes := []rune(word)
		best := len(runes)/4 + 1 // one letter in four may be wrong
		for _, part := range parts {
			if d := distance(runes, []rune(part), best); d < best {
				best, found[i] = d, part
			}
		}
		if found[i] == "" {
			return "", 0
		}
		apart += best
	}
	return strings.Join(found, " "), apart
}

// distance returns how many letters of a word must be added, removed, changed or swapped with a neighbour to get a
// beginning of the other word; limit if there are that many or more.
func distance(word, other []rune, limit int) int {
	if len(word)-len(other) >= limit {
		return limit
	}
	other = other[:min(len(other), len(word)+limit)]
	before, row, next := make([]int, len(other)+1), make([]int, len(other)+1), make([]int, len(other)+1)
	for j := range row {
		row[j] = j
	}
	for i, letter := range word {
		next[0] = i + 1
		least := next[0]
		for j, o := range other {
			cost := 1
			if letter == o {
				cost = 0
			}
			next[j+1] = min(row[j]+cost, row[j+1]+1, next[j]+1)
			if i > 0 && j > 0 && letter == other[j-1] && word[i-1] == o {
				next[j+1] = min(next[j+1], before[j-1]+1)
			}
			least = min(least, next[j+1])
		}
		if least >= limit {
			return limit
		}
		before, row, next = row, next, before
	}
	best := limit
	for j := max(1, len(word)-limit); j < len(row); j++ { // only beginnings of about that length
		best = min(best, row[j])
	}
	return best
}
