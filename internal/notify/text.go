package notify

import (
	"strings"
	"unicode"
	"unicode/utf16"
	"unicode/utf8"

	"switchyard/internal/bot"
	"switchyard/internal/domain"
)

// literal returns a message whose texts have no control and direction characters, within the limit of its kind.
func literal(m domain.Message, skipped, limit int) domain.Message {
	m.Title = bot.Short(m.Title, 2*bot.MaxName)
	var lines []string
	for line := range strings.Lines(m.Text) {
		lines = append(lines, bot.Short(line, limit))
	}
	if skipped > 0 {
		lines = append(lines, domain.Count(skipped, "earlier message was", "earlier messages were")+
			" refused for 24 hours and skipped.")
	}
	m.Text = domain.Cut(strings.Join(lines, "\n"), limit)
	return m
}

// blank separates characters that mean something together; it has no width.
const blank = "\u200b"

// inert makes mentions, tags, commands, emojis and addresses in text mean nothing.
func inert(text string) string {
	var b strings.Builder
	runes := []rune(text)
	for i, r := range runes {
		b.WriteRune(r)
		begins := i == 0 || unicode.IsSpace(runes[i-1])
		ends := i+1 == len(runes) || unicode.IsSpace(runes[i+1])
		if !ends && (r == '@' || r == '#' || r == ':' || r == '/' && begins) {
			b.WriteString(blank)
		}
	}
	return b.String()
}

// markdown escapes text so that it formats nothing.
func markdown(text string) string {
	var b strings.Builder
	first := true
	for _, r := range inert(text) {
		if first && r < unicode.MaxASCII && !unicode.IsLetter(r) {
			b.WriteString(blank) // lists, headings and quotations begin a line
		}
		if strings.ContainsRune("\\*_~`|[]()<>", r) {
			b.WriteByte('\\')
		}
		b.WriteRune(r)
		first = r == '\n'
	}
	return b.String()
}

// fit returns a message's text, escaped, and its link. It cuts the text if both together are longer than limit.
func fit(m domain.Message, limit int, escape func(string) string) string {
	for n := min(limit, utf8.RuneCountInString(m.Text)); ; {
		text := withLink(escape(domain.Cut(m.Text, n)), m.Link)
		over := len(utf16.Encode([]rune(text))) - limit
		if over <= 0 || n <= 1 {
			return text
		}
		n = max(1, n-over)
	}
}

func withLink(text, link string) string {
	if link == "" {
		return text
	}
	return text + "\n" + link
}
