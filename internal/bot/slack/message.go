package slack

import (
	"html"
	"regexp"
	"strings"
	"unicode"

	"github.com/slack-go/slack/slackutilsx"

	"switchyard/internal/bot"
)

// Mrkdwn renders m in Slack's markup. It has escapes only for &, < and >, which mentions and links consist of;
// the characters for bold, italic, struck and code text are replaced by look-alikes.
func Mrkdwn(m bot.Message) string {
	return m.Render("\n", func(s bot.Span) string {
		text := slackutilsx.EscapeMessage(s.Text)
		switch {
		case text == "":
			return ""
		case s.Link != "":
			return "<" + slackutilsx.EscapeMessage(s.Link) + "|" + literal(text) + ">"
		case s.Style == bot.CodeStyle:
			return "`" + strings.ReplaceAll(text, "`", "ˋ") + "`"
		case s.Style == bot.BoldStyle:
			return "*" + literal(text) + "*"
		}
		return literal(text)
	})
}

var signs = strings.NewReplacer("*", "∗", "~", "∼", "`", "ˋ")

// literal replaces the characters that Slack would read as formatting. An underscore formats only at the edge of a
// word.
func literal(text string) string {
	runes := []rune(signs.Replace(text))
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

// marked matches the mentions and links in Slack's texts: <@U1>, <#C1|general>, <http://a.example|a>.
var marked = regexp.MustCompile(`<([^<>|]*)(?:\|([^<>]*))?>`)

// typed returns a text as it was typed, without the mention of the bot.
func typed(text, user string) string {
	text = marked.ReplaceAllStringFunc(text, func(mark string) string {
		parts := marked.FindStringSubmatch(mark)
		switch {
		case user != "" && parts[1] == "@"+user:
			return " "
		case parts[2] != "":
			return parts[2]
		}
		return strings.TrimLeft(parts[1], "@#!")
	})
	return strings.TrimLeft(html.UnescapeString(text), " :,")
}
