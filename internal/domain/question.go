package domain

import (
	"fmt"
	"slices"
	"strconv"
	"strings"
	"time"
	"unicode"
	"unicode/utf8"
)

type QuestionKind string

const (
	QuestionPermission QuestionKind = "permission" // may a tool be used? It is answered by allow or deny
	QuestionChoice     QuestionKind = "choice"     // one of its options
	QuestionText       QuestionKind = "text"       // any text
)

type QuestionState string

const (
	QuestionOpen      QuestionState = "open"
	QuestionAnswered  QuestionState = "answered"
	QuestionExpired   QuestionState = "expired"
	QuestionWithdrawn QuestionState = "withdrawn"
)

// Allow and Deny are the answers to a permission.
const (
	Allow = "allow"
	Deny  = "deny"
)

// The tools with which coding agents ask people something.
const (
	AskUserQuestion = "AskUserQuestion"
	ExitPlanMode    = "ExitPlanMode" // with a plan, which people approve
)

// Question is what an agent or a program asks people. Its texts are a stranger's.
type Question struct {
	ID      int64
	Project string // "" for none
	StoryID string // "" for none
	Kind    QuestionKind
	Prompt  string
	Detail  string
	Options []string
	Tool    *ToolUse // the use that a coding agent asked about, nil for other questions
	// Key is the same for questions that ask the same: about the same use of a tool, or in the same words.
	Key     string
	Session string // of the coding agent, "" if unknown
	UseID   string // the coding agent's id for the use of a tool, "" for none
	Asker   string // as Actor.Holder returns it
	AgentID string // "" unless an agent asks
	By      string // the asker's name
	AskedAt time.Time
	Expires time.Time
	State   QuestionState
	Answer  *Answer   // nil unless it has been answered
	Ended   time.Time // zero while it is open
	// Lasting is whether it stays open until it expires, even if no connection waits for it.
	Lasting   bool
	HeldUntil time.Time // until when a connection waits for it, according to a gateway, which renews this in time
	Held      bool      // whether a connection waits for it now
	Reached   string    // the channels by which the answer has reached those who asked, separated by spaces
	Again     bool      // it had already been asked
}

// HasReached reports whether the answer has reached somebody who asked by that channel.
func (q *Question) HasReached(way string) bool {
	return slices.Contains(strings.Fields(q.Reached), way)
}

// Brief returns the question for lists in memory: without details, options and tool, and with only the beginnings of
// its prompt and answer.
func (q Question) Brief() Question {
	q.Prompt, q.Detail, q.Options, q.Tool = Cut(q.Prompt, MaxText), "", nil, nil
	if q.Answer != nil {
		a := *q.Answer
		a.Value, a.Text, a.Answers = Cut(a.Value, MaxText), "", nil
		q.Answer = &a
	}
	return q
}

type Answer struct {
	Value string
	Text  string // besides a value, "" for none
	// Answers are what was picked for each Choice, by its text; nil for questions without. Value sums them up.
	Answers map[string]ChoiceAnswer
	By      string
	Via     Channel
	At      time.Time
}

const (
	MaxPrompt, MaxDetail   = 4000, 64 << 10 // characters; bytes, also of what lists show of a tool's input
	MaxToolInput           = 1 << 20        // bytes
	MinOptions, MaxOptions = 2, 9
	MaxOption              = 1000 // characters
	QuestionLife           = time.Hour
	MaxQuestionLife        = 24 * time.Hour
	MaxOpenQuestions       = 100 // per asker
	// UnheldLife is how long a question that nobody waits for stays open, unless it is lasting.
	UnheldLife = 2 * time.Minute
	// AnswerLife is how long an answer that reached nobody is kept for whoever asks again.
	AnswerLife = time.Hour
	// OtherWay is how much later the same use of a tool may be asked about by another channel.
	OtherWay  = time.Minute
	MaxAnswer = 16_000 // characters
)

type QuestionLimits struct {
	Own, All int // open questions, of one asker and of all
	Ended    int // of one asker within a minute
	Inputs   int // bytes, of the tools of one asker's open questions
}

var AllowedQuestions = QuestionLimits{Own: MaxOpenQuestions, All: 5000, Ended: 300, Inputs: 8 << 20}

// Check returns an Invalid error that names the field out of its limits, and fills in a permission's options.
func (q *Question) Check() error {
	if q.Choices() != nil {
		return q.checkLife()
	}
	if n := utf8.RuneCountInString(q.Prompt); n < 1 || n > MaxPrompt || strings.TrimSpace(q.Prompt) == "" {
		return Errorf(Invalid, "prompt: must be 1 to %d characters, not only spaces", MaxPrompt)
	}
	if len(q.Detail) > MaxDetail {
		return Errorf(Invalid, "detail: must be at most %d bytes", MaxDetail)
	}
	switch q.Kind {
	case QuestionPermission:
		if len(q.Options) > 0 && !slices.Equal(q.Options, []string{Allow, Deny}) {
			return Errorf(Invalid, "options: a permission is answered by allow or deny")
		}
		q.Options = []string{Allow, Deny}
	case QuestionChoice:
		if len(q.Options) < MinOptions || len(q.Options) > MaxOptions {
			return Errorf(Invalid, "options: must be %d to %d texts", MinOptions, MaxOptions)
		}
	case QuestionText:
		if len(q.Options) > 0 {
			return Errorf(Invalid, "options: a question for a text has none")
		}
	default:
		return Errorf(Invalid, "kind: must be permission, choice or text")
	}
	for i, option := range q.Options {
		if n := utf8.RuneCountInString(option); n > MaxOption || strings.TrimSpace(option) == "" {
			return Errorf(Invalid, "options: each must be 1 to %d characters", MaxOption)
		}
		if slices.Contains(q.Options[:i], option) {
			return Errorf(Invalid, "options: each must be another one")
		}
	}
	return q.checkLife()
}

func (q *Question) checkLife() error {
	if life := q.Expires.Sub(q.AskedAt); life <= 0 || life > MaxQuestionLife {
		return Errorf(Invalid, "expires_in: must be a duration of up to 24h, such as 30m")
	}
	return nil
}

// CheckAnswer returns an Invalid error for a value that does not answer the question.
func (q *Question) CheckAnswer(value, text string) error {
	switch {
	case utf8.RuneCountInString(value) > MaxAnswer:
		return Errorf(Invalid, "value: must be at most %d characters", MaxAnswer)
	case utf8.RuneCountInString(text) > MaxAnswer:
		return Errorf(Invalid, "text: must be at most %d characters", MaxAnswer)
	case q.Kind == QuestionText && strings.TrimSpace(value) == "":
		return Errorf(Invalid, "value: a text is required")
	case q.Choices() != nil:
		return Errorf(Invalid, "answers: is required, with the text of each question")
	case q.Kind != QuestionText && !slices.Contains(q.Options, value):
		return Errorf(Invalid, "value: must be one of: %s", strings.Join(q.Options, ", "))
	}
	return nil
}

// At returns the question as it is at a time: one that has expired by then is no longer open.
func (q Question) At(now time.Time) Question {
	if q.State == QuestionOpen && !now.Before(q.Expires) {
		q.State, q.Ended = QuestionExpired, q.Expires
	}
	return q
}

// Ending says how a question ended: "was answered 'allow' by Mara", "has expired".
func (q Question) Ending() string {
	switch {
	case q.State == QuestionAnswered && q.Answer != nil:
		return "was answered '" + Cut(q.Answer.Value, 100) + "' by " + q.Answer.By
	case q.State == QuestionExpired:
		return "has expired"
	}
	return "was " + string(q.State)
}

// ParseAnswer reads an answer as people write it: the longest option that the message begins with, or else an option's
// number, and then a text; for a question without options the whole message. It returns false for anything else.
func (q *Question) ParseAnswer(message string) (value, text string, ok bool) {
	message = strings.TrimSpace(message)
	choices := q.Choices()
	if q.Kind == QuestionText {
		return message, "", message != ""
	}
	for _, option := range q.Options {
		if len(option) <= len(value) || len(message) < len(option) || !strings.EqualFold(message[:len(option)], option) {
			continue
		}
		rest := message[len(option):]
		if trimmed := strings.TrimLeft(rest, " \t\r\n\u00a0,.:;–—-"); rest == "" || trimmed != rest {
			value, text, ok = option, trimmed, true
		}
	}
	if ok {
		return value, text, true
	}
	first, rest, _ := strings.Cut(strings.Join(strings.Fields(message), " "), " ")
	if value, ok = q.Option(strings.TrimRight(first, ".:,)")); ok {
		return value, rest, true
	}
	if len(choices) != 1 || message == "" {
		return "", "", false
	}
	n, err := strconv.Atoi(message) // the number of an option, not free text
	return message, "", err != nil || n > 0 && n <= len(choices[0].Options)
}

// Option returns the option with a number, which begins at 1.
func (q *Question) Option(number string) (value string, ok bool) {
	n, err := strconv.Atoi(number)
	if err != nil || n < 1 || n > len(q.Options) {
		return "", false
	}
	return q.Options[n-1], true
}

// Expose returns text with each hidden character, which could make it look like another text, as U+XXXX, and how many
// there are. Tabs and line ends stay.
func Expose(text string) (shown string, hidden int) {
	if !strings.ContainsFunc(text, IsHidden) {
		return text, 0
	}
	var b strings.Builder
	for _, r := range text {
		if !IsHidden(r) {
			b.WriteRune(r)
			continue
		}
		hidden++
		fmt.Fprintf(&b, "U+%04X", r)
	}
	return b.String(), hidden
}

// IsHidden reports whether a character shows nothing itself: a control or format character, an unusual line separator,
// or one for private use.
func IsHidden(r rune) bool {
	return r != '\n' && r != '\t' && unicode.In(r, unicode.Cc, unicode.Cf, unicode.Zl, unicode.Zp, unicode.Co)
}
