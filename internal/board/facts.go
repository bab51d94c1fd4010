package board

import (
	"bytes"
	"errors"
	"strings"
	"unicode/utf8"

	"go.yaml.in/yaml/v3"
)

const (
	// maxFile is the largest file that is read, in bytes. A larger one is an item named by its id.
	maxFile = 1 << 20
	// maxFrontMatter is the largest front matter that is parsed, in bytes; a longer one is broken.
	maxFrontMatter = 64 << 10
	// maxText is the longest name or reason, in characters: 500 events with both stay well below the 8 MiB that
	// a gateway reads.
	maxText = 1000
)

// facts are what a file says of its item.
type facts struct {
	name         string // "" when it says none: then the id is the name
	blocked      string // the reason, "" when not blocked
	mergeFailure string // the reason, "" when none
	state        fileState
}

type fileState int

const (
	whole      fileState = iota
	torn                 // empty or with broken front matter, as a file is while it is being written
	unreadable           // it may say anything
)

// parse reads the facts from a file's content.
func parse(content []byte) facts {
	content = bytes.TrimPrefix(content, []byte("\ufeff"))
	if len(bytes.TrimSpace(content)) == 0 {
		return facts{state: torn}
	}
	head, body, err := splitFrontMatter(content)
	if err != nil {
		return facts{state: torn}
	}
	var keys struct {
		Name          yaml.Node `yaml:"name"`
		Blocked       yaml.Node `yaml:"blocked"`
		BlockedReason yaml.Node `yaml:"blocked_reason"`
		MergeFailure  yaml.Node `yaml:"merge_failure"`
	}
	if err := yaml.Unmarshal(head, &keys); err != nil {
		return facts{state: torn}
	}
	f := facts{
		name:         text(&keys.Name),
		blocked:      reason(&keys.Blocked, text(&keys.BlockedReason), "blocked"),
		mergeFailure: reason(&keys.MergeFailure, "", "merge failed"),
	}
	if f.name == "" {
		f.name = firstHeading(body)
	}
	return f
}

var errFrontMatter = errors.New("the front matter is not closed, or too long")

// splitFrontMatter cuts content at the "---" lines around its front matter. Without an opening one all is body.
func splitFrontMatter(content []byte) (head, body []byte, err error) {
	first, rest, _ := bytes.Cut(content, []byte("\n"))
	if string(bytes.TrimRight(first, " \t\r")) != "---" {
		return nil, content, nil
	}
	for at := 0; at < len(rest) && at <= maxFrontMatter; {
		line, _, found := bytes.Cut(rest[at:], []byte("\n"))
		next := at + len(line)
		if found {
			next++
		}
		if string(bytes.TrimRight(line, " \t\r")) == "---" {
			return rest[:at], rest[next:], nil
		}
		at = next
	}
	return nil, nil, errFrontMatter
}

// text is the value of a scalar that is not null, without white space around it.
func text(node *yaml.Node) string {
	if node.Kind == yaml.AliasNode {
		node = node.Alias
	}
	if node.Kind != yaml.ScalarNode || node.ShortTag() == "!!null" {
		return ""
	}
	return limit(strings.TrimSpace(node.Value))
}

// reason reads a key that is true or a reason itself. True takes given as its reason, else fallback.
// Plain yes, no, on and off are the booleans that they were in YAML 1.1.
func reason(node *yaml.Node, given, fallback string) string {
	if node.Kind == yaml.AliasNode {
		node = node.Alias
	}
	var is bool
	if node.Style&(yaml.SingleQuotedStyle|yaml.DoubleQuotedStyle) != 0 || node.Decode(&is) != nil || node.IsZero() {
		return text(node)
	}
	switch {
	case !is:
		return ""
	case given != "":
		return given
	}
	return fallback
}

// firstHeading is the text of the first Markdown heading outside of code blocks, "" when there is none.
func firstHeading(body []byte) string {
	fence, above := "", ""
	for line := range strings.Lines(string(body)) {
		indented := strings.TrimRight(line, " \t\r\n")
		line := strings.TrimLeft(indented, " ")
		if len(indented)-len(line) > 3 || strings.HasPrefix(line, "\t") {
			above = ""
			continue
		}
		mark := codeFence(line)
		switch {
		case fence != "":
			if strings.HasPrefix(mark, fence) && mark == line {
				fence = ""
			}
		case mark != "":
			fence, above = mark, ""
		case above != "" && line != "" && (strings.Trim(line, "=") == "" || strings.Trim(line, "-") == ""):
			return limit(above)
		default:
			if title, ok := atxHeading(line); ok {
				if title != "" {
					return limit(title)
				}
				line = ""
			}
			above = line
		}
	}
	return ""
}

// codeFence returns the run of at least three backticks or tildes that line begins with.
func codeFence(line string) string {
	for _, mark := range []string{"`", "~"} {
		if run := line[:len(line)-len(strings.TrimLeft(line, mark))]; len(run) >= 3 {
			return run
		}
	}
	return ""
}

// atxHeading returns the text of a "## heading ##" line.
func atxHeading(line string) (title string, ok bool) {
	title = strings.TrimLeft(line, "#")
	level := len(line) - len(title)
	if level < 1 || level > 6 || title != "" && title[0] != ' ' && title[0] != '\t' {
		return "", false
	}
	title = strings.TrimSpace(title)
	if open := strings.TrimRight(title, "#"); open == "" || open[len(open)-1] == ' ' || open[len(open)-1] == '\t' {
		title = strings.TrimSpace(open)
	}
	return title, true
}

// limit makes s valid UTF-8 of at most maxText characters.
func limit(s string) string {
	s = strings.ToValidUTF8(s, "\ufffd")
	if utf8.RuneCountInString(s) <= maxText {
		return s
	}
	return string([]rune(s)[:maxText-1]) + "…"
}
