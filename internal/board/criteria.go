package board

import (
	"regexp"
	"strings"
	"sync"
)

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
