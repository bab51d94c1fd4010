package domain

import (
	"cmp"
	"encoding/json"
	"slices"
	"strings"
	"time"
	"unicode"
	"unicode/utf8"
)

// TokenHolder is the prefix of a named token's account; its id follows.
const TokenHolder = "token "

// Claim says who works on a story. A story has at most one.
type Claim struct {
	Project, StoryID string
	Holder           string // as Actor.Holder returns it
	By               string // the holder's name, for people
	AgentID          string // "" unless an agent holds it
	Since            time.Time
	Stage            string // where the claim leaves the story, "" if unknown
	Worktree         string // where the holder's changes are written, "" for where the story is
}

func (c Claim) Key() StoryKey { return StoryKey{c.Project, c.StoryID} }

// Is reports whether both are the same claim, under whatever name it is shown.
func (c Claim) Is(other Claim) bool {
	return c.Key() == other.Key() && c.Holder == other.Holder && c.Since.Equal(other.Since)
}

// EndsClaim reports whether being in a stage ends a story's claim: the stage that finishes stories, or a later one of
// InOrder.
func EndsClaim(stages []Stage, stage string) bool {
	done := DoneStage(stages)
	return done >= 0 &&
		slices.ContainsFunc(stages[done:], func(s Stage) bool { return s.Name == stage })
}

// NextStories returns the ids of the first most free items in the order in which they are started: by the first number
// in the id, those without one last, then by the id, byte by byte.
func NextStories(items []Item, most int, free func(*Item) bool) (ids []string) {
	for i := range items {
		id := items[i].StoryID
		if len(ids) == most && compareStories(id, ids[most-1]) > 0 || !free(&items[i]) {
			continue
		}
		at, _ := slices.BinarySearchFunc(ids, id, compareStories)
		ids = slices.Insert(ids[:min(len(ids), most-1)], at, id)
	}
	return ids
}

func compareStories(a, b string) int { return CompareNumbered(a, b, firstNumber(a), firstNumber(b)) }

// CompareNumbered orders texts by their numbers x and y, digits of any length, then byte by byte. Texts without a
// number ("") come last.
func CompareNumbered(a, b, x, y string) int {
	if x == "" || y == "" {
		return cmp.Or(cmp.Compare(len(y), len(x)), cmp.Compare(a, b))
	}
	x, y = strings.TrimLeft(x, "0"), strings.TrimLeft(y, "0")
	return cmp.Or(cmp.Compare(len(x), len(y)), cmp.Compare(x, y), cmp.Compare(a, b))
}

func firstNumber(text string) string {
	isDigit := func(r rune) bool { return '0' <= r && r <= '9' }
	from := strings.IndexFunc(text, isDigit)
	if from < 0 {
		return ""
	}
	rest := strings.TrimLeftFunc(text[from:], isDigit)
	return text[from : len(text)-len(rest)]
}

// StoryChange is a change of a story that was made through the gateway.
type StoryChange struct {
	Project, StoryID string
	Type             EventType // StageTransition or StoryBlocked
	Value            string    // the stage, or the reason
	At               time.Time // just before it was made, by the clock that is also used for received events
	By               string
	Via              Channel
}

// PastEvent is an event of a story's history. By and Via are "" if nobody caused it through the gateway.
type PastEvent struct {
	Event
	By       string
	Via      Channel
	Finished bool // it has finished its story
}

// MarshalJSON encodes the event in the API's form, with by and via, which are null if "".
func (e PastEvent) MarshalJSON() ([]byte, error) {
	b := e.AppendJSON(nil)
	if e.Type == StoryReviewed { // its record has them
		return b, nil
	}
	by := struct {
		By  *string  `json:"by"`
		Via *Channel `json:"via"`
	}{}
	if e.Via != "" {
		by.By, by.Via = &e.By, &e.Via
	}
	who, _ := json.Marshal(by) // strings always encode
	return append(append(b[:len(b)-1], ','), who[1:]...), nil
}

// ChangeSeen is how long the event of a change may take to arrive, and changeEarly how much before the change it may
// seem to, since gateways' clocks differ a little.
const ChangeSeen, changeEarly = 5 * time.Minute, 500 * time.Millisecond

// History says who caused which of the events, of any stories. Both lists are oldest first, and so are a story's moves
// into one stage and their events. The event of an old change may not be listed.
func History(events []Event, changes []StoryChange) []PastEvent {
	past := make([]PastEvent, len(events))
	told := map[changeKey]*changeMatch{}
	for _, c := range changes {
		key := changeKey{StoryKey{c.Project, c.StoryID}, c.Type, c.Value}
		if c.Type == StoryBlocked {
			key.value = CutReason(c.Value)
		}
		if told[key] == nil {
			told[key] = &changeMatch{}
		}
		told[key].changes = append(told[key].changes, c)
	}
	for i, e := range events {
		past[i].Event = e
		if len(changes) == 0 {
			continue
		}
		d := e.Details()
		key := changeKey{StoryKey{e.Project, d.StoryID}, e.Type, d.ToStage}
		if e.Type == StoryBlocked {
			key.value = CutReason(d.Reason)
		}
		if of := told[key]; of != nil {
			of.events = append(of.events, &past[i])
		}
	}
	for _, of := range told {
		of.match()
	}
	return past
}

// changeKey is what several changes of a story, and their events, may have in common.
type changeKey struct {
	story StoryKey
	kind  EventType
	value string
}

type changeMatch struct {
	changes []StoryChange
	events  []*PastEvent
}

// match gives as many changes as possible an event each, in order: first the newest change gets the last event that
// fits, and so on backwards, then each the first one that is free and not before it.
func (t changeMatch) match() {
	chosen := make([]int, len(t.changes))
	after := func(c, e int) time.Duration { return t.events[e].ReceivedAt.Sub(t.changes[c].At) }
	end := len(t.events)
	for c := len(t.changes) - 1; c >= 0; c-- {
		for end > 0 && after(c, end-1) > ChangeSeen {
			end--
		}
		if chosen[c] = -1; end > 0 && after(c, end-1) >= -changeEarly {
			end--
			chosen[c] = end
		}
	}
	next := 0
	for c, last := range chosen {
		if last < 0 {
			continue
		}
		for next < last && after(c, next) < 0 {
			next++
		}
		t.events[next].By, t.events[next].Via = t.changes[c].By, t.changes[c].Via
		next++
	}
}

// Mentions reports whether text has word as a whole word: "1_pay" is not in "21_pay", nor in "1_pay-2".
func Mentions(text, word string) bool {
	for word != "" {
		before, after, found := strings.Cut(text, word)
		if !found {
			return false
		}
		last, _ := utf8.DecodeLastRuneInString(before)
		next, _ := utf8.DecodeRuneInString(after)
		if !inWord(last) && !inWord(next) {
			return true
		}
		_, size := utf8.DecodeRuneInString(word)
		text = text[len(before)+size:]
	}
	return false
}

func inWord(r rune) bool { return r == '_' || r == '-' || unicode.IsLetter(r) || unicode.IsDigit(r) }

// Owner is who works on a story, as its badge shows.
type Owner struct {
	Name    string // "" for nobody
	AgentID string // "" for a person or program
	Holder  string // of the claim, "" if only its output mentions the story
	Output  string // the agent's, "" if unknown
}

// Owners are the owners of stories: who has claimed a story, or else the agent of its project whose output mentions it.
type Owners struct {
	claims map[StoryKey]Claim
	words  map[StoryKey]Agent // the first agent that mentions a word
	agents []Agent            // with output
	output map[string]string  // by the agent's id
}

// NewOwners takes the claims, and the agents that are alive.
func NewOwners(claims map[StoryKey]Claim, agents []Agent) *Owners {
	o := &Owners{claims: claims, words: map[StoryKey]Agent{}, output: map[string]string{}}
	for _, a := range agents {
		if a.Project == "" || a.Detail == "" {
			continue
		}
		o.agents, o.output[a.ID] = append(o.agents, a), a.Detail
		for word := range strings.FieldsFuncSeq(a.Detail, func(r rune) bool { return !inWord(r) }) {
			key := StoryKey{a.Project, word}
			if _, taken := o.words[key]; !taken {
				o.words[key] = a
			}
		}
	}
	return o
}

func (o *Owners) Of(project, id string) Owner {
	if o == nil {
		return Owner{}
	}
	key := StoryKey{project, id}
	if c, claimed := o.claims[key]; claimed {
		return Owner{Name: c.By, AgentID: c.AgentID, Holder: c.Holder, Output: o.output[c.AgentID]}
	}
	a, found := o.words[key]
	if !found && strings.ContainsFunc(id, func(r rune) bool { return !inWord(r) }) { // it is more than one word
		i := slices.IndexFunc(o.agents, func(a Agent) bool { return a.Project == project && Mentions(a.Detail, id) })
		if i >= 0 {
			a = o.agents[i]
		}
	}
	return Owner{Name: a.Label, AgentID: a.ID, Output: a.Detail}
}
