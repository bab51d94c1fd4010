package bot

import (
	"net/url"
	"strings"

	"switchyard/internal/domain"
)

// The longest texts from outside in a message, in characters.
const (
	MaxName   = 100
	MaxReason = 160
)

// separator separates the columns of a line, for readers without bold and monospaced text.
var separator = Plain(" · ")

// columns joins columns into a line.
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

// describe returns an event as one line.
func (l links) describe(e domain.Event) Line {
	kind, d := e.Type.Kind(), e.Details()
	line, text := Line{Bold(e.Project)}, Short(kind.Says(d), 3*MaxName)
	switch {
	case kind.Alert != "":
		line = append(columns(line, Line{Bold(text)}, l.title(e.Project, d)), reason(d)...)
	case d.StoryID == "":
		line = columns(line, Line{Plain(text)})
	default:
		line = columns(line, l.title(e.Project, d), Line{Plain(text)})
	}
	return append(sign(kind.Signal), line...)
}

// sign returns the sign of a signal, none for none.
func sign(s domain.Signal) Line {
	switch s {
	case domain.SignalClear:
		return Line{Plain("● ")}
	case domain.SignalCaution:
		return Line{Plain("▲ ")}
	case domain.SignalStop:
		return Line{Plain("■ ")}
	}
	return nil
}

func stageTitle(name string) string { return Short(domain.StageTitle(name), MaxName) }

// title returns a story's id, and its name if it has one.
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

// links is the console's address, to which it makes links; it makes none if it is "".
type links string

// maxLinked is the longest id that is linked, in bytes.
const maxLinked = 200

// story returns a code span with a story's id that links to its page.
func (l links) story(project, id string) Span {
	span := Code(id)
	if l != "" && id != "" && len(id) <= maxLinked {
		base := strings.TrimRight(string(l), "/")
		span.Link = base + "/projects/" + url.PathEscape(project) + "/stories/" + url.PathEscape(id)
	}
	return span
}
