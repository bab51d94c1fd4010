package views

import (
	"cmp"
	"slices"
	"strings"

	"switchyard/internal/domain"
)

// Signal is one of the three signals, one for a question, or none. It always comes with a word.
type Signal string

const (
	SignalClear   Signal = "signal-clear"
	SignalCaution Signal = "signal-caution"
	SignalStop    Signal = "signal-stop"
	SignalAsks    Signal = "signal-asks"
	SignalNone    Signal = "signal-none"
)

// order returns the signal's rank, the worst first.
func (s Signal) order() int {
	switch s {
	case SignalStop:
		return 0
	case SignalCaution, SignalAsks:
		return 1
	}
	return 2
}

// projectState returns the state of a project as a signal and in words, given the troubles of its stories that come
// from time alone.
func projectState(p domain.ProjectPipeline, overdue domain.Overdue) (Signal, string) {
	list := troubles(&p, overdue)
	if len(list) == 0 {
		return SignalClear, "clear"
	}
	words := domain.Map(list, func(t trouble) string { return t.words })
	return list[0].signal, strings.Join(words, ", ")
}

// storyState returns the state of a story; SignalNone and "" if it has no trouble.
func storyState(item domain.Item, overdue domain.Overdue) (Signal, string) {
	if kind, reason := item.Trouble(); kind != "" {
		last, _ := lastLine(reason)
		return signal(kind.Signal()), upper(kind.Word()) + ": " + last
	}
	switch kind := overdue.Of(item.StoryID); {
	case kind == domain.AlertConflicts && item.Work != nil && item.Work.Clash != nil:
		return SignalCaution, "Conflicts with " + domain.Cut(overdue.Base, 60) + " in " +
			domain.Count(item.Work.Clash.Count, "file", "files")
	case kind == domain.AlertUnmerged && item.Work != nil && item.Work.Unmerged != nil:
		return SignalCaution, "Not on " + domain.Cut(overdue.Base, 60) + ": " +
			domain.Count(item.Work.Unmerged.Ahead, "commit", "commits") + " ahead"
	case kind != "":
		return signal(kind.Signal()), upper(kind.Word())
	}
	return SignalNone, ""
}

// stateWord returns the state of a story as storyState does, in a word or two.
func stateWord(item domain.Item, overdue domain.Overdue) (Signal, string) {
	kind, _ := item.Trouble()
	if kind = cmp.Or(kind, overdue.Of(item.StoryID)); kind == "" {
		return SignalNone, ""
	}
	return signal(kind.Signal()), kind.Word()
}

func signal(s domain.Signal) Signal { return Signal("signal-" + s) }

func howMany[T any](list []T, is func(T) bool) (n int) {
	for _, one := range list {
		if is(one) {
			n++
		}
	}
	return n
}

func split[T any](list []T, n int) (first, rest []T) {
	n = min(n, len(list))
	return list[:n], list[n:]
}

// troubledFirst returns stories by trouble, putting those that agents work on before the others, so that none of them
// is folded away while others are shown.
func (p ProjectProps) troubledFirst(items []domain.Item) []domain.Item {
	return sortedBy(items, func(item domain.Item) int64 {
		signal, _ := storyState(item, p.Overdue)
		w := wagon{signal: signal, agent: p.Owners.Of(p.Project.Name, item.StoryID).Name}
		if p.asks(item.StoryID) != nil {
			w.asks = domain.AlertQuestion.Word()
		}
		return int64(w.order())
	})
}

// newestFirst returns stories by arrival, newest first: those finished long ago are folded away.
func newestFirst(items []domain.Item) []domain.Item {
	return sortedBy(items, func(item domain.Item) int64 { return -item.Since.UnixMilli() })
}

// sortedBy returns stories by a key, smallest first. Since items are large it sorts their positions; equal ones keep
// their order.
func sortedBy(items []domain.Item, key func(domain.Item) int64) []domain.Item {
	type place struct {
		key int64
		at  int
	}
	places := make([]place, len(items))
	for i, item := range items {
		places[i] = place{key(item), i}
	}
	slices.SortFunc(places, func(a, b place) int { return cmp.Or(cmp.Compare(a.key, b.key), a.at-b.at) })
	return domain.Map(places, func(p place) domain.Item { return items[p.at] })
}

// times says how often something has happened to a story, if more than once: ", for the 3rd time".
func times(s domain.Story, kind domain.EventType) string {
	n := howMany(s.History, func(e domain.PastEvent) bool { return e.Type == kind })
	if n < 2 {
		return ""
	}
	ending := "th"
	if n/10%10 != 1 && n%10 >= 1 && n%10 <= 3 {
		ending = []string{"st", "nd", "rd"}[n%10-1]
	}
	return ", for the " + thousands(n) + ending + " time"
}
