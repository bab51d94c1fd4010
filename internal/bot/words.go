package bot

import (
	"strings"
)

// word is a part of a command; a quoted one is never a keyword.
type word struct {
	text   string
	quoted bool
}

// quotes maps opening to closing quotes, as people and chat programs write them.
var quotes = map[rune]rune{'"': '"', '“': '”', '„': '“', '«': '»', '`': '`', '\'': '\'', '‘': '’'}

// split splits text at white space outside quotes.
func split(text string) []word {
	var words []word
	for text = strings.TrimSpace(text); text != ""; text = strings.TrimSpace(text) {
		first := []rune(text)[0]
		if closing, ok := quotes[first]; ok {
			rest := text[len(string(first)):]
			if quoted, after, found := strings.Cut(rest, string(closing)); found {
				words = append(words, word{quoted, true})
				text = after
				continue
			}
		}
		end := strings.IndexFunc(text, func(r rune) bool { return strings.ContainsRune(" \t\n\u00a0", r) })
		if end < 0 {
			end = len(text)
		}
		words = append(words, word{text[:end], false})
		text = text[end:]
	}
	return words
}

// join joins words into one name: names may contain spaces.
func join(words []word) string {
	var texts []string
	for _, w := range words {
		texts = append(texts, w.text)
	}
	return strings.Join(texts, " ")
}
