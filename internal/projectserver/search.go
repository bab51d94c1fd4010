package projectserver

import (
	"net/http"
	"regexp"
	"slices"
	"strings"
	"sync"
	"time"
	"unicode/utf8"

	"switchyard/internal/board"
	"switchyard/internal/domain"
	"switchyard/internal/fold"
	"switchyard/internal/web"
	"switchyard/internal/wire"
)

const (
	// maxTexts is how much of all texts is kept for searching, in bytes; the stories beyond are not searched.
	maxTexts = 64 << 20
	// readTime is how long a search reads texts that have changed. Those that it does not reach are read by the next one.
	readTime = time.Second
	// maxWords is the most words of a search.
	maxWords = 10
	// excerptBefore and excerptLength are the length of an excerpt, in bytes: before the first word, and in all.
	excerptBefore, excerptLength = 60, 240
)

// texts keeps the texts of a board's stories folded, and searches them.
type texts struct {
	board Board

	mu    sync.Mutex
	known map[string]keptText // by story
}

type keptText struct{ version, text string }

// search answers with the stories whose text contains all words of q.
func (t *texts) search(w http.ResponseWriter, r *http.Request) error {
	q := web.ParseQuery(r)
	limit := q.Number("limit", 20, 0, domain.MaxFoundTexts)
	if err := q.Err(); err != nil {
		return err
	}
	words := strings.Fields(fold.Text(q.Get("q")))
	if len(words) == 0 || utf8.RuneCountInString(q.Get("q")) > domain.MaxFilter {
		return domain.Errorf(domain.Invalid, "q: must be 1 to %d characters, not only spaces", domain.MaxFilter)
	}
	words = words[:min(len(words), maxWords)]
	view := t.board.View()
	if view.Err != nil {
		return board.Unavailable(view.Err)
	}
	found := t.find(view, words)
	answer := wire.FoundTexts{Total: len(found), Texts: []wire.FoundText{}}
	for _, f := range found[:min(len(found), int(limit))] {
		details, err := t.board.Read(f.story.ID)
		if err != nil {
			answer.Total-- // it has just gone
			continue
		}
		heading, excerpt := excerptOf(searched(details), words)
		answer.Texts = append(answer.Texts, wire.FoundText{
			StoryID: details.ID, StoryName: details.Name, Stage: details.Stage, Heading: wire.OrNull(heading),
			Excerpt: excerpt, Whole: f.whole,
		})
	}
	web.WriteJSON(w, http.StatusOK, answer)
	return nil
}

type foundStory struct {
	story *board.Story
	whole bool // the words are one after the other
}

// find returns the stories whose text contains all the words: first those with the words one after the other.
func (t *texts) find(view *board.View, words []string) (found []foundStory) {
	known := t.read(view)
	whole := strings.Join(words, " ")
	var others []foundStory
	for i := range view.Stages {
		for j := range view.Stages[i].Stories {
			story := &view.Stages[i].Stories[j]
			text := known[story.ID].text
			switch {
			case strings.Contains(text, whole):
				found = append(found, foundStory{story, true})
			case !slices.ContainsFunc(words, func(word string) bool { return !strings.Contains(text, word) }):
				others = append(others, foundStory{story, false})
			}
		}
	}
	return append(found, others...)
}

// read returns the texts of the stories on the board, and reads those that are new.
func (t *texts) read(view *board.View) map[string]keptText {
	t.mu.Lock()
	defer t.mu.Unlock()
	until := time.Now().Add(readTime)
	current := make(map[string]keptText, len(t.known))
	size := 0
	for _, stage := range view.Stages {
		for i := range stage.Stories {
			id, version := stage.Stories[i].ID, stage.Stories[i].Version
			kept, known := t.known[id]
			if !known || kept.version != version {
				if time.Now().After(until) {
					continue
				}
				details, err := t.board.Read(id)
				if err != nil {
					continue
				}
				kept = keptText{version, fold.Text(searched(details))}
			}
			if size += len(kept.text); size > maxTexts {
				size, kept.text = size-len(kept.text), ""
			}
			current[id] = kept
		}
	}
	t.known = current
	return current
}

// searched returns what is searched of a story: its text, and below it why it does not move.
func searched(d *board.Details) string {
	text := d.Body
	for _, reason := range []struct{ heading, text string }{{"Blocked", d.Blocked}, {"Merge failed", d.MergeFailure}} {
		if reason.text != "" {
			text += "\n\n# " + reason.heading + "\n" + reason.text
		}
	}
	return text
}

// listMark is how an item of a list begins, with its box; the number of one without a box is part of what it says.
var listMark = regexp.MustCompile(`^(?:[-*+]|\d{1,9}[.)] +\[[ xX-]\])[ \t]+(?:\[[ xX-]\]\*?[ \t]+)?`)

// excerptOf returns what the line with the most of the words says, and the heading that it is under.
func excerptOf(text string, words []string) (heading, excerpt string) {
	most, under, fenced := 0, "", false
	for line := range strings.Lines(text) {
		line = strings.TrimSpace(line)
		if strings.HasPrefix(line, "```") || strings.HasPrefix(line, "~~~") {
			fenced = !fenced
		}
		title := strings.TrimSpace(strings.TrimLeft(line, "#"))
		isHeading := !fenced && strings.HasPrefix(line, "#") && title != ""
		if isHeading {
			under = domain.CutText(title)
		}
		folded, has := fold.Text(line), 0
		for _, word := range words {
			if strings.Contains(folded, word) {
				has++
			}
		}
		if has <= most {
			continue
		}
		most, heading, excerpt = has, under, line
		if isHeading {
			excerpt = title
		} else if !fenced {
			excerpt = listMark.ReplaceAllString(line, "")
		}
	}
	return heading, cutAround(excerpt, words)
}

func cutAround(line string, words []string) string {
	from := 0
	if spans := fold.Find(line, words); len(spans) > 0 && spans[0].From > excerptBefore {
		from = spans[0].From - excerptBefore
		if space := strings.IndexByte(line[from:spans[0].From], ' '); space >= 0 {
			from += space + 1
		}
		for !utf8.RuneStart(line[from]) {
			from++
		}
	}
	rest := line[from:]
	cut := domain.CutBytes(rest, excerptLength)
	if space := strings.LastIndexByte(cut, ' '); len(cut) < len(rest) && space > excerptLength/2 {
		cut = cut[:space]
	}
	if len(cut) < len(rest) {
		cut += " …"
	}
	if from > 0 {
		cut = "… " + cut
	}
	return cut
}
