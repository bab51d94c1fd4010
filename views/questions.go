package views

import (
	"bytes"
	"encoding/json"
	"fmt"
	"strconv"
	"strings"
	"time"

	"switchyard/internal/domain"
)

// QuestionsProps are the data of the Questions page.
type QuestionsProps struct {
	Questions []QuestionProps // open, or ended within a minute; the oldest first
	More      int             // open ones that are not shown
	All       bool            // the newest of all are shown instead, newest first
	Now       time.Time
}

// QuestionProps is a question as its article shows it.
type QuestionProps struct {
	domain.Question
	MayAnswer bool
	Next      string // the page to return to
	Now       time.Time
}

// Title returns the page's title, with the number of open questions.
func (p QuestionsProps) Title() string {
	if n := p.open(); n > 0 && !p.All {
		return "(" + strconv.Itoa(n) + ") Questions"
	}
	return "Questions"
}

func (p QuestionsProps) open() int {
	n := p.More
	for _, q := range p.Questions {
		if q.State == domain.QuestionOpen {
			n++
		}
	}
	return n
}

func (p QuestionsProps) facts() []fact {
	list := []fact{{name: "Open", value: thousands(p.open())}}
	oldest := p.Now
	for _, q := range p.Questions {
		if q.State == domain.QuestionOpen && q.AskedAt.Before(oldest) {
			oldest = q.AskedAt
		}
	}
	if oldest != p.Now {
		list = append(list, fact{name: "Longest waits", value: ageAt(p.Now, oldest)})
	}
	return list
}

func (p QuestionsProps) address() string {
	if p.All {
		return QuestionsURL + "?state=all"
	}
	return QuestionsURL
}

// AnswerURL returns the address of the form that answers a question.
func AnswerURL(id int64) string { return QuestionsURL + "/" + strconv.FormatInt(id, 10) + "/answer" }

func (q QuestionProps) id() string { return "question-" + strconv.FormatInt(q.ID, 10) }

// asks is what the question is, after the asker's name.
func (q QuestionProps) asks() string {
	switch q.Kind {
	case domain.QuestionPermission:
		return "asks for a permission"
	case domain.QuestionChoice:
		return "asks which way"
	}
	return "asks for a text"
}

// ended is how a question ended, in a line.
func (q QuestionProps) ended() string {
	if a := q.Answer; a != nil {
		text := "answered by " + a.By
		if q.Kind == domain.QuestionPermission {
			text = map[string]string{domain.Allow: "Allowed, ", domain.Deny: "Denied, "}[a.Value] + text
		} else {
			text = "“" + domain.Cut(a.Value, 120) + "”, " + text
		}
		return text
	}
	if q.State == domain.QuestionExpired {
		return "Ended without an answer"
	}
	return "Withdrawn"
}

// passed is which part of its time is over, in percent, to the minute.
func (q QuestionProps) passed() float64 {
	whole := q.Expires.Sub(q.AskedAt)
	return 100 * min(1, max(0, float64(q.Now.Sub(q.AskedAt))/float64(whole)))
}

// piece is a part of a stranger's text: visible text, or the code of a character that would not be seen.
type piece struct{ text, code string }

// pieces splits a text so that nothing in it is hidden: bidi and other control characters become their codes. Only tabs
// and line ends stay.
func pieces(text string) (list []piece) {
	text = strings.ReplaceAll(strings.ToValidUTF8(text, "\uFFFD"), "\r\n", "\n")
	start := 0
	for i, r := range text {
		if !domain.IsHidden(r) {
			continue
		}
		if i > start {
			list = append(list, piece{text: text[start:i]})
		}
		list = append(list, piece{code: fmt.Sprintf("U+%04X", r)})
		start = i + len(string(r))
	}
	if start < len(text) {
		list = append(list, piece{text: text[start:]})
	}
	return list
}

// visible is a text with codes in place of what would not be seen, for attributes and short lines.
func visible(text string) string {
	shown, _ := domain.Expose(text)
	return shown
}

// hidden counts the characters of a question that would not be seen.
func (q QuestionProps) hidden() (n int) {
	for _, text := range append([]string{q.Prompt, q.Detail, q.input()}, q.Options...) {
		for _, p := range pieces(text) {
			if p.code != "" {
				n++
			}
		}
	}
	return n
}

// input is the whole input of a tool as text: a command alone as it is, other inputs as JSON.
func (q QuestionProps) input() string {
	if q.Tool == nil {
		return ""
	}
	var members map[string]json.RawMessage
	var command string
	if json.Unmarshal(q.Tool.Input, &members) == nil && len(members) == 1 &&
		json.Unmarshal(members["command"], &command) == nil {
		return command
	}
	var b bytes.Buffer
	encoder := json.NewEncoder(&b)
	encoder.SetEscapeHTML(false)
	encoder.SetIndent("", "  ")
	if encoder.Encode(json.RawMessage(q.Tool.Input)) != nil {
		return string(q.Tool.Input)
	}
	return strings.ReplaceAll(strings.TrimSpace(b.String()), `\n`, "\\n\n")
}

const (
	// foldInput is how many lines, or foldBytes, of a text are shown without a fold; then its head and tail are.
	foldInput, foldBytes = 12, 1500
	headLines, tailLines = 6, 3
)

// folded splits a long text into its head, what is folded, and its tail; middle is "" for a short one.
func folded(text string) (head, middle, tail string, lines int) {
	all := strings.SplitAfter(text, "\n")
	if len(all) > foldInput {
		head, tail = strings.Join(all[:headLines], ""), strings.Join(all[len(all)-tailLines:], "")
		middle = strings.Join(all[headLines:len(all)-tailLines], "")
	} else if len(text) > foldBytes {
		head, tail = domain.CutBytes(text, foldBytes/2), ""
		middle = text[len(head):]
	} else {
		return text, "", "", 0
	}
	return head, middle, tail, strings.Count(middle, "\n") + 1
}
