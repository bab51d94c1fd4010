package views

import (
	"bytes"
	"encoding/json"
	"slices"
	"strconv"
	"strings"

	"switchyard/internal/domain"
	"switchyard/internal/markdown"
)

func storyHTML(s domain.Story) string {
	if s.File == nil {
		return ""
	}
	return markdown.HTML(s.File.Body)
}

// storyPrompt returns the story as a task for an agent: what a person has seen on the page, and no more.
func storyPrompt(s domain.Story, html string) string {
	var b strings.Builder
	b.WriteString("Work on the story " + strconv.Quote(markdown.Visible(storyName(s))) + " (" + s.ID +
		") of the project " + s.Project + ".\n")
	if s.Stage != "" {
		b.WriteString("It is in the stage " + s.Stage + ".\n")
	}
	if s.Blocked != "" {
		b.WriteString("It is blocked: " + s.Blocked + "\n")
	}
	if s.MergeFailure != "" {
		b.WriteString("Its merge failed: " + s.MergeFailure + "\n")
	}
	if s.File == nil {
		return markdown.Visible(b.String())
	}
	b.WriteString("Its file is " + s.File.Path + " in the directory of work items.\n")
	const most = 4000 // characters; an agent can read the rest in the file
	body := []rune(strings.TrimSpace(markdown.Text(html)))
	if len(body) > 0 {
		b.WriteString("\n" + string(body[:min(most, len(body))]) + "\n")
	}
	if len(body) > most || s.File.BodyCut {
		b.WriteString("\n(The rest is in the file.)\n")
	}
	return markdown.Visible(b.String())
}

func shortHash(hash string) string {
	const length = 8
	return hash[:min(length, len(hash))]
}

// field is a key of a story's front matter.
type field struct{ name, value string }

// shownElsewhere are the keys of front matter that a story's page shows elsewhere.
var shownElsewhere = []string{"name", "blocked", "blocked_reason", "merge_failure"}

// frontMatter returns the other keys of a story's front matter, sorted by name.
func frontMatter(text json.RawMessage) []field {
	const most, longest = 30, 200
	var mapping map[string]json.RawMessage
	if json.Unmarshal(text, &mapping) != nil {
		return nil
	}
	var fields []field
	for name, value := range mapping {
		if words := fieldWords(value); words != "" && !slices.Contains(shownElsewhere, name) {
			fields = append(fields, field{domain.Cut(name, 40), domain.Cut(words, longest)})
		}
	}
	slices.SortFunc(fields, func(a, b field) int { return strings.Compare(a.name, b.name) })
	return fields[:min(most, len(fields))]
}

// fieldWords returns a value as people write it: a string without quotes, a list of strings with commas.
func fieldWords(value json.RawMessage) string {
	var word string
	if json.Unmarshal(value, &word) == nil {
		return word // null is ""
	}
	var list []json.RawMessage
	if json.Unmarshal(value, &list) == nil {
		words := make([]string, len(list))
		for i := range list {
			words[i] = string(bytes.Trim(list[i], `"`))
		}
		return strings.Join(words, ", ")
	}
	return string(value)
}
