package board

import (
	"bytes"
	"strings"
	"unicode"
	"unicode/utf8"

	"go.yaml.in/yaml/v3"

	"switchyard/internal/domain"
)

const (
	// maxFile is how much of a file is read, in bytes. A larger file counts as having no front matter.
	maxFile = 1 << 20
	// maxText is the longest name, and how much of a reason is kept, in characters: 500 events with both stay well
	// below the 8 MiB that a gateway accepts.
	maxText = domain.MaxText
)

// facts are what a file says about its story.
type facts struct {
	name         string // "" if it says none: the name is then the id
	blocked      string // the reason, "" if not blocked
	mergeFailure string // the reason, "" for none
	criteria     domain.Criteria
	dependsOn    string // the ids, one after the other; likewise
	waitsFor     string
	version      string
	fault        string // why the file cannot be read, "" if it can
	state        fileState
}

type fileState int

const (
	whole      fileState = iota
	torn                 // empty or malformed, like a file that is being written
	unreadable           // its content is unknown
)

func parse(content []byte) facts {
	if len(bytes.TrimSpace(content)) == 0 {
		return facts{state: torn}
	}
	d := splitDocument(content)
	f, err := parseFrontMatter(d)
	if err != nil {
		return facts{name: heading(d.body, anyLevel), state: torn, fault: limit(err.Error())}
	}
	found := readFacts(f, d.body)
	found.blocked, found.mergeFailure = domain.CutReason(found.blocked), domain.CutReason(found.mergeFailure)
	return found
}

// readFacts reads the keys that the board knows, reasons in full. The name is the body's if the front matter has none.
func readFacts(f frontMatter, body []byte) facts {
	found := facts{
		name:         limit(text(f.get("name"))),
		blocked:      reason(f.get("blocked"), text(f.get("blocked_reason")), "blocked"),
		mergeFailure: reason(f.get("merge_failure"), "", "merge failed"),
	}
	if found.name == "" {
		found.name = heading(body, anyLevel)
	}
	return found
}

// text returns the value of a scalar without surrounding white space, "" for any other node and for null.
func text(node *yaml.Node) string {
	if node.Kind != yaml.ScalarNode || node.ShortTag() == "!!null" {
		return ""
	}
	return strings.ToValidUTF8(strings.TrimSpace(node.Value), "\ufffd")
}

// reason reads a key whose value is a boolean or the reason itself. For true the reason is given, or fallback if that
// is "". As in YAML 1.1, unquoted yes, no, on and off are booleans.
func reason(node *yaml.Node, given, fallback string) string {
	var is bool
	if node.Kind != yaml.ScalarNode || node.Style&(yaml.SingleQuotedStyle|yaml.DoubleQuotedStyle) != 0 ||
		node.Decode(&is) != nil {
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

// limit makes s valid UTF-8 of at most maxText characters.
func limit(s string) string {
	return domain.Cut(strings.ToValidUTF8(s, "\ufffd"), maxText)
}

// checkText returns an Invalid error unless text can be a story's: not blank, at most maxText characters, printable.
func checkText(field, text string) error {
	switch {
	case strings.TrimSpace(text) == "":
		return domain.Errorf(domain.Invalid, "%s: must not be blank", field)
	case utf8.RuneCountInString(text) > maxText:
		return domain.Errorf(domain.Invalid, "%s: must be at most %d characters", field, maxText)
	case strings.ContainsFunc(text, func(r rune) bool {
		return unicode.IsControl(r) && r != '\n' && r != '\r' &&
			r != '\t'
	}):
		return domain.Errorf(domain.Invalid, "%s: must not contain control characters", field)
	}
	return nil
}
