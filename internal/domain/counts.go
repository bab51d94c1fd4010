package domain

import (
	"cmp"
	"maps"
	"slices"
	"strings"
)

// Counts are what a digest is about: numbers by event type and by the keys below.
type Counts map[string]int

const (
	FinishedCount = string(Finished)
	MovedCount    = "moved"  // other moves
	AlertCount    = "alert." // and a kind of alerts
)

// Describe says what was counted: "12 finished, 2 blocked, 1 question".
func (c Counts) Describe() string {
	var parts []string
	left := maps.Clone(c)
	say := func(key, word string) {
		if n := left[key]; n > 0 {
			parts = append(parts, Thousands(n)+" "+word)
		}
		delete(left, key)
	}
	say(FinishedCount, FinishedCount)
	say(MovedCount, MovedCount)
	for _, kind := range EventKinds {
		if left[string(kind.Type)] > 0 && kind.Alert != "" { // the same is not said twice
			delete(left, AlertCount+string(kind.Alert))
		}
		say(string(kind.Type), cmp.Or(kind.Choice, strings.ReplaceAll(string(kind.Type), "_", " ")))
	}
	for _, kind := range AlertKinds() {
		word := kind.Word()
		if n := left[AlertCount+string(kind)]; kind == AlertQuestion {
			word, _ = strings.CutPrefix(Count(n, "question", "questions"), Thousands(n)+" ")
		}
		say(AlertCount+string(kind), word)
	}
	for _, key := range slices.Sorted(maps.Keys(left)) {
		say(key, strings.ReplaceAll(key, "_", " "))
	}
	return strings.Join(parts, ", ")
}
