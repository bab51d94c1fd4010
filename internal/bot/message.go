package bot

import (
	"html"
	"strings"
	"unicode"
)

// Message is a message of the bot, line by line. Its texts are literal: each rendering escapes its markup, so that
// names from project servers and people cannot format anything.
type Message []Line

// Line is one line of a message.
type Line []Span

// Span is part of a line in one style.
type Span struct {
	text  string
	style style
	link  string // address that the text links to, "" for none
}

type style int

const (
	plain style = iota
	bold
	code
)

// Plain, Bold and Code make spans.
func Plain(text string) Span { return Span{text: text, style: plain} }

func Bold(text string) Span { return Span{text: text, style: bold} }

func Code(text string) Span { return Span{text: text, style: code} }

// maxMessage is the longest message, in bytes of its plain text and its links. A Matrix event may have 64 KiB for text and HTML,
// in which an escaped character takes up to five bytes; Slack advises against more than 4,000 characters.
const maxMessage = 4000

// clip returns as many lines of m as fit into maxMessage, followed by an ellipsis if there are more.
func (m Message) clip() Message {
	size := 0
	for i, line := range m {
		for _, span := range line {
			size += len(span.text) + len(span.link)
		}
		if size++; size > maxMessage && i > 0 {
			return append(m[:i:i], Line{Plain("…")})
		}
	}
	return m
}

// short returns a text from outside as one line of at most limit characters: control and direction characters, which
// could forge lines, are replaced with spaces.
func short(text string, limit int) string {
	text = strings.Join(strings.Fields(strings.Map(func(r rune) rune {
		if unicode.IsControl(r) || unicode.Is(unicode.Bidi_Control, r) {
			return ' '
		}
		return r
	}, text)), " ")
	if runes := []rune(text); len(runes) > limit {
		return strings.TrimSpace(string(runes[:limit-1])) + "…"
	}
	return text
}

// PlainText renders m without markup.
func (m Message) PlainText() string {
	return m.render("\n", func(s Span) string { return s.text })
}

// HTML renders m as the HTML that Matrix clients show.
func (m Message) HTML() string {
	return m.render("<br>", func(s Span) string {
		text := html.EscapeString(s.text)
		switch s.style {
		case bold:
			text = "<strong>" + text + "</strong>"
		case code:
			text = "<code>" + text + "</code>"
		}
		if s.link != "" {
			text = `<a href="` + html.EscapeString(s.link) + `">` + text + "</a>"
		}
		return text
	})
}

// Mrkdwn renders m in Slack's markup. It has escapes only for &, < and >, which mentions and links consist of;
// the characters for bold, italic, struck and code text are replaced by look-alikes.
func (m Message) Mrkdwn() string {
	return m.render("\n", func(s Span) string {
		text := mrkdwnEscapes.Replace(s.text)
		switch {
		case text == "":
			return ""
		case s.link != "":
			return "<" + mrkdwnEscapes.Replace(s.link) + "|" + literal(text) + ">"
		case s.style == code:
			return "`" + strings.ReplaceAll(text, "`", "ˋ") + "`"
		case s.style == bold:
			return "*" + literal(text) + "*"
		}
		return literal(text)
	})
}

var (
	mrkdwnEscapes = strings.NewReplacer("&", "&amp;", "<", "&lt;", ">", "&gt;")
	mrkdwnSigns   = strings.NewReplacer("*", "∗", "~", "∼", "`", "ˋ")
)

// literal replaces the characters that Slack would read as formatting. An underscore formats only at the edge of a word.
func literal(text string) string {
	runes := []rune(mrkdwnSigns.Replace(text))
	inWord := func(i int) bool {
		return i >= 0 && i < len(runes) && (unicode.IsLetter(runes[i]) || unicode.IsDigit(runes[i]) || runes[i] == '_')
	}
	for i, r := range runes {
		if r == '_' && !(inWord(i-1) && inWord(i+1)) {
			runes[i] = 'ˍ'
		}
	}
	return string(runes)
}

func (m Message) render(newline string, span func(Span) string) string {
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
