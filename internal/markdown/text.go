package markdown

import (
	"html"
	"strings"
	"unicode"
)

// marks is what elements look like in a text. Others look like their content.
var marks = map[string]string{
	"h2": "## ", "h3": "### ", "h4": "#### ", "h5": "##### ", "h6": "###### ", "hr": "---", "blockquote": "> ",
	"td": "| ", "th": "| ", "/td": " ", "/th": " ", "/tr": "|", "del": "~~", "/del": "~~", "pre": "```\n", "/pre": "```",
}

// Text returns what a reader sees of a text that HTML has rendered: without link definitions, titles, languages of
// code, and characters that cannot be seen.
func Text(rendered string) string {
	var b strings.Builder
	lists, label, address := 0, 0, ""
	for rendered != "" {
		text, rest, _ := strings.Cut(rendered, "<")
		b.WriteString(html.UnescapeString(text))
		tag, next, _ := strings.Cut(rest, ">")
		name, attributes, _ := strings.Cut(tag, " ")
		switch name {
		case "ul", "ol":
			lists++
		case "/ul", "/ol":
			lists--
		case "li":
			b.WriteString(strings.Repeat("  ", max(0, lists-1)) + "- ")
		case "input":
			if strings.Contains(attributes, " checked ") {
				b.WriteString("[x]")
			} else {
				b.WriteString("[ ]")
			}
		case "a":
			address, _, _ = strings.Cut(strings.TrimPrefix(attributes, `href="`), `"`)
			address, label = html.UnescapeString(address), b.Len()
		case "/a":
			if b.String()[label:] != address {
				b.WriteString(" (" + address + ")")
			}
		}
		b.WriteString(marks[name])
		switch name {
		case "li", "blockquote", "tr", "/td", "/th":
			next = strings.TrimPrefix(next, "\n")
		}
		rendered = next
	}
	return Visible(b.String())
}

// Visible returns a text without the characters that cannot be seen, in which instructions may be hidden.
func Visible(text string) string {
	return strings.Map(func(r rune) rune {
		if unicode.In(r, unicode.Cf, unicode.Variation_Selector, unicode.Other_Default_Ignorable_Code_Point) {
			return -1
		}
		return r
	}, text)
}
