package bot

import (
	"net/url"
	"slices"
	"strings"
	"time"
	"unicode"

	"switchyard/internal/clock"
	"switchyard/internal/domain"
)

// Message is a message of the bot, line by line. Its texts are literal: each rendering escapes its markup, so that
// names from project servers and people cannot format anything.
type Message []Line

type Line []Span

// Span is part of a line in one style.
type Span struct {
	Text  string
	Style Style
	Link  string // address that the text links to, "" for none
}

type Style int

const (
	PlainStyle Style = iota
	BoldStyle
	CodeStyle
)

// Plain, Bold and Code make spans. Bold and Code cut the text to the length of a name.
func Plain(text string) Span { return Span{Text: text, Style: PlainStyle} }

func Bold(text string) Span { return Span{Text: Short(text, MaxName), Style: BoldStyle} }

func Code(text string) Span { return Span{Text: Short(text, MaxName), Style: CodeStyle} }

// plainf returns a message of one line: each %s in format stands for a Span, or for a plain text, which is cut to the
// length of a reason.
func plainf(format string, args ...any) Message {
	var line Line
	for i, text := range strings.Split(format, "%s") {
		if i > 0 {
			span, ok := args[i-1].(Span)
			if !ok {
				span = Plain(Short(args[i-1].(string), MaxReason))
			}
			line = append(line, span)
		}
		if text != "" {
			line = append(line, Plain(text))
		}
	}
	return Message{line}
}

// maxMessage is the longest message, in bytes of its plain text and its links. A Matrix event may have 64 KiB for text
// and HTML, in which an escaped character takes up to five bytes; Slack advises against more than 4,000 characters.
const maxMessage = 4000

// clip returns as many lines of m as fit into maxMessage, followed by an ellipsis if there are more.
func (m Message) clip() Message {
	size := 0
	for i, line := range m {
		for _, span := range line {
			size += len(span.Text) + len(span.Link)
		}
		if size++; size > maxMessage && i > 0 {
			return append(m[:i:i], Line{Plain("…")})
		}
	}
	return m
}

// Short returns a text from outside as one line of at most limit characters: control and direction characters, which
// could forge lines, are replaced with spaces.
func Short(text string, limit int) string {
	text = strings.Join(strings.Fields(strings.Map(func(r rune) rune {
		if unicode.IsControl(r) || unicode.Is(unicode.Bidi_Control, r) {
			return ' '
		}
		return r
	}, text)), " ")
	return domain.Cut(text, limit)
}

func (m Message) PlainText() string {
	return m.Render("\n", func(s Span) string { return s.Text })
}

func (m Message) Render(newline string, span func(Span) string) string {
	var b strings.Builder
	for i, line := range m {
		if i > 0 {
			b.WriteString(newline)
		}
		for _, s := range line {
			b.WriteString(span(s))
		}
	}
	return b.String()
}

// The longest texts from outside in a message, in characters.
const (
	MaxName   = 100
	MaxReason = 160
)

// separator separates the columns of a line, for readers without bold and monospaced text.
var separator = Plain(" · ")

func columns(columns ...Line) Line {
	var line Line
	for i, column := range columns {
		if i > 0 {
			line = append(line, separator)
		}
		line = append(line, column...)
	}
	return line
}

// Describe returns an event as one line, without links.
func Describe(e domain.Event, words domain.StageWords) Message {
	return Message{links("").describe(e, words)}
}

func (l links) describe(e domain.Event, words domain.StageWords) Line {
	kind, d := e.Type.Kind(), e.Details()
	line, text := Line{Bold(e.Project)}, Short(words.Describe(e, d), 3*MaxName)
	switch {
	case kind.Alert != "":
		line = append(columns(line, Line{Bold(text)}, l.title(e.Project, d)), reason(d)...)
	case d.StoryID == "":
		line = columns(line, Line{Plain(text)})
	default:
		line = columns(line, l.title(e.Project, d), Line{Plain(text)})
		if kind.OfStory {
			line = append(line, reason(d)...)
		}
	}
	return append(sign(kind.Signal), line...)
}

var signs = map[domain.Signal]string{
	domain.SignalClear: "● ", domain.SignalCaution: "▲ ", domain.SignalStop: "■ ",
}

func sign(s domain.Signal) Line {
	if text, ok := signs[s]; ok {
		return Line{Plain(text)}
	}
	return nil
}

func stageTitle(title string) string { return Short(title, MaxName) }

func (l links) title(project string, d domain.EventDetails) Line {
	id, name := Line{l.story(project, d.StoryID)}, Short(d.StoryName, MaxName)
	if name == "" || name == Short(d.StoryID, MaxName) {
		return id
	}
	return columns(id, Line{Plain(name)})
}

func reason(d domain.EventDetails) Line {
	if d.Reason == "" {
		return nil
	}
	return Line{Plain(": " + Short(d.Reason, MaxReason))}
}

// links is the console's address and makes links to it, none if it is "".
type links string

// maxLinked is the longest id that is linked, in bytes.
const maxLinked = 200

func (l links) story(project, id string) Span {
	span := Code(id)
	if l != "" && id != "" && len(id) <= maxLinked {
		base := strings.TrimRight(string(l), "/")
		span.Link = base + "/projects/" + url.PathEscape(project) + "/stories/" + url.PathEscape(id)
	}
	return span
}

// announcement is what somebody tells the team: who, their own words, and a line for each story.
func (l links) announcement(t domain.Announcement) Message {
	first := Line{Bold(Short(t.By, MaxName))}
	if t.Word != "" {
		first = append(first, Plain(": "+Short(t.Word, domain.MaxWord)))
	}
	return appendLines(Message{first}, t.Stories, len(t.Stories)+t.More, l.announcedStory)
}

func (l links) announcedStory(s domain.AnnouncedStory) Line {
	kind, why := s.Trouble()
	d := domain.EventDetails{StoryID: s.StoryID, StoryName: s.StoryName, Reason: why}
	stage := Short(s.Stage, MaxName)
	if s.Since.UnixMilli() > 0 {
		stage += " for " + roughly(clock.Now().Sub(s.Since))
	}
	line := columns(Line{Bold(s.Project)}, l.title(s.Project, d), Line{Plain(stage)})
	if kind == "" {
		return line
	}
	return slices.Concat(sign(kind.Signal()), columns(line, Line{Plain(kind.Word())}), reason(d))
}

func roughly(d time.Duration) string {
	switch day := 24 * time.Hour; {
	case d >= 2*day:
		return domain.Count(int(d/day), "day", "days")
	case d >= 2*time.Hour:
		return domain.Count(int(d/time.Hour), "hour", "hours")
	}
	return domain.Count(max(1, int(d/time.Minute)), "minute", "minutes")
}
