package projectserver

import (
	"context"
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
	known map[string]cachedText // by story
}

type cachedText struct{ version, text string }

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
	found, err := t.find(r.Context(), view, words)
	if err != nil {
		return err
	}
	answer := wire.FoundTexts{Total: len(found.stories), Texts: []wire.FoundText{}}
	asked := found.stories[:min(len(found.stories), int(limit))]
	err = t.board.ReadAll(r.Context(), asked, func(details *board.Details) bool {
		heading, excerpt := excerptOf(searched(details), words)
		answer.Texts = append(answer.Texts, wire.FoundText{
			StoryID: details.ID, StoryName: details.Name, Stage: details.Stage, Heading: wire.OrNull(heading),
			Excerpt: excerpt, Whole: found.whole[details.ID],
		})
		return true
	})
	if err != nil {
		return err
	}
	answer.Total -= len(asked) - len(answer.Texts) // those that have just gone
	web.WriteJSON(w, http.StatusOK, answer)
	return nil
}

// foundStories are the stories whose text contains all the words, first those that have them one after the other.
type foundStories struct {
	stories []board.StoryInStage
	whole   map[string]bool
}

func (t *texts) find(ctx context.Context, view *board.View, words []string) (found foundStories, err error) {
	known, err := t.read(ctx, view)
	if err != nil {
		return found, err
	}
	found.whole = map[string]bool{}
	whole := strings.Join(words, " ")
	var others []board.StoryInStage
	for _, story := range placed(view) {
		text := known[story.ID].text
		switch {
		case strings.Contains(text, whole):
			found.stories, found.whole[story.ID] = append(found.stories, story), true
		case !slices.ContainsFunc(words, func(word string) bool { return !strings.Contains(text, word) }):
			others = append(others, story)
		}
	}
	found.stories = append(found.stories, others...)
	return found, nil
}

func placed(view *board.View) (stories []board.StoryInStage) {
	for _, stage := range view.Stages {
		for i := range stage.Stories {
			stories = append(stories, board.StoryInStage{Story: &stage.Stories[i], Stage: stage.Name})
		}
	}
	return stories
}

// read returns the texts of the stories on the board, and reads those that are new.
func (t *texts) read(ctx context.Context, view *board.View) (map[string]cachedText, error) {
	t.mu.Lock()
	defer t.mu.Unlock()
	current := make(map[string]cachedText, len(t.known))
	versions := map[string]string{}
	size := 0
	keep := func(id string, text cachedText) {
		if size += len(text.text); size > maxTexts {
			size, text.text = size-len(text.text), ""
		}
		current[id] = text
	}
	var changed []board.StoryInStage
	for _, story := range placed(view) {
		if kept, known := t.known[story.ID]; known && kept.version == story.Version {
			keep(story.ID, kept)
		} else {
			changed, versions[story.ID] = append(changed, story), story.Version
		}
	}
	until := time.Now().Add(readTime)
	var err error
	if len(changed) > 0 {
		err = t.board.ReadAll(ctx, changed, func(details *board.Details) bool {
			keep(details.ID, cachedText{versions[details.ID], fold.Text(searched(details))})
			return time.Now().Before(until)
		})
	}
	t.known = current
	return current, err
}

// searched returns the text of a story that is searched: its own, and below it why the story does not move.
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

// excerptOf returns the text of the line with the most of the words, and the heading that it is under.
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
