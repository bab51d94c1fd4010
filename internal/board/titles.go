package board

import (
	"strings"
	"unicode"
	"unicode/utf8"
)

func (x *index) name(id, title string) string {
	if title == "" || x.shared[title] {
		return limit(words(id))
	}
	return limit(title)
}

// sharedTitles returns the titles that several stories have.
func (s *units) sharedTitles() map[string]bool {
	shared := map[string]bool{}
	for _, u := range s.units {
		for i := range u.stories {
			title := u.stories[i].title
			_, known := shared[title]
			shared[title] = known
		}
	}
	return shared
}

// kindsOfDocuments are words in documents' headings that name only the kind of document.
var kindsOfDocuments = []string{
	"Requirements", "Requirements Document", "Bugfix Requirements", "Bugfix Requirements Document", "需求文档", "要件定義書",
	"요구사항 문서", "Documento de Requisitos", "Document des exigences", "Anforderungsdokument",
}

// withoutKind returns a title without the kind of the document, "" if nothing else is left.
func withoutKind(title string) string {
	for _, kind := range kindsOfDocuments {
		if len(title) < len(kind) || !strings.EqualFold(title[:len(kind)], kind) {
			continue
		}
		rest := strings.TrimSpace(title[len(kind):])
		if rest == "" {
			return ""
		}
		for _, mark := range []string{":", "：", "- ", "– ", "— "} {
			if own, is := strings.CutPrefix(rest, mark); is {
				return strings.TrimSpace(own)
			}
		}
	}
	return title
}

func words(id string) string {
	text := strings.NewReplacer("-", " ", "_", " ").Replace(id)
	first, size := utf8.DecodeRuneInString(text)
	if size == 0 {
		return text
	}
	return string(unicode.ToTitle(first)) + text[size:]
}
