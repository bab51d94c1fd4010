package board

import (
	"regexp"
	"strings"
	"sync"
)

// firstHeading returns the text of the first Markdown heading outside code blocks, "" if there is none.
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

// Criteria are the items of a story's task list.
type Criteria struct{ Done, Total int }

var (
	// listItem matches the marker of a list item, including those of quotes and items around it.
	listItem = sync.OnceValue(func() *regexp.Regexp {
		return regexp.MustCompile(`^(?:\s*(?:>|[-*+](?:\s|$)|[0-9]{1,9}[.)](?:\s|$)))+`)
	})
	// taskBox matches the box that makes a list item a task.
	taskBox = sync.OnceValue(func() *regexp.Regexp { return regexp.MustCompile(`^\s{0,3}\[([ \txX])\]\s+\S`) })
)

// countCriteria counts the items of Markdown task lists outside code blocks. It returns nil when there are none.
func countCriteria(body string) *Criteria {
	var c Criteria
	fence, inList := "", false
	for line := range strings.Lines(body) {
		line := strings.TrimRight(line, " \t\r\n")
		text := strings.TrimLeft(line, " \t>")
		mark := codeFence(text)
		indented := strings.HasPrefix(line, "    ") || strings.HasPrefix(line, "\t")
		switch {
		case text == "":
			continue
		case fence != "":
			if strings.HasPrefix(mark, fence) && mark == text {
				fence = ""
			}
			continue
		case indented && !inList: // a code block
			continue
		case mark != "":
			fence = mark
			continue
		}
		marker := listItem().FindString(line)
		if marker == "" {
			inList = inList && (line[0] == ' ' || line[0] == '\t')
			continue
		}
		inList = true
		if box := taskBox().FindStringSubmatch(line[len(marker):]); box != nil {
			c.Total++
			if strings.EqualFold(box[1], "x") {
				c.Done++
			}
		}
	}
	if c.Total == 0 {
		return nil
	}
	return &c
}
