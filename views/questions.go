package views

import (
	"fmt"
	"slices"
	"strconv"
	"strings"
	"time"

	"switchyard/internal/domain"
)

type QuestionsProps struct {
	Questions []QuestionProps   // open, or ended within a minute; the oldest first, then what is settled
	Settled   int64             // Unix milliseconds: what had ended by then is below, later ends stay where they were
	Ended     []domain.Question // that ended today, latest first
	EndedMore bool              // not all of them
	Answered  time.Duration     // how long answers take, 0 if there were none
	More      int               // open ones that are not shown
	All       bool              // the newest of all are shown instead, newest first
	Now       time.Time
}

// QuestionProps is a question as its article shows it.
type QuestionProps struct {
	domain.Question
	Refusal string       // why the reader may not answer, "" if they may
	Story   *domain.Item // as on the board, nil if it is not there
	Stage   string
	Branch  string    // of the session that asks, "" if unknown
	Own     bool      // it is somebody's own session that asks
	Silent  time.Time // since when its agent has been silent, zero if it is alive
	Next    string    // the page to return to
	Now     time.Time
}

// Title returns the page's title, with the number of open questions.
func (p QuestionsProps) Title() string {
	if p.All {
		return "Questions"
	}
	return numbered(p.open(), "Questions")
}

func (p QuestionsProps) waiting() []QuestionProps {
	isOver := func(q QuestionProps) bool { return q.State != domain.QuestionOpen }
	return slices.DeleteFunc(slices.Clone(p.Questions), isOver)
}

func (p QuestionsProps) open() int { return len(p.waiting()) + p.More }

func (p QuestionsProps) facts() []fact {
	list := []fact{{name: "Open", value: thousands(p.open())}}
	if open := p.waiting(); len(open) > 0 {
		first := slices.MinFunc(open, func(a, b QuestionProps) int { return a.AskedAt.Compare(b.AskedAt) })
		next := slices.MinFunc(open, func(a, b QuestionProps) int { return a.Expires.Compare(b.Expires) })
		ends := fact{name: "Ends next", value: age(next.Expires.Sub(p.Now))}
		if next.elapsed() > 80 {
			ends.tone = "text-caution"
		}
		list = append(list, fact{name: "Longest waits", value: minutes(p.Now.Sub(first.AskedAt))}, ends)
	}
	if p.Answered > 0 {
		within := age(max(p.Answered, time.Second))
		list = append(list, fact{name: "Answered within", value: within, beside: "median, 30 days"})
	}
	return list
}

// minutes is a time to the minute.
func minutes(d time.Duration) string {
	if d < time.Minute {
		return "< 1 min"
	}
	return age(d)
}

// lead says who waits: "Two agents stand still until somebody answers."
func (p QuestionsProps) lead() string {
	askers := map[string]bool{}
	for _, q := range p.waiting() {
		askers[q.Asker] = true
	}
	if len(askers) == 0 {
		return ""
	}
	return domain.Count(len(askers), "agent stands", "agents stand") + " still until somebody answers. " +
		"The first answer counts, here or in chat."
}

func (p QuestionsProps) address() string {
	if p.All {
		return QuestionsURL + "?state=all"
	}
	return withQuery(QuestionsURL, "settled", id(p.Settled))
}

func AnswerURL(id int64) string { return QuestionsURL + "/" + strconv.FormatInt(id, 10) + "/answer" }

func (q QuestionProps) id() string { return "question-" + strconv.FormatInt(q.ID, 10) }

// form is how a question is put: what it is, after the asker's name, and the text of a link to it.
func (q QuestionProps) form() (asks, link string) {
	options := func(n int) string { return domain.Count(n, "option", "options") }
	switch choices := q.Choices(); {
	case len(choices) > 1:
		several := domain.Count(len(choices), "question", "questions")
		return "asks " + several, several
	case len(choices) == 1 && choices[0].Multiple:
		return "asks which of these", options(len(choices[0].Options))
	case q.isPlan():
		return stateHasPlan, "Read the plan"
	case q.Kind == domain.QuestionChoice:
		return "asks which way", options(len(q.Options))
	case q.Kind == domain.QuestionText:
		return "asks for a text", "Read and answer"
	case q.Tool == nil:
		return "asks for a permission", "Read and answer"
	}
	switch q.Tool.Name {
	case "Bash":
		return "asks to run a command", "Read and answer"
	case "Edit", "MultiEdit", "Write", "NotebookEdit":
		return "asks to change a file", "Read and answer"
	}
	return "asks to use a tool", "Read and answer"
}

func (q QuestionProps) asks() string {
	asks, _ := q.form()
	return asks
}

// says is what an agent says about its use of a tool, "" for nothing.
func (q QuestionProps) says() string {
	_, description, _ := q.Tool.Command()
	return description
}

// shownEnded is how many questions that ended today are listed.
const shownEnded = 7

func (p QuestionsProps) endedToday() string {
	n := thousands(len(p.Ended))
	if p.EndedMore {
		n += "+"
	}
	return n
}

// who is asking, before what is asked.
func (q QuestionProps) who() string {
	name := visible(domain.Cut(q.By, 80))
	if q.Own {
		name += "’s session"
	}
	return name
}

func (q QuestionProps) story() string {
	if q.Story != nil {
		return strings.TrimSpace(number(q.Story.StoryID, q.Story.StoryName) + " " + domain.Cut(q.Story.StoryName, 80))
	}
	return domain.Cut(q.StoryID, 100)
}

// about is what a question was about, in a line.
func about(q domain.Question) string {
	if command, _, ok := q.Tool.Command(); ok {
		return visible(domain.Cut(command, 100))
	}
	if q.Tool != nil && q.Kind == domain.QuestionPermission {
		input, name := fieldsOf(q.Tool), domain.Cut(q.Tool.Name, 100)
		if text := strings.TrimLeft(input.Plan, "# \n"); text != "" && name == domain.ExitPlanMode {
			first, _, _ := strings.Cut(text, "\n")
			return visible(domain.Cut(first, 160))
		}
		return visible(strings.TrimSpace(name + " " + domain.Cut(input.File, 160)))
	}
	if choices := q.Choices(); len(choices) > 1 {
		var asks []string
		for _, c := range choices {
			asks = append(asks, strings.TrimPrefix(c.Header+": ", ": ")+c.Prompt)
		}
		return visible(domain.Cut(strings.Join(asks, " "), 300))
	}
	return visible(domain.Cut(q.Prompt, 160))
}

// end is how a question ended, in a word or two, and by whom.
func end(q domain.Question) (how, who string) {
	switch {
	case q.Answer != nil && QuestionProps{Question: q}.isPlan():
		how = map[string]string{domain.Allow: "Plan approved", domain.Deny: "Keeps planning"}[q.Answer.Value]
	case q.Answer != nil && q.Kind == domain.QuestionPermission:
		how = map[string]string{domain.Allow: "Allowed", domain.Deny: "Denied"}[q.Answer.Value]
	case q.Answer != nil && len(q.Answer.Answers) > 1:
		how = domain.Count(len(q.Answer.Answers), "answer", "answers")
	case q.Answer != nil:
		how = "“" + domain.Cut(q.Answer.Value, 60) + "”"
	case q.State == domain.QuestionExpired && q.Kind == domain.QuestionPermission:
		return "Expired, so denied", "nobody"
	case q.State == domain.QuestionExpired:
		return "Expired", "nobody"
	default:
		return "Withdrawn", ""
	}
	who = q.Answer.By
	if q.Answer.Via == domain.ChannelBot {
		who += " · chat"
	}
	return visible(how), visible(domain.Cut(who, 60))
}

// endSignal is caution for a question that nobody answered, and stop for a permission that was denied.
func endSignal(q domain.Question) Signal {
	switch {
	case q.State == domain.QuestionExpired:
		return SignalCaution
	case q.Answer == nil || q.Kind != domain.QuestionPermission:
		return SignalNone
	case q.Answer.Value == domain.Deny:
		return SignalStop
	}
	return SignalClear
}

// elapsed is how much of its time is over, in percent, to the minute.
func (q QuestionProps) elapsed() float64 {
	whole := q.Expires.Sub(q.AskedAt)
	return 100 * min(1, max(0, float64(q.Now.Sub(q.AskedAt))/float64(whole)))
}

// piece is a part of a stranger's text: visible text, or the code of an invisible character.
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

// visible is a text with codes in place of invisible characters, for attributes and short lines.
func visible(text string) string {
	shown, _ := domain.Expose(text)
	return shown
}

// prompt is the question's own text; for the use of a tool, only what it is.
func (q QuestionProps) prompt() string {
	if q.Tool != nil && q.Kind == domain.QuestionPermission {
		return ""
	}
	return q.Prompt
}

func (q QuestionProps) hidden() (n int) {
	input := fieldsOf(q.Tool).File + domain.CutBytes(q.input(), domain.MaxDetail)
	texts := append([]string{q.prompt(), q.Detail, input, q.says()}, q.Options...)
	if choices := q.Choices(); choices != nil {
		texts = nil
		for _, c := range choices {
			texts = append(texts, c.Header, c.Prompt)
			for _, o := range c.Options {
				texts = append(texts, o.Label, o.Description)
			}
		}
	}
	for _, text := range texts {
		n += howMany(pieces(text), func(p piece) bool { return p.code != "" })
	}
	return n
}
